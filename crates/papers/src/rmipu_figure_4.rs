//! Figure 4 of the RM-IPU paper: TPC-C.

use std::io::Cursor;
use std::sync::Arc;

use dovetail_lab::bench::{BenchError, FileTraceSource, Source};
use dovetail_lab::results::{Results, RunResult};
use dovetail_time::Ratio;
use dovetail_workload::file_trace::FileTrace;

use super::{
    Comparison, Figure, Plan, Reproduction, Setting, direction, of, rounded, stacks, within,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "rmipu-figure-4",
    title: "TPC-C: throughput, write amplification of file system and drive, and mean write",
    source: "Lee et al., When F2FS Meets Address Remapping, HotStorage'22: figure 4 and section 4.3",
    setup: "The paper ran MySQL 5.7 with 200 warehouses and 16 clients on the emulated drive of 32 GiB, 60 to 70 % full. Ours is a recorded \
            trace of MariaDB's calls on its files, 4 warehouses and 16 clients (examples/), made again as fast as the stack allows, on the \
            same drive shrunk to 1/32, of which its files fill 63 %. A database that grows, and clients that wait for each other, are not in it. \
            The figure's bars have no numbers in the text: what the text says is compared. Where ours differs: as fast as the stack allows, \
            the trace is bound by how many pages the drive programs, where a request's cost does not matter; 54 % of its bytes go to the \
            doublewrite buffer, which dies in the order in which it was written, and 56 % of the flash holds data: the drive moves little.",
    reduced: 32,
    run,
    sensitivity: None,
};

const TRACE: &[u8] = include_bytes!("../../../examples/mariadb-tpcc.file.tsv.zst");
/// Transactions in the trace.
const TRANSACTIONS: f64 = 10_230.0;
/// Passes over the trace, each of which writes 2.35 GB.
const REDUCED_LOOPS: f64 = 6.0;
const FULL_LOOPS: f64 = 40.0;

fn source(setting: &Setting<'_>) -> Result<(Source, f64, Ratio), BenchError> {
    let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
    let trace = FileTrace::read("mariadb-tpcc.file.tsv.zst", Cursor::new(TRACE))
        .map_err(|error| failed(&error))?;
    let whole_at: Ratio = "1/32".parse().map_err(|error| failed(&error))?;
    let is_full = setting.scale.value() > whole_at.value();
    let (loops, scale) =
        if is_full { (FULL_LOOPS, whole_at) } else { (REDUCED_LOOPS, setting.scale) };
    let source = FileTraceSource { trace: Arc::new(trace), gaps: 0.0, loops, whole_at };
    Ok((Source::FileTrace(source), loops * scale.value() / whole_at.value(), scale))
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (source, passes, scale) = source(setting)?;
    let names = ["f2fs", "f2fs-lfs", "ext4", "rm-ipu"];
    let plan = Plan {
        source: &source,
        fill: None,
        stacks: stacks(&names, "femu-32g")?,
        final_sync: false,
    };
    let results = Setting { scale, ..*setting }.perform(&plan)?;
    let mut comparisons = throughput(&results, passes)?;
    comparisons.extend(amplification(&results)?);
    Ok(Reproduction { comparisons, results })
}

fn runs(results: &Results) -> Result<[&RunResult; 4], BenchError> {
    Ok([
        of(results, "f2fs")?,
        of(results, "f2fs-lfs")?,
        of(results, "ext4")?,
        of(results, "rm-ipu")?,
    ])
}

/// A figure of RM-IPU's, and those of the others.
fn beside(
    figure: impl Fn(&RunResult) -> f64,
    [f2fs, lfs, ext4, rm_ipu]: [&RunResult; 4],
) -> String {
    format!(
        "{} against {}",
        rounded(figure(rm_ipu)),
        [f2fs, lfs, ext4].map(|run| rounded(figure(run))).join(", ")
    )
}

fn throughput(results: &Results, passes: f64) -> Result<Vec<Comparison>, BenchError> {
    let all = runs(results)?;
    let [f2fs, lfs, ext4, rm_ipu] = all;
    let rate = |run: &RunResult| passes * TRANSACTIONS / run.totals.elapsed_s;
    let others = [f2fs, lfs, ext4].map(rate);
    let ratio = rate(rm_ipu) / rate(ext4);
    let kib = |run: &RunResult| run.requests.by_kind.write.mean_kib;
    Ok(vec![
        direction(
            "transactions a second of RM-IPU (F2FS, F2FS-L, ext4)",
            "the most",
            beside(rate, all),
            others.iter().all(|other| rate(rm_ipu) > *other),
        ),
        Comparison {
            what: "RM-IPU over ext4".into(),
            paper: "more, but much less than with random writes (1.4)".into(),
            ours: format!("{} times", rounded(ratio)),
            rule: "1 to 1.4 times".into(),
            agrees: (1.0..1.4).contains(&ratio),
        },
        direction(
            "mean write of RM-IPU in KiB (F2FS, F2FS-L, ext4)",
            "larger than ext4's and F2FS's",
            beside(kib, all),
            kib(rm_ipu) > kib(ext4) && kib(rm_ipu) > kib(f2fs),
        ),
    ])
}

fn amplification(results: &Results) -> Result<Vec<Comparison>, BenchError> {
    let all = runs(results)?;
    let [f2fs, lfs, ext4, rm_ipu] = all;
    let fs = |run: &RunResult| run.totals.fs_waf.unwrap_or(f64::NAN);
    let device = |run: &RunResult| run.totals.device_waf.unwrap_or(f64::NAN);
    Ok(vec![
        direction(
            "file system's WAF of RM-IPU (F2FS, F2FS-L, ext4)",
            "below F2FS's and F2FS-L's",
            beside(fs, all),
            fs(rm_ipu) < fs(f2fs) && fs(rm_ipu) < fs(lfs),
        ),
        within("drive's WAF of ext4", "", 2.5, device(ext4), 1.25),
        within("drive's WAF of RM-IPU", "", 2.4, device(rm_ipu), 1.25),
        Comparison {
            what: "drive's WAF of RM-IPU (F2FS, F2FS-L, ext4)".into(),
            paper: "close to ext4's".into(),
            ours: beside(device, all),
            rule: "within 15 % of ext4's".into(),
            agrees: (device(rm_ipu) / device(ext4) - 1.0).abs() <= 0.15,
        },
    ])
}
