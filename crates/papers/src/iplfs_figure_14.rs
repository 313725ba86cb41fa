//! Figure 14 of the IPLFS paper: a file server at several utilisations, and what the drive makes of
//! earlier discards.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::{Results, RunResult};

use super::iplfs::{GIB, THERE, file_server, on_partition};
use super::iplfs_figure_12a::with_8_gb;
use super::{Comparison, Figure, Plan, Reproduction, Setting, of, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-14",
    title: "File server over disk utilisation: the drive's write amplification and throughput on F2FS and IPLFS",
    source: "Kim et al., IPLFS, ATC'22: figure 14 and section 6.2; job as published with its code",
    setup: "Filebench's file server, 50 threads, files of 2 MiB, on the whole drive of 230 GiB; file sets of 50 to 95 % of it, of which four fifths are there at a time \
            (prealloc=80); F2FS mounted mode=lfs; a host with 8 GB. The paper does not say for how long: its published job has 200, 300, 350, 600, 900 and 1,200 s, of which 1,200 s \
            alone fills the flash with all file sets, so that the drive has to clean; the last, 300 s, is shown beside it. IPLFS discards up to 80,000 ranges every 50 ms whatever else is under way, F2FS 8 and only when the device is idle.",
    reduced: 32,
    run,
    sensitivity: None,
};

const UTILISATIONS: [u32; 4] = [50, 65, 80, 95];
const PARTITION: f64 = 230.0 * GIB;
/// The time that is judged: the only one of the published job's in which more is written than the
/// flash holds, whatever the file set.
const SECONDS: f64 = 1200.0;
/// The time that the published job had last.
const SHORT: f64 = 300.0;

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let mut all: Option<Results> = None;
    let mut comparisons = file_sets(setting, SECONDS, &mut all)?;
    comparisons.extend(file_sets(setting, SHORT, &mut all)?.into_iter().map(of_the_short_run));
    Ok(Reproduction { comparisons, results: all.unwrap_or_else(|| setting.no_runs(FIGURE.name)) })
}

/// Runs both file systems with all file sets for so many seconds, and adds the runs to `all`.
fn file_sets(
    setting: &Setting<'_>,
    seconds: f64,
    all: &mut Option<Results>,
) -> Result<Vec<Comparison>, BenchError> {
    let mut comparisons = Vec::new();
    let mut best = f64::NEG_INFINITY;
    for percent in UTILISATIONS {
        let mut results = run_both(setting, percent, seconds)?;
        let (f2fs, iplfs) = (of(&results, "f2fs-lfs")?, of(&results, "iplfs")?);
        comparisons.push(less_amplified(percent, f2fs, iplfs));
        best = best.max(iplfs.totals.write_mb_per_s / f2fs.totals.write_mb_per_s);
        let label = |run: &RunResult| format!("{}, {percent} %, {seconds} s", run.label);
        results.runs.iter_mut().for_each(|run| run.label = label(run));
        match all {
            Some(all) => all.runs.extend(results.runs),
            None => *all = Some(results),
        }
    }
    comparisons.push(Comparison {
        what: "throughput of IPLFS over F2FS, at most".into(),
        paper: "up to 24 % more".into(),
        ours: format!("{:+.0} %", (best - 1.0) * 100.0),
        rule: "12 to 36 % more".into(),
        agrees: (1.12..=1.36).contains(&best),
    });
    Ok(comparisons)
}

fn run_both(setting: &Setting<'_>, percent: u32, seconds: f64) -> Result<Results, BenchError> {
    let bytes = PARTITION * f64::from(percent) / 100.0 * THERE;
    let source = file_server(setting, bytes, seconds)?;
    let stacks = on_partition(&["f2fs-lfs", "iplfs"], "230GiB")?;
    let stacks = stacks.into_iter().map(with_8_gb).collect();
    setting.perform(&Plan {
        source: &source,
        fill: None,
        stacks,
        final_sync: false,
        restart: false,
    })
}

/// The same statement of the short run, which is not judged.
fn of_the_short_run(row: Comparison) -> Comparison {
    Comparison::shown(format!("{}; for {SHORT} s", row.what), row.ours)
}

fn less_amplified(percent: u32, f2fs: &RunResult, iplfs: &RunResult) -> Comparison {
    let waf = |run: &RunResult| run.totals.device_waf.unwrap_or(f64::NAN);
    let rate = |run: &RunResult| rounded(run.totals.write_mb_per_s);
    Comparison {
        what: format!("the drive's WAF of IPLFS and F2FS, a file set of {percent} %"),
        paper: "IPLFS's is lower at all utilisations".into(),
        ours: format!(
            "{:.3} and {:.3} ({} and {} MB/s)",
            waf(iplfs),
            waf(f2fs),
            rate(iplfs),
            rate(f2fs)
        ),
        rule: "lower, on a drive that cleans".into(),
        agrees: waf(iplfs) < waf(f2fs) && f2fs.totals.drive.gc_runs > 0,
    }
}
