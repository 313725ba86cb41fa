//! A figure of ours: every answer to a log on a log, on the same flash, with the same jobs and data.

mod jobs;
mod stacks;

use dovetail_lab::bench::{BenchError, Stack};
use dovetail_lab::results::{Results, RunResult};
use dovetail_time::format_bytes;

use super::{Comparison, Figure, Plan, Reproduction, Setting, direction, rounded};
pub(crate) use jobs::Work;
pub(crate) use stacks::lazily;

pub(crate) const FIGURE: Figure = Figure {
    name: "answers",
    title: "Every answer to a log on a log: zones, streams, FDP, remapping, an endless log, rewritten pointers",
    source: "a figure of ours; the family that FStream (FAST'18), ZNS (ATC'21) and FDP CacheLib (EuroSys'25) belong to, beside the four papers",
    setup: "Twelve stacks on the flash of femu-32g, which has the spare part that is named beside 32 GiB; a zoned drive gives all of it to the file system. \
            Page-mapped drives clean when 4 % of the spare lines are left, and keep what they move apart. \
            Five jobs: random updates of 4 KiB with an fsync after every 16th; a file server with files of 2 MiB; TPC-C on MariaDB, recorded; a mail server; a cache \
            with 4 % of small objects at random places, which the program calls short-lived, and large ones round and round. With other files the data take \
            50, 65 or 80 % of 32 GiB. FSDV's tool runs once a minute of the whole drive. Sizes and pace are assumed. At the end the power is cut and the volume mounted again. A stack that runs out of space says so.",
    reduced: 16,
    run,
    sensitivity: None,
};

/// A point of the comparison.
#[derive(Clone, Copy, PartialEq)]
struct Cell {
    work: Work,
    /// Spare flash in percent of 32 GiB.
    spare: f64,
    /// Data in percent of 32 GiB.
    fill: u32,
}

impl Cell {
    const SPARE: f64 = 12.5;
    const FILL: u32 = 80;

    /// All jobs in the middle of the space; updates and the cache along its axes.
    fn all() -> Vec<Self> {
        let middle = |work| Self { work, spare: Self::SPARE, fill: Self::FILL };
        let mut cells: Vec<Self> = Work::ALL.into_iter().map(middle).collect();
        for work in [Work::Updates, Work::Cache] {
            cells.extend([7.0, 28.0].map(|spare| Self { spare, ..middle(work) }));
            cells.extend([50, 65].map(|fill| Self { fill, ..middle(work) }));
        }
        cells
    }

    fn is_middle(self) -> bool {
        (self.spare - Self::SPARE).abs() < f64::EPSILON && self.fill == Self::FILL
    }

    fn name(self) -> String {
        format!("{}, {} % spare, {} % full", self.work.name(), self.spare, self.fill)
    }

    /// The label of a run.
    fn label(self, stack: &str) -> String {
        format!("{}: {stack}", self.name())
    }
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let mut all: Option<Results> = None;
    for cell in Cell::all() {
        let (source, fill) = cell.work.at(setting, cell.fill)?;
        let stacks = stacks::with_spare(cell.spare, setting.scale)?;
        let plan = Plan { source: &source, fill, stacks, final_sync: false, restart: true };
        let mut results = setting.perform_until_full(&plan)?;
        results.runs.iter_mut().for_each(|run| run.label = cell.label(&run.stack.name));
        match &mut all {
            Some(all) => all.runs.extend(results.runs),
            None => all = Some(results),
        }
    }
    let results = all.unwrap_or_else(|| setting.no_runs(FIGURE.name));
    let mut comparisons = judged(&results);
    for cell in Cell::all() {
        comparisons.extend(stacks::NAMES.map(|stack| shown(&results, cell, stack)));
    }
    Ok(Reproduction { comparisons, results })
}

fn find<'r>(results: &'r Results, cell: Cell, stack: &str) -> Option<&'r RunResult> {
    let label = cell.label(stack);
    results.runs.iter().find(|run| run.label == label && run.error.is_none())
}

/// All of a stack in a cell.
fn shown(results: &Results, cell: Cell, stack: &str) -> Comparison {
    let ours = find(results, cell, stack).map_or("cannot: no space".into(), figures);
    Comparison::shown(cell.label(stack), ours)
}

/// The figures of a run, in words.
fn figures(run: &RunResult) -> String {
    let ms = |ns: u64| rounded(ns as f64 / 1e6);
    let waf = |waf: Option<f64>| waf.map_or("-".into(), rounded);
    let totals = &run.totals;
    let fsync = &run.latency.flush.percentiles;
    let fsync = if fsync.count > 0 {
        format!("fsync p99 {} ms, ", ms(fsync.p99_ns))
    } else {
        String::new()
    };
    let years = run
        .lifetime
        .rated_tb
        .map_or(String::new(), |tb| format!("{} TB until worn, ", rounded(tb)));
    let restart = run.restart.map_or(String::new(), |restart| {
        format!(
            "ready {} ms after a cut, the mount reads {} blocks, ",
            rounded((restart.drive_s + restart.mount_s) * 1e3),
            restart.mount_read_blocks
        )
    });
    format!(
        "{} MB/s, {fsync}written {} x {} = {}, {} erases, {years}map {}, {restart}CPU {} s",
        rounded(totals.write_mb_per_s),
        waf(totals.fs_waf),
        waf(totals.device_waf),
        waf(totals.total_waf),
        totals.drive.erases,
        format_bytes(run.memory.map_bytes_max),
        rounded(totals.cpu_s),
    )
}

