"""The commands as functions. Made by tools/make_calls.py from the options of the command line."""

# ruff: noqa: A002, E501
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, SupportsFloat

from . import _dovetail
from ._progress import Teller, Wanted
from ._words import named, words
from .results import Reproduction, Results

Scalar = str | SupportsFloat | os.PathLike[str]
Described = str | os.PathLike[str] | Mapping[str, Any]


def bench(
    job: str | os.PathLike[str],
    *,
    stack: Described | Iterable[Described],
    drive: Described | Iterable[Described] | None = None,
    op: Scalar | Iterable[Scalar] | None = None,
    gc: Scalar | Iterable[Scalar] | None = None,
    mount: Scalar | Iterable[Scalar] | None = None,
    map: Scalar | Iterable[Scalar] | None = None,
    cache: Scalar | Iterable[Scalar] | None = None,
    cache_size: Scalar | Iterable[Scalar] | None = None,
    devirtualize: Scalar | Mapping[str, Scalar] | None = None,
    scale: Scalar | None = None,
    set: Scalar | Iterable[Scalar] | Mapping[str, Scalar] | None = None,
    gaps: Scalar | None = None,
    cpus: Scalar | None = None,
    lead: Scalar | None = None,
    loops: Scalar | None = None,
    whole_at: Scalar | None = None,
    fill: Scalar | None = None,
    fill_with: Scalar | None = None,
    precondition: bool = False,
    repeat: Scalar | None = None,
    seed: Scalar | None = None,
    final_sync: bool = False,
    restart: bool = False,
    jobs: Scalar | None = None,
    keep_going: bool = False,
    json: Scalar | None = None,
    csv: Scalar | None = None,
    report: Scalar | None = None,
    fio_json: Scalar | None = None,
    progress: Wanted = None,
) -> Results:
    """Runs a workload on several stacks in virtual time, side by side.

    job: A fio job file, a personality's name or .toml file, or a file-level trace.
    stack: Stacks by name (see `dovetail stack list`) or .toml file
    drive: Drives' profiles (see `dovetail drive list`) in place of the stacks' own: a run on
        each
    op: Spare flash in percent of the capacity, in place of the profile's
    gc: Victim policy of cleaning, in place of the profile's
    mount: Mount options besides those of the stacks, which they override; given several times,
        a run with each
    map: Mapping scheme, in place of the drives' own; demand is a page map on flash of which a
        part is cached
    cache: Cache policy of a map that lies on flash: a run for each policy; none for the whole
        map in memory
    cache_size: Bytes of that cache at full scale, 8 for an entry [default: 512 KiB]. Without
        --cache the policy is the drive's own, or dftl
    devirtualize: Let pointers lead to the drive's own addresses beside the workload, in place
        of the stacks' own schedule: every=60s, pressure=8MiB (of the map, at full scale),
        idle=1s, hot=3s for files to leave, and unit=metadata-block for the paper's small
        batches
    scale: Shrink the drive, the page cache, the map's cache and the sizes in the job alike
    set: A variable of the job file, or a parameter of the personality
    gaps: Of a file-level trace: multiply each thread's gaps between calls; 0 is as fast as
        calls return [default: 1]
    cpus: Of a file-level trace with CPU times: each thread works between its calls for the CPU
        time that was recorded, on a host with so many CPUs
    lead: With --cpus: calls by which a thread may be ahead of the order of the trace [default:
        1024]
    loops: Of a file-level trace: how often it is made again; 2.5 is two times and a half
        [default: 1]
    whole_at: Of a file-level trace: the scale at which it is made again as it is; at smaller
        ones its files and the number of its calls are shrunk
    fill: Fill the volume first: a share of the partition (50%), or bytes at full scale (100GiB)
    fill_with: With which files: as found on people's machines (Impressions, FAST'09), or of 1
        GiB each
    precondition: Fill the drive first, in order and then at random until its write
        amplification is steady. Then the volume is made, and its mkfs discards what the
        partition holds, unless the stack has it leave that
    repeat: Run each stack so many times, each time with another seed
    seed: Seed of all that is random
    final_sync: Sync the file system when the job has ended, and count what that writes
    restart: Cut the power when the job has ended, mount again, and show how long that takes
    jobs: Runs at the same time; all cores if not given
    keep_going: Show what there is, even if a run failed or ended early
    json: Results as JSON: --json FILE to a file, --json alone to standard output in place of
        the table
    csv: Single figures as CSV, a row for each run: --csv FILE to a file, --csv alone to
        standard output
    report: A report with pictures: one HTML file that needs nothing else
    fio_json: Results in the layout of fio's own JSON; with several runs a file each (out.json
        becomes out-f2fs.json and so on)
    progress: True for bars, or a function that hears of dovetail.Progress.
    """
    options = {
        "stack": stack,
        "drive": drive,
        "op": op,
        "gc": gc,
        "mount": mount,
        "map": map,
        "cache": cache,
        "cache-size": cache_size,
        "devirtualize": devirtualize,
        "scale": scale,
        "set": set,
        "gaps": gaps,
        "cpus": cpus,
        "lead": lead,
        "loops": loops,
        "whole-at": whole_at,
        "fill": fill,
        "fill-with": fill_with,
        "precondition": precondition,
        "repeat": repeat,
        "seed": seed,
        "final-sync": final_sync,
        "restart": restart,
        "jobs": jobs,
        "keep-going": keep_going,
        "json": json,
        "csv": csv,
        "report": report,
        "fio-json": fio_json,
    }
    call = words("bench", [job], options)
    with named(), Teller(progress) as tell:
        return Results(_dovetail.bench(call, tell))


