//! Figure 6 of the FSDV paper: how long a run takes.

use dovetail_ext::Ext;
use dovetail_ftl::Drive;
use dovetail_lab::bench::BenchError;

use super::fsdv_figure_5::{Measured, measure};
use super::fsdv_rig::{LOADS, no_runs};
use super::{Comparison, Figure, Reproduction, Setting, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "fsdv-figure-6",
    title: "Run time of the tool over all files of the workloads of table I, by what it is spent on",
    source: "Zhang et al., Removing the Costs and Retaining the Benefits of Flash-Based SSD Virtualization with FSDV, MSST'15: \
             figure 6, section VI-B",
    setup: "The runs of fsdv-figure-5, in virtual time of the drive; the host's own work costs nothing here. A reduced scale shrinks the \
            number of blocks and so the time: figures are divided by it. It shrinks the journal too, and with it how many blocks a batch has.",
    reduced: 8,
    run,
    sensitivity: None,
};

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let measured: Vec<Measured> =
        LOADS.iter().map(|load| measure::<Ext<Drive>>(load, setting)).collect::<Result<_, _>>()?;
    let seconds: Vec<f64> = measured
        .iter()
        .map(|run| run.report.time().as_secs_f64() / setting.scale.value())
        .collect();
    let mut comparisons: Vec<Comparison> =
        measured.iter().zip(&seconds).map(|(run, seconds)| time(run, *seconds, setting)).collect();
    comparisons.push(direction(
        "F1, F2, F3, F4: the time grows with the volume's size",
        "increases with larger file size and larger file system size",
        seconds[..4].iter().map(|seconds| format!("{seconds:.2}")).collect::<Vec<_>>().join(", ")
            + " s",
        seconds[..4].is_sorted(),
    ));
    Ok(Reproduction { comparisons, results: no_runs(setting) })
}

fn time(run: &Measured, seconds: f64, setting: &Setting<'_>) -> Comparison {
    let part = |span: dovetail_time::SimSpan| span.as_secs_f64() / setting.scale.value();
    let report = &run.report;
    Comparison {
        what: format!("{}: run time", run.name),
        paper: "2 to 5 s".into(),
        ours: format!(
            "{seconds:.2} s (data {:.2}, blocks of pointers {:.2}, rest {:.2})",
            part(report.content_time),
            part(report.metadata_time),
            part(report.other_time)
        ),
        rule: "of that order: 0.5 to 15 s".into(),
        agrees: (0.5..=15.0).contains(&seconds),
    }
}
