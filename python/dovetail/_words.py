"""Python's arguments as the words of the command line."""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from . import _dovetail

# options of which a value may be a dict: the content of a file
DESCRIBED = {"stack": "stack", "drive": "drive"}
# options of which a dict is one list NAME=VALUE,NAME=VALUE; those of which each is an option of its own
JOINED = {"host", "devirtualize"}
REPEATED = {"set", "with"}


def scalar(value: Any) -> Any:
    """A number or truth value of numpy as Python's; all else as it is."""
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        return value.item()
    return value


def text(value: Any) -> str:
    """A scalar as the command line has it."""
    value = scalar(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, (str, os.PathLike)):
        return os.fsdecode(value)
    raise TypeError(f"{value!r} is no option's value: give a text, a number or a path")


def plain(value: Any, place: str = "") -> Any:
    """The content of a file as JSON has it; what it cannot have is an error that names its place."""
    value = scalar(value)
    if isinstance(value, Mapping):
        inner = {key: f"{place}.{key}" if place else str(key) for key in value}
        return {str(key): plain(each, inner[key]) for key, each in value.items()}
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise _dovetail.UsageError(f"{place}: {value} is no value; give a finite number")
        return float(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        each = [plain(one, place) for one in value]
        if None in each:
            raise _dovetail.UsageError(f"{place}: None stands in a list; leave it out")
        return each
    raise _dovetail.UsageError(f"{place}: {value!r} is no value; give a text, a number, a list or a dict")


def name_of(value: Mapping[str, Any], kind: str) -> str:
    """The name of a stack or drive that is a dict."""
    name = str(value.get("name", kind))
    is_name = 1 <= len(name) <= 100 and name[0] not in "-." and all(c.isalnum() or c in "-_. " for c in name)
    if not is_name:
        raise _dovetail.UsageError(
            f"{kind} {name!r}: a name has letters, digits, - _ and ., up to 100, and begins with neither - nor ."
        )
    return name


_folder: Path | None = None
# the files made of dicts, and what messages call them
_made: dict[str, str] = {}
_making = threading.Lock()


def _own_folder() -> Path:
    """A folder for files of dicts, which is gone when the process that made it ends."""
    global _folder
    with _making:
        if _folder is None:
            _folder = Path(tempfile.mkdtemp(prefix="dovetail-"))
            atexit.register(_remove, _folder, os.getpid())
        return _folder


def _remove(folder: Path, owner: int) -> None:
    # a process that was forked ends before the folder's owner
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def described(value: Mapping[str, Any], kind: str) -> str:
    """The file of a stack or drive that is a dict."""
    name, content = name_of(value, kind), dict(value)
    base = content.get("base")
    if isinstance(base, (str, os.PathLike)) and Path(base).suffix == ".toml":
        # the file is elsewhere, and would look for its base beside it
        content["base"] = Path(base).absolute()
    toml = _dovetail.toml(json.dumps(plain(content, kind)))
    folder = _own_folder() / hashlib.sha256(toml.encode()).hexdigest()[:16]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    if not path.exists():
        # also beside other threads
        with tempfile.NamedTemporaryFile(
            "w", dir=folder, suffix=".new", delete=False, encoding="utf-8"
        ) as new:
            new.write(toml)
        os.replace(new.name, path)
    _made[str(path)] = f"{kind} {name}"
    return str(path)


@contextmanager
def named() -> Iterator[None]:
    """Calls a stack or drive that is a dict by its name in messages, not by the file made of it."""
    try:
        yield
    except _dovetail.DovetailError as error:
        told, of_file = str(error), False
        for path, name in list(_made.items()):
            # the line is one of a file that nobody has seen
            file = rf"(?:\b(?:stack|drive) )?{re.escape(path)}(?:: line \d+|:\d+)?"
            of_file = of_file or re.match(file, told) is not None
            told = re.sub(file, name.replace("\\", r"\\"), told)
        if told == str(error):
            raise
        # what begins with the file is wrong in it
        raise (_dovetail.UsageError if of_file else type(error))(told) from None


def option(name: str, value: Any) -> list[str]:
    """The words of an option; none for None and False."""
    value = scalar(value)
    name = name.rstrip("_").replace("_", "-")
    flag = f"--{name}"
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, Mapping):
        if name in DESCRIBED:
            return [f"{flag}={described(value, DESCRIBED[name])}"]
        pairs = [f"{key}={text(each)}" for key, each in value.items()]
        if name in JOINED:
            return [f"{flag}={','.join(pairs)}"]
        if name in REPEATED:
            return [f"{flag}={pair}" for pair in pairs]
        raise _dovetail.UsageError(f"{name} is a dict: give a text, a number or a path")
    if isinstance(value, os.PathLike) and name in DESCRIBED and "," in os.fsdecode(value):
        raise _dovetail.UsageError(f"{name} {os.fsdecode(value)!r}: its path has a comma; rename it")
    if isinstance(value, (str, bytes, os.PathLike)) or not isinstance(value, Iterable):
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
