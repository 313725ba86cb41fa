"""docs/python.md: its examples run, and the names in it exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dovetail
from dovetail import plots

PAGE = (Path(__file__).parent.parent.parent / "docs" / "python.md").read_text(encoding="utf-8")
JOB = "examples/random-updates.fio"
# a name of the page and what stands behind it, up to a call: run.latency.write.p99_ns
CHAIN = re.compile(r"\b(?:dovetail|results|run|frame|drive|plots)(?:\.[a-z]\w*|\[(?:\d+|\"\w+\")\])+")


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    # no batch system is here
    here = [example for example in examples if "SLURMCluster" not in example]
    assert len(here) >= 2
    names: dict[str, object] = {}
    for example in here:
        exec(example, names)
    assert len(capsys.readouterr().out.split()) == 3


def test_the_names_exist() -> None:
    results = dovetail.bench(JOB, stack="f2fs", scale="1/64")
    names = {
        "dovetail": dovetail,
        "drive": dovetail.Drive("femu-32g", scale="1/64"),
        "frame": results.figures(),
        "plots": plots,
        "results": results,
        "run": results[0],
    }
    # one stack will do
    chains = {chain.replace('results["ext4"]', "run") for chain in CHAIN.findall(PAGE)}
    assert len(chains) > 20
    for chain in sorted(chains):
        eval(chain, names)


def test_the_functions_exist() -> None:
    calls = PAGE[PAGE.index("## Calls") : PAGE.index("- **Options**")]
    listed = set(re.findall(r"`(\w+)\(", calls))
    assert len(listed) > 10 and listed <= set(dovetail.__all__)
