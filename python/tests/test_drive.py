"""A drive that is experimented with."""

from __future__ import annotations

import random

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


def test_a_drive_may_go_from_thread_to_thread() -> None:
    from concurrent.futures import ThreadPoolExecutor

    drive = dovetail.Drive("femu-32g", scale="1/64")
    with ThreadPoolExecutor(2) as pool:
        times = [pool.submit(drive.write, block).result() for block in range(4)]
    assert times == sorted(times) and drive.status().writes == 4
