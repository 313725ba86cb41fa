"""Two results compared, and reports of results that were written before."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Union

from . import _dovetail
from ._words import words
from .results import Record, Results
from .sweeps import Sweep

Source = Union[Results, Sweep, str, "os.PathLike[str]"]


class Comparison(Record):
    """Changes of the second results relative to the first; names are those of
    ``dovetail compare --json`` (``dovetail help comparing``)."""

    changed: bool
    """Something changed by more than the threshold and the spread over seeds."""
    identical: bool
    """Nothing but the program and the call differs."""
    runs: list[Record]
    """The runs that both have: a, b, setup, figures."""

    @property
    def text(self) -> str:
        """The table that the command line shows."""
        return self._text

    def __init__(self, fields: dict[str, object], text: str) -> None:
        super().__init__(fields)
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Comparison({'changed' if self.changed else 'the same'})"


@contextmanager
def _as_path(source: Source, name: str) -> Iterator[str]:
    """The file or folder of results."""
    if isinstance(source, Sweep):
        yield str(source.folder)
    elif isinstance(source, Results):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.json"
            path.write_text(source.json(), encoding="utf-8")
            yield str(path)
    else:
        yield os.fspath(source)


def compare(a: Source, b: Source, *, threshold: float = 2.0, all: bool = False) -> Comparison:
    """Says which figures differ between two results, and by how much.

    a, b: Results, sweeps, or the files and folders of either. Runs of one name are compared; seeds
        are repetitions.
    threshold: Change in percent up to which a figure counts as the same.
    all: All single figures, not only the headline's.
    """
    options = {"threshold": threshold, "all": all}
    with _as_path(a, "a") as first, _as_path(b, "b") as second:
        found = json.loads(_output("compare", [first, second], {**options, "json": True}))
        text = _output("compare", [first, second], options).decode()
        for source, path in ((a, first), (b, second)):
            if isinstance(source, Results):
                # its folder is another one each time
                text = text.replace(path, Path(path).name)
    return Comparison(found, text)


def _output(command: str, inputs: list[str], options: Mapping[str, object]) -> bytes:
    code, output, errors = _dovetail.short(words(command, inputs, options))
    if code > 1 or (code and not output):
        raise _dovetail.DovetailError("\n".join(errors))
    return output


def report(*results: Source, output: str | os.PathLike[str]) -> Path:
    """Writes the report of results or of a sweep: one HTML file that needs nothing else.

    results: Results of one workload, scale and seed, to stand beside each other; or a sweep.
    """
    with ExitStack() as stack:
        paths = [stack.enter_context(_as_path(each, f"results-{n}")) for n, each in enumerate(results)]
        _output("report", paths, {"output": output})
    return Path(output)
