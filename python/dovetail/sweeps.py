"""Sweeps: many runs that differ in a few options, and a table of what they found."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _dovetail
from ._optional import needed
from ._progress import Progress, Teller, Wanted
from ._words import DESCRIBED, name_of, plain

if TYPE_CHECKING:
    import distributed
    import pandas
    import polars

TABLE = "table.csv"


class Sweep:
    """Results of a sweep: the folder, and its table."""

    def __init__(self, folder: Path, points: int, finished: int, failed: int) -> None:
        self.folder = folder
        """The folder of results."""
        self.points = points
        """Number of all points."""
        self.finished = finished
        """Points that have a result, failed ones included."""
        self.failed = failed
        """Points that failed; their rows say why."""

    @property
    def table(self) -> Path:
        """The table: CSV, a row for each run of each finished point."""
        return self.folder / TABLE

    def rows(self) -> Iterator[dict[str, str]]:
        """The rows of the table, as texts."""
        with self.table.open(newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a frame of pandas; texts that are empty are "", numbers that are missing NaN."""
        frame: pandas.DataFrame = needed("pandas", "frames").read_csv(self.table)
        for name, column in frame.items():
            there = column.dropna()
            if len(there) and all(isinstance(value, str) for value in there):
                frame[name] = column.fillna("")
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The table as a frame of polars; texts that are empty are "", numbers that are missing null."""
        library = needed("polars", "frames")
        frame: polars.DataFrame = library.read_csv(self.table, infer_schema_length=None)
        return frame.with_columns(library.col(library.String).fill_null(""))

    def series(self, point: int) -> dict[str, Any]:
        """The whole results of a point, if the sweep keeps them ([keep] series = true)."""
        path = self.folder / "series" / f"{point:06}.json"
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise _dovetail.DovetailError(
                f"{path} is not there: point {point} is not finished or failed, or the sweep does not "
                "keep whole results ([keep] series = true)"
            ) from None
        return json.loads(text)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"Sweep({str(self.folder)!r}: {self.finished} of {self.points} points{failed})"


def sweep(
    file: str | os.PathLike[str] | Mapping[str, Any],
    *,
    results: str | os.PathLike[str] | None = None,
    shard: str | None = None,
    jobs: int | None = None,
    retry_failed: bool = False,
    client: distributed.Client | None = None,
    progress: Wanted = None,
) -> Sweep:
    """Performs the points of a sweep that have no result yet, and writes its table.

    A sweep may be stopped or killed at any time: the same call goes on where it was.

    file: A TOML file (``dovetail help sweeps``), or its content as a dict, in which stacks and
        drives may be dicts too.
    results: Folder of results [default: the file's name with .sweep; a dict needs one].
    shard: Only a part of the points, such as 1/4 to 4/4.
    jobs: Points at the same time on this machine; all cores if not given. Not with a client.
    retry_failed: Run points again that have failed.
    client: A client of Dask: its workers perform the points (``dovetail help python``).
    progress: True for a bar, or a function that hears of dovetail.Progress.
    """
    text, name, folder = _read(file, results)
    if client is not None:
        if jobs is not None:
            raise _dovetail.UsageError("jobs is for this machine; a client knows its workers")
        if not hasattr(client, "nthreads") or getattr(client, "asynchronous", False):
            raise _dovetail.UsageError(
                "client is a distributed.Client that is not asynchronous: Client(cluster)"
            )
    begun = _dovetail.Sweep(text, name, folder, shard)
    try:
        with Teller(progress) as tell:
            if client is None:
                begun.perform(jobs, retry_failed, None if tell is None else _counted(tell))
            else:
                from ._cluster import perform

                perform(begun, folder, client, retry_failed, tell)
        _, finished, failed = begun.finish()
        return Sweep(folder, len(begun), finished, failed)
    finally:
        # a traceback that a notebook keeps must not keep the folder
        begun.close()


Tell = Callable[[str, str, float, int], object]


def _counted(tell: Tell) -> Tell:
    """One bar for all points, in place of one for each. They are told in any order."""
    most = 0

    def told(_label: str, stage: str, share: float, done: int) -> None:
        nonlocal most
        if done > most:
            most = done
            tell("points", stage, share, done)

    return told


def _read(
    file: str | os.PathLike[str] | Mapping[str, Any], results: str | os.PathLike[str] | None
) -> tuple[str, str, Path]:
    """Text, name and folder of a sweep."""
    if not isinstance(file, Mapping):
        path = Path(file)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _dovetail.DovetailError(f"{path} cannot be read: {error}") from None
        return text, str(path), Path(results) if results is not None else path.with_suffix(".sweep")
    if results is None:
        raise _dovetail.UsageError("a sweep that is a dict has no name: give a folder, results=...")
    return _text_of(file), "sweep", Path(results)


def _named(value: Any, tables: dict[str, dict[str, Any]], option: str = "") -> Any:
    """The sweep with names in place of stacks and drives that are dicts, which `tables` gets."""
    if isinstance(value, Mapping):
        if option in DESCRIBED and not {"from", "to"} <= set(value):
            name = name_of(value, option)
            known = tables[option].setdefault(name, dict(value))
            if plain(known) != plain(value):
                raise _dovetail.UsageError(f"two {option}s are called {name!r}: name them differently")
            return name
        return {key: _named(each, tables, key) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_named(each, tables, option) for each in value]
    return value


def _text_of(sweep: Mapping[str, Any]) -> str:
    """The file of a sweep that is a dict."""
    tables: dict[str, dict[str, Any]] = {
        option: dict(sweep.get(f"{option}s", {})) for option in DESCRIBED
    }
    named = {
        key: _named(value, tables) if key in ("options", "axes", "points") else value
        for key, value in sweep.items()
    }
    named.update({f"{option}s": found for option, found in tables.items() if found})
    return _dovetail.toml(json.dumps(plain(named)))
