//! Figure 4 of the RM-IPU paper: TPC-C.

use std::io::Cursor;
use std::sync::Arc;

use dovetail_lab::bench::{BenchError, FileTraceSource, Fill, FillAmount, FillWith, Source};
use dovetail_lab::results::{Results, RunResult};
use dovetail_time::Ratio;
use dovetail_workload::file_trace::{ClosedLoop, FileTrace, Pace};

use super::curve::{device_waf, parts, span};
use super::{
    Comparison, Figure, Plan, Reproduction, Setting, direction, of, rounded, stacks_before_6_4,
    within,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "rmipu-figure-4",
    title: "TPC-C on a database that grows: throughput, write amplification of file system and drive, and mean write",
    source: "Lee et al., When F2FS Meets Address Remapping, HotStorage'22: figure 4 and section 4.3",
    setup: "The paper ran MySQL 5.7 with 200 warehouses and 16 clients on the emulated drive of 32 GiB, which its slides call 60 to 70 % full, while the database \
            grew. Ours are two recordings of MariaDB's calls on its files, with InnoDB's doublewrite buffer, which is MySQL's default, and without it; the \
            paper does not say which. The default is compared, the other one shown. 16 clients make up to 24,000 transactions while the database grows from 722 MB to 836, without the doublewrite buffer \
            from 651 to 838 (examples/), on the same drive shrunk to 1/29: the database is 61 % of it at first, 71 % at the end. The paper's text says 'filled up'; so the drive at 1/32 with other files of 56 MB \
            is shown, too, from 72 to 83 %, where F2FS has no more space. The paper's database grows by \
            its orders alone; ours grows faster, by warehouses that another session adds, so that the recording can be small. Threads are closed loops: each works for the CPU time that was recorded between its calls, on a host with 4 CPUs \
            (assumed). The figure's bars have no numbers in the text: what the text says is compared. Its amplification is 'up to' a figure, ours that of the \
            worst tenth of the volume written.",
    reduced: 29,
    run,
    sensitivity: None,
};

/// A recording of the benchmark; examples/README.md says how it was made.
struct Recording {
    name: &'static str,
    bytes: &'static [u8],
}

const DOUBLEWRITE: Recording = Recording {
    name: "mariadb-tpcc.file.tsv.zst",
    bytes: include_bytes!("../jobs/mariadb-tpcc.file.tsv.zst"),
};
const NO_DOUBLEWRITE: Recording = Recording {
    name: "mariadb-tpcc-no-doublewrite.file.tsv.zst",
    bytes: include_bytes!("../jobs/mariadb-tpcc-no-doublewrite.file.tsv.zst"),
};

/// A recording on a drive. The paper's statements are held against the first one; the rows of the
/// others are shown beside them.
struct Case {
    /// Behind the name of its rows and runs.
    suffix: &'static str,
    recording: &'static Recording,
    /// The drive is as large as this part of the paper's, whatever the figure's scale: the database
    /// is as large as its recording.
    whole_at: &'static str,
    /// Bytes of other files at full scale.
    fill_bytes: u64,
}

const CASES: [Case; 3] = [
    Case { suffix: "", recording: &DOUBLEWRITE, whole_at: "1/29", fill_bytes: 0 },
    Case {
        suffix: ", no doublewrite",
        recording: &NO_DOUBLEWRITE,
        whole_at: "1/29",
        fill_bytes: 0,
    },
    // as full at the end as F2FS can be: with twice as many it runs out of space when half is done
    Case {
        suffix: ", 72 to 83 % full",
        recording: &DOUBLEWRITE,
        whole_at: "1/32",
        fill_bytes: 1_800_000_000,
    },
];
/// Share of a recording that is made again: what comes behind it is warehouses that are added when
/// most clients are done.
const SHARE: f64 = 0.95;
/// Assumed: the paper's host has an i7, its guest may have any part of it.
const CPUS: u32 = 4;
/// Parts of a run by the volume written, of which the one with the most amplification counts.
const PARTS: u32 = 10;

