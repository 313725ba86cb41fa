"""Calls: the same results and messages as the command line."""

from __future__ import annotations

import copy
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import dovetail

JOB = "examples/random-updates.fio"


def command_line(program: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *words], capture_output=True, text=True)


def without_commit(json: str) -> str:
    """A program that was built apart may be of another commit."""
    return re.sub(r'"commit": "[^"]*"', '"commit": ""', json)


def test_bench_gives_the_bytes_of_the_command_line(program: list[str]) -> None:
    job = "examples/writers-readers.fio"
    ours = dovetail.bench(
        job, stack=["f2fs", "rm-ipu"], scale="1/64", op=[7, 28], set={"READERS": 1, "WRITERS": 2},
        seed=3, final_sync=True,
    )
    words = ["bench", job, "--stack=f2fs", "--stack=rm-ipu", "--scale=1/64", "--op=7", "--op=28"]
    words += ["-DREADERS=1", "-DWRITERS=2", "--seed=3", "--final-sync", "--json"]
    theirs = command_line(program, *words)
    assert theirs.returncode == 0, theirs.stderr
    # an option of a call stands where the command line's help has it
    command = r'"command": "[^"]*"'
    assert re.sub(command, "", without_commit(ours.json())) == re.sub(
        command, "", without_commit(theirs.stdout)
    )
    assert len(ours) == 4


def test_the_command_that_results_name_gives_them(program: list[str]) -> None:
    ours = dovetail.bench(JOB, stack="ext4", scale="1/64", repeat=2)
    words = ours.command.replace("random-updates.fio", JOB).split()[1:]
    assert without_commit(command_line(program, *words, "--json").stdout) == without_commit(ours.json())


def test_replay_gives_the_bytes_of_the_command_line(program: list[str]) -> None:
    trace = "examples/f2fs-randwrite.blkparse.zst"
    ours = dovetail.replay(trace, drive="nvme-250g", scale="1/64", wrap=True)
    words = ["replay", trace, "--drive=nvme-250g", "--scale=1/64", "--wrap", "--json"]
    assert without_commit(command_line(program, *words).stdout) == without_commit(ours.json())


def test_stacks_and_drives_may_be_dicts() -> None:
    f2fs = next(stack for stack in dovetail.stacks() if stack.name == "f2fs")
    mine = {**f2fs.to_dict(), "name": "mine", "mount": "mode=lfs"}
    small = {"name": "small", "about": "Spare flash for none.", "base": "femu-32g",
             "capacity": {"over_provisioning_percent": 28.0}}
    results = dovetail.bench(JOB, stack=[mine, "f2fs"], drive=small, scale="1/64")
    assert [run.stack for run in results] == ["mine", "f2fs"]
    assert results["mine"].drive.profile == "small" and "f2fs" in results and "ext4" not in results
    again = dovetail.bench(JOB, stack=[mine, "f2fs"], drive=small, scale="1/64")
    assert again.json() == results.json()
    assert dovetail.Drive(small, scale="1/64").status().name == "small"


def test_numbers_of_numpy_and_paths_in_dicts_are_taken(tmp_path: Path) -> None:
    import numpy

    f2fs = dovetail.stacks()[0].to_dict()
    drive = tmp_path / "mine.toml"
    drive.write_text('name = "mine"\nabout = "Spare."\nbase = "femu-32g"\n')
    op = numpy.array([7.0, 28.0])
    results = dovetail.bench(JOB, stack={**f2fs, "drive": drive}, scale="1/64", op=op, seed=numpy.int64(3))
    # a drive has whole erase blocks
    assert [run.drive.over_provisioning_percent for run in results] == pytest.approx([7, 28], rel=0.01)
    assert results.seed == 3