def replay(
    *traces: str | os.PathLike[str],
    drive: Described | Iterable[Described],
    scale: Scalar | None = None,
    op: Scalar | Iterable[Scalar] | None = None,
    gc: Scalar | Iterable[Scalar] | None = None,
    map: Scalar | Iterable[Scalar] | None = None,
    cache: Scalar | Iterable[Scalar] | None = None,
    cache_size: Scalar | Iterable[Scalar] | None = None,
    buffer: Scalar | Iterable[Scalar] | None = None,
    precondition: bool = False,
    format: Scalar | None = None,
    event: Scalar | None = None,
    device: Scalar | None = None,
    skip_bad: bool = False,
    wrap: bool = False,
    zone_translate: Scalar | None = None,
    speed: Scalar | None = None,
    queue_depth: Scalar | None = None,
    host: Scalar | Mapping[str, Scalar] | None = None,
    limit: Scalar | None = None,
    seed: Scalar | None = None,
    jobs: Scalar | None = None,
    interval: Scalar | None = None,
    json: Scalar | None = None,
    csv: Scalar | None = None,
    report: Scalar | None = None,
    progress: Wanted = None,
) -> Results:
    """Replays block traces on simulated drives, side by side.

    *traces: Block traces: blkparse's text, MSR, fio's iolog, ..., plain, gzip or zstd.
    drive: Drive profiles by name (see `dovetail drive list`) or .toml file
    scale: Shrink the drive's capacity and keep its ratios
    op: Spare flash in percent of the capacity, in place of the profile's
    gc: Victim policy of cleaning, in place of the profile's
    map: Mapping scheme, in place of the profile's; demand is a page map on flash of which a
        part is cached (see --cache)
    cache: Cache policy of a map that lies on flash, whichever scheme it has; none for the whole
        map in memory
    cache_size: Bytes of that cache, 8 for an entry [default: the profile's, or 512 KiB].
        Without --cache the policy is the profile's, or dftl
    buffer: Volatile write buffer, in place of the profile's; 0 for none
    precondition: Fill the drive first, in order and then at random until its write
        amplification is steady
    format: Format of the traces; found out from their first lines if not given
    event: Event of blkparse that is a request: Q (queued), I (inserted), D (dispatched) or C
        (completed)
    device: Only this device, disk or volume of a trace that has several
    skip_bad: Leave out lines that cannot be read, and count them
    wrap: Fold addresses beyond the drive's end into it
    zone_translate: Play the trace on drives with zones through a log in the host, which maps
        blocks and cleans zones; it keeps so many percent for itself. Without it a write that is
        not at a zone's write pointer ends the replay
    speed: Replay so many times faster than recorded
    queue_depth: Replay in a closed loop with so many requests in flight, whatever their
        recorded times
    host: Put a host before the drive, with the costs and limits that stacks have by default;
        some of them may be given: --host=queue_depth=32,request_ns=1000 (`dovetail help host-
        model`). Without it requests reach the drive as they are
    limit: End after so many requests
    seed: Seed of all that is random
    jobs: Runs at the same time; all cores if not given
    interval: Length of the intervals of the time series; if not given, one that makes 256 to
        512 of them
    json: Results as JSON: --json FILE to a file, --json alone to standard output in place of
        the table
    csv: Single figures as CSV, a row for each run: --csv FILE to a file, --csv alone to
        standard output
    report: A report with pictures: one HTML file that needs nothing else
    progress: True for bars, or a function that hears of dovetail.Progress.
    """
    options = {
        "drive": drive,
        "scale": scale,
        "op": op,
        "gc": gc,
        "map": map,
        "cache": cache,
        "cache-size": cache_size,
        "buffer": buffer,
        "precondition": precondition,
        "format": format,
        "event": event,
        "device": device,
        "skip-bad": skip_bad,
        "wrap": wrap,
        "zone-translate": zone_translate,
        "speed": speed,
        "queue-depth": queue_depth,
        "host": host,
        "limit": limit,
        "seed": seed,
        "jobs": jobs,
        "interval": interval,
        "json": json,
        "csv": csv,
        "report": report,
    }
    call = words("replay", traces, options)
    with named(), Teller(progress) as tell:
        return Results(_dovetail.replay(call, tell))


def reproduce(
    *figures: str,
    full: bool = False,
    scale: Scalar | None = None,
    with_: Scalar | Iterable[Scalar] | Mapping[str, Scalar] | None = None,
    seed: Scalar | None = None,
    jobs: Scalar | None = None,
    progress: Wanted = None,
) -> list[Reproduction]:
    """Runs the papers' figures and tables again. Each is at a reduced scale unless full or
    scale say otherwise.

    *figures: Figures by name; "all" stands for every one.
    full: Run at the papers' own sizes
    scale: Run at this scale
    with_: An experiment: a key of the figure's stacks with another value, as in a stack's file;
        drive.TABLE.KEY for a figure of the drive, mount for more mount options, STACK:KEY for
        one stack with its variants. The statements stay the paper's
    seed: Seed of all that is random
    jobs: Runs at the same time; all cores if not given
    progress: True for bars, or a function that hears of dovetail.Progress.
    """
    options = {
        "full": full,
        "scale": scale,
        "with": with_,
        "seed": seed,
        "jobs": jobs,
    }
    call = words("reproduce", figures, options)
    with named(), Teller(progress) as tell:
        return [Reproduction(each) for each in _dovetail.reproduce(call, tell)]
