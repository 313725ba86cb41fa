//! Figure 6 of the FSDV paper: how long a run takes.

use dovetail_devirt::{Report, Unit};
use dovetail_lab::bench::BenchError;
use dovetail_time::SimSpan;

use super::fsdv_figure_5::{Measured, measure_all};
use super::fsdv_rig::no_runs;
use super::{Comparison, Figure, Reproduction, Setting, between, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "fsdv-figure-6",
    title: "Run time of the tool over all files of the workloads of table I, by what it is spent on",
    source: "Zhang et al., Removing the Costs and Retaining the Benefits of Flash-Based SSD Virtualization with FSDV, MSST'15: \
             figure 6, section VI-B",
    setup: "The runs of fsdv-figure-5, in virtual time of the drive; the host's own work costs nothing here. A metadata block whose pointers all \
            lead to data counts as data; one with pointers to blocks of pointers (the inode of a larger file, with its direct pointers) counts as \
            blocks of pointers. At a reduced scale there are fewer files: figures are divided by it. The journal shrinks with it, which shortens \
            our batches: their time at a reduced scale says nothing of the full one.",
    reduced: 1,
    run,
    sensitivity: None,
};

/// The paper gives whole seconds.
const TOLERANCE: f64 = 0.5;

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let measured = measure_all(setting, Unit::MetadataBlock)?;
    let ours = measure_all(setting, Unit::Most)?;
    let mut comparisons: Vec<Comparison> = measured.iter().map(|run| time(run, setting)).collect();
    let of_4: Vec<f64> = measured[..4].iter().map(|run| seconds(run, setting)).collect();
    comparisons.push(direction(
        "F1, F2, F3, F4: the time grows with the volume's size",
        "increases with larger file size and larger file system size",
        listed(&of_4) + " s",
        of_4.is_sorted_by(|one, next| one < next),
    ));
    comparisons.push(shares(&measured));
    comparisons.push(Comparison::shown(
        "our batches, F1 to F5 and I1: run time",
        listed(&ours.iter().map(|run| seconds(run, setting)).collect::<Vec<_>>()) + " s",
    ));
    comparisons.push(Comparison::shown(
        "our batches, F1 to F5 and I1: a call that comes during one waits for it",
        listed(&ours.iter().map(|run| run.pass.blocking_ms()).collect::<Vec<_>>()) + " ms",
    ));
    Ok(Reproduction { comparisons, results: no_runs(setting) })
}

/// Of a whole run, at full scale.
pub(crate) fn seconds(run: &Measured, setting: &Setting<'_>) -> f64 {
    run.pass.report.time().as_secs_f64() / setting.scale.value()
}

pub(crate) fn listed(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(", ")
}

fn time(run: &Measured, setting: &Setting<'_>) -> Comparison {
    let part = |span: SimSpan| span.as_secs_f64() / setting.scale.value();
    let Report { content_time, metadata_time, other_time, .. } = run.pass.report;
    let what = format!("{}: run time", run.name);
    let mut comparison = between(what, "s", (2.0, 5.0), TOLERANCE, seconds(run, setting));
    comparison.ours += &format!(
        " (data {:.2}, blocks of pointers {:.2}, rest {:.2})",
        part(content_time),
        part(metadata_time),
        part(other_time)
    );
    comparison
}

fn shares(measured: &[Measured]) -> Comparison {
    let share = |run: &Measured| {
        let report = &run.pass.report;
        let batches = report.content_time + report.metadata_time;
        100.0 * batches.as_secs_f64() / report.time().as_secs_f64()
    };
    let shares: Vec<f64> = measured.iter().map(share).collect();
    Comparison {
        what: "F1 to F5 and I1: part of the time for data and blocks of pointers".into(),
        paper: "most of it".into(),
        ours: listed(&shares) + " %",
        rule: "above 50 % in all".into(),
        agrees: shares.iter().all(|share| *share > 50.0),
    }
}