def test_runs_on_drives_that_are_dicts_have_their_names() -> None:
    drives = [{"name": name, "about": "x", "base": "femu-32g"} for name in ("aaa", "bbb")]
    results = dovetail.bench(JOB, stack="f2fs", drive=drives, scale="1/64")
    assert [run.label for run in results] == ["f2fs, aaa", "f2fs, bbb"]
    assert "f2fs, aaa" in results and "aaa" not in results
    assert results[0] in results and results[0:1] == [results[0]]
    assert tempfile.gettempdir() not in results.json()


def test_figures_cannot_be_set_and_copies_are_free() -> None:
    stack = dovetail.stacks()[0]
    with pytest.raises(AttributeError, match="read only"):
        stack.mount = "mode=adaptive"
    copy = stack.to_dict()
    copy["mount"] = "discard"
    assert stack.mount != "discard"


def test_dicts_of_options_are_lists_of_the_command_line() -> None:
    trace = "examples/f2fs-randwrite.blkparse.zst"
    host = {"queue_depth": 32, "request_ns": 1000}
    results = dovetail.replay(trace, drive="nvme-250g", scale="1/64", wrap=True, limit=100, host=host)
    assert "--host=queue_depth=32,request_ns=1000" in results.command


def test_a_base_is_found_from_the_directory_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Path(JOB).absolute()
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('name = "mine"\nabout = "x"\nbase = "femu-32g"\n')
    drive = {"name": "two", "about": "x", "base": "mine.toml"}
    [run] = dovetail.bench(job, stack="f2fs", drive=drive, scale="1/64")
    assert run.drive.profile == "two"
    assert dovetail.Drive(drive, scale="1/64").status().name == "two"


