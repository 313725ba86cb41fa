"""Drives and stacks that come with the package."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from . import _dovetail
from .results import Record


class Figure(NamedTuple):
    """A figure of a drive's profile."""

    key: str
    """Its place in the profile, table.key."""
    value: str
    """Its value."""
    source: str | None
    """Where it comes from, or why it is assumed."""


def drives() -> list[Record]:
    """The drives: name, about, capacity_bytes, page_bytes, channels, dies_per_channel, map."""
    return [Record(each) for each in json.loads(_dovetail.drives())]


def drive_figures(name: str | os.PathLike[str]) -> list[Figure]:
    """The figures of a drive, by its name or .toml file, each with its source."""
    return [Figure(*each) for each in _dovetail.drive_figures(os.fspath(name))]


def stacks() -> list[Record]:
    """The stacks: name, about, filesystem, mount, drive, ... A stack's to_dict(), changed, is a stack
    of your own."""
    return [Record(each) for each in json.loads(_dovetail.stacks())]
