//! A figure of ours: F2FS whose cleaning remaps, beside F2FS that copies and RM-IPU.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::{JobResult, RunResult};

use super::{Comparison, Figure, Plan, Reproduction, Setting, direction, of, rounded, stacks};

pub(crate) const FIGURE: Figure = Figure {
    name: "remap-cleaning",
    title: "Cleaning by remaps in place of copies under F2FS, beside RM-IPU",
    source: "a figure of ours: F2FS cleaning is a use of Remap-SSD's remap command (Zhou et al., FAST'21), RM-IPU is from Lee et al. (HotStorage'22)",
    setup: "The drive of the RM-IPU paper, which cleans, too. Two threads overwrite a file of 18 GiB at random, 36 GiB in blocks of 4 KiB with \
            an fsync after every 64th, then it is read in order, its cache dropped. F2FS only appends (mode=lfs), so that it has to clean; \
            with gc_remap the drive moves content and nodes are copied. The same on a drive with a log of remaps on flash. Sizes are assumed; \
            the page cache has 64 MiB.",
    reduced: 16,
    run,
    sensitivity: None,
};

const JOB: &str = "
[global]
bs=4k
filename=table
size=18g
[update]
rw=randwrite
numjobs=2
io_size=18g
norandommap
overwrite=1
fsync=64
group_reporting
[read]
new_group
stonewall
rw=read
bs=1m
";

const DRIVE: &str = "femu-32g";
const DRIVE_WITH_LOG: &str = "femu-32g-log";
const ON_LOG: &str = "f2fs-gc-remap, log on flash";
const NAMES: [&str; 4] = ["f2fs-lfs", "f2fs-gc-remap", ON_LOG, "rm-ipu"];
/// A difference that threads may make by overtaking each other. Assumed.
const NOISE: f64 = 1.05;

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let source = Source::fio(JOB, "remap-cleaning.fio", &[])?;
    let small_memory = |stack| Stack { memory: "64MiB".into(), ..stack };
    let mut stacks: Vec<Stack> = stacks(&["f2fs-lfs", "f2fs-gc-remap", "rm-ipu"], DRIVE)?;
    let on_log = Stack { name: ON_LOG.into(), drive: DRIVE_WITH_LOG.into(), ..stacks[1].clone() };
    stacks.insert(2, on_log);
    let stacks = stacks.into_iter().map(small_memory).collect();
    let results = setting.perform(&Plan {
        source: &source,
        fill: None,
        stacks,
        final_sync: true,
        restart: false,
    })?;
    let runs = NAMES.map(|name| of(&results, name).map(|run| (name, Costs::new(run))));
    let mut comparisons = Vec::new();
    let mut costs = Vec::new();
    for run in runs {
        let (name, cost) = run?;
        comparisons.extend(cost.shown(name));
        costs.push(cost);
    }
    comparisons.extend(statements(&costs)?);
    Ok(Reproduction { comparisons, results })
}

/// The figures of a run.
struct Costs {
    moved: u64,
    remapped: u64,
    fs_waf: f64,
    drive_waf: f64,
    total_waf: f64,
    write_mb_per_s: f64,
    fsync_ms: [f64; 2],
    read_mb_per_s: f64,
    read_kib: f64,
    pairs: u64,
    log_pages: u64,
    drive_moved: u64,
}

fn count(counts: &dovetail_lab::results::Counts, key: &str) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}

