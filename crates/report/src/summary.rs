//! The table of what came out: a row for each figure, a column for each run.
//!
//! The best figure is marked among runs of the same workload that came to their end. Figures that a
//! trace itself dictates (elapsed time, rates) are compared only where requests are issued as fast
//! as they complete.

use dovetail_lab::bench::event_figures;
use dovetail_lab::results::{
    FragmentationResult, LatencyResult, LifetimeResult, MapCacheResult, RemapResult, RequestResult,
    RunResult, TraceResult,
};

use super::comparison::{
    Best, Cell, Comparison, Group, latency, missing, number, optional, rate, row, size, time, whole,
};
use super::format::capitalized;

const NEITHER: Best<RunResult> = Best::Neither;
const LEAST: Best<RunResult> = Best::Least(are_alike);
const MOST: Best<RunResult> = Best::Most(are_alike);
const LEAST_AT_FULL_SPEED: Best<RunResult> = Best::Least(are_alike_at_full_speed);
const MOST_AT_FULL_SPEED: Best<RunResult> = Best::Most(are_alike_at_full_speed);

const NOTE: &str = "Bold on a tint: the best of the runs of the same workload that came to their end, where the runs differ.";

/// Calls under way, mean and maximum; `None` where nobody counted them.
fn in_flight(run: &RunResult) -> Option<(f64, u64)> {
    let (mean, max) = (run.totals.queue_depth_mean, run.totals.queue_depth_max);
    (max > 0).then_some((mean, max))
}

/// Time in which jobs warmed up: it is a part of the elapsed time, but no rate has it.
fn ramps(ramp_s: f64) -> Cell {
    if ramp_s > 0.0 { time(ramp_s * 1e9) } else { missing() }
}

/// Both came to their end and had the same workload.
fn are_alike(a: &RunResult, b: &RunResult) -> bool {
    let trace = |run: &RunResult| {
        run.trace.as_ref().map(|trace| (trace.name.clone(), trace.requests.clone()))
    };
    a.error.is_none() && b.error.is_none() && trace(a) == trace(b)
}

fn are_alike_at_full_speed(a: &RunResult, b: &RunResult) -> bool {
    let is_free =
        |run: &RunResult| run.replay.as_ref().is_none_or(|replay| replay.mode == "closed");
    are_alike(a, b) && is_free(a) && is_free(b)
}

const ABOVE_EVENTS: &[Group<RunResult>] = &[
    Group {
        name: "Requests of the trace",
        rows: &[
            row("Reads", NEITHER, |run| of_trace(run, |trace| trace.requests.read)),
            row("Writes", NEITHER, |run| of_trace(run, |trace| trace.requests.write)),
            row("Flushes", NEITHER, |run| of_trace(run, |trace| trace.requests.flush)),
            row("Discards", NEITHER, |run| of_trace(run, |trace| trace.requests.discard)),
        ],
    },
    Group {
        name: "Throughput",
        rows: &[
            row("Written, MB/s", MOST_AT_FULL_SPEED, |run| rate(run.totals.write_mb_per_s)),
            row("Read, MB/s", MOST_AT_FULL_SPEED, |run| rate(run.totals.read_mb_per_s)),
            row("Calls per second", MOST_AT_FULL_SPEED, |run| rate(run.totals.calls_per_s)),
            row("Written", NEITHER, |run| size(run.totals.written_bytes)),
            row("Read", NEITHER, |run| size(run.totals.read_bytes)),
            row("Elapsed", LEAST_AT_FULL_SPEED, |run| time(run.totals.elapsed_s * 1e9)),
            row("Of which ramps, not counted", NEITHER, |run| ramps(run.totals.ramp_s)),
            row("Queue depth, mean", NEITHER, |run| optional(in_flight(run).map(|(mean, _)| mean))),
            row("Queue depth, max", NEITHER, |run| {
                in_flight(run).map_or_else(missing, |(_, max)| whole(max))
            }),
            row("CPU time", LEAST, |run| {
                if run.totals.cpu_s > 0.0 { time(run.totals.cpu_s * 1e9) } else { missing() }
            }),
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
            row("Max", LEAST, |run| max(&run.latency.write)),
        ],
    },
    Group {
        name: "Sync latency",
        rows: &[
            row("p50", LEAST, |run| p50(&run.latency.flush)),
            row("p99", LEAST, |run| p99(&run.latency.flush)),
            row("p99.99", LEAST, |run| p9999(&run.latency.flush)),
            row("Max", LEAST, |run| max(&run.latency.flush)),
        ],
    },
    Group {
        name: "Read latency",
        rows: &[
            row("p50", LEAST, |run| p50(&run.latency.read)),
            row("p99", LEAST, |run| p99(&run.latency.read)),
            row("p99.99", LEAST, |run| p9999(&run.latency.read)),
            row("Max", LEAST, |run| max(&run.latency.read)),
        ],
    },
    Group {
        name: "Discard latency",
        rows: &[
            row("p50", LEAST, |run| p50(&run.latency.discard)),
            row("p99", LEAST, |run| p99(&run.latency.discard)),
            row("p99.99", LEAST, |run| p9999(&run.latency.discard)),
            row("Max", LEAST, |run| max(&run.latency.discard)),
        ],
    },
];

