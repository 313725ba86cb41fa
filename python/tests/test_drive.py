"""A drive that is experimented with."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import pytest

import dovetail


def test_a_full_drive_must_clean() -> None:
    drive = dovetail.Drive("femu-32g", scale="1/64", seed=7)
    draw = random.Random(1)
    drive.submit([("write", block, 64, None) for block in range(0, drive.blocks, 64)])
    drive.submit([("write", draw.randrange(drive.blocks), 1, None) for _ in range(drive.blocks)])
    status = drive.status()
    assert status.write_amplification > 1.2
    assert status.lines_cleaned > 0
    assert status.written_bytes == 2 * drive.blocks * 4096


def test_commands_at_one_time_overlap() -> None:
    one, other = (dovetail.Drive("femu-32g", scale="1/64") for _ in range(2))
    for drive in (one, other):
        drive.submit([("write", block, 64, None) for block in range(0, 4096, 64)])
        drive.flush()
    begin = one.now_ns
    in_turn = [one.read(block) for block in range(8)][-1] - begin
    at_once = max(other.read(block, at_ns=begin) for block in range(8)) - begin
    assert at_once < in_turn / 2


def test_the_same_commands_take_the_same_time() -> None:
    def times() -> list[int]:
        drive = dovetail.Drive("nvme-250g", scale="1/64")
        writes = [("write", n * 8, 8, None) for n in range(100)]
        return drive.submit([*writes, ("flush", 0, 0, None), ("read", 8, 4, None), ("discard", 0, 8, None)])

    assert times() == times() == sorted(times())


def test_streams_and_discards_are_taken() -> None:
    drive = dovetail.Drive("pm9d3-1880g-fdp", scale="1/1024")
    drive.write(0, 8, stream=3, fua=True)
    drive.discard(0, 8)
    assert drive.status().discards == 1
    assert repr(drive).startswith("Drive('pm9d3-1880g-fdp', ")


def test_sizes_may_be_texts_and_a_wrong_command_has_its_number() -> None:
    drive = dovetail.Drive("femu-32g", scale="1/64", map="demand", cache="dftl", cache_size="64KiB", op="28")
    assert drive.submit([("write", 0, 1, None)])
    with pytest.raises(dovetail.DovetailError, match="command 1: .* not on the drive"):
        drive.submit([("write", 5, 1, None), ("write", 1 << 40, 1, None)])
    assert drive.status().writes == 2


def test_others_go_on_while_a_command_is_performed() -> None:
    drive = dovetail.Drive("femu-32g", scale="1/4")
    ended: list[float] = []

    def write() -> None:
        drive.write(0, drive.blocks)
        ended.append(time.monotonic())

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while not ended:
        seen.append(time.monotonic())
        time.sleep(0.005)
    writer.join()
    # a command that holds the lock lets this thread look once, before it begins
    assert sum(at < ended[0] for at in seen) >= 5, (len(seen), ended)


def test_a_signal_ends_long_commands_soon() -> None:
    drive = dovetail.Drive("femu-32g", scale="1/64")
    commands = [("write", 0, drive.blocks, None)] * 1000
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    # a shell lets what it starts in the background ignore the signal
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            drive.submit(commands)
    finally:
        signal.signal(signal.SIGINT, before)
    assert drive.status().writes < len(commands)


def test_a_drive_may_go_from_thread_to_thread() -> None:
    from concurrent.futures import ThreadPoolExecutor

    drive = dovetail.Drive("femu-32g", scale="1/64")
    with ThreadPoolExecutor(2) as pool:
        times = [pool.submit(drive.write, block).result() for block in range(4)]
    assert times == sorted(times) and drive.status().writes == 4