impl Costs {
    fn new(run: &RunResult) -> Self {
        let job = |name: &str| run.jobs.iter().find(|job| job.name == name);
        let rate = |bytes: fn(&JobResult) -> u64, name: &str| {
            job(name).map_or(f64::NAN, |job| bytes(job) as f64 / 1e6 / job.elapsed_s)
        };
        let fsync = job("update").map(|job| job.latency.flush.percentiles);
        let waf = |waf: Option<f64>| waf.unwrap_or(f64::NAN);
        Self {
            moved: count(&run.events, "moved_blocks"),
            remapped: count(&run.events, "gc_remapped_blocks"),
            fs_waf: waf(run.totals.fs_waf),
            drive_waf: waf(run.totals.device_waf),
            total_waf: waf(run.totals.total_waf),
            write_mb_per_s: rate(|job| job.written_bytes, "update"),
            fsync_ms: fsync.map_or([f64::NAN; 2], |fsync| {
                [fsync.mean_ns, fsync.p99_ns as f64].map(|ns| ns / 1e6)
            }),
            read_mb_per_s: rate(|job| job.read_bytes, "read"),
            read_kib: run.requests.by_kind.read.mean_kib,
            pairs: run.requests.remap.pairs,
            log_pages: run.totals.drive.programs.remap,
            drive_moved: run.totals.drive.programs.gc,
        }
    }

    fn shown(&self, name: &str) -> Vec<Comparison> {
        let [mean, p99] = self.fsync_ms.map(rounded);
        let copied = self.moved - self.remapped;
        let row = |what: &str, ours: String| Comparison::shown(format!("{name}: {what}"), ours);
        vec![
            row(
                "blocks that cleaning copied, and remapped",
                format!("{copied}, {}", self.remapped),
            ),
            row(
                "blocks written for one of the workload: file system, drive, both",
                [self.fs_waf, self.drive_waf, self.total_waf].map(rounded).join(", "),
            ),
            row("updates, MB/s", rounded(self.write_mb_per_s)),
            row("fsync, ms: mean, 99 of 100", format!("{mean}, {p99}")),
            row(
                "read in order: MB/s, mean request",
                format!("{}, {} KiB", rounded(self.read_mb_per_s), rounded(self.read_kib)),
            ),
            row(
                "pairs remapped, pages programmed for them, pages that the drive moved",
                format!("{}, {}, {}", self.pairs, self.log_pages, self.drive_moved),
            ),
        ]
    }
}

const OURS: &str = "none: a figure of ours";

fn statements(costs: &[Costs]) -> Result<Vec<Comparison>, BenchError> {
    let [copies, remaps, on_log, rm_ipu] = costs else {
        return Err(BenchError::Workload("a run is missing".into()));
    };
    let pair = |what: &str, paper: &str, of: fn(&Costs) -> f64, better: fn(f64, f64) -> bool| {
        let (with, without) = (of(remaps), of(copies));
        let ours = format!("{} against {}", rounded(with), rounded(without));
        direction(what, paper, ours, better(with, without))
    };
    let share = remaps.remapped as f64 / remaps.moved.max(1) as f64;
    Ok(vec![
        Comparison::shown(
            "moved blocks that are not copied",
            format!("{} %", rounded(100.0 * share)),
        ),
        pair(
            "the file system writes less with remaps",
            "none: a figure of ours; Remap-SSD's abstract says that duplicate writes are eliminated",
            |costs| costs.fs_waf,
            |with, without| with < without,
        ),
        pair(
            "all in all less is programmed",
            OURS,
            |costs| costs.total_waf,
            |with, without| with < without,
        ),
        pair(
            "updates are faster",
            OURS,
            |costs| costs.write_mb_per_s,
            |with, without| with > without,
        ),
        pair(
            "the mean fsync is not slower, to 5 %",
            OURS,
            |costs| costs.fsync_ms[0],
            |with, without| with <= without * NOISE,
        ),
        pair(
            "the drive does not give it back: its own amplification does not rise, to 5 %",
            OURS,
            |costs| costs.drive_waf,
            |with, without| with <= without * NOISE,
        ),
        direction(
            "remaps on a log on flash still program less than copies",
            OURS,
            format!("{} against {}", rounded(on_log.total_waf), rounded(copies.total_waf)),
            on_log.total_waf < copies.total_waf,
        ),
        direction(
            "RM-IPU, which has nothing to clean, programs least",
            OURS,
            format!("{} against {}", rounded(rm_ipu.total_waf), rounded(remaps.total_waf)),
            rm_ipu.total_waf < remaps.total_waf,
        ),
    ])
}
