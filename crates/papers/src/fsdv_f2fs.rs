//! The table of figure 5 for F2FS, which the paper has not.

use dovetail_devirt::Unit;
use dovetail_f2fs::F2fs;
use dovetail_ftl::Drive;
use dovetail_lab::bench::BenchError;

use super::fsdv_figure_5::{MOST_BY_METADATA, Measured, measure};
use super::fsdv_figure_6::{listed, seconds};
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

/// Spare room of the drive shrinks with the scale, and the parts of an F2FS volume that are not
/// data do not.
const LEAST_SCALE: f64 = 1.0 / 8.0;

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    if setting.scale.value() < LEAST_SCALE {
        let why = "a scale of 1/8 or more is needed: below that the logs and the reserved segments of F2FS \
                   leave no room for table I's files";
        return Err(BenchError::Workload(why.into()));
    }
    let measured =
        setting.each(&LOADS, |load| measure::<F2fs<Drive>>(load, setting, Unit::Most))?;
    let mut comparisons: Vec<Comparison> = measured.iter().map(reduction).collect();
    let seconds: Vec<f64> = measured.iter().map(|run| seconds(run, setting)).collect();
    comparisons.push(Comparison::shown(
        "the time of a run with our batches, F1 to F5 and I1 (the paper on ext3: 2 to 5 s)",
        listed(&seconds) + " s",
    ));
    let nodes: Vec<f64> = measured.iter().map(Measured::by_metadata).collect();
    let by_nodes = direction(
        "nodes: their part of it",
        "none: a figure of ours. On ext3 most is data blocks",
        listed(&nodes) + " %",
        nodes.iter().all(|part| *part < MOST_BY_METADATA),
    );
    comparisons.push(by_nodes.by("below 10 %"));
    Ok(Reproduction { comparisons, results: no_runs(setting) })
}

/// More than ext3 keeps can go: inodes and directories too.
fn reduction(measured: &Measured) -> Comparison {
    Comparison {
        what: format!("{}: map memory is smaller by", measured.name),
        paper: "none: a figure of ours. 75 to 96 % on ext3".into(),
        ours: measured.shown(),
        rule: "at least ext3's 75 %".into(),
        agrees: measured.reduction() >= 75.0,
    }
}
