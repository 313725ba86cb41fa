//! A figure of ours: cache policies over the size of the cache, under three file systems that use
//! addresses in different ways.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::{MapCacheResult, ReadAndWrite};
use dovetail_lab::results::{Results, RunResult};
use dovetail_time::format_bytes;

use super::{Comparison, Figure, Plan, Reproduction, Setting, direction, of, rounded, stacks};

pub(crate) const FIGURE: Figure = Figure {
    name: "mapcache-sizes",
    title: "Cache policies over the cache's size under F2FS, IPLFS and RM-IPU",
    source: "a figure of ours: the split cache is from Gao et al., the file systems are from Kim et al. (IPLFS) and Lee et al. (RM-IPU)",
    setup: "One job on the drive of the RM-IPU paper: two threads update a table of 6 GiB in pages of 4 KiB with an fsync after every tenth, two query it \
            (both by a Zipf law), one reads an archive of 4 GiB in order and one writes 1 GiB over and over. Entries are wanted at random and in order, \
            for reads and for writes, and more of them (11 GiB: 22 MiB of entries) than the largest cache holds. The updates set the file \
            systems apart: F2FS and IPLFS write them to new addresses and discard the old ones, RM-IPU remaps them to where they were. \
            With their nodes 40 to 60 GiB are written, so that the drive cleans. Sizes and shares are assumed; the page cache has 64 MiB so that reads reach the drive. Caches of 64 KiB, 256 KiB, 1, 2 and \
            8 MiB, from left to right; they shrink with the scale.",
    reduced: 16,
    run,
    sensitivity: None,
};

pub(crate) const JOB: &str = "
[global]
bs=4k
group_reporting

[update]
rw=randwrite
numjobs=2
filename=table
size=6g
io_size=12g
norandommap
random_distribution=zipf:0.9
overwrite=1
fsync=10

[query]
new_group
rw=randread
numjobs=2
filename=table
size=6g
io_size=8g
norandommap
random_distribution=zipf:0.9

[scan]
new_group
rw=read
bs=128k
size=4g
io_size=16g

[load]
new_group
rw=write
bs=128k
size=1g
io_size=16g
overwrite=1
";

const DRIVE: &str = "femu-32g";
pub(crate) const MEMORY: &str = "64MiB";
const FILESYSTEMS: [&str; 3] = ["f2fs", "iplfs", "rm-ipu"];
const POLICIES: [&str; 5] = ["dftl", "split", "split-bounded", "extent", "s-ftl"];
const KIB: [u64; 5] = [64, 256, 1024, 2048, 8192];

fn in_memory(filesystem: &str) -> String {
    format!("{filesystem}, all in memory")
}

fn cached(filesystem: &str, policy: &str, kib: u64) -> String {
    format!("{filesystem}, {policy}, {}", format_bytes(kib << 10))
}

fn variants(stack: &Stack) -> Vec<Stack> {
    let mut variants = vec![Stack { name: in_memory(&stack.name), ..stack.clone() }];
    for policy in POLICIES {
        variants.extend(KIB.map(|kib| Stack {
            name: cached(&stack.name, policy, kib),
            ..stack.with_map_cache(None, Some(policy), Some(kib << 10))
        }));
    }
    variants
}

/// A run beside the one with the whole map in memory.
struct Point {
    cache: MapCacheResult,
    /// Mean latency of the drive's reads and writes, and of fsync, of that with the whole map in
    /// memory.
    requests: ReadAndWrite,
    fsync: f64,
    /// Blocks that the host read and wrote.
    read_blocks: u64,
    written_blocks: u64,
}

impl Point {
    fn new(run: &RunResult, in_memory: &RunResult) -> Self {
        let fsync = |run: &RunResult| run.latency.flush.percentiles.mean_ns;
        let by_kind = &run.requests.by_kind;
        Self {
            cache: run.map_cache.clone().unwrap_or_default(),
            requests: requests(run).over(requests(in_memory)),
            fsync: fsync(run) / fsync(in_memory),
            read_blocks: by_kind.read.bytes / 4096,
            written_blocks: by_kind.write.bytes / 4096,
        }
    }
}

fn requests(run: &RunResult) -> ReadAndWrite {
    dovetail_lab::results::latencies(run)
}

/// A figure over sizes, and whether it is better if it rises or if it falls.
struct Curve {
    what: &'static str,
    rises: bool,
    of: fn(&Point) -> f64,
}

const CURVES: [Curve; 7] = [
    Curve { what: "read hits, %", rises: true, of: |point| percent(point.cache.hit_ratio.read) },
    Curve { what: "write hits, %", rises: true, of: |point| percent(point.cache.hit_ratio.write) },
    Curve {
        what: "translation pages read for 100 blocks of the host's",
        rises: false,
        of: |point| {
            let reads = point.cache.translation_reads.total();
            100.0 * reads as f64 / (point.read_blocks + point.written_blocks) as f64
        },
    },
    Curve {
        what: "translation pages written for 100 blocks written",
        rises: false,
        of: |point| {
            100.0 * point.cache.translation_writes.total() as f64 / point.written_blocks as f64
        },
    },
    Curve {
        what: "mean read, of all in memory",
        rises: false,
        of: |point| point.requests.read.unwrap_or(f64::NAN),
    },
    Curve {
        what: "mean write, of all in memory",
        rises: false,
        of: |point| point.requests.write.unwrap_or(f64::NAN),
    },
    Curve { what: "mean fsync, of all in memory", rises: false, of: |point| point.fsync },
];

/// By how much of itself the last figure of a curve may be worse than the first (assumed: threads
/// overtake each other otherwise).
const NOISE: f64 = 0.05;

