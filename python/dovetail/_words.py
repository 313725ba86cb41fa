"""Python's arguments as the words of the command line."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from . import _dovetail

# options of which a value may be a dict: the content of a file
DESCRIBED = {"stack": "stack", "drive": "drive"}


def text(value: Any) -> str:
    """A scalar as the command line has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        # also numpy's, whose repr names its type
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    raise TypeError(f"{value!r} is no option's value: give a text, a number or a path")


def described(value: Mapping[str, Any], kind: str, folder: Path | None = None) -> str:
    """The file of a stack or drive that is a dict; the same content has the same path."""
    toml = _dovetail.toml(json.dumps(value, default=os.fspath))
    name = str(value.get("name", kind))
    if not name or any(not (c.isalnum() or c in "-_. ") for c in name):
        raise _dovetail.UsageError(f"{kind} {name!r}: a name has letters, digits, - _ and .")
    if folder is None:
        folder = Path(tempfile.gettempdir()) / f"dovetail-{os.getuid()}"
    folder = folder / hashlib.sha256(toml.encode()).hexdigest()[:16]
    path = folder / f"{name}.toml"
    if "," in str(path):
        raise _dovetail.UsageError(f"{path}: the path of a {kind} has no comma: choose another folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != toml:
        with tempfile.NamedTemporaryFile(
            "w", dir=folder, suffix=".new", delete=False, encoding="utf-8"
        ) as new:
            new.write(toml)
        os.replace(new.name, path)
    return str(path)


def option(name: str, value: Any) -> list[str]:
    """The words of an option; none for None and False."""
    flag = "--" + name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        if name in DESCRIBED:
            return [f"{flag}={described(value, DESCRIBED[name])}"]
        return [f"{flag}={key}={text(each)}" for key, each in value.items()]
    if isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable):
        return [f"{flag}={text(value)}"]
    return [word for each in value for word in option(name, each)]


def words(command: str, inputs: Iterable[Any], options: Mapping[str, Any]) -> list[str]:
    """A call: the command, its inputs, its options."""
    # an input that begins with a dash is none of the options
    given = [text(value) for value in inputs]
    found = [word for name, value in options.items() for word in option(name, value)]
    if any(value.startswith("-") for value in given):
        return [command, *found, "--", *given]
    return [command, *given, *found]
