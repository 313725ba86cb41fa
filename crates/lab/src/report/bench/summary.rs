//! The table of what came out: a row for each figure, a column for each run.
//!
//! All runs have the same workload, so the best figure is marked among all runs that came to its end.

use super::super::comparison::{
    Best, Cell, Comparison, Group, latency, missing, number, optional, rate, row, size, time, whole,
};
use super::super::format::capitalized;
use super::super::map_on_flash::MapOnFlash;
use crate::bench::event_figures;
use crate::bench::results::{BenchRun, RemapResult, RequestResult};
use crate::results::LatencyResult;

const NEITHER: Best<BenchRun> = Best::Neither;
const LEAST: Best<BenchRun> = Best::Least(both_complete);
const MOST: Best<BenchRun> = Best::Most(both_complete);

const NOTE: &str = "Bold on a tint: the best of the runs that came to their end, where the runs differ.";

fn both_complete(a: &BenchRun, b: &BenchRun) -> bool {
    a.error.is_none() && b.error.is_none()
}

impl MapOnFlash for BenchRun {
    const COMPARABLE: fn(&Self, &Self) -> bool = both_complete;
}

const ABOVE_EVENTS: &[Group<BenchRun>] = &[
    Group {
        name: "Throughput",
        rows: &[
            row("Written, MB/s", MOST, |run| rate(run.totals.write_mb_per_s)),
            row("Read, MB/s", MOST, |run| rate(run.totals.read_mb_per_s)),
            row("Calls per second", MOST, |run| rate(run.totals.calls_per_s)),
            row("Written", NEITHER, |run| size(run.totals.written_bytes)),
            row("Read", NEITHER, |run| size(run.totals.read_bytes)),
            row("Elapsed", LEAST, |run| time(run.totals.elapsed_s * 1e9)),
            row("CPU time", LEAST, |run| time(run.totals.cpu_s * 1e9)),
        ],
    },
    Group {
        name: "Write amplification (WAF)",
        rows: &[
            row("File system", LEAST, |run| optional(run.totals.fs_waf)),
            row("Drive", LEAST, |run| optional(run.totals.device_waf)),
            row("In all", LEAST, |run| optional(run.totals.total_waf)),
        ],
    },
    Group {
        name: "Requests to the drive",
        rows: &[
            row("Writes", NEITHER, |run| whole(run.requests.by_kind.write.count)),
            row("Mean write, KiB", NEITHER, |run| mean_kib(&run.requests.by_kind.write)),
            row("Reads", NEITHER, |run| whole(run.requests.by_kind.read.count)),
            row("Mean read, KiB", NEITHER, |run| mean_kib(&run.requests.by_kind.read)),
            row("Flushes", NEITHER, |run| whole(run.requests.by_kind.flush.count)),
            row("Discards", NEITHER, |run| whole(run.requests.by_kind.discard.count)),
        ],
    },
    Group {
        name: "Remaps",
        rows: &[
            row("Remap commands", NEITHER, |run| of_remaps(run, |remap| whole(remap.count))),
            row("Pairs remapped", NEITHER, |run| of_remaps(run, |remap| whole(remap.pairs))),
        ],
    },
    Group {
        name: "Write latency",
        rows: &[
            row("p50", LEAST, |run| p50(&run.latency.write)),
            row("p99", LEAST, |run| p99(&run.latency.write)),
            row("p99.99", LEAST, |run| p9999(&run.latency.write)),
        ],
    },
    Group {
        name: "Sync latency",
        rows: &[
            row("p50", LEAST, |run| p50(&run.latency.flush)),
            row("p99", LEAST, |run| p99(&run.latency.flush)),
            row("p99.99", LEAST, |run| p9999(&run.latency.flush)),
        ],
    },
    Group {
        name: "Read latency",
        rows: &[
            row("p50", LEAST, |run| p50(&run.latency.read)),
            row("p99", LEAST, |run| p99(&run.latency.read)),
            row("p99.99", LEAST, |run| p9999(&run.latency.read)),
        ],
    },
];

