"""Frames: the numbers of the JSON, in pandas and polars."""

from __future__ import annotations

import copy
import math
import pickle

import pandas
import polars
import pyarrow
import pytest

import dovetail


@pytest.fixture(scope="module")
def results() -> dovetail.Results:
    import os
    from pathlib import Path

    os.chdir(Path(__file__).parent.parent.parent)
    return dovetail.bench("examples/random-updates.fio", stack=["f2fs", "ext4"], scale="1/64")


def test_series_are_the_numbers_of_the_json(results: dovetail.Results) -> None:
    for run, fields in zip(results, results.to_dict()["runs"]):
        frame = run.series()
        found = frame.to_pandas()
        series = fields["series"]
        assert list(found["time_s"]) == series["time_s"]
        assert list(found["programmed_pages"]) == series["programmed_pages"]
        waf = [math.nan if value is None else value for value in series["device_waf"]]
        assert found["device_waf"].tolist() == pytest.approx(waf, nan_ok=True)
        for name, values in series["written"].items():
            assert found[f"written.{name}"].tolist() == values
        assert frame.to_dict()["time_s"] == series["time_s"]


def test_pandas_polars_and_pyarrow_agree(results: dovetail.Results) -> None:
    frame = results[0].series()
    arrow = pyarrow.table(frame)
    assert arrow.num_rows == len(frame) and arrow.column_names == frame.columns
    assert frame.to_polars().shape == frame.to_pandas().shape == (len(frame), len(frame.columns))
    assert frame.to_polars()["time_s"].to_list() == frame["time_s"]
    assert isinstance(frame.to_polars(), polars.DataFrame)
    assert isinstance(frame.to_pandas(), pandas.DataFrame)


def test_figures_have_a_row_for_each_run(results: dovetail.Results) -> None:
    figures = results.figures().to_pandas()
    assert figures["label"].tolist() == ["f2fs", "ext4"]
    assert figures["totals.write_mb_per_s"].tolist() == [run.totals.write_mb_per_s for run in results]


def test_distributions_end_at_one(results: dovetail.Results) -> None:
    found = results[0].latency_distribution("write").to_pandas()
    assert found["share"].is_monotonic_increasing and found["share"].iloc[-1] == 1.0
    assert len(results[0].latency_distribution("discard")) == 0
    with pytest.raises(dovetail.UsageError, match="none of read"):
        results[0].latency_distribution("trim")  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda each: pickle.loads(pickle.dumps(each))])
def test_results_runs_and_frames_are_copied(results: dovetail.Results, copied) -> None:  # type: ignore[no-untyped-def]
    assert copied(results).json() == results.json()
    assert str(copied(results)) == str(results)
    run = copied(results["ext4"])
    assert isinstance(run, dovetail.Run) and run == results["ext4"]
    assert run.series().to_dict() == results["ext4"].series().to_dict()
    assert copied(run.totals) == run.totals
    empty = run.latency_distribution("discard")
    for frame in (results.figures(), run.series(), run.latency_distribution("write"), empty):
        assert pyarrow.table(copied(frame)).equals(pyarrow.table(frame))


def test_a_column_that_is_not_there_is_named(results: dovetail.Results) -> None:
    with pytest.raises(dovetail.UsageError, match='no column "waf"'):
        results[0].series()["waf"]
    with pytest.raises(AttributeError, match="there is no figure 'wafs'"):
        results[0].totals.wafs
    with pytest.raises(KeyError, match="there is no run 'xfs'"):
        results["xfs"]
