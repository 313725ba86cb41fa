//! Figure 1 of the F2FS-aware mapping cache's paper: blocks read and written more than twice on
//! F2FS and ext4.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::{RepeatResult, RunResult};

use super::mapcache::{APPLICATIONS, SETUP, TOLERANCE, join, with};
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

/// The paper's means over the applications, in percent.
const READ: f64 = 39.2;
const WRITTEN: f64 = 0.8;
/// A share of fewer blocks of ext4's says nothing (assumed).
const FEWEST: u64 = 100;

/// Blocks accessed more than twice on F2FS and on ext4.
struct Share {
    name: &'static str,
    f2fs: u64,
    ext4: u64,
}

impl Share {
    fn percent(&self) -> Option<f64> {
        (self.ext4 >= FEWEST).then(|| 100.0 * self.f2fs as f64 / self.ext4 as f64)
    }

    fn shown(&self) -> String {
        let share = self.percent().map_or("none".into(), |share| format!("{share:.1} %"));
        format!("{} {share} ({} of {})", self.name, self.f2fs, self.ext4)
    }
}

/// The mean of those that say something, and each.
fn mean(shares: &[Share]) -> (f64, String) {
    let known: Vec<f64> = shares.iter().filter_map(Share::percent).collect();
    let each = shares.iter().map(Share::shown).collect::<Vec<_>>().join(", ");
    (known.iter().sum::<f64>() / known.len() as f64, each)
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (mut all, mut reads, mut writes) = (None, Vec::new(), Vec::new());
    for work in &APPLICATIONS {
        let results = work.run(setting, &["f2fs", "ext4"], &["dftl"])?;
        let (f2fs, ext4) =
            (with(&results, work, "f2fs", "dftl")?, with(&results, work, "ext4", "dftl")?);
        let share = |of: fn(&RunResult) -> RepeatResult| {
            let (f2fs, ext4) = (of(f2fs).multiple, of(ext4).multiple);
            Share { name: work.name, f2fs, ext4 }
        };
        writes.push(share(|run| run.requests.repeats.unwrap_or_default().write));
        reads.push(share(|run| run.requests.repeats.unwrap_or_default().read));
        join(&mut all, results);
    }
    let comparisons = vec![written(&writes), read(&reads)];
    let results = all.ok_or_else(|| BenchError::Workload("no application was run".into()))?;
    Ok(Reproduction { comparisons, results })
}

fn written(shares: &[Share]) -> Comparison {
    let (mean, each) = mean(shares);
    Comparison {
        what: "blocks written more than twice, of ext4's".into(),
        paper: format!("{WRITTEN} % on average"),
        ours: format!("{mean:.2} %: {each}"),
        rule: format!("0 to {} %, of {FEWEST} blocks or more", 2.0 * WRITTEN),
        agrees: (0.0..=2.0 * WRITTEN).contains(&mean),
    }
}

fn read(shares: &[Share]) -> Comparison {
    let (mean, each) = mean(shares);
    let most = shares[0].percent();
    Comparison {
        what: "blocks read more than twice, of ext4's".into(),
        paper: format!("{READ} % on average, media the most"),
        ours: format!("{mean:.1} %: {each}"),
        rule: format!("within {:.0} %, media the most", TOLERANCE * 100.0),
        agrees: (mean / READ - 1.0).abs() <= TOLERANCE
            && shares.iter().all(|share| share.percent() <= most),
    }
}