fn percent(share: Option<f64>) -> f64 {
    share.map_or(f64::NAN, |share| share * 100.0)
}

impl Curve {
    fn values(&self, line: &Line) -> Vec<f64> {
        line.points.iter().map(self.of).collect()
    }

    fn shown(&self, line: &Line) -> Comparison {
        let values = self.values(line);
        Comparison::shown(
            format!("{}, {}: {}", line.filesystem, line.policy, self.what),
            values.iter().map(|value| rounded(*value)).collect::<Vec<_>>().join("  "),
        )
    }

    /// The largest cache is not worse than the smallest.
    fn gains(&self, line: &Line) -> bool {
        let values = self.values(line);
        let (first, last) = (values[0], values[values.len() - 1]);
        if self.rises { last >= first * (1.0 - NOISE) } else { last <= first * (1.0 + NOISE) }
    }
}

/// Of all curves.
fn larger_is_better(lines: &[Line]) -> Comparison {
    let pairs = CURVES.iter().flat_map(|curve| lines.iter().map(move |line| (curve, line)));
    let gains: Vec<bool> = pairs.map(|(curve, line)| curve.gains(line)).collect();
    let good = gains.iter().filter(|gains| **gains).count();
    Comparison {
        what: "curves on which the largest cache is not worse than the smallest".into(),
        paper: "none: a figure of ours".into(),
        ours: format!("{good} of {}", gains.len()),
        rule: format!("all, to {:.0} %", NOISE * 100.0),
        agrees: good == gains.len(),
    }
}

/// A file system with a policy, over sizes.
struct Line {
    filesystem: &'static str,
    policy: &'static str,
    points: Vec<Point>,
}

fn lines(results: &Results) -> Result<Vec<Line>, BenchError> {
    let mut lines = Vec::new();
    for filesystem in FILESYSTEMS {
        let whole = of(results, &in_memory(filesystem))?;
        for policy in POLICIES {
            let point = |kib| Ok(Point::new(of(results, &cached(filesystem, policy, kib))?, whole));
            let points = KIB.into_iter().map(point).collect::<Result<_, BenchError>>()?;
            lines.push(Line { filesystem, policy, points });
        }
    }
    Ok(lines)
}

/// Read hits of a policy less those of another one, in points of a hundred, by file system and
/// size.
fn more_read_hits<'a>(
    lines: &'a [Line],
    policy: &'a str,
    other: &'a str,
) -> impl Iterator<Item = (&'a str, Vec<f64>)> {
    let hits = |line: &Line| {
        line.points.iter().map(|it| percent(it.cache.hit_ratio.read)).collect::<Vec<_>>()
    };
    lines.iter().filter(move |line| line.policy == policy).map(move |mine| {
        let is_its = |line: &&Line| line.policy == other && line.filesystem == mine.filesystem;
        let its = lines.iter().find(is_its).map_or(Vec::new(), hits);
        let more = hits(mine).iter().zip(its).map(|(mine, its)| mine - its).collect();
        (mine.filesystem, more)
    })
}

/// The same as text.
fn points((filesystem, more): &(&str, Vec<f64>)) -> String {
    let more: Vec<String> = more.iter().map(|more| format!("{more:+.0}")).collect();
    format!("{filesystem} {}", more.join(" "))
}

fn name_of(policy: &str, other: &str) -> String {
    format!("read hits of {policy} less those of {other}, points of a hundred")
}

/// The paper is about F2FS; the others are shown.
fn split_beside_dftl(lines: &[Line]) -> [Comparison; 2] {
    let (of_f2fs, others): (Vec<_>, Vec<_>) =
        more_read_hits(lines, "split", "dftl").partition(|(filesystem, _)| *filesystem == "f2fs");
    let text = |of: &[_]| of.iter().map(points).collect::<Vec<_>>().join(", ");
    let agrees = of_f2fs.iter().flat_map(|(_, more)| more).all(|more| *more > 0.0);
    let what = name_of("split", "dftl");
    [
        direction(
            what.clone(),
            "more on F2FS (Gao et al.)",
            text(&of_f2fs),
            agrees && !of_f2fs.is_empty(),
        ),
        Comparison::shown(what + ", elsewhere", text(&others)),
    ]
}

/// Statement of ours about the interval cache.
fn extent_beside(lines: &[Line], other: &str) -> Comparison {
    let more: Vec<_> = more_read_hits(lines, "extent", other).collect();
    let agrees = more.iter().flat_map(|(_, more)| more).all(|more| *more > 0.0);
    let ours = more.iter().map(points).collect::<Vec<_>>().join(", ");
    direction(name_of("extent", other), "none: more", ours, agrees)
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let source = Source::fio(JOB, "mapcache-sizes.fio", &[])?;
    let small_memory = |stack| Stack { memory: MEMORY.into(), ..stack };
    let stacks: Vec<Stack> = stacks(&FILESYSTEMS, DRIVE)?.into_iter().map(small_memory).collect();
    let stacks = stacks.iter().flat_map(variants).collect();
    let results = setting.perform(&Plan {
        source: &source,
        fill: None,
        stacks,
        final_sync: true,
        restart: false,
    })?;
    let lines = lines(&results)?;
    let shown = |curve: &Curve| lines.iter().map(|line| curve.shown(line)).collect::<Vec<_>>();
    let mut comparisons: Vec<Comparison> = CURVES.iter().flat_map(shown).collect();
    comparisons.push(larger_is_better(&lines));
    comparisons.extend(split_beside_dftl(&lines));
    comparisons.extend(["dftl", "s-ftl"].map(|other| extent_beside(&lines, other)));
    Ok(Reproduction { comparisons, results })
}
