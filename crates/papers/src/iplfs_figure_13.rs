//! Figure 13 of the IPLFS paper: a database on a volume that is 90 % full.

use std::io::Cursor;
use std::sync::Arc;

use dovetail_lab::bench::{BenchError, FileTraceSource, Fill, FillAmount, FillWith, Source};
use dovetail_lab::results::RunResult;
use dovetail_workload::file_trace::{FileTrace, Pace};

use super::iplfs::on_partition;
use super::iplfs_figure_12a::with_8_gb;
use super::{
    Comparison, Figure, Plan, Reproduction, Setting, of, rounded, within, within_a_factor,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-13",
    title: "YCSB A on a database, the volume 90 % full: reads, updates and throughput on F2FS and IPLFS",
    source: "Kim et al., IPLFS, ATC'22: figure 13 and section 6.1",
    setup: "The paper ran MySQL with 5 million records and 50 clients on a partition of 18 GB. Ours is a recorded trace of MariaDB's calls on its files, \
            200,000 records and 50 clients (examples/), made again thread by thread three times over, on 1/20 of that partition, 90 % of what F2FS gives of it in \
            use with the database, on a host with 8 GB of memory (1/20 of that). Latencies are those of calls: a database's reads are mostly from its own memory, and an update waits for an fsync, so fsyncs \
            stand for updates. They are measured with the time between calls that was recorded, in which the database works; throughput as fast as the stack \
            allows. (Fifty clients that wait for each answer cannot be 3.73 times slower with reads that take twice as long and updates three times, so the paper's figures are not of one moment \
            either.) F2FS is mounted mode=lfs.",
    reduced: 20,
    run,
    sensitivity: None,
};

const TRACE: &[u8] = include_bytes!("../jobs/mariadb-ycsb-a.file.tsv.zst");
const LOOPS: f64 = 3.0;
/// Of the partition, beside the trace's files: these are 511 MB, 53 % of 920 MiB. F2FS keeps some
/// 12 % of so small a one.
const FILL: f64 = 0.26;

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
    let name = "mariadb-ycsb-a.file.tsv.zst";
    let trace = FileTrace::read(name, Cursor::new(TRACE)).map_err(|error| failed(&error))?;
    let whole_at = "1/20".parse().map_err(|error| failed(&error))?;
    let scale = if setting.scale.value() > 0.05 { whole_at } else { setting.scale };
    let trace = Arc::new(trace);
    let at = |gaps: f64| {
        let trace = Arc::clone(&trace);
        let pace = Pace::Gaps(gaps);
        let source = Source::FileTrace(FileTraceSource { trace, pace, loops: LOOPS, whole_at });
        let fill = Some(Fill { amount: FillAmount::Share(FILL), with: FillWith::Impressions });
        let stacks = on_partition(&["f2fs", "f2fs-lfs", "iplfs"], "18GiB")?;
        let stacks = stacks.into_iter().map(with_8_gb).collect();
        let plan = Plan { source: &source, fill, stacks, final_sync: false, restart: false };
        Setting { scale, ..*setting }.perform(&plan)
    };
    let (fast, mut results) = (at(0.0)?, at(1.0)?);
    let (f2fs, iplfs) = (of(&results, "f2fs-lfs")?, of(&results, "iplfs")?);
    let calls = |name| Ok::<_, BenchError>(of(&fast, name)?.totals.calls_per_s);
    let faster_than = |name| Ok::<_, BenchError>(calls("iplfs")? / calls(name)?);
    let without_gaps = mean_us(of(&fast, "f2fs-lfs")?).0 / mean_us(of(&fast, "iplfs")?).0;
    let comparisons = vec![
        faster("mean read of F2FS as a log over IPLFS", 2.0, mean_us(f2fs).0, mean_us(iplfs).0),
        faster("mean fsync of F2FS as a log over IPLFS", 3.0, mean_us(f2fs).1, mean_us(iplfs).1),
        faster("fsync at 95 %", 5.2, p95_us(f2fs), p95_us(iplfs)),
        faster("fsync at 99 %", 5.0, p99_us(f2fs), p99_us(iplfs)),
        within(
            "throughput of IPLFS over F2FS as a log",
            "times",
            3.7,
            faster_than("f2fs-lfs")?,
            1.25,
        ),
        Comparison::shown(
            "throughput of IPLFS over F2FS by default",
            format!("{} times", rounded(faster_than("f2fs")?)),
        ),
        Comparison::shown(
            "mean read of F2FS as a log over IPLFS, as fast as the stacks allow",
            format!("{} times", rounded(without_gaps)),
        ),
    ];
    let named = |mut run: RunResult| {
        run.label = format!("{}, no gaps", run.label);
        run
    };
    results.runs.extend(fast.runs.into_iter().map(named));
    Ok(Reproduction { comparisons, results })
}

/// Mean latencies of reads and syncs.
fn mean_us(run: &RunResult) -> (f64, f64) {
    let us = |ns: f64| ns / 1000.0;
    (us(run.latency.read.percentiles.mean_ns), us(run.latency.flush.percentiles.mean_ns))
}

fn p95_us(run: &RunResult) -> f64 {
    let cdf = &run.latency.flush.cdf;
    let at = cdf.iter().find(|(_, share)| *share >= 0.95);
    at.map_or(f64::NAN, |(ns, _)| *ns as f64 / 1000.0)
}

fn p99_us(run: &RunResult) -> f64 {
    run.latency.flush.percentiles.p99_ns as f64 / 1000.0
}

fn faster(what: &str, paper: f64, f2fs: f64, iplfs: f64) -> Comparison {
    let mut comparison = within_a_factor(what, "times", paper, f2fs / iplfs, 1.5);
    comparison.ours += &format!(" ({} us over {})", rounded(f2fs), rounded(iplfs));
    comparison
}