def test_a_figure_is_reproduced() -> None:
    [figure] = dovetail.reproduce("rmipu-table-1", scale="1/64")
    assert repr(copy.deepcopy(figure)) == repr(figure)
    assert figure.statements and figure.results.runs
    verdicts = [each.verdict for each in figure.statements]
    assert set(verdicts) == {"agrees", "differs", "shown"}
    judged = verdicts.count("agrees") + verdicts.count("differs")
    assert f": {verdicts.count('agrees')} of {judged} statements agree" in repr(figure)


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: dovetail.bench(JOB, stack="f3fs"), dovetail.UsageError, 'did you mean "f2fs"'),
        (lambda: dovetail.bench("no.fio", stack="f2fs"), dovetail.DovetailError, "no.fio cannot be read"),
        (lambda: dovetail.bench(JOB, stack="f2fs", scale="x"), dovetail.UsageError, "'x' is not a ratio"),
        (lambda: dovetail.bench(JOB, stack=[]), dovetail.UsageError, "not provided: --stack"),
        (lambda: dovetail.replay("no.trace", drive="femu-32g"), dovetail.DovetailError, "no.trace"),
        (lambda: dovetail.reproduce("rmipu"), dovetail.UsageError, 'there is no figure "rmipu"'),
        (lambda: dovetail.Drive("femu"), dovetail.UsageError, "no drive profile 'femu'"),
        (lambda: dovetail.Drive("no.toml"), dovetail.DovetailError, "no.toml cannot be read"),
        (lambda: dovetail.Drive({"name": "d"}), dovetail.UsageError, "d: about is missing"),
        (lambda: dovetail.Drive("femu-32g", scale="1/7x"), dovetail.UsageError, "scale: '1/7x' is not a ratio"),
        (lambda: dovetail.Drive("femu-32g", gc=3), dovetail.UsageError, "ftl.gc is '3', allowed is"),
        (lambda: dovetail.Drive("femu-32g", op="x"), dovetail.UsageError, "op: "),
        (lambda: dovetail.Drive("femu-32g", seed=-1), dovetail.UsageError, "seed is -1"),
        (lambda: dovetail.Drive("femu-32g").write(1 << 40), dovetail.UsageError, "not on the drive"),
        (lambda: dovetail.drive_figures("femu"), dovetail.UsageError, "no drive profile 'femu'"),
        (lambda: dovetail.Image("no.img").ls(), dovetail.DovetailError, "no.img"),
        (lambda: dovetail.compare("a.json", "b.json"), dovetail.DovetailError, "a.json"),
        (lambda: dovetail.bench(JOB, stack={"name": "a/b"}), dovetail.UsageError, "a name has letters"),
        (lambda: dovetail.bench(JOB, stack={"name": "x", "files": 1}), dovetail.UsageError, "stack x: unknown field `files`"),
        (lambda: dovetail.bench(JOB, stack="f2fs", drive={"name": "d"}), dovetail.UsageError, "drive d: about is missing"),
        (lambda: dovetail.load("no.json"), dovetail.DovetailError, "no.json cannot be read"),
        (lambda: dovetail.load("Cargo.toml"), dovetail.UsageError, "Cargo.toml is no JSON"),
        (lambda: dovetail.loads("{}"), dovetail.UsageError, "has no results of dovetail"),
        (lambda: dovetail.loads('{"schema": "dovetail-bench"}'), dovetail.UsageError, "an earlier version"),
        (lambda: dovetail.loads('{"schema": "dovetail-results", "version": 99}'), dovetail.UsageError, "a later version"),
        (lambda: dovetail.loads('{"schema": "dovetail-results", "version": 2}'), dovetail.UsageError, "is damaged: missing field"),
        (lambda: dovetail.loads('{"a": {"results": {"schema": "dovetail-results"}}}'), dovetail.UsageError, "one of its figures"),
        (lambda: dovetail.loads(b"{}"), TypeError, "text is of type bytes"),
        (lambda: dovetail.bench(JOB, stack={"host": {"request_ns": float("nan")}}), dovetail.UsageError, "stack.host.request_ns: nan"),
        (lambda: dovetail.bench(JOB, stack={"host": [None]}), dovetail.UsageError, "stack.host: None stands"),
        (lambda: dovetail.bench(JOB, stack=b"f2fs"), TypeError, "no option's value"),
        (lambda: dovetail.bench(JOB, stack=Path("a,b.toml")), dovetail.UsageError, "has a comma"),
        (lambda: dovetail.bench(JOB, stack="f2fs", json={"a": 1}), dovetail.UsageError, "json is a dict"),
        (lambda: dovetail.bench(JOB, stack="f2fs", progress="x"), TypeError, "progress is 'x'"),
        (lambda: dovetail.Drive("femu-32g", cache_size="x"), dovetail.UsageError, "cache_size: "),
    ],
)
def test_errors_are_the_sentences_of_the_command_line(call, kind, sentence) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind) as raised:
        call()
    assert sentence in str(raised.value)
    assert "Usage:" not in str(raised.value)
    assert tempfile.gettempdir() not in str(raised.value)
    # not of a class below it
    assert raised.type is kind


def test_progress_is_told_and_its_exception_ends_the_call() -> None:
    told: list[dovetail.Progress] = []
    dovetail.bench(JOB, stack="f2fs", scale="1/64", repeat=2, jobs=1, progress=told.append)
    assert {each.label for each in told} == {"f2fs #1", "f2fs #2"}
    assert all(0 <= each.share <= 1 for each in told)

    def fail(_: dovetail.Progress) -> None:
        raise KeyError("mine")

    begun = time.monotonic()
    with pytest.raises(KeyError, match="mine"):
        dovetail.bench(JOB, stack="f2fs", scale="1/4", repeat=8, progress=fail)
    assert time.monotonic() - begun < 20


def test_a_share_is_a_number_in_every_stage() -> None:
    class EnoughError(Exception):
        pass

    told: list[dovetail.Progress] = []

    def hear(progress: dovetail.Progress) -> None:
        told.append(progress)
        if progress.stage == "run":
            raise EnoughError

    # how many files it prepares is not known before
    with pytest.raises(EnoughError):
        dovetail.bench("fileserver", stack="f2fs", scale="1/32", progress=hear)
    assert told[-1].stage == "run"
    assert all(0 <= each.share <= 1 for each in told) and told[-1].requests > 0


