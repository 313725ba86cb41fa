"""Figures: they hold what the results hold."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest

import dovetail
from dovetail import plots

matplotlib.use("Agg")
JOB = "examples/random-updates.fio"


def test_lines_are_the_series(tmp_path: Path) -> None:
    results = dovetail.bench(JOB, stack=["f2fs", "ext4"], scale="1/64")
    ax = plots.series(results, "write_mb_per_s")
    for line, run in zip(ax.lines, results):
        assert list(line.get_xdata()) == run.series()["time_s"]
        assert line.get_label() == run.label
    assert ax.get_ylabel() == "written (MB/s)"
    bars = plots.bars(results, "totals.device_waf")
    assert [bar.get_height() for bar in bars.patches] == [run.totals.device_waf for run in results]
    assert len(plots.latency(results, "flush").lines) == 2
    # the same figure has the same bytes, and its text stays text
    for ending in ("svg", "pdf"):
        paths = [
            plots.save(plots.series(results, "write_mb_per_s"), tmp_path / f"{n}.{ending}")
            for n in range(2)
        ]
        assert paths[0].read_bytes() == paths[1].read_bytes()
    assert "written (MB/s)" in (tmp_path / "0.svg").read_text()


def test_an_axis_has_means_and_a_line_for_each_other(tmp_path: Path) -> None:
    sweep = dovetail.sweep(
        {
            "command": "bench",
            "inputs": [JOB],
            "options": {"scale": "1/64", "stack": "ext4"},
            "axes": {"gc": ["greedy", "fifo"], "op": [7, 28], "seed": [1, 2]},
        },
        results=tmp_path / "s",
    )
    ax = plots.axis(sweep, "op", "totals.device_waf", by="gc")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["greedy", "fifo"]
    drawn = [container[0] for container in ax.containers]
    assert [list(line.get_xdata()) for line in drawn] == [[7.0, 28.0]] * 2
    rows = [row for row in sweep.rows() if row["gc"] == "greedy" and row["op"] == "7"]
    mean = sum(float(row["totals.device_waf"]) for row in rows) / 2
    assert drawn[0].get_ydata()[0] == pytest.approx(mean)
    only = plots.axis(sweep, "gc", "totals.device_waf", where={"op": 28})
    assert [tick.get_text() for tick in only.get_xticklabels()] == ["greedy", "fifo"]
    with pytest.raises(ValueError, match="no row"):
        plots.axis(sweep, "op", "totals.device_waf", where={"gc": "no"})
