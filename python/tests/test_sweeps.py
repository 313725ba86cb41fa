"""Sweeps: on this machine, on a cluster, and killed on the way."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import dovetail

JOB = """[global]
filename=file
size=1m
io_size=2m
bs=4k
rw=randwrite
[job]
fsync=8
"""


def tiny(tmp_path: Path, seeds: int) -> Path:
    """A sweep of four tiny points a seed."""
    (tmp_path / "job.fio").write_text(JOB)
    path = tmp_path / f"tiny-{seeds}.toml"
    path.write_text(
        f"""command = "bench"
inputs = ["{tmp_path}/job.fio"]
[options]
scale = "1/64"
[axes]
stack = ["f2fs", "ext4"]
op = [7, 28]
seed = {{ from = 1, to = {seeds} }}
"""
    )
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A sweep of 24 tiny points."""
    return tiny(tmp_path, 6)


@pytest.fixture
def undisturbed(file: Path, tmp_path: Path) -> bytes:
    """The table of a run that nothing disturbed."""
    return dovetail.sweep(file, results=tmp_path / "undisturbed").table.read_bytes()


@pytest.fixture(scope="module")
def client() -> Any:
    from distributed import Client, LocalCluster

    # killed workers come again; a point may lose several
    from dask import config

    with (
        config.set({"distributed.scheduler.allowed-failures": 10}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_a_sweep_has_a_table(file: Path) -> None:
    told: list[dovetail.Progress] = []
    done = dovetail.sweep(file, progress=told.append)
    assert (done.points, done.finished, done.failed) == (24, 24, 0)
    assert done.folder == file.with_suffix(".sweep")
    frame = done.to_pandas()
    assert len(frame) == 24 and frame["totals.fs_waf"].notna().all()
    assert done.to_polars().shape[0] == 24
    assert [each.share for each in told] == sorted(each.share or 0 for each in told)
    assert told[-1].share == 1.0


def test_a_dict_is_a_sweep_too(file: Path, tmp_path: Path) -> None:
    stack = {**dovetail.stacks()[0].to_dict(), "name": "mine"}
    done = dovetail.sweep(
        {
            "command": "bench",
            "inputs": [tmp_path / "job.fio"],
            "options": {"scale": "1/64"},
            "axes": {"stack": ["ext4", stack], "seed": {"from": 1, "to": 2}},
            "keep": {"series": True},
        },
        results=tmp_path / "of-dict",
    )
    assert done.finished == 4
    assert done.series(0)["runs"][0]["series"]["time_s"]
    with pytest.raises(dovetail.UsageError, match="give a folder"):
        dovetail.sweep({"command": "bench", "inputs": ["job.fio"]})


def test_a_cluster_gives_the_same_table(
    file: Path, tmp_path: Path, undisturbed: bytes, client: Any
) -> None:
    told: list[dovetail.Progress] = []
    done = dovetail.sweep(file, results=tmp_path / "cluster", client=client, progress=told.append)
    assert done.table.read_bytes() == undisturbed
    assert told[-1].share == 1.0


def test_killed_workers_lose_no_point(
    file: Path, tmp_path: Path, undisturbed: bytes, client: Any
) -> None:
    seed = int(os.environ.get("DOVETAIL_SEED", random.randrange(1 << 32)))
    print(f"DOVETAIL_SEED={seed}")
    draw = random.Random(seed)
    killed = 0

    def kill(told: dovetail.Progress) -> None:
        nonlocal killed
        if killed < 3 and told.requests >= 5 * (killed + 1):
            killed += 1
            workers = client.run(os.getpid)
            os.kill(draw.choice(sorted(workers.values())), signal.SIGKILL)

    done = dovetail.sweep(file, results=tmp_path / "killed", client=client, progress=kill)
    assert killed == 3
    assert done.table.read_bytes() == undisturbed


def lines_of(results: Path) -> list[bytes]:
    """The lines of all finished points."""
    return b"".join(path.read_bytes() for path in results.glob("points-*.jsonl")).splitlines()


def killed_client(file: Path, results: Path, of_cluster: bool) -> None:
    """A sweep in a process of its own, which is killed when some points are finished."""
    cluster = (
        "from distributed import Client, LocalCluster\n"
        "client = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))\n"
        if of_cluster
        else "client = None\n"
    )
    code = (
        "import dovetail\n"
        "if __name__ == '__main__':\n    "
        + cluster.replace("\n", "\n    ")
        + f"dovetail.sweep({str(file)!r}, results={str(results)!r}, client=client)\n"
    )
    script = results.parent / "killed.py"
    script.write_text(code)
    child = subprocess.Popen([sys.executable, script], start_new_session=True)
    while child.poll() is None and not lines_of(results):
        time.sleep(0.001)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@pytest.mark.parametrize("of_cluster", [False, True])
def test_a_killed_client_goes_on_where_it_was(tmp_path: Path, of_cluster: bool) -> None:
    # so many that the first is finished long before the last, on any machine
    points = 400
    file = tiny(tmp_path, points // 4)
    undisturbed = dovetail.sweep(file, results=tmp_path / "undisturbed").table.read_bytes()
    results = tmp_path / "resumed"
    killed_client(file, results, of_cluster)
    assert 0 < len(lines_of(results)) < points
    done = dovetail.sweep(file, results=results)
    assert done.table.read_bytes() == undisturbed
    # what was finished is not done again
    lines = lines_of(results)
    assert len(lines) == len({json.loads(line)["point"] for line in lines}) == points


def test_shards_make_one_table(
    file: Path, tmp_path: Path, undisturbed: bytes, program: list[str]
) -> None:
    for shard in ("1/3", "2/3", "3/3"):
        done = dovetail.sweep(file, results=tmp_path / "shards", shard=shard)
    assert done.table.read_bytes() == undisturbed


def test_the_command_line_goes_on_with_a_folder_of_python(
    file: Path, tmp_path: Path, undisturbed: bytes, program: list[str]
) -> None:
    dovetail.sweep(file, results=tmp_path / "both", shard="1/2")
    call = [*program, "sweep", file, "--results", tmp_path / "both"]
    if "DOVETAIL" in os.environ:
        pytest.skip("a program that was built apart may be of another commit")
    subprocess.run(call, check=True, capture_output=True)
    assert (tmp_path / "both" / "table.csv").read_bytes() == undisturbed


def test_an_ended_call_lets_go_of_its_folder(file: Path, tmp_path: Path, client: Any) -> None:
    def end(_: dovetail.Progress) -> None:
        raise KeyError("ended")

    # a traceback that is kept holds all that the call held
    kept = []
    for of in (None, client):
        # a folder for each: here, tiny points may all be finished before the first look
        results = tmp_path / f"ended-{of is None}"
        with pytest.raises(KeyError) as raised:
            dovetail.sweep(file, results=results, client=of, progress=end)
        kept.append(raised.value)
        assert dovetail.sweep(file, results=results).finished == 24


def test_workers_that_cannot_run_points_leave_them_to_be_done(
    file: Path, tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfit(task: str) -> tuple[str, None]:
        raise ModuleNotFoundError("No module named 'dovetail'")

    from dovetail import _cluster

    monkeypatch.setattr(_cluster, "run_point", unfit)
    with pytest.raises(ModuleNotFoundError):
        dovetail.sweep(file, results=tmp_path / "unfit", client=client)
    monkeypatch.undo()
    done = dovetail.sweep(file, results=tmp_path / "unfit", client=client)
    assert (done.finished, done.failed) == (24, 0)


@pytest.mark.parametrize("of_cluster", [False, True])
def test_a_point_that_fails_is_a_row(tmp_path: Path, of_cluster: bool, client: Any) -> None:
    (tmp_path / "job.fio").write_text(JOB.replace("size=1m", "size=900g"))
    sweep = {"command": "bench", "inputs": [tmp_path / "job.fio"], "options": {"stack": "f2fs"},
             "axes": {"scale": ["1/64"], "seed": [1, 2]}}
    done = dovetail.sweep(sweep, results=tmp_path / "f", client=client if of_cluster else None)
    assert (done.finished, done.failed) == (2, 2)
    assert all("f2fs" in row["error"] for row in done.rows())
    (tmp_path / "job.fio").write_text(JOB)
    with pytest.raises(dovetail.DovetailError, match="job.fio has changed"):
        dovetail.sweep(sweep, results=tmp_path / "f", retry_failed=True)


def test_bad_input_is_said_and_what_is_finished_stays(file: Path, tmp_path: Path) -> None:
    results = tmp_path / "kept"
    before = dovetail.sweep(file, results=results).table.read_bytes()

    def fails(text: str, sentence: str) -> None:
        other = tmp_path / "other.toml"
        other.write_text(text)
        with pytest.raises(dovetail.DovetailError) as raised:
            dovetail.sweep(other, results=results)
        assert sentence in str(raised.value)
        assert (results / "table.csv").read_bytes() == before

    text = file.read_text()
    fails(text.replace("op = [7, 28]", "ops = [7, 28]"), "--ops")
    fails(text.replace("to = 6", "to = 7"), "it has 24 points, not 28")
    fails(text.replace("[axes]", "[axis]"), "unknown field `axis`")
    fails(text.replace("7, 28", "7, 'x'"), "x")
    fails("", "command")
    with pytest.raises(dovetail.DovetailError, match="no.toml cannot be read"):
        dovetail.sweep(tmp_path / "no.toml")
    head = json.loads((results / "sweep.json").read_text())
    (results / "sweep.json").write_text(json.dumps({**head, "version": 99}))
    fails(text, "99")


def test_a_full_disk_keeps_what_is_finished(file: Path, tmp_path: Path, undisturbed: bytes) -> None:
    if os.getuid() != 0:
        pytest.skip("mounting needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        with pytest.raises(dovetail.DovetailError, match="No space left"):
            dovetail.sweep(file, results=disk / "results")
        lines = (disk / "results" / "points-1-of-1.jsonl").read_bytes()
        assert lines.endswith(b"\n") and 0 < lines.count(b"\n") < 24
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        done = dovetail.sweep(file, results=disk / "results")
        assert done.table.read_bytes() == undisturbed
    finally:
        subprocess.run(["umount", disk], check=True)


def of_dicts(seeds: int) -> dict[str, Any]:
    """A sweep with a stack and a drive of its own."""
    f2fs = {stack.name: stack for stack in dovetail.stacks()}["f2fs"].to_dict()
    small = {"name": "small", "about": "More spare.", "base": "femu-32g",
             "capacity": {"over_provisioning_percent": 28.0}}
    return {
        "command": "bench",
        "inputs": ["job.fio"],
        "options": {"scale": "1/64", "drive": small},
        "axes": {"stack": ["ext4", {**f2fs, "name": "mine", "mount": "mode=lfs"}], "seed": [1, seeds]},
    }


def test_a_sweep_of_dicts_is_known_again_wherever_its_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.fio").write_text(JOB)
    sweep = of_dicts(2)
    dovetail.sweep(sweep, results="one")
    Path("one").rename("other")
    again = dovetail.sweep(sweep, results=tmp_path / "other", progress=lambda told: pytest.fail(f"{told}"))
    assert again.finished == 4
    for part in (1, 2):
        dovetail.sweep(sweep, results=f"part{part}", shard=f"{part}/2")
    merge = [*program, "sweep", "merge", "all", "part1", "part2"]
    assert subprocess.run(merge, capture_output=True, text=True).returncode == 0
    assert Path("all/table.csv").read_bytes() == again.table.read_bytes()
    frame = again.to_pandas()
    assert list(frame["stack"]) == ["ext4", "ext4", "mine", "mine"]
    assert not dovetail.compare(again, "all").changed


def test_two_dicts_of_one_name_are_refused(tmp_path: Path) -> None:
    stacks = [{**dovetail.stacks()[0].to_dict(), "name": "mine", "mount": mount} for mount in ("", "discard")]
    sweep = {**of_dicts(2), "axes": {"stack": stacks}}
    with pytest.raises(dovetail.UsageError, match="two stacks are called 'mine'"):
        dovetail.sweep(sweep, results=tmp_path / "x")


def test_an_empty_value_is_no_missing_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.fio").write_text(JOB)
    sweep = {"command": "bench", "inputs": ["job.fio"], "options": {"stack": "f2fs", "scale": "1/64"},
             "axes": {"mount": ["", "mode=lfs"]}}
    done = dovetail.sweep(sweep, results="mounts")
    assert list(done.to_pandas()["mount"]) == ["", "mode=lfs"]
    assert done.to_polars()["mount"].to_list() == ["", "mode=lfs"]


def test_workers_in_another_directory_take_the_same_files(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("start", "1m"), ("study", "2m")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.fio").write_text(JOB.replace("size=1m", f"size={size}"))
    # names without an ending are files, too, and others lie beside names that come with the package
    (tmp_path / "study" / "job").write_text(JOB.replace("size=1m", "size=3m"))
    (tmp_path / "study" / "ext4").write_text("no stack")
    monkeypatch.chdir(tmp_path / "study")
    client.run(os.chdir, str(tmp_path / "start"))
    (tmp_path / "study" / "base.toml").write_text('name = "base"\nabout = "x"\nbase = "nvme-250g"\n')
    sweep = of_dicts(2)
    sweep["options"]["drive"]["base"] = "base.toml"
    try:
        for number, job in enumerate(["job.fio", "job"]):
            sweep["inputs"] = [job]
            there = dovetail.sweep(sweep, results=f"cluster-{number}", client=client)
            here = dovetail.sweep(sweep, results=f"local-{number}")
            assert there.failed == 0 and there.table.read_bytes() == here.table.read_bytes()
        Path("base.toml").write_text('name = "base"\nabout = "x"\nbase = "femu-32g"\n')
        with pytest.raises(dovetail.DovetailError, match="base.toml has changed"):
            dovetail.sweep(sweep, results="local-1")
    finally:
        client.run(os.chdir, "/")


def test_a_worker_with_another_file_ends_the_sweep(tmp_path: Path) -> None:
    from dovetail import _dovetail

    job = tmp_path / "job.fio"
    job.write_text(JOB)
    text = f'command = "bench"\ninputs = ["{job}"]\n[options]\nstack = "f2fs"\nscale = "1/64"\n'
    sweep = _dovetail.Sweep(text, "text", tmp_path / "results", None)
    task = sweep.task(0)
    assert json.loads(_dovetail.perform_task(task)[0])["point"] == 0
    job.write_text(JOB.replace("4k", "8k"))
    with pytest.raises(dovetail.DovetailError, match="job.fio is another file here"):
        _dovetail.perform_task(task)
    job.unlink()
    with pytest.raises(dovetail.DovetailError, match="no file"):
        _dovetail.perform_task(task)


def test_a_client_that_is_none_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(dovetail.UsageError, match=r"Client\(cluster\)"):
        dovetail.sweep(file, results=tmp_path / "x", client="tcp://127.0.0.1:8786")  # type: ignore[arg-type]
