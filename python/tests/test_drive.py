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
    with pytest.raises(dovetail.UsageError, match="command 1: .* not on the drive"):
        drive.submit([("write", 5, 1, None), ("write", 1 << 40, 1, None)])
    assert drive.status().writes == 2


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("write", 3), r"command 1 is \('write', 3\): give a tuple"),
        (("write", -1, 1, None), r"command 1 is \('write', -1, 1, None\): give a tuple"),
        ("write", "command 1 is 'write': give a tuple"),
        (("writ", 3, 1, None), 'command 1: "writ" is none of read'),
        (("write", 3, 0, None), "command 1: a command has at least one block"),
        (("write", 3, 1, 2**63 + 1), r"command 1: at_ns is .*: the latest is 2\*\*63"),
    ],
)
def test_a_command_that_makes_no_sense_is_named(command, sentence) -> None:  # type: ignore[no-untyped-def]
    drive = dovetail.Drive("femu-32g", scale="1/64")
    with pytest.raises(dovetail.UsageError, match=sentence):
        drive.submit([("flush", 0, 0, None), command])


def test_an_argument_that_makes_no_sense_is_named() -> None:
    drive = dovetail.Drive("femu-32g", scale="1/64")
    with pytest.raises(dovetail.UsageError, match="block is -1: give a whole number from 0 on"):
        drive.write(-1)
    with pytest.raises(dovetail.UsageError, match="at_ns is -5"):
        drive.flush(at_ns=-5)
    with pytest.raises(dovetail.UsageError, match="stream is 256: give at most 255"):
        drive.write(0, stream=256)
    with pytest.raises(TypeError, match="count is 1.5: give a whole number"):
        drive.read(0, 1.5)  # type: ignore[arg-type]
    assert drive.now_ns == 0


def test_virtual_time_does_not_stop_at_its_end() -> None:
    drive = dovetail.Drive("femu-32g", scale="1/64")
    with pytest.raises(dovetail.UsageError, match=r"the latest is 2\*\*63 nanoseconds"):
        drive.write(0, 1, at_ns=2**64 - 1)
    done = drive.write(0, 1, at_ns=2**63)
    assert 2**63 < done < drive.write(0, 1)


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
