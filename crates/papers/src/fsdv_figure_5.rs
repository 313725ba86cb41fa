//! Figure 5 of the FSDV paper: what one run takes off the map.

use dovetail_devirt::Report;
use dovetail_ext::Ext;
use dovetail_ftl::Drive;
use dovetail_lab::bench::BenchError;
use dovetail_time::SimSpan;

use super::fsdv_rig::{LOADS, Load, OnDrive, Rig, no_runs};
use super::{Comparison, Figure, Reproduction, Setting, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "fsdv-figure-5",
    title: "Map memory before and after a run of the tool, for the workloads of table I",
    source: "Zhang et al., Removing the Costs and Retaining the Benefits of Flash-Based SSD Virtualization with FSDV, MSST'15: \
             figure 5 and table I, section VI-A",
    setup: "ext3 on fsdv-5g. F1 to F5 are Filebench's fileserver with table I's files and sizes, one thread, for 5 s of virtual time \
            after its files were made; I1 is a file set by Impressions' models. The numbers of files and the journal shrink with the scale. \
            What stays mapped is inodes, directories, bitmaps and the journal.",
    reduced: 8,
    run,
    sensitivity: None,
};

/// A run over a workload's files.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// Bytes of the map.
    pub(crate) before: u64,
    pub(crate) after: u64,
    pub(crate) report: Report,
}

impl Measured {
    /// The share of the map that is gone, in percent.
    pub(crate) fn reduction(&self) -> f64 {
        100.0 * (1.0 - self.after as f64 / self.before as f64)
    }

    /// Percent of the map that blocks of pointers took.
    pub(crate) fn by_metadata(&self) -> f64 {
        let Report { content_blocks, metadata_blocks, .. } = self.report;
        self.reduction() * metadata_blocks as f64 / (content_blocks + metadata_blocks).max(1) as f64
    }
}

pub(crate) fn measure<F: OnDrive>(
    load: &Load,
    setting: &Setting<'_>,
) -> Result<Measured, BenchError> {
    let mut rig = Rig::<F>::new(load, setting)?;
    let seconds = SimSpan::from_ms((5000.0 * setting.scale.value()) as u64);
    rig.run_until(rig.now() + seconds)?;
    rig.sync()?;
    let before = rig.map_bytes();
    let report = rig.devirtualize(SimSpan::ZERO)?;
    Ok(Measured { name: load.name, before, after: rig.map_bytes(), report })
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let measured: Vec<Measured> =
        LOADS.iter().map(|load| measure::<Ext<Drive>>(load, setting)).collect::<Result<_, _>>()?;
    let mut comparisons: Vec<Comparison> = measured.iter().map(reduction).collect();
    let metadata: Vec<f64> = measured.iter().map(Measured::by_metadata).collect();
    comparisons.push(direction(
        "files of 0.5, 1 and 2 MB (F2, F3, F4): the map shrinks more",
        "larger files result in bigger reduction",
        format!(
            "{:.1} %, {:.1} %, {:.1} %",
            measured[1].reduction(),
            measured[2].reduction(),
            measured[3].reduction()
        ),
        measured[1].reduction() <= measured[2].reduction()
            && measured[2].reduction() <= measured[3].reduction(),
    ));
    comparisons.push(direction(
        "blocks of pointers, F1 to F5 and I1: their part of it",
        "most is data blocks; I1 has less than F1 to F5",
        metadata.iter().map(|part| format!("{part:.2}")).collect::<Vec<_>>().join(", ") + " %",
        metadata.iter().all(|part| *part < 10.0)
            && metadata[..5].iter().all(|part| *part > metadata[5]),
    ));
    Ok(Reproduction { comparisons, results: no_runs(setting) })
}

pub(crate) fn reduction(measured: &Measured) -> Comparison {
    let (ours, kib) = (measured.reduction(), |bytes: u64| bytes / 1024);
    Comparison {
        what: format!("{}: map memory is smaller by", measured.name),
        paper: "75 to 96 %".into(),
        ours: format!("{ours:.1} % ({} to {} KiB)", kib(measured.before), kib(measured.after)),
        rule: "at least 75 %".into(),
        agrees: ours >= 75.0,
    }
}