const BELOW_EVENTS: &[Group<BenchRun>] = &[
    Group {
        name: "Files at the end",
        rows: &[
            row("Files", NEITHER, |run| whole(run.fragmentation.files)),
            row("Pieces", LEAST, |run| whole(run.fragmentation.pieces)),
            row("Mean piece, KiB", MOST, |run| rate(run.fragmentation.mean_piece_kib)),
        ],
    },
    Group {
        name: "Flash",
        rows: &[
            row("Pages moved by cleaning", LEAST, |run| whole(run.programs.gc)),
            row("Lines cleaned", NEITHER, |run| whole(run.totals.gc_runs)),
            row("Blocks erased", LEAST, |run| whole(run.totals.erases)),
            row("Erases of a block, mean", NEITHER, |run| number(run.wear.erases_mean)),
            row("Erases of a block, max", LEAST, |run| whole(run.wear.erases_max.into())),
            row("Map in memory", LEAST, |run| size(run.memory.map_bytes)),
        ],
    },
    BenchRun::GROUP,
];

/// A figure of a demand-paged map.
fn mean_kib(requests: &RequestResult) -> Cell {
    if requests.count == 0 { missing() } else { number(requests.mean_kib) }
}

fn of_remaps(run: &BenchRun, cell: fn(&RemapResult) -> Cell) -> Cell {
    let remap = &run.requests.remap;
    if remap.count == 0 { missing() } else { cell(remap) }
}

fn p50(of: &LatencyResult) -> Cell {
    latency(of, |p| p.p50_ns)
}

fn p99(of: &LatencyResult) -> Cell {
    latency(of, |p| p.p99_ns)
}

fn p9999(of: &LatencyResult) -> Cell {
    latency(of, |p| p.p9999_ns)
}

/// The summary of all runs.
pub(super) fn table(runs: &[BenchRun]) -> String {
    let mut table = Comparison::of(runs);
    table.failures("Ended early", "Why", |run| run.error.as_deref());
    ABOVE_EVENTS.iter().for_each(|group| table.group(group));
    table.group_of("In the file system", &events(runs), |run, key| {
        run.events.get(key).map_or_else(missing, |count| whole(*count))
    });
    BELOW_EVENTS.iter().for_each(|group| table.group(group));
    table.html("Summary", NOTE)
}

/// Keys of the events that the runs' file systems count, with their titles.
fn events(runs: &[BenchRun]) -> Vec<(&'static str, String)> {
    event_figures(runs).into_iter().map(|figure| (figure.key, capitalized(figure.title))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_figures_of_the_file_systems() {
        let run = |filesystem: &str, counts: &[(&str, u64)]| {
            let mut run = BenchRun::default();
            run.stack.filesystem = filesystem.into();
            run.events = counts.iter().map(|(key, count)| ((*key).into(), *count)).collect();
            run
        };
        let ext = run("ext4", &[("checkpoints", 5), ("logged_blocks", 77_777)]);
        let html = table(std::slice::from_ref(&ext));
        assert!(html.contains("Blocks logged</th><td>77,777") && !html.contains("Blocks moved by"), "{html}");
        let html = table(&[run("f2fs", &[("checkpoints", 7), ("moved_blocks", 9)]), ext]);
        assert_eq!(html.matches("Checkpoints</th>").count(), 1);
        assert!(html.contains("Blocks moved by cleaning") && html.contains("Blocks logged"));
    }

    #[test]
    fn a_run_that_ended_early_says_why_and_is_not_the_best() {
        let runs = [(1.0, Some("full")), (2.0, None), (3.0, None)].map(|(waf, error)| {
            let mut run = BenchRun { error: error.map(String::from), ..BenchRun::default() };
            run.totals.fs_waf = Some(waf);
            run
        });
        let html = table(&runs);
        assert!(html.contains("<td class=\"failed\">full</td>"));
        assert!(html.contains("<span class=\"best\">2.00"));
        assert!(!html.contains("<span class=\"best\">1.00"));
        assert!(!table(&runs[1..]).contains("Ended early"));
    }

    #[test]
    fn remaps_are_shown_where_there_are_any() {
        let mut runs = [BenchRun::default(), BenchRun::default()];
        assert!(!table(&runs).contains("Remap commands"));
        runs[1].requests.remap = RemapResult { count: 3, pairs: 12, mean_us: 8.0 };
        assert!(table(&runs).contains("Remap commands") && table(&runs).contains("Pairs remapped"));
    }
}
