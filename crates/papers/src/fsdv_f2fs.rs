//! The table of figure 5 for F2FS, which the paper has not.

use dovetail_f2fs::F2fs;
use dovetail_ftl::Drive;
use dovetail_lab::bench::BenchError;

use super::fsdv_figure_5::{Measured, measure, reduction};
use super::fsdv_rig::{LOADS, no_runs};
use super::{Comparison, Figure, Reproduction, Setting, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "fsdv-f2fs",
    title: "Map memory before and after a run of the tool on F2FS, for the workloads of table I",
    source: "Ours: Zhang et al., Removing the Costs and Retaining the Benefits of Flash-Based SSD Virtualization with FSDV, MSST'15, has ext3 \
             alone. Compared with its figure 5",
    setup: "As fsdv-figure-5, with F2FS on fsdv-5g. Nodes are reached by device addresses through the NAT, inodes and directories with them. \
            What stays mapped is checkpoints, SIT, NAT and SSA. 100 us pass after each call (assumed): calls of F2FS that are only cached wait for nothing.",
    reduced: 8,
    run,
    sensitivity: None,
};

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let measured: Vec<Measured> =
        LOADS.iter().map(|load| measure::<F2fs<Drive>>(load, setting)).collect::<Result<_, _>>()?;
    let mut comparisons: Vec<Comparison> = measured.iter().map(reduction).collect();
    let seconds = |run: &Measured| run.report.time().as_secs_f64() / setting.scale.value();
    comparisons.push(direction(
        "the time of a run, F1 to F5 and I1",
        "2 to 5 s on ext3",
        measured.iter().map(|run| format!("{:.2}", seconds(run))).collect::<Vec<_>>().join(", ")
            + " s",
        measured.iter().all(|run| (0.2..=15.0).contains(&seconds(run))),
    ));
    let nodes: Vec<f64> = measured.iter().map(Measured::by_metadata).collect();
    comparisons.push(direction(
        "nodes: their part of it",
        "most is data blocks",
        nodes.iter().map(|part| format!("{part:.2}")).collect::<Vec<_>>().join(", ") + " %",
        nodes.iter().all(|part| *part < 10.0),
    ));
    Ok(Reproduction { comparisons, results: no_runs(setting) })
}