const STACKS: [&str; 4] = ["f2fs", "f2fs-lfs", "ext4", "rm-ipu"];

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let [judged, others @ ..] = &CASES;
    let mut reproduction = replay(judged, setting)?;
    for case in others {
        let shown = replay(case, setting)?;
        let rows = shown.comparisons.into_iter().map(Comparison::unjudged);
        reproduction.comparisons.extend(rows);
        reproduction.results.runs.extend(shown.results.runs);
    }
    Ok(reproduction)
}

/// A case on all stacks.
fn replay(case: &Case, setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let whole_at = case.whole_at.parse().map_err(|error| failed(&error))?;
    let setting = Setting { scale: whole_at, ..*setting };
    let fill = Fill { amount: FillAmount::Bytes(case.fill_bytes), with: FillWith::Large };
    let plan = Plan {
        source: &source(case.recording, whole_at)?,
        fill: (case.fill_bytes > 0).then_some(fill),
        stacks: stacks_before_6_4(&STACKS, "femu-32g")?,
        final_sync: false,
        restart: false,
    };
    let mut results = setting.perform(&plan)?;
    let mut comparisons = throughput(&results)?;
    comparisons.extend(amplification(&results)?);
    comparisons.iter_mut().for_each(|row| row.what += case.suffix);
    results.runs.iter_mut().for_each(|run| run.label += case.suffix);
    Ok(Reproduction { comparisons, results })
}

fn failed(error: &dyn std::error::Error) -> BenchError {
    BenchError::Workload(error.to_string())
}

fn source(recording: &Recording, whole_at: Ratio) -> Result<Source, BenchError> {
    let trace = FileTrace::read(recording.name, Cursor::new(recording.bytes));
    let trace = Arc::new(trace.map_err(|error| failed(&error))?);
    let pace = Pace::Closed(ClosedLoop { cpus: CPUS, lead: ClosedLoop::LEAD });
    Ok(Source::FileTrace(FileTraceSource { trace, pace, loops: SHARE, whole_at }))
}

fn runs(results: &Results) -> Result<[&RunResult; 4], BenchError> {
    let [f2fs, lfs, ext4, rm_ipu] = STACKS;
    Ok([of(results, f2fs)?, of(results, lfs)?, of(results, ext4)?, of(results, rm_ipu)?])
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

fn throughput(results: &Results) -> Result<Vec<Comparison>, BenchError> {
    let all = runs(results)?;
    let [f2fs, lfs, ext4, rm_ipu] = all;
    // all make the same calls
    let rate = |run: &RunResult| ext4.totals.elapsed_s / run.totals.elapsed_s;
    let others = [f2fs, lfs, ext4].map(rate);
    let ratio = rate(rm_ipu);
    let kib = |run: &RunResult| run.requests.by_kind.write.mean_kib;
    Ok(vec![
        direction(
            "throughput of RM-IPU (F2FS, F2FS-L, ext4), of ext4's",
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

/// The drive's amplification in the part of the run in which it is greatest.
fn greatest_waf(run: &RunResult) -> f64 {
    let written = run.series.written_bytes.last().map_or(0.0, |bytes| *bytes as f64);
    span(&parts(run, written, PARTS, device_waf)).1
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
        within("drive's WAF of ext4, at most", "", 2.5, greatest_waf(ext4), 1.25),
        within("drive's WAF of RM-IPU, at most", "", 2.4, greatest_waf(rm_ipu), 1.25),
        Comparison {
            what: "drive's WAF of RM-IPU, at most (F2FS, F2FS-L, ext4)".into(),
            paper: "close to ext4's".into(),
            ours: beside(greatest_waf, all),
            rule: "within 15 % of ext4's".into(),
            agrees: (greatest_waf(rm_ipu) / greatest_waf(ext4) - 1.0).abs() <= 0.15,
        },
        Comparison::shown(
            "drive's WAF of RM-IPU as a whole (F2FS, F2FS-L, ext4)",
            beside(device, all),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_can_be_replayed_as_closed_loops() {
        for case in &CASES {
            let whole_at = case.whole_at.parse().unwrap();
            assert!(source(case.recording, whole_at).is_ok(), "{}", case.recording.name);
        }
    }
}
