//! Figure 1 of the F2FS-aware mapping cache's paper: accesses of blocks that are read or written
//! more than twice, on F2FS and ext4.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::{RepeatsResult, Results};

use super::mapcache::{APPLICATIONS, SETUP, TOLERANCE, Work, join, with};
use super::{Comparison, Figure, Reproduction, Setting};

pub(crate) const FIGURE: Figure = Figure {
    name: "mapcache-figure-1",
    title: "Reads and writes of blocks that are read or written more than twice, on F2FS of those on ext4",
    source: "Gao et al., F2FS Aware Mapping Cache Design on Solid State Drives: figure 1 and section III",
    setup: SETUP,
    reduced: 1,
    run,
    sensitivity: None,
};

/// The paper's means over the applications, in percent.
const READ: f64 = 39.2;
const WRITTEN: f64 = 0.8;
/// A share of fewer of ext4's says nothing (assumed).
const FEWEST: u64 = 100;

/// A count on F2FS and on ext4.
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

/// Of each application, by something that is counted.
fn shares(results: &Results, count: fn(&RepeatsResult) -> u64) -> Result<Vec<Share>, BenchError> {
    let of = |work: &Work, filesystem: &str| {
        let run = with(results, work, filesystem, "dftl")?;
        Ok::<_, BenchError>(count(&run.requests.repeats.unwrap_or_default()))
    };
    let share = |work: &Work| {
        Ok(Share { name: work.name, f2fs: of(work, "f2fs")?, ext4: of(work, "ext4")? })
    };
    APPLICATIONS.iter().map(share).collect()
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let mut all = None;
    for work in &APPLICATIONS {
        join(&mut all, work.run(setting, &["f2fs", "ext4"], &["dftl"])?);
    }
    let results = all.ok_or_else(|| BenchError::Workload("no application was run".into()))?;
    let blocks = |what: &str, count| {
        let (mean, each) = mean(&shares(&results, count)?);
        Ok::<_, BenchError>(Comparison::shown(what, format!("{mean:.1} %: {each}")))
    };
    let comparisons = vec![
        written(&shares(&results, |repeats| repeats.write.multiple_accesses)?),
        read(&shares(&results, |repeats| repeats.read.multiple_accesses)?),
        blocks("blocks written more than twice, of ext4's", |repeats| repeats.write.multiple)?,
        blocks("blocks read more than twice, of ext4's", |repeats| repeats.read.multiple)?,
    ];
    Ok(Reproduction { comparisons, results })
}

fn written(shares: &[Share]) -> Comparison {
    let (mean, each) = mean(shares);
    Comparison {
        what: "writes of blocks that are written more than twice, of ext4's".into(),
        paper: format!("{WRITTEN} % on average"),
        ours: format!("{mean:.2} %: {each}"),
        rule: format!("at most {} %, of {FEWEST} or more", 2.0 * WRITTEN),
        agrees: mean <= 2.0 * WRITTEN,
    }
}

fn read(shares: &[Share]) -> Comparison {
    let (mean, each) = mean(shares);
    let most = shares[0].percent();
    Comparison {
        what: "reads of blocks that are read more than twice, of ext4's".into(),
        paper: format!("{READ} % on average, media the most"),
        ours: format!("{mean:.1} %: {each}"),
        rule: format!("within {:.0} %, media the most", TOLERANCE * 100.0),
        agrees: (mean / READ - 1.0).abs() <= TOLERANCE
            && shares.iter().all(|share| share.percent() <= most),
    }
}