def test_results_of_the_command_line_are_loaded(program: list[str], tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    done = command_line(program, "bench", JOB, "--stack=f2fs,ext4", "--scale=1/64", f"--json={path}")
    assert done.returncode == 0, done.stderr
    results = dovetail.load(path)
    assert results.json() == path.read_text()
    ours = dovetail.bench(JOB, stack=["f2fs", "ext4"], scale="1/64")
    assert results.figures().to_dict() == ours.figures().to_dict()
    assert results["ext4"].series().to_dict() == ours["ext4"].series().to_dict()
    assert dovetail.loads(ours.json()).table() == ours.table()


def test_another_process_returns_results() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        theirs = pool.submit(dovetail.bench, JOB, stack="f2fs", scale="1/64").result()
    assert theirs.json() == dovetail.bench(JOB, stack="f2fs", scale="1/64").json()


def test_ctrl_c_ends_a_call() -> None:
    # in a process of its own: a test runner has plans for the signal
    code = (
        "import dovetail, sys\n"
        "try:\n"
        f"    dovetail.bench('{JOB}', stack='f2fs', scale='1/2', repeat=50, "
        "progress=lambda _: print('on', flush=True))\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout and child.stdout.readline() == "on\n"
    child.send_signal(signal.SIGINT)
    output, _ = child.communicate(timeout=60)
    assert output.endswith("ended\n") and child.returncode == 0


def test_other_threads_go_on_during_a_call() -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    dovetail.bench(JOB, stack="f2fs", scale="1/64")
    done.set()
    thread.join()
    assert counted > 20


def test_the_generated_functions_are_those_of_the_command_line() -> None:
    made = subprocess.run([sys.executable, "python/tools/make_calls.py", "--check"])
    assert made.returncode == 0, "run python/tools/make_calls.py"


def test_the_package_is_the_command_line_too() -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return command_line([sys.executable, "-m", "dovetail"], *words)

    assert run("--version").stdout.startswith(f"dovetail {dovetail.__version__}")
    assert run("bench").returncode == 2
    assert run("nothing").returncode == 2
    wrong = run("bench", JOB, "--stack", "f3fs")
    assert wrong.returncode == 2 and wrong.stderr.startswith("dovetail: there is no stack")


def test_a_call_takes_no_more_cpu_time_than_the_command_line(program: list[str]) -> None:
    # the bound is 5 %; ratios of this size need many runs on a quiet machine, so the test has 1.5
    def of_child(words: list[str]) -> float:
        before = os.times()
        subprocess.run(words, check=True, capture_output=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    if "DOVETAIL" not in os.environ:
        pytest.skip("DOVETAIL names no program to compare with")
    theirs = min(of_child([*program, "bench", JOB, "-s", "f2fs", "--scale", "1/16"]) for _ in range(2))
    code = f"import dovetail; dovetail.bench('{JOB}', stack='f2fs', scale='1/16')"
    ours = min(of_child([sys.executable, "-c", code]) for _ in range(2))
    assert ours < 1.5 * theirs + 0.2, (ours, theirs)


def test_reports_and_comparisons(tmp_path: Path) -> None:
    one, other = (dovetail.bench(JOB, stack="f2fs", scale="1/64", op=op) for op in (7, 28))
    assert not dovetail.compare(one, one).changed
    assert dovetail.compare(one, one).identical
    found = dovetail.compare(one, other, threshold=0)
    assert found.changed and found.runs[0].figures and str(found) == found.text
    path = one.report(tmp_path / "r.html")
    assert path.read_text().startswith("<!doctype html")
    again = dovetail.report(one, output=tmp_path / "again.html")
    assert again.read_bytes() == path.read_bytes()
