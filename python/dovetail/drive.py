"""A simulated drive to experiment with."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from . import _dovetail
from ._words import plain
from ._words import text as words_text
from .results import Record

Command = tuple[Literal["read", "write", "flush", "discard"], int, int, "int | None"]


def _given(value: str | float | None) -> str | None:
    return None if value is None else words_text(value)


def _whole(name: str, value: int, most: int = 2**64 - 1) -> int:
    """A whole number from 0 to ``most``; anything else is an error that names its argument."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: give a whole number") from None
    if number < 0:
        raise _dovetail.UsageError(f"{name} is {number}: give a whole number from 0 on")
    if number > most:
        raise _dovetail.UsageError(f"{name} is {number}: give at most {most}")
    return number


def _time(at_ns: int | None) -> int | None:
    return None if at_ns is None else _whole("at_ns", at_ns)


class Drive:
    """A flash drive in virtual time.

    ``profile`` is a name (:func:`dovetail.drives`), a .toml file or a dict; the other arguments are
    those of ``dovetail replay``. Blocks have 4 KiB. A command returns the virtual time in
    nanoseconds at which it completes. Without ``at_ns`` it is submitted when all before it have
    completed; with it, at that time, so that commands overlap. Times never go back; the latest
    ``at_ns`` is 2**63.

    >>> drive = Drive("femu-32g", scale="1/64")
    >>> drive.write(0, 8) < drive.flush()
    True
    """

    def __init__(
        self,
        profile: str | os.PathLike[str] | Mapping[str, Any],
        *,
        scale: str | float | None = None,
        op: str | float | None = None,
        gc: str | None = None,
        map: str | None = None,
        cache: str | None = None,
        cache_size: str | int | None = None,
        buffer: str | int | None = None,
        seed: int = 1,
    ) -> None:
        text = None
        if isinstance(profile, Mapping):
            text = _dovetail.toml(json.dumps(plain(profile, "drive")))
            profile = str(profile.get("name", "drive"))
        self._raw = _dovetail.Drive(
            os.fspath(profile),
            text,
            scale=_given(scale),
            op=_given(op),
            gc=_given(gc),
            map=_given(map),
            cache=_given(cache),
            cache_size=_given(cache_size),
            buffer=_given(buffer),
            seed=_whole("seed", seed),
        )

    @property
    def blocks(self) -> int:
        """Addresses, in blocks of 4 KiB."""
        return self._raw.blocks

    @property
    def now_ns(self) -> int:
        """Virtual time at which the last command completed, in nanoseconds."""
        return self._raw.now_ns

    def read(self, block: int, count: int = 1, *, at_ns: int | None = None) -> int:
        """Reads ``count`` blocks."""
        return self._raw.read(_whole("block", block), _whole("count", count), at_ns=_time(at_ns))

    def write(
        self,
        block: int,
        count: int = 1,
        *,
        at_ns: int | None = None,
        fua: bool = False,
        stream: int = 0,
    ) -> int:
        """Writes ``count`` blocks; with ``fua`` it completes when they survive a power cut."""
        return self._raw.write(
            _whole("block", block),
            _whole("count", count),
            at_ns=_time(at_ns),
            fua=fua,
            stream=_whole("stream", stream, 255),
        )

    def flush(self, *, at_ns: int | None = None) -> int:
        """Completes when all that was written survives a power cut."""
        return self._raw.flush(at_ns=_time(at_ns))

    def discard(self, block: int, count: int = 1, *, at_ns: int | None = None) -> int:
        """Gives ``count`` blocks up: the drive need not keep them."""
        return self._raw.discard(_whole("block", block), _whole("count", count), at_ns=_time(at_ns))

    def submit(self, commands: Iterable[Command]) -> list[int]:
        """Commands (kind, block, count, at_ns or None) one after the other: much faster than a call
        for each. Returns their completions. Those before one that the drive refuses are performed;
        if one is no such tuple, none is performed."""
        return self._raw.submit_all(list(commands))

    def status(self) -> Record:
        """State and wear, and the work since the drive was made: written_bytes, write_amplification, erases, ..."""
        state, work = json.loads(self._raw.status())
        return Record({**state, **work})

    def __repr__(self) -> str:
        status = self.status()
        return f"Drive({status.name!r}, {self.blocks} blocks, {self.now_ns / 1e9:.6f} s)"
