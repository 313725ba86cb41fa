"""Writes dovetail/_calls.py: the commands as functions, from the options of the command line.

    python tools/make_calls.py            # writes it
    python tools/make_calls.py --check    # fails if it would change
"""

from __future__ import annotations

import keyword
import sys
import textwrap
from pathlib import Path

FILE = Path(__file__).parent.parent / "dovetail" / "_calls.py"

try:
    from dovetail import _dovetail
except ImportError:
    # alone: the package needs the file that is made here
    sys.path.insert(0, str(FILE.parent))
    import _dovetail

HEAD = '''"""The commands as functions. Made by tools/make_calls.py from the options of the command line."""

# ruff: noqa: A002, E501
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, SupportsFloat

from . import _dovetail
from ._progress import Teller, Wanted
from ._words import named, words
from .results import Reproduction, Results

Scalar = str | SupportsFloat | os.PathLike[str]
Described = str | os.PathLike[str] | Mapping[str, Any]
'''

# options that take a dict, as in dovetail/_words.py
MAPPINGS = {"devirtualize", "host", "set", "with"}

# command: first argument, its type, its help, options of the command line alone, result, summary
COMMANDS = {
    "bench": (
        "job", "str | os.PathLike[str]",
        "A fio job file, a personality's name or .toml file, or a file-level trace.",
        {"table", "columns", "sort", "sensitivity"}, "Results",
        "Runs a workload on several stacks in virtual time, side by side.",
    ),
    "replay": (
        "*traces", "str | os.PathLike[str]",
        "Block traces: blkparse's text, MSR, fio's iolog, ..., plain, gzip or zstd.",
        {"table", "columns", "sort", "sensitivity"}, "Results",
        "Replays block traces on simulated drives, side by side.",
    ),
    "reproduce": (
        "*figures", "str",
        "Figures by name; \"all\" stands for every one.",
        {"list", "sensitivity", "scales", "strict", "keep", "json", "csv", "report"}, "list[Reproduction]",
        "Runs the papers' figures and tables again. Each is at a reduced scale unless full or scale say otherwise.",
    ),
}


def python_name(option: str) -> str:
    name = option.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def annotation(name: str, has_value: bool, is_list: bool, is_required: bool) -> str:
    if not has_value:
        return "bool = False"
    kind = "Described" if name in ("stack", "drive") else "Scalar"
    if is_list:
        kind += f" | Iterable[{kind}]"
    if name in MAPPINGS:
        kind += " | Mapping[str, Scalar]"
    return kind if is_required else f"{kind} | None = None"


def function(command: str) -> str:
    first, kind, first_help, left_out, result, summary = COMMANDS[command]
    options = [each for each in _dovetail.options(command) if each[0] not in left_out]
    options.sort(key=lambda each: not each[3])
    lines = [f"def {command}(", f"    {first}: {kind},"]
    if not first.startswith("*"):
        lines.append("    *,")
    for name, has_value, is_list, is_required, _ in options:
        lines.append(f"    {python_name(name)}: {annotation(name, has_value, is_list, is_required)},")
    lines += ["    progress: Wanted = None,", f") -> {result}:"]
    lines += textwrap.wrap(f'"""{summary}', 96, initial_indent="    ", subsequent_indent="    ")
    lines.append("")
    shown = [(first, first_help)]
    shown += [(python_name(name), help) for name, *_, help in options]
    shown.append(("progress", "True for bars, or a function that hears of dovetail.Progress."))
    for name, help in shown:
        help = " ".join(help.split())
        lines += textwrap.wrap(f"{name}: {help}", 96, initial_indent="    ", subsequent_indent="        ")
    lines.append('    """')
    lines.append("    options = {")
    lines += [f'        "{name}": {python_name(name)},' for name, *_ in options]
    lines.append("    }")
    given = first[1:] if first.startswith("*") else f"[{first}]"
    lines.append(f'    call = words("{command}", {given}, options)')
    lines.append("    with named(), Teller(progress) as tell:")
    if result == "Results":
        lines.append(f"        return Results(_dovetail.{command}(call, tell))")
    else:
        lines.append(f"        return [Reproduction(each) for each in _dovetail.{command}(call, tell)]")
    return "\n".join(lines) + "\n"


def main() -> int:
    text = HEAD + "".join("\n\n" + function(command) for command in COMMANDS)
    if "--check" in sys.argv:
        return 0 if FILE.read_text() == text else 1
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
