//! Figure 1 of the F2FS-aware mapping cache's paper: blocks read and written more than twice on
//! F2FS and ext4.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::{RepeatResult, RunResult};

use super::mapcache::{APPLICATIONS, SETUP, join, with};
use super::{Comparison, Figure, Reproduction, Setting};

pub(crate) const FIGURE: Figure = Figure {
    name: "mapcache-figure-1",
    title: "Blocks read and written more than twice on F2FS, of those on ext4",
    source: "Gao et al., F2FS Aware Mapping Cache Design on Solid State Drives: figure 1 and section III",
    setup: SETUP,
    reduced: 1,
    run,
    sensitivity: None,
};

/// The paper's mean over the applications.
const READ: f64 = 0.392;

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (mut all, mut reads, mut comparisons) = (None, Vec::new(), Vec::new());
    for work in &APPLICATIONS {
        let results = work.run(setting, &["f2fs", "ext4"], &["dftl"])?;
        let (f2fs, ext4) =
            (with(&results, work, "f2fs", "dftl")?, with(&results, work, "ext4", "dftl")?);
        let share = |of: fn(&RunResult) -> RepeatResult| {
            let (f2fs, ext4) = (of(f2fs).multiple, of(ext4).multiple);
            (f2fs as f64 / (ext4 as f64).max(1.0), format!("{f2fs} of {ext4}"))
        };
        let (written, writes_shown) = share(|run| run.requests.repeats.unwrap_or_default().write);
        let (read, reads_shown) = share(|run| run.requests.repeats.unwrap_or_default().read);
        comparisons.push(Comparison {
            what: format!("{}: blocks written more than twice, of ext4's", work.name),
            paper: "0.8 % on average".into(),
            ours: format!("{:.1} % ({writes_shown})", written * 100.0),
            rule: "below 3 %".into(),
            agrees: written < 0.03,
        });
        reads.push((work.name, read, reads_shown));
        join(&mut all, results);
    }
    let shown: Vec<String> = reads
        .iter()
        .map(|(name, read, shown)| format!("{name} {:.0} % ({shown})", read * 100.0))
        .collect();
    let mean = reads.iter().map(|(_, read, _)| read).sum::<f64>() / reads.len() as f64;
    comparisons.push(Comparison {
        what: "blocks read more than twice, of ext4's".into(),
        paper: format!("{:.1} % on average, media the most", READ * 100.0),
        ours: format!("{:.1} %: {}", mean * 100.0, shown.join(", ")),
        rule: "within a factor of 1.5, media the most".into(),
        agrees: (READ / 1.5..READ * 1.5).contains(&mean)
            && reads.iter().all(|(_, read, _)| *read <= reads[0].1),
    });
    let results = all.ok_or_else(|| BenchError::Workload("no application was run".into()))?;
    Ok(Reproduction { comparisons, results })
}
