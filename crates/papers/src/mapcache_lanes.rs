//! A figure of ours: the cache `lanes` beside others, on drives that fill one stream and on drives
//! that find streams by address, under five file systems.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::{Results, RunResult, latencies};
use dovetail_time::format_bytes;

use super::mapcache_sizes::{JOB, MEMORY};
use super::{Comparison, Figure, Plan, Reproduction, Setting, direction, rounded, stacks};

pub(crate) const FIGURE: Figure = Figure {
    name: "mapcache-lanes",
    title: "Lanes beside other caches, with one stream and with streams found by address",
    source: "a figure of ours; LeaFTL (ASPLOS'23), S-FTL (MSST'11), TPFTL (EuroSys'15) and DFTL (ASPLOS'09) after their papers",
    setup: "The job of mapcache-sizes on femu-32g with a write buffer of 8 MiB that is emptied in the order of addresses, as LeaFTL asks for. \
            One stream: as FEMU has it. Streams: the drive finds up to 7 sequences of writes by their addresses, gives each a line of its own, \
            and keeps what cleaning moves apart. Latencies are those of the same file system with the whole map in memory on a drive with the same \
            streams times: what is placement and what is cache is apart. Caches of 64 KiB, 256 KiB and 1 MiB, on F2FS with mode=lfs and streams \
            also 128 and 512 KiB; they shrink with the scale, and one of 256 KiB holds 1/256 of the map's bytes. \
            Means of three runs with seeds of their own: the order in which threads happen to wait changes a mean fsync by up to a tenth.",
    reduced: 16,
    run,
    sensitivity: None,
};

const DRIVE: &str = "femu-32g";
const FILESYSTEMS: [&str; 5] = ["f2fs", "f2fs-lfs", "iplfs", "rm-ipu", "ext4"];
const OTHERS: [&str; 5] = ["dftl", "tpftl", "s-ftl", "leaftl", "extent"];
const LANES: &str = "lanes";
/// Runs of each stack.
const REPETITIONS: u32 = 3;
/// The file system on which the memory for reads as with the whole map is looked for.
const LOG: &str = "f2fs-lfs";
/// Ratio of two latencies up to which they count as equal.
const EQUAL: f64 = 1.05;
/// The part of S-FTL's memory that is to suffice.
const SHARE: f64 = 0.25;

/// Placement of what the host writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placement {
    OneStream,
    Streams,
}

impl Placement {
    const fn name(self) -> &'static str {
        match self {
            Self::OneStream => "one stream",
            Self::Streams => "streams",
        }
    }

    /// Sizes of caches in KiB.
    fn sizes(self, filesystem: &str) -> &'static [u64] {
        match self {
            Self::OneStream => &[256],
            Self::Streams if filesystem == LOG => &[64, 128, 256, 512, 1024],
            Self::Streams => &[64, 256, 1024],
        }
    }

    fn apply(self, stack: &mut Stack) {
        let mut set =
            |key: &str, value: toml::Value| drop(stack.drive_figures.insert(key.into(), value));
        set("host.write_buffer", "8MiB".into());
        set("host.write_buffer_order", "address".into());
        if self == Self::Streams {
            set("ftl.streams", 8.into());
            set("ftl.streams_by", "address".into());
            set("ftl.gc_apart", true.into());
        }
    }
}

const PLACEMENTS: [Placement; 2] = [Placement::OneStream, Placement::Streams];

fn in_memory(filesystem: &str, placement: Placement) -> String {
    format!("{filesystem}, {}, all in memory", placement.name())
}

fn cached(filesystem: &str, placement: Placement, policy: &str, kib: u64) -> String {
    format!("{filesystem}, {}, {policy}, {}", placement.name(), format_bytes(kib << 10))
}

fn policies() -> impl Iterator<Item = &'static str> {
    OTHERS.into_iter().chain([LANES])
}

fn variants(filesystem: &Stack, placement: Placement) -> Vec<Stack> {
    let name = filesystem.name.as_str();
    let mut stack = Stack { memory: MEMORY.into(), ..filesystem.clone() };
    placement.apply(&mut stack);
    let mut variants = vec![Stack { name: in_memory(name, placement), ..stack.clone() }];
    for policy in policies() {
        variants.extend(placement.sizes(name).iter().map(|&kib| Stack {
            name: cached(name, placement, policy, kib),
            ..stack.with_map_cache(None, Some(policy), Some(kib << 10))
        }));
    }
    variants
}

