//! Figure 5 of the FSDV paper: what one run takes off the map.

use dovetail_devirt::{Report, Unit};
use dovetail_ext::Ext;
use dovetail_ftl::Drive;
use dovetail_lab::bench::BenchError;
use dovetail_time::SimSpan;

use super::fsdv_rig::{LOADS, Load, OnDrive, Pass, Rig, no_runs};
use super::{Comparison, Figure, Reproduction, Setting, between, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "fsdv-figure-5",
    title: "Map memory before and after a run of the tool, for the workloads of table I",
    source: "Zhang et al., Removing the Costs and Retaining the Benefits of Flash-Based SSD Virtualization with FSDV, MSST'15: \
             figure 5 and table I, section VI-A",
    setup: "ext3 on fsdv-5g. F1 to F5 are Filebench's fileserver with table I's files and sizes, one thread, for 5 s of virtual time (times the scale) \
            after its files were made; I1 is a file set by Impressions' models with table I's 3000 files and 3.6 GB. The tool goes file by file and \
            metadata block by metadata block as in the paper; \"our batches\" are runs that take as many blocks of all files as one transaction \
            holds. The numbers of files and the journal shrink with the scale. What stays mapped is inodes, directories, bitmaps and the journal. Entries of the map are counted, as the paper's hash table has no more; \
            our drive marks its own addresses with a bit for each flash page besides.",
    reduced: 1,
    run,
    sensitivity: None,
};

/// Percent of the map: far below the half that "most" leaves.
pub(crate) const MOST_BY_METADATA: f64 = 10.0;

/// A run over a workload's files.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// Bytes of the map.
    before: u64,
    after: u64,
    /// Of both: a bit for each flash page.
    bits: u64,
    pub(crate) pass: Pass,
}

impl Measured {
    /// The share of the mapping table's entries that is gone, in percent. The paper's drive reads
    /// from the address itself where it finds no entry (section IV), so it counts nothing else.
    pub(crate) fn reduction(&self) -> f64 {
        100.0 * (self.before - self.after) as f64 / (self.before - self.bits) as f64
    }

    /// The same with a bit for each flash page, by which our drive knows its own addresses.
    fn reduction_with_bits(&self) -> f64 {
        100.0 * (1.0 - self.after as f64 / self.before as f64)
    }

    /// The reduction, and the bytes of the entries before and after.
    pub(crate) fn shown(&self) -> String {
        let kib = |bytes: u64| (bytes - self.bits) / 1024;
        let (before, after) = (kib(self.before), kib(self.after));
        format!("{:.1} % ({before} to {after} KiB)", self.reduction())
    }

    /// Percent of the map that blocks of pointers took.
    pub(crate) fn by_metadata(&self) -> f64 {
        let Report { content_blocks, metadata_blocks, .. } = self.pass.report;
        self.reduction() * metadata_blocks as f64 / (content_blocks + metadata_blocks).max(1) as f64
    }
}

/// A run over the files of a load, after 5 s of it.
pub(crate) fn measure<F: OnDrive>(
    load: &Load,
    setting: &Setting<'_>,
    unit: Unit,
) -> Result<Measured, BenchError> {
    let mut rig = Rig::<F>::new(load, setting)?;
    let seconds = SimSpan::from_ms((5000.0 * setting.scale.value()) as u64);
    rig.run_until(rig.now() + seconds)?;
    rig.sync()?;
    let before = rig.map_bytes();
    let pass = rig.devirtualize(SimSpan::ZERO, unit)?;
    setting.go_on()?;
    let (after, bits) = (rig.map_bytes(), rig.bit_bytes());
    Ok(Measured { name: load.name, before, after, bits, pass })
}

/// All loads of table I on ext3.
pub(crate) fn measure_all(setting: &Setting<'_>, unit: Unit) -> Result<Vec<Measured>, BenchError> {
    setting.each(&LOADS, |load| measure::<Ext<Drive>>(load, setting, unit))
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let measured = measure_all(setting, Unit::MetadataBlock)?;
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
        measured[1].reduction() < measured[2].reduction()
            && measured[2].reduction() < measured[3].reduction(),
    ));
    let by_metadata = direction(
        "blocks of pointers, F1 to F5 and I1: their part of it",
        "most is data blocks; I1 has less than F1 to F5",
        metadata.iter().map(|part| format!("{part:.2}")).collect::<Vec<_>>().join(", ") + " %",
        metadata.iter().all(|part| *part < MOST_BY_METADATA)
            && metadata[..5].iter().all(|part| *part > metadata[5]),
    );
    comparisons.push(by_metadata.by("below 10 %, I1 least"));
    let larger = &metadata[1..4];
    comparisons.push(direction(
        "blocks of pointers, files of 0.5, 1 and 2 MB: their part of it",
        "larger files result in bigger reduction by them, too",
        larger.iter().map(|part| format!("{part:.2} %")).collect::<Vec<_>>().join(", "),
        larger.is_sorted_by(|one, next| one < next),
    ));
    comparisons.push(each(
        "F1 to F5 and I1: smaller by, with a bit for each flash page that marks the drive's own addresses",
        &measured,
        Measured::reduction_with_bits,
    ));
    let ours = measure_all(setting, Unit::Most)?;
    comparisons.push(each(
        "our batches, F1 to F5 and I1: the map is smaller by",
        &ours,
        Measured::reduction,
    ));
    Ok(Reproduction { comparisons, results: no_runs(setting) })
}

fn each(what: &str, measured: &[Measured], percent: fn(&Measured) -> f64) -> Comparison {
    let each: Vec<String> = measured.iter().map(|run| format!("{:.1}", percent(run))).collect();
    Comparison::shown(what, each.join(", ") + " %")
}

/// The paper's range has no figure for each load.
fn reduction(measured: &Measured) -> Comparison {
    let what = format!("{}: map memory is smaller by", measured.name);
    let comparison = between(what, "%", (75.0, 96.0), TOLERANCE, measured.reduction());
    Comparison { ours: measured.shown(), ..comparison }
}

/// The paper gives whole percents.
const TOLERANCE: f64 = 0.5;