const BELOW_EVENTS: &[Group<RunResult>] = &[
    Group {
        name: "Files at the end",
        rows: &[
            row("Files", NEITHER, |run| of_files(run, |files| whole(files.files))),
            row("Pieces", LEAST, |run| of_files(run, |files| whole(files.pieces))),
            row("Mean piece, KiB", MOST, |run| of_files(run, |files| rate(files.mean_piece_kib))),
        ],
    },
    Group {
        name: "Flash",
        rows: &[
            row("Pages moved by cleaning", LEAST, |run| whole(run.totals.drive.programs.gc)),
            row("Pages moved by wear levelling", NEITHER, |run| {
                whole(run.totals.drive.programs.wear)
            }),
            row("Lines cleaned", NEITHER, |run| whole(run.totals.drive.gc_runs)),
            row("Lines that writes waited for", LEAST, |run| whole(run.totals.drive.gc_stalls)),
            row("Blocks erased", LEAST, |run| whole(run.totals.drive.erases)),
            row("Failed programs and erases", NEITHER, |run| {
                whole(run.totals.drive.program_failures + run.totals.drive.erase_failures)
            }),
            row("Blocks of data lost", LEAST, |run| whole(run.totals.drive.lost_blocks)),
        ],
    },
    Group {
        name: "Map on flash",
        rows: &[
            row("Read hits, %", MOST, |run| of_cache(run, |cache| percent(cache.hit_ratio.read))),
            row("Write hits, %", MOST, |run| of_cache(run, |cache| percent(cache.hit_ratio.write))),
            row("Translation pages read", LEAST, |run| {
                of_cache(run, |cache| Some(whole(cache.translation_reads.total())))
            }),
            row("Translation pages written", LEAST, |run| {
                of_cache(run, |cache| Some(whole(cache.translation_writes.total())))
            }),
            row("Read latency, % of dftl's", LEAST, |run| {
                of_cache(run, |cache| percent(cache.of_dftl.read))
            }),
            row("Write latency, % of dftl's", LEAST, |run| {
                of_cache(run, |cache| percent(cache.of_dftl.write))
            }),
            row("Reads summed, % of dftl's", LEAST, |run| {
                of_cache(run, |cache| percent(cache.summed_of_dftl.read))
            }),
            row("Writes summed, % of dftl's", LEAST, |run| {
                of_cache(run, |cache| percent(cache.summed_of_dftl.write))
            }),
        ],
    },
    Group {
        name: "Wear, erases of a block",
        rows: &[
            row("Min", NEITHER, |run| whole(run.wear.erases_min.into())),
            row("Mean", NEITHER, |run| number(run.wear.erases_mean)),
            row("Max", LEAST, |run| whole(run.wear.erases_max.into())),
        ],
    },
    Group {
        name: "Lifetime at this rate",
        rows: &[
            row("Written by the host, TB", NEITHER, |run| of_writes(run, |l| Some(l.host_tb))),
            row("Drive writes a day", NEITHER, |run| {
                of_writes(run, |l| Some(l.drive_writes_per_day))
            }),
            row("TB until the rated erases", MOST, |run| of_writes(run, |l| l.rated_tb)),
            row("Years until the rated erases", MOST_AT_FULL_SPEED, |run| {
                of_writes(run, |l| l.rated_years)
            }),
            row("Spread of wear, erases", LEAST, |run| whole(run.lifetime.wear_spread.into())),
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

fn of_trace(run: &RunResult, count: fn(&TraceResult) -> u64) -> Cell {
    run.trace.as_ref().map_or_else(missing, |trace| whole(count(trace)))
}

fn of_files(run: &RunResult, cell: fn(&FragmentationResult) -> Cell) -> Cell {
    run.fragmentation.as_ref().map_or_else(missing, cell)
}

/// Of a run that wrote to the drive.
fn of_writes(run: &RunResult, figure: fn(&LifetimeResult) -> Option<f64>) -> Cell {
    optional(figure(&run.lifetime).filter(|_| run.lifetime.cycles > 0.0))
}

fn of_cache(run: &RunResult, cell: fn(&MapCacheResult) -> Option<Cell>) -> Cell {
    run.map_cache.as_ref().and_then(cell).unwrap_or_else(missing)
}

fn percent(share: Option<f64>) -> Option<Cell> {
    share.map(|share| number(share * 100.0))
}

fn mean_kib(requests: &RequestResult) -> Cell {
    if requests.count == 0 { missing() } else { number(requests.mean_kib) }
}

fn of_remaps(run: &RunResult, cell: fn(&RemapResult) -> Cell) -> Cell {
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

fn max(of: &LatencyResult) -> Cell {
    latency(of, |p| p.max_ns)
}

/// The summary of all runs.
pub(crate) fn table(runs: &[RunResult]) -> String {
    let mut table = Comparison::of(runs);
    table.failures("Ended early", "Why", |run| run.error.as_deref());
    ABOVE_EVENTS.iter().for_each(|group| table.group(group));
    super::jobs::add(&mut table, runs);
    table.group_of("In the file system", &events(runs), |run, key| {
        run.events.get(key).map_or_else(missing, |count| whole(*count))
    });
    BELOW_EVENTS.iter().for_each(|group| table.group(group));
    table.notes("Before comparing", "Mind", |run| &run.notes);
    table.html("Summary", NOTE)
}

/// Keys of the events that the runs' file systems count, with their titles.
fn events(runs: &[RunResult]) -> Vec<(&'static str, String)> {
    event_figures(runs).into_iter().map(|figure| (figure.key, capitalized(figure.title))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_lab::results::ReplayResult;

    #[test]
    fn rows_are_the_figures_of_the_file_systems() {
        let run = |filesystem: &str, counts: &[(&str, u64)]| {
            let mut run = RunResult::default();
            run.stack.filesystem = filesystem.into();
            run.events = counts.iter().map(|(key, count)| ((*key).into(), *count)).collect();
            run
        };
        let ext = run("ext4", &[("checkpoints", 5), ("logged_blocks", 77_777)]);
        let html = table(std::slice::from_ref(&ext));
        assert!(
            html.contains("Blocks logged</th><td>77,777") && !html.contains("Blocks moved by"),
            "{html}"
        );
        let html = table(&[run("f2fs", &[("checkpoints", 7), ("moved_blocks", 9)]), ext]);
        assert_eq!(html.matches("Checkpoints</th>").count(), 1);
        assert!(html.contains("Blocks moved by cleaning") && html.contains("Blocks logged"));
    }

    #[test]
    fn a_run_that_ended_early_says_why_and_is_not_the_best() {
        let runs = [(1.0, Some("full")), (2.0, None), (3.0, None)].map(|(waf, error)| {
            let mut run = RunResult { error: error.map(String::from), ..RunResult::default() };
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
    fn lifetime_and_sentences_are_shown_where_there_are_any() {
        let mut runs = [RunResult::default(), RunResult::default()];
        assert!(!table(&runs).contains("Before comparing"));
        runs[1].notes = vec!["One <drive>.".into(), "Two.".into()];
        runs[1].lifetime.cycles = 2.0;
        runs[1].lifetime.rated_years = Some(4.25);
        let html = table(&runs);
        assert!(html.contains("<td class=\"note\">One &lt;drive&gt;. Two.</td>"), "{html}");
        let years = html.lines().find(|line| line.contains("Years until")).unwrap_or_default();
        assert!(years.contains("4.25"), "{html}");
    }

    #[test]
    fn remaps_are_shown_where_there_are_any() {
        let mut runs = [RunResult::default(), RunResult::default()];
        assert!(!table(&runs).contains("Remap commands"));
        runs[1].requests.remap = RemapResult { count: 3, pairs: 12, mean_us: 8.0 };
        assert!(table(&runs).contains("Remap commands") && table(&runs).contains("Pairs remapped"));
    }

    #[test]
    fn ramps_are_shown_beside_the_elapsed_time() {
        let mut run = RunResult::default();
        run.totals.elapsed_s = 4.0;
        assert!(!table(std::slice::from_ref(&run)).contains("ramps"));
        run.totals.ramp_s = 2.0;
        let html = table(&[run]);
        assert!(html.contains("Of which ramps, not counted</th><td>2.00 s</td>"), "{html}");
    }

    #[test]
    fn discards_have_their_latencies() {
        let mut run = RunResult::default();
        assert!(!table(std::slice::from_ref(&run)).contains("Discard latency"));
        let discard = &mut run.latency.discard.percentiles;
        (discard.count, discard.p99_ns) = (1, 43_000);
        let html = table(&[run]);
        let (_, rows) = html.split_once("Discard latency").unwrap_or_default();
        assert!(rows.contains("p99</th><td>43.0 µs</td>"), "{html}");
    }

    #[test]
    fn rates_are_compared_where_the_trace_does_not_dictate_them() {
        let run = |mode: &str, calls_per_s: f64| {
            let replay = ReplayResult { mode: mode.into(), ..ReplayResult::default() };
            let mut run = RunResult { replay: Some(replay), ..RunResult::default() };
            run.totals.calls_per_s = calls_per_s;
            run
        };
        let best = |mode| table(&[10.0, 20.0].map(|rate| run(mode, rate))).contains("(best)");
        assert!(!best("timed"));
        assert!(best("closed"));
    }
}
