"""The type hints: mypy accepts what works, and refuses what does not."""

from __future__ import annotations

from pathlib import Path

from mypy import api

CODE = """
import numpy
import dovetail

dovetail.bench("a.fio", stack=["f2fs", "ext4"], op=numpy.array([7, 12]), seed=numpy.int64(3))
dovetail.bench("a.fio", stack=({"name": "mine"}, "f2fs"), op=range(7, 28, 7), set={"SIZE": "8m"})
dovetail.bench("a.fio", stack="f2fs", set=["SIZE=8m", "N=2"], devirtualize={"every": "60s"})
dovetail.replay("a.trace", drive="nvme-250g", host={"queue_depth": 32, "request_ns": 1000})
dovetail.reproduce("rmipu-table-1", with_={"mount": "mode=lfs"})
dovetail.bench("a.fio", stack="f2fs", progress=lambda told: told.share > 0.95)
dovetail.load("results.json").figures()
# the line below is one that does not work: if it were accepted, mypy would know no types at all
dovetail.bench("a.fio", stack="f2fs", seed=[1])  # type: ignore[arg-type]
"""


def test_mypy_knows_the_arguments(tmp_path: Path) -> None:
    settings = ["--config-file=python/pyproject.toml", f"--cache-dir={tmp_path}"]
    told, errors, code = api.run([*settings, "-c", CODE])
    assert code == 0, told + errors
