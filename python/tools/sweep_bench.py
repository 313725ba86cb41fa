"""Measures sweeps: workers, kills, the scheduler's cost, the size of a table.

    python tools/sweep_bench.py [speed|kills|scheduler|table]...
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from dask import config
from distributed import Client, LocalCluster

import dovetail

ROOT = Path(__file__).parent.parent.parent
JOB = ROOT / "examples" / "random-updates.fio"
SMALL = "[job]\nfilename=file\nsize=256m\nio_size=2g\nbs=4k\nrw=randwrite\nfsync=8\n"
TINY = "[job]\nfilename=file\nsize=1m\nio_size=2m\nbs=4k\nrw=randwrite\nfsync=8\n"


def sweep(job: Path, points: int, scale: str = "1/64") -> dict[str, object]:
    """A sweep of so many points over stacks, spare flash and seeds."""
    return {
        "command": "bench",
        "inputs": [job],
        "options": {"scale": scale},
        "axes": {"stack": ["f2fs", "ext4"], "op": [7, 12, 20, 28], "seed": {"from": 1, "to": points // 8}},
    }


def cluster(workers: int, processes: bool = True) -> LocalCluster:
    return LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=processes, dashboard_address=None, memory_limit=0
    )


def timed(folder: Path, points: dict[str, object], workers: int) -> tuple[float, bytes]:
    with cluster(workers) as local, Client(local) as client:
        client.wait_for_workers(workers)
        client.run(lambda: __import__("dovetail"))
        begun = time.monotonic()
        done = dovetail.sweep(points, results=folder, client=client)
        return time.monotonic() - begun, done.table.read_bytes()


def speed(folder: Path) -> None:
    points = sweep(JOB, 200)
    one, table = timed(folder / "one", points, 1)
    two, other = timed(folder / "two", points, 2)
    assert table == other
    print(f"200 points: one worker {one:.1f} s, two {two:.1f} s, ratio {one / two:.2f}")


def kills(folder: Path) -> None:
    (folder / "small.fio").write_text(SMALL)
    points = sweep(folder / "small.fio", 200)
    undisturbed = dovetail.sweep(points, results=folder / "undisturbed").table.read_bytes()
    results = folder / "killed"
    draw = random.Random(1)
    code = (
        "import json, os, sys, dovetail\n"
        "from distributed import Client, LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    client = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))\n"
        "    print(*client.run(os.getpid).values(), flush=True)\n"
        "    dovetail.sweep(json.loads(sys.argv[1]), results=sys.argv[2], client=client,\n"
        "        progress=lambda told: print(told.requests, flush=True))\n"
    )
    import json

    text = json.dumps(points, default=str)
    script = folder / "client.py"
    script.write_text(code)
    for number, kind in enumerate(["worker", "client", "worker", "client", "command"]):
        if kind == "command":
            words = [sys.executable, "-m", "dovetail", "sweep", folder / "sweep.toml", "--results", results]
            (folder / "sweep.toml").write_text(dovetail._dovetail.toml(text))
        else:
            words = [sys.executable, script, text, results]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert child.stdout
        if kind == "worker":
            workers = [int(word) for word in child.stdout.readline().split()]
            child.stdout.readline()
            os.kill(draw.choice(workers), signal.SIGKILL)
        if kind != "command":
            for _ in range(draw.randrange(5, 20)):
                child.stdout.readline()
        else:
            time.sleep(1)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        found = sum(path.read_bytes().count(b"\n") for path in results.glob("points-*.jsonl"))
        print(f"kill {number + 1} ({kind}): {found} of 200 points are there")
    done = dovetail.sweep(points, results=results)
    assert done.table.read_bytes() == undisturbed
    print("the table is that of an undisturbed run, byte for byte")


def scheduler(folder: Path) -> None:
    (folder / "tiny.fio").write_text(TINY)
    points = sweep(folder / "tiny.fio", 2000)
    begun = time.monotonic()
    dovetail.sweep(points, results=folder / "alone", jobs=1)
    alone = time.monotonic() - begun
    with cluster(64, processes=False) as local, Client(local) as client:
        begun = time.monotonic()
        dovetail.sweep(points, results=folder / "many", client=client)
        many = time.monotonic() - begun
    per = 1000 * (many - alone) / 2000
    print(f"2,000 tiny points: alone {alone:.1f} s, 64 workers {many:.1f} s: {per:.2f} ms a point")


def table(folder: Path) -> None:
    (folder / "tiny.fio").write_text(TINY)
    begun = time.monotonic()
    done = dovetail.sweep(sweep(folder / "tiny.fio", 10_000), results=folder / "large")
    lines = sum(path.stat().st_size for path in done.folder.glob("points-*"))
    size = done.table.stat().st_size
    seconds = time.monotonic() - begun
    print(f"10,000 points: table {size / 1e6:.1f} MB, lines {lines / 1e6:.1f} MB, {seconds:.0f} s")


def main() -> None:
    chosen = sys.argv[1:] or ["speed", "kills", "scheduler", "table"]
    with TemporaryDirectory() as folder, config.set({"distributed.scheduler.allowed-failures": 10}):
        for name in chosen:
            part = Path(folder) / name
            part.mkdir()
            globals()[name](part)


if __name__ == "__main__":
    main()
