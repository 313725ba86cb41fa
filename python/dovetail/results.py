"""Results of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal, SupportsIndex, overload

from . import _dovetail
from .frame import Frame

Kind = Literal["read", "write", "flush", "discard"]


class Record(Mapping[str, Any]):
    """Named figures, as attributes and as items: ``run.totals.fs_waf`` is ``run.totals["fs_waf"]``.

    A name that a mapping has itself (keys, values, items, get) is an item only.

    Names and units are those of the JSON results (``dovetail help results-json``).
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._fields[name])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._fields:
            known = ", ".join(self._fields) if not name.startswith("_") else ""
            raise AttributeError(f"there is no figure {name!r} (there are: {known})")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"{name!r} cannot be set: figures are read only; change a copy, to_dict()")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def to_dict(self) -> dict[str, Any]:
        """A copy of the figures as they stand in the JSON."""
        return deepcopy(self._fields)

    def __repr__(self) -> str:
        return f"Record({', '.join(self._fields)})"


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [Record(each) for each in value]
    return value


class Run(Record):
    """A workload on a stack, or a trace on a drive."""

    label: str
    """Name of the run among the others."""
    seed: int
    """Seed of all that is random."""
    error: str | None
    """Reason why it ended early, if it did."""
    notes: list[str]
    """Sentences about what limits the figures."""
    totals: Record
    """Figures of the whole run: write_mb_per_s, fs_waf, device_waf, ..."""
    latency: Record
    """By kind of command: read, write, flush, discard, each with mean_ns, p99_ns, ..."""
    drive: Record
    """The drive that it ran on."""

    def __init__(self, fields: dict[str, Any], results: _dovetail.Results, number: int) -> None:
        super().__init__(fields)
        self._results = results
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _run, (self._results.run_json(self._number),)

    @property
    def stack(self) -> str:
        """Name of the stack; of a replay, of the drive's profile."""
        return str(self._fields["stack"]["name"])

    def series(self) -> Frame:
        """Figures over time, a row for each interval; time_s is its end."""
        return Frame(self._results.series(self._number))

    def latency_distribution(self, kind: Kind) -> Frame:
        """Columns latency_ns and share: the share of commands that took at most so long."""
        return Frame(self._results.latency(self._number, kind))

    def __repr__(self) -> str:
        return f"Run({self.label!r})"


class Results:
    """Results of :func:`dovetail.bench` or :func:`dovetail.replay`.

    A sequence of runs: ``results[0]``, ``for run in results``, ``results["f2fs"]``. Results may be
    pickled, and sent to other processes; :func:`dovetail.load` reads those that are in a file.
    """

    def __init__(self, raw: _dovetail.Results) -> None:
        self._raw = raw

    def __reduce__(self) -> tuple[Any, ...]:
        return loads, (self.json(),)

    @cached_property
    def _fields(self) -> dict[str, Any]:
        return json.loads(self._raw.json())  # type: ignore[no-any-return]

    @cached_property
    def runs(self) -> list[Run]:
        """The runs, in the order in which they were asked for."""
        fields = enumerate(self._fields["runs"])
        return [Run(each, self._raw, number) for number, each in fields]

    @property
    def workload(self) -> str:
        """Name of the job, or of the traces."""
        return str(self._fields["workload"])

    @property
    def scale(self) -> float:
        """Scale of drive, memory and workload: 1 is full scale."""
        return float(self._fields["scale"])

    @property
    def seed(self) -> int:
        """Seed of the first repetition."""
        return int(self._fields["seed"])

    @property
    def command(self) -> str:
        """The command line that gives these results; files stand in it without their folders."""
        return str(self._fields["provenance"]["command"])

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __contains__(self, which: object) -> bool:
        """A run of that label or stack, or the run itself."""
        return any(which in (run.label, run.stack) or which is run for run in self.runs)

    @overload
    def __getitem__(self, which: SupportsIndex | str) -> Run: ...
    @overload
    def __getitem__(self, which: slice) -> list[Run]: ...
    def __getitem__(self, which: SupportsIndex | str | slice) -> Run | list[Run]:
        if not isinstance(which, str):
            return self.runs[which]
        for run in self.runs:
            if which in (run.label, run.stack):
                return run
        known = ", ".join(run.label for run in self.runs)
        raise KeyError(f"there is no run {which!r} (there are: {known})")

    def figures(self) -> Frame:
        """Single figures, a row for each run; columns are paths in the JSON with dots. Options and
        provenance, which ``--csv`` has too, are in :meth:`to_dict`."""
        return Frame(self._raw.figures())

    def json(self) -> str:
        """The bytes that ``--json`` writes."""
        return self._raw.json()

    def to_dict(self) -> dict[str, Any]:
        """A copy of what :meth:`json` says."""
        return deepcopy(self._fields)

    def table(self, width: int = 80) -> str:
        """The table that the command line shows, so many characters wide."""
        return self._raw.table(width)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report with pictures: one HTML file that needs nothing else."""
        path = Path(path)
        path.write_text(self._raw.html(), encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"Results({self.workload!r}: {', '.join(run.label for run in self.runs)})"

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.table(110))}</pre>"


def load(file: str | os.PathLike[str]) -> Results:
    """Results of a file that ``dovetail bench`` or ``replay`` wrote with ``--json=FILE``.

    A file that has no such results is a :class:`dovetail.UsageError`.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _dovetail.DovetailError(f"{path} cannot be read: {error}") from None
    return Results(_dovetail.Results(text, str(path)))


def loads(text: str) -> Results:
    """Results of their JSON, as :meth:`Results.json` has it.

    A text that has no such results is a :class:`dovetail.UsageError`.
    """
    if not isinstance(text, str):
        raise TypeError(f"text is of type {type(text).__name__}: give JSON as a str")
    return Results(_dovetail.Results(text, "the text"))


def _run(text: str) -> Run:
    """A run that was pickled."""
    return loads(text)[0]


class Statement(Record):
    """A statement of a paper, and what is found here."""

    what: str
    """The statement."""
    paper: str
    """The paper's figure."""
    ours: str
    """The figure that was found."""
    rule: str
    """When they agree."""
    verdict: Literal["agrees", "differs", "shown"]
    """Whether they do; shown: no paper says anything of it."""


class Reproduction:
    """A figure or table of a paper, run again."""

    def __init__(self, raw: _dovetail.Reproduction) -> None:
        self.name = raw.name
        """Name of the figure."""
        self.statements = [Statement(each) for each in json.loads(raw.statements())]
        """The paper's statements beside ours."""
        self.results = Results(raw.results)
        """The runs behind them."""

    def __repr__(self) -> str:
        judged = [each.verdict == "agrees" for each in self.statements if each.verdict != "shown"]
        return f"Reproduction({self.name!r}: {sum(judged)} of {len(judged)} statements agree)"
