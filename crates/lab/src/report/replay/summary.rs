//! The table of what came out: a row for each figure, a column for each run.
//!
//! The best figure is marked only among runs of the same trace, and the figures that the trace itself dictates
//! (elapsed time, rates) only in a closed loop.

use super::super::comparison::{
    Best, Comparison, Group, latency, number, optional, rate, row, size, time, whole,
};
use super::super::map_on_flash::MapOnFlash;
use crate::results::RunResult;

const NEITHER: Best<RunResult> = Best::Neither;
const LEAST: Best<RunResult> = Best::Least(same_trace);
/// Where requests are issued as fast as they complete.
const MOST_IN_CLOSED_LOOP: Best<RunResult> = Best::Most(same_trace_in_closed_loop);
/// Where requests are issued as fast as they complete.
const LEAST_IN_CLOSED_LOOP: Best<RunResult> = Best::Least(same_trace_in_closed_loop);

const NOTE: &str = "Bold on a tint: the best of the runs of the same trace, where the runs differ.";

fn same_trace(a: &RunResult, b: &RunResult) -> bool {
    a.trace.name == b.trace.name && a.trace.requests == b.trace.requests
}

impl MapOnFlash for RunResult {
    const COMPARABLE: fn(&Self, &Self) -> bool = same_trace;
}

fn same_trace_in_closed_loop(a: &RunResult, b: &RunResult) -> bool {
    same_trace(a, b) && [a, b].iter().all(|run| run.replay.mode == "closed")
}

const GROUPS: &[Group<RunResult>] = &[
    Group {
        name: "Requests",
        rows: &[
            row("Reads", NEITHER, |run| whole(run.trace.requests.read)),
            row("Writes", NEITHER, |run| whole(run.trace.requests.write)),
            row("Flushes", NEITHER, |run| whole(run.trace.requests.flush)),
            row("Discards", NEITHER, |run| whole(run.trace.requests.discard)),
        ],
    },
    Group {
        name: "Throughput",
        rows: &[
            row("Elapsed", LEAST_IN_CLOSED_LOOP, |run| time(run.totals.elapsed_s * 1e9)),
            row("Requests per second", MOST_IN_CLOSED_LOOP, |run| number(run.totals.iops)),
            row("Read, MB/s", MOST_IN_CLOSED_LOOP, |run| rate(run.totals.read_mb_per_s)),
            row("Written, MB/s", MOST_IN_CLOSED_LOOP, |run| rate(run.totals.write_mb_per_s)),
            row("Queue depth, mean", NEITHER, |run| number(run.totals.queue_depth_mean)),
            row("Queue depth, max", NEITHER, |run| whole(run.totals.queue_depth_max)),
        ],
    },
    Group {
        name: "Read latency",
        rows: &[
            row("p50", LEAST, |run| latency(&run.latency.read, |p| p.p50_ns)),
            row("p99", LEAST, |run| latency(&run.latency.read, |p| p.p99_ns)),
            row("p99.9", LEAST, |run| latency(&run.latency.read, |p| p.p999_ns)),
            row("Max", LEAST, |run| latency(&run.latency.read, |p| p.max_ns)),
        ],
    },
    Group {
        name: "Write latency",
        rows: &[
            row("p50", LEAST, |run| latency(&run.latency.write, |p| p.p50_ns)),
            row("p99", LEAST, |run| latency(&run.latency.write, |p| p.p99_ns)),
            row("p99.9", LEAST, |run| latency(&run.latency.write, |p| p.p999_ns)),
            row("Max", LEAST, |run| latency(&run.latency.write, |p| p.max_ns)),
        ],
    },
    Group {
        name: "Flush latency",
        rows: &[row("p99", LEAST, |run| latency(&run.latency.flush, |p| p.p99_ns))],
    },
    Group {
        name: "Flash",
        rows: &[
            row("Write amplification (WAF)", LEAST, |run| optional(run.totals.waf)),
            row("Pages moved by cleaning", LEAST, |run| whole(run.totals.programs.gc)),
            row("Pages moved by wear levelling", NEITHER, |run| whole(run.totals.programs.wear)),
            row("Lines cleaned", NEITHER, |run| whole(run.totals.gc_runs)),
            row("Lines that writes waited for", LEAST, |run| whole(run.totals.gc_stalls)),
            row("Blocks erased", LEAST, |run| whole(run.totals.erases)),
            row("Failed programs and erases", NEITHER, |run| {
                whole(run.totals.program_failures + run.totals.erase_failures)
            }),
            row("Blocks of data lost", LEAST, |run| whole(run.totals.lost_blocks)),
        ],
    },
    RunResult::GROUP,
    Group {
        name: "Wear, erases of a block",
        rows: &[
            row("Min", NEITHER, |run| whole(run.wear.erases_min.into())),
            row("Mean", NEITHER, |run| number(run.wear.erases_mean)),
            row("Max", LEAST, |run| whole(run.wear.erases_max.into())),
        ],
    },
    Group {
        name: "Memory",
        rows: &[
            row("Map at the end", LEAST, |run| size(run.memory.map_bytes)),
            row("Map, max", LEAST, |run| size(run.memory.map_bytes_max)),
            row("Other", NEITHER, |run| size(run.memory.other_bytes)),
        ],
    },
];

/// The summary of all runs.
pub(super) fn table(runs: &[RunResult]) -> String {
    let mut table = Comparison::of(runs);
    GROUPS.iter().for_each(|group| table.group(group));
    table.html("Summary", NOTE)
}

/// A figure of a demand-paged map.
#[cfg(test)]
mod tests {
    use super::*;

    fn run(mode: &str, iops: f64) -> RunResult {
        let mut run = RunResult::default();
        run.replay.mode = mode.into();
        run.totals.iops = iops;
        run
    }

    #[test]
    fn rates_are_compared_in_a_closed_loop_alone() {
        let best = |mode| table(&[10.0, 20.0].map(|iops| run(mode, iops))).contains("(best)");
        assert!(!best("timed"));
        assert!(best("closed"));
    }
}
