"""Images of file systems, read and changed without mounting them."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import _dovetail
from ._words import words
from .results import Record

# the times that datetime has, in seconds since 1970: the years 1 to 9999
FIRST, LAST = -62_135_596_800, 253_402_300_799

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class File:
    """A file in an image."""

    path: str
    """Path from the root; bytes that are no UTF-8 are escaped as os.fsdecode does."""
    mode: int
    """Type and permissions, as st_mode."""
    links: int
    """Names that lead to it."""
    uid: int
    """The owner."""
    gid: int
    """The group."""
    size: int
    """Bytes."""
    mtime: datetime
    """Last changed, in UTC, to a microsecond; of a damaged file at most the year 9999."""
    target: str | None
    """Target of a symbolic link."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_dir(self) -> bool:
        """It is a directory."""
        return stat.S_ISDIR(self.mode)

    def __str__(self) -> str:
        time = self.mtime.strftime("%Y-%m-%d %H:%M")
        arrow = f" -> {self.target}" if self.target is not None else ""
        return f"{stat.filemode(self.mode)} {self.size:>12} {time} {self.path}{arrow}"


class Damage(UserWarning):
    """Something of an image that cannot be read and is left out."""


def _run(command: str, inputs: list[Any], options: dict[str, Any]) -> bytes:
    code, output, errors = _dovetail.short(words(command, inputs, options))
    if code:
        raise _dovetail.DovetailError("\n".join(errors))
    return output


class Check(Record):
    """Findings of :meth:`Image.fsck`; names are those of ``dovetail fsck --json``."""

    clean: bool
    """There are no errors, or none any more."""
    findings: list[Record]
    """What was found: kind, severity, text, and as items ["values"]."""

    def __bool__(self) -> bool:
        return bool(self._fields["clean"])

    def __repr__(self) -> str:
        count = len(self._fields["findings"])
        return f"Check({'clean' if self else 'errors'}, {count} findings)"


class Image:
    """An F2FS, ext3 or ext4 volume in a file, a block device or a drive file.

    partition, offset (bytes), device and zones are those of ``dovetail ls``.
    """

    def __init__(
        self,
        path: StrPath,
        *,
        partition: int | None = None,
        offset: int | None = None,
        device: StrPath | list[StrPath] | None = None,
        zones: StrPath | None = None,
    ) -> None:
        self.path = Path(path)
        self._parts = {"partition": partition, "offset": offset, "device": device, "zones": zones}

    def ls(self, path: StrPath = "/", *, recursive: bool = False) -> list[File]:
        """The files of a directory, or of all below it. Damage is a warning."""
        options = {**self._parts, "recursive": recursive}
        entries, damage = _dovetail.list_files(words("ls", [self.path, path], options))
        _warn(damage)
        return [_file(entry) for entry in entries]

    def read(self, path: StrPath) -> bytes:
        """The content of a file."""
        return _run("cat", [self.path, path], self._parts)

    def extract(self, to: StrPath, path: StrPath = "/", *, lost: bool = False) -> None:
        """Copies a file, or a directory with all below it, out of the image.

        ``lost`` salvages first, in memory (F2FS).
        """
        _run("extract", [self.path, to, path], {**self._parts, "lost": lost})

    def fsck(self, *, repair: bool = False, yes: bool = False) -> Check:
        """Checks the volume; ``repair`` mends what needs no guess, ``yes`` salvages too (F2FS).

        A repair that is refused, as that of an ext volume, is an error.
        """
        options = {**self._parts, "repair": repair, "yes": yes, "json": True}
        code, output, errors = _dovetail.short(words("fsck", [self.path], options))
        if code >= 8 or not output:
            raise _dovetail.DovetailError("\n".join(errors))
        found = json.loads(output)
        if errors and (repair or yes) and not (found.get("repaired") or "salvage" in found):
            raise _dovetail.DovetailError("\n".join(errors))
        return Check(found)

    def __repr__(self) -> str:
        return f"Image({str(self.path)!r})"


def _warn(damage: list[str]) -> None:
    import warnings

    for sentence in damage:
        warnings.warn(sentence, Damage, stacklevel=3)


def _file(entry: Any) -> File:
    path, mode, links, uid, gid, size, (seconds, nanoseconds), target = entry
    # of a damaged file it may be any number
    seconds = min(max(seconds, FIRST), LAST)
    mtime = datetime.fromtimestamp(seconds, tz=timezone.utc)
    mtime = mtime.replace(microsecond=min(nanoseconds // 1000, 999_999))
    target = None if target is None else os.fsdecode(target)
    return File(os.fsdecode(path), mode, links, uid, gid, size, mtime, target)
