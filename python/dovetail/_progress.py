"""Progress of a call: a function of the caller, or bars of tqdm."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Union


class Progress(NamedTuple):
    """How far a run has come."""

    label: str
    """Name of the run."""
    stage: str
    """precondition, prepare or run."""
    share: float
    """Part of the stage that is done, 0 to 1; 0 while it is not known."""
    requests: int
    """Requests or calls simulated so far in this stage."""


Callback = Callable[[Progress], object]
Wanted = Union[bool, Callback, None]


class _Bars:
    """A bar of tqdm for each run; lines without it."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._tqdm: Any = tqdm
        self._bars: dict[str, Any] = {}
        self._told: dict[tuple[str, str], int] = {}

    def __call__(self, told: Progress) -> None:
        percent = int(100 * told.share)
        if self._tqdm is not None:
            bar = self._bars.get(told.label)
            if bar is None:
                bar = self._bars[told.label] = self._tqdm(total=100, desc=told.label, unit="%")
            bar.set_postfix_str(told.stage, refresh=False)
            bar.n = percent
            bar.refresh()
        elif percent >= self._told.get((told.label, told.stage), -10) + 10:
            self._told[told.label, told.stage] = percent
            print(f"{told.label}: {told.stage} {percent} %", file=sys.stderr)

    def close(self, *, done: bool) -> None:
        for bar in self._bars.values():
            if done:
                # the last news may be older than the end
                bar.n = bar.total
                bar.refresh()
            bar.close()


class Teller:
    """What a call is given as its callback, and closed after it."""

    def __init__(self, wanted: Wanted) -> None:
        if not callable(wanted) and not isinstance(wanted, (bool, type(None))):
            raise TypeError(f"progress is {wanted!r}: give True, or a function that hears of Progress")
        self._bars = _Bars() if wanted is True else None
        self._told: Callback | None = self._bars or (wanted if callable(wanted) else None)

    def __enter__(self) -> Callable[[str, str, float, int], object] | None:
        told = self._told
        if told is None:
            return None
        return lambda label, stage, share, requests: told(Progress(label, stage, share, requests))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bars is not None:
            self._bars.close(done=kind is None)
