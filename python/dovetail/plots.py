"""Figures of results, fit for a paper (needs matplotlib).

Each function draws into the axes that it is given, or into a new figure, and returns the axes:
``plots.series(results, "device_waf").figure.savefig("waf.pdf")``. With :func:`style` fonts, widths and
lines are those of a two-column paper, and text in a PDF or SVG stays text.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._optional import needed
from .results import Kind, Reproduction, Results, Run
from .sweeps import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMN_INCHES = 3.33
"""Width of a column of a USENIX or ACM paper."""

# Okabe and Ito (2008), told apart by colour-blind readers too; markers and dashes for print in grey
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

STYLE: dict[str, Any] = {
    "figure.figsize": (COLUMN_INCHES, 2.2),
    "figure.constrained_layout.use": True,
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "savefig.dpi": 300,
}


def style() -> AbstractContextManager[None]:
    """The style of a paper: ``with plots.style(): ...``."""
    plt = needed("matplotlib.pyplot", "plots")
    styled: Any = STYLE
    context: AbstractContextManager[None] = plt.rc_context(styled)
    return context


def save(axes: Axes, path: str | os.PathLike[str]) -> Path:
    """Writes the figure, as .svg, .pdf or .png, of which the same figure has the same bytes, or as
    another format of matplotlib."""
    plt = needed("matplotlib.pyplot", "plots")
    path = Path(path)
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with plt.rc_context({**STYLE, "svg.hashsalt": "dovetail"}):
        figure: Any = axes.figure
        figure.savefig(path, metadata=dates)
    return path


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    plt = needed("matplotlib.pyplot", "plots")
    new: Axes = plt.subplots(layout="constrained")[1]
    return new


def _runs(results: Results | Run | Iterable[Run]) -> list[Run]:
    return [results] if isinstance(results, Run) else list(results)


def series(results: Results | Run | Iterable[Run], column: str, *, ax: Axes | None = None) -> Axes:
    """A figure over time, a line for each run; columns are those of Run.series()."""
    ax = _axes(ax)
    for number, run in enumerate(_runs(results)):
        frame = run.series()
        values = [float("nan") if value is None else value for value in frame[column]]
        ax.plot(frame["time_s"], values, color=COLORS[number % len(COLORS)], label=run.label)
    ax.set_xlabel("time (s)")
    ax.set_ylabel(_label(column))
    ax.legend()
    return ax


def latency(results: Results | Run | Iterable[Run], kind: Kind, *, ax: Axes | None = None) -> Axes:
    """The distribution of latencies: how many calls take longer than so long, both logarithmic."""
    ax = _axes(ax)
    for number, run in enumerate(_runs(results)):
        frame = run.latency_distribution(kind)
        longer = [1 - share for share in frame["share"]]
        times = [at / 1000 for at in frame["latency_ns"]]
        # nothing is longer than the longest: no place on a logarithmic axis
        points = [(t, s) for t, s in zip(times, longer) if s > 0]
        if points:
            color = COLORS[number % len(COLORS)]
            ax.step(*zip(*points), where="post", color=color, label=run.label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(f"{kind} latency (us)")
    ax.set_ylabel("share that takes longer")
    ax.legend()
    return ax


def bars(
    results: Results | Run | Iterable[Run], figure: str, *, ax: Axes | None = None, label: str | None = None
) -> Axes:
    """A single figure of each run, named by its path with dots: totals.write_mb_per_s."""
    ax = _axes(ax)
    runs = _runs(results)
    heights = [_at(run, figure) for run in runs]
    colors = [COLORS[number % len(COLORS)] for number in range(len(runs))]
    ax.bar([run.label for run in runs], heights, color=colors, width=0.6)
    ax.set_ylabel(label or _label(figure.rsplit(".", 1)[-1]))
    ax.grid(axis="x", visible=False)
    return ax


def _at(run: Run, figure: str) -> float:
    value: Any = run
    for part in figure.split("."):
        if not isinstance(value, Mapping) or part not in value:
            known = ", ".join(value) if isinstance(value, Mapping) else "none"
            raise ValueError(f"a run has no figure {figure!r}: there is no {part!r} (there are: {known})")
        value = value[part]
    return float("nan") if value is None else float(value)


def axis(
    sweep: Sweep,
    x: str,
    y: str,
    *,
    by: str | Sequence[str] | None = None,
    where: dict[str, str | float] | None = None,
    per: float = 1.0,
    ax: Axes | None = None,
    label: str | None = None,
) -> Axes:
    """A figure of a sweep over one of its axes: means over seeds, bars from least to most.

    x: The axis.
    y: A column of the table, such as totals.device_waf.
    by: The axis or axes of which each combination has a line.
    where: Values of other axes: the rows that are drawn.
    per: The figure is divided by it: 1000 draws microseconds of nanoseconds.
    """
    ax = _axes(ax)
    names = [by] if isinstance(by, str) else list(by or [])
    groups: dict[tuple[str, ...], dict[str, list[float]]] = {}
    wanted = where or {}
    for row in sweep.rows():
        for column in (x, y, *names, *wanted):
            if column not in row:
                raise ValueError(f"{sweep.table} has no column {column!r}")
        if all(_same(row[name], value) for name, value in wanted.items()) and row[y] != "":
            line = groups.setdefault(tuple(row[name] for name in names), {})
            line.setdefault(row[x], []).append(float(row[y]) / per)
    if not groups:
        raise ValueError(f"no row of {sweep.table} has {y} and these values")
    ticks = list(dict.fromkeys(value for line in groups.values() for value in line))
    is_numeric = all(_is_number(value) for value in ticks)
    places = {value: float(value) if is_numeric else place for place, value in enumerate(ticks)}
    for number, (name, line) in enumerate(groups.items()):
        points = sorted((places[value], found) for value, found in line.items())
        means = [sum(found) / len(found) for _, found in points]
        low = [mean - min(found) for mean, (_, found) in zip(means, points)]
        high = [max(found) - mean for mean, (_, found) in zip(means, points)]
        style: dict[str, Any] = {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number % len(MARKERS)]}
        at = [place for place, _ in points]
        ax.errorbar(at, means, yerr=[low, high], capsize=2, label=", ".join(name), **style)
    if not is_numeric:
        ax.set_xticks(range(len(ticks)), ticks)
    ax.set_xlabel(x)
    ax.set_ylabel(label or _label(y.rsplit(".", 1)[-1]))
    if names:
        ax.legend(title=", ".join(names), title_fontsize="small")
    return ax


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _same(text: str, value: str | float) -> bool:
    if _is_number(text) and not isinstance(value, str):
        return float(text) == float(value)
    return text == str(value)


def statements(reproduction: Reproduction, *, ax: Axes | None = None) -> Axes:
    """The statements of a paper that are numbers: ours relative to the paper's."""
    ax = _axes(ax)
    rows = []
    for each in reproduction.statements:
        paper, ours = _first_number(each.paper), _first_number(each.ours)
        if paper and ours is not None:
            rows.append((each.what, ours / paper, each.verdict))
    colors = {"agrees": COLORS[2], "differs": COLORS[1], "shown": "#999999"}
    for number, (_, ratio, verdict) in enumerate(rows):
        ax.plot(ratio, number, "o", color=colors[verdict])
    ax.axvline(1, color="#555555", linewidth=0.8)
    ax.set_yticks(range(len(rows)), [what for what, *_ in rows])
    ax.invert_yaxis()
    ax.set_xlabel("ours / paper")
    return ax


def _first_number(text: str) -> float | None:
    import re

    found = re.search(r"-?\d[\d,]*(?:\.\d+)?", text)
    return float(found.group().replace(",", "")) if found else None


NAMES = {
    "device_waf": "drive's write amplification",
    "fs_waf": "file system's write amplification",
    "waf": "write amplification",
    "write_mb_per_s": "written (MB/s)",
    "read_mb_per_s": "read (MB/s)",
    "calls_per_s": "calls a second",
    "map_bytes": "memory of the map (bytes)",
}


def _label(column: str) -> str:
    name = column.rsplit(".", 1)[-1]
    return NAMES.get(name, name.replace("_", " "))
