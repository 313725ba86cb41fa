"""Tables that pandas, polars and others take through Arrow's C interface."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import _dovetail
from ._optional import needed

if TYPE_CHECKING:
    import pandas
    import polars


class Frame:
    """Columns of equal length.

    Anything that knows Arrow's C stream interface takes a frame as it is, without copying:
    ``polars.DataFrame(frame)``, ``pyarrow.table(frame)``, ``duckdb.sql("select * from frame")``.
    """

    def __init__(self, raw: _dovetail.Frame) -> None:
        self._raw = raw

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._raw.columns

    def __reduce__(self) -> tuple[Any, ...]:
        return _frame, (json.dumps(list(self.to_dict().items())),)

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, column: str) -> list[Any]:
        """The values of a column; null is None."""
        return self._raw.column(column)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._raw.__arrow_c_stream__(requested_schema)

    def to_dict(self) -> dict[str, list[Any]]:
        """All columns as lists."""
        return {column: self[column] for column in self.columns}

    def to_pandas(self) -> pandas.DataFrame:
        """A frame of pandas (needs pandas and pyarrow)."""
        needed("pandas", "frames")
        frame: pandas.DataFrame = needed("pyarrow", "frames").table(self).to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A frame of polars (needs polars)."""
        frame: polars.DataFrame = needed("polars", "frames").DataFrame(self)
        return frame

    def __repr__(self) -> str:
        names = ", ".join(self.columns[:8]) + (", ..." if len(self.columns) > 8 else "")
        return f"Frame({len(self)} rows: {names})"


def _frame(columns: str) -> Frame:
    """A frame that was pickled."""
    return Frame(_dovetail.Frame(columns))