/// Mean latencies of a policy in a cell, of those with the whole map in memory.
#[derive(Clone, Copy)]
struct Point {
    read: f64,
    fsync: f64,
}

/// A file system, a placement and a size, with all policies.
struct Cell {
    filesystem: &'static str,
    placement: Placement,
    kib: u64,
    points: Vec<(&'static str, Point)>,
}

fn mean_read(run: &RunResult) -> f64 {
    latencies(run).read.unwrap_or(f64::NAN)
}

fn mean_fsync(run: &RunResult) -> f64 {
    run.latency.flush.percentiles.mean_ns
}

/// The mean of a figure over the runs of a stack.
fn mean(results: &Results, stack: &str, of: fn(&RunResult) -> f64) -> Result<f64, BenchError> {
    let values: Vec<f64> =
        results.runs.iter().filter(|run| run.stack.name == stack).map(of).collect();
    if values.is_empty() {
        return Err(BenchError::UnknownStack(stack.into()));
    }
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

impl Cell {
    fn new(
        results: &Results,
        filesystem: &'static str,
        placement: Placement,
        kib: u64,
    ) -> Result<Self, BenchError> {
        let whole = in_memory(filesystem, placement);
        let point = |policy| {
            let stack = cached(filesystem, placement, policy, kib);
            let ratio = |of: fn(&RunResult) -> f64| {
                Ok::<_, BenchError>(mean(results, &stack, of)? / mean(results, &whole, of)?)
            };
            Ok((policy, Point { read: ratio(mean_read)?, fsync: ratio(mean_fsync)? }))
        };
        let points = policies().map(point).collect::<Result<_, BenchError>>()?;
        Ok(Self { filesystem, placement, kib, points })
    }

    fn name(&self) -> String {
        format!("{} {} {}", self.filesystem, self.placement.name(), format_bytes(self.kib << 10))
    }

    fn of(&self, policy: &str) -> Point {
        let found = self.points.iter().find(|(name, _)| *name == policy);
        found.map_or(Point { read: f64::NAN, fsync: f64::NAN }, |(_, point)| *point)
    }

    /// The best of the other policies by a latency, and by what `lanes` is above it.
    fn behind(&self, latency: Latency) -> (&'static str, f64) {
        let mine = latency(self.of(LANES));
        let others = self.points.iter().filter(|(name, _)| *name != LANES);
        let best = others.min_by(|a, b| latency(a.1).total_cmp(&latency(b.1)));
        best.map_or(("none", f64::NAN), |(name, point)| (*name, mine / latency(*point)))
    }

    /// All policies, as `name reads / fsyncs`.
    fn shown(&self) -> Comparison {
        let values = self.points.iter().map(|(name, point)| {
            format!("{name} {} / {}", rounded(point.read), rounded(point.fsync))
        });
        Comparison::shown(
            format!("{}: mean read / fsync, of all in memory", self.name()),
            values.collect::<Vec<_>>().join(", "),
        )
    }
}

type Latency = fn(Point) -> f64;

fn cells(results: &Results) -> Result<Vec<Cell>, BenchError> {
    let mut cells = Vec::new();
    for filesystem in FILESYSTEMS {
        for placement in PLACEMENTS {
            for &kib in placement.sizes(filesystem) {
                cells.push(Cell::new(results, filesystem, placement, kib)?);
            }
        }
    }
    Ok(cells)
}

/// The least size at which a policy reads as with the whole map in memory, on the pure log.
fn sufficient(cells: &[Cell], policy: &str) -> Option<u64> {
    let log =
        cells.iter().filter(|cell| cell.filesystem == LOG && cell.placement == Placement::Streams);
    log.filter(|cell| cell.of(policy).read <= EQUAL).map(|cell| cell.kib).min()
}

fn memory(cells: &[Cell]) -> Comparison {
    let named =
        |kib: Option<u64>| kib.map_or("more than 1 MiB".into(), |kib| format_bytes(kib << 10));
    let (mine, its) = (sufficient(cells, LANES), sufficient(cells, "s-ftl"));
    let agrees = mine.is_some_and(|mine| its.is_none_or(|its| mine as f64 <= SHARE * its as f64));
    Comparison {
        what: "f2fs-lfs with streams: memory for reads as with the whole map, lanes".into(),
        paper: "none: a figure of ours".into(),
        ours: format!(
            "{}, s-ftl {}, leaftl {}",
            named(mine),
            named(its),
            named(sufficient(cells, "leaftl"))
        ),
        rule: "within 5 % of its reads, at a quarter of s-ftl's memory".into(),
        agrees,
    }
}

/// Statement that `lanes` is nowhere more behind the best other policy than what counts as equal.
fn never_behind(cells: &[Cell], what: &str, latency: Latency) -> Comparison {
    let behind: Vec<_> = cells.iter().map(|cell| (cell, cell.behind(latency))).collect();
    let worse = behind.iter().filter(|(_, (_, ratio))| ratio.is_nan() || *ratio > EQUAL).count();
    let worst = behind.iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let worst = worst.map_or(String::new(), |(cell, (name, ratio))| {
        format!("; the worst {:+.1} % against {name} ({})", (ratio - 1.0) * 100.0, cell.name())
    });
    Comparison {
        what: format!("cells in which lanes is behind the best other policy: {what}"),
        paper: "none: a figure of ours".into(),
        ours: format!("{worse} of {}{worst}", cells.len()),
        rule: "none by more than 5 %".into(),
        agrees: worse == 0,
    }
}

/// Streams help every policy on the pure log: what placement gives, apart from the cache.
fn placement(cells: &[Cell]) -> Comparison {
    let of = |placement| {
        cells.iter().find(|it| it.filesystem == LOG && it.placement == placement && it.kib == 256)
    };
    let (mut shown, mut agrees) = (Vec::new(), true);
    if let (Some(one), Some(streams)) = (of(Placement::OneStream), of(Placement::Streams)) {
        for policy in policies() {
            let (before, after) = (one.of(policy).read, streams.of(policy).read);
            // DFTL and TPFTL keep single entries: for them it makes no difference where they lead
            let by_run = !["dftl", "tpftl"].contains(&policy);
            agrees &= !by_run || after < before;
            shown.push(format!("{policy} {} to {}", rounded(before), rounded(after)));
        }
    }
    direction(
        "f2fs-lfs, 256 KiB: mean read, of all in memory, one stream to streams",
        "none: less for caches of runs",
        shown.join(", "),
        agrees,
    )
}

/// Cleaning on drives with one stream and with streams.
fn amplification(results: &Results) -> Result<Comparison, BenchError> {
    let mut shown = Vec::new();
    for filesystem in FILESYSTEMS {
        let waf = |placement| {
            let of_run = |run: &RunResult| run.totals.device_waf.unwrap_or(f64::NAN);
            mean(results, &in_memory(filesystem, placement), of_run).map(rounded)
        };
        let (one, streams) = (waf(Placement::OneStream)?, waf(Placement::Streams)?);
        shown.push(format!("{filesystem} {one} to {streams}"));
    }
    let what = "drive's write amplification with the whole map in memory, one stream to streams";
    Ok(Comparison::shown(what, shown.join(", ")))
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let source = Source::fio(JOB, "mapcache-sizes.fio", &[])?;
    let filesystems = stacks(&FILESYSTEMS, DRIVE)?;
    let of_both = |stack: &Stack| PLACEMENTS.map(|placement| variants(stack, placement)).concat();
    let stacks = filesystems.iter().flat_map(of_both).collect();
    let plan = Plan { source: &source, fill: None, stacks, final_sync: true, restart: false };
    let results = setting.perform_times(&plan, REPETITIONS)?;
    let cells = cells(&results)?;
    let mut comparisons = vec![
        memory(&cells),
        never_behind(&cells, "mean read", |point| point.read),
        never_behind(&cells, "mean fsync", |point| point.fsync),
        placement(&cells),
        amplification(&results)?,
    ];
    comparisons.extend(cells.iter().map(Cell::shown));
    Ok(Reproduction { comparisons, results })
}