/// The drive's amplification; of one that wrote nothing, 1.
fn device_waf(results: &Results, cell: Cell, stack: &str) -> Option<f64> {
    find(results, cell, stack).map(|run| run.totals.device_waf.unwrap_or(1.0))
}

/// Statements that can fail.
fn judged(results: &Results) -> Vec<Comparison> {
    let middle: Vec<Cell> = Cell::all().into_iter().filter(|cell| cell.is_middle()).collect();
    let mut rows = vec![zones_are_cleaned_once(results), streams_help_updates(results)];
    rows.push(warm_data_have_one_handle(results));
    rows.extend(middle.into_iter().filter_map(|cell| least_written(results, cell)));
    rows
}

/// Differences of amplification below this are none: tables that lie elsewhere.
const HUNDREDTH: f64 = 0.01;

/// ZNS (ATC'21): F2FS on zones has a drive's amplification of 1.0, on a page map 2.4.
fn zones_are_cleaned_once(results: &Results) -> Comparison {
    let pairs = Cell::all().into_iter().filter_map(|cell| {
        Some((device_waf(results, cell, "f2fs-zoned")?, device_waf(results, cell, "f2fs-lfs")?))
    });
    let pairs: Vec<_> = pairs.collect();
    let worst = pairs.iter().map(|(zoned, _)| *zoned).fold(f64::NAN, f64::max);
    let below = pairs.iter().filter(|(zoned, log)| *zoned <= log + HUNDREDTH).count();
    Comparison {
        what: "the drive's amplification under F2FS on zones, at most; cells in which it is at most that of the same log on a page map".into(),
        paper: "1.0 for RocksDB on F2FS and zones, 2.4 without (ZNS, ATC'21)".into(),
        ours: format!("{}; {below} of {}", rounded(worst), pairs.len()),
        rule: "at most 1.1 in each, and never above by more than 0.01".into(),
        agrees: worst <= 1.1 && below == pairs.len(),
    }
}

/// FStream (FAST'18) and F2FS's own classes: what dies together lies together.
fn streams_help_updates(results: &Results) -> Comparison {
    let cell = Cell { work: Work::Updates, spare: Cell::SPARE, fill: Cell::FILL };
    let waf = |stack| device_waf(results, cell, stack).unwrap_or(f64::NAN);
    let (plain, streams) = (waf("f2fs"), waf("f2fs-streams"));
    direction(
        "updates: the drive's amplification under F2FS, with a stream for each log",
        "less: nodes and data die at different times",
        format!("{} to {}", rounded(plain), rounded(streams)),
        streams < plain,
    )
}

/// WARP (FAST'26): 99 % of what a file server writes on F2FS is warm, one handle takes it, and
/// nothing is gained.
fn warm_data_have_one_handle(results: &Results) -> Comparison {
    let cell = Cell { work: Work::FileServer, spare: Cell::SPARE, fill: Cell::FILL };
    let waf = |stack| device_waf(results, cell, stack).unwrap_or(f64::NAN);
    let (plain, fdp) = (waf("f2fs"), waf("f2fs-fdp"));
    let share = find(results, cell, "f2fs-fdp").and_then(|run| {
        let handles = &run.totals.drive.placement.as_ref()?.handles;
        let all: u64 = handles.iter().map(|handle| handle.host_blocks).sum();
        Some(handles.first()?.host_blocks as f64 / all.max(1) as f64 * 100.0)
    });
    Comparison {
        what: "file server: share of the first handle; the drive's amplification under F2FS, and with FDP by Linux's lifetimes".into(),
        paper: "99 % of a file server's writes are warm, and nothing is gained (WARP, FAST'26)".into(),
        ours: format!("{} %; {} to {}", share.map_or("-".into(), rounded), rounded(plain), rounded(fdp)),
        rule: "at least 95 %, within 10 %".into(),
        agrees: share.is_some_and(|share| share >= 95.0) && (fdp / plain - 1.0).abs() <= 0.1,
    }
}

/// The stack that writes least in a cell, all together.
fn least_written(results: &Results, cell: Cell) -> Option<Comparison> {
    let mut runs: Vec<(f64, &str)> = stacks::NAMES
        .into_iter()
        .filter_map(|stack| Some((find(results, cell, stack)?.totals.total_waf?, stack)))
        .collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let named: Vec<String> =
        runs.iter().map(|(waf, stack)| format!("{stack} {}", rounded(*waf))).collect();
    Some(Comparison::shown(
        format!("{}: blocks programmed for each of the job's, from the least", cell.name()),
        named.join(", "),
    ))
}

/// A stack of the comparison.
fn named(name: &str, stack: Stack) -> Stack {
    Stack { name: name.into(), ..stack }
}
