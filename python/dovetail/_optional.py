"""Libraries that are needed for a part of the package."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, extra: str) -> Any:
    """The module.

    Raises ImportError with the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise
        raise ImportError(
            f"this needs {error.name}: install the package with its extra, "
            f"pip install './python[{extra}]', or {error.name} alone"
        ) from None
