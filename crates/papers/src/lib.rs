//! The papers' figures and tables, run again: one file each, the paper's figures and ours side by
//! side.
//!
//! A paper's figure is never an input to what is compared with it: it stands beside the result,
//! with the rule that says what counts as agreement.
//!
//! ```
//! use dovetail_papers::theory::{TheoryError, fifo_wa, greedy_wa};
//! use dovetail_papers::{FIGURES, Figure};
//!
//! # fn main() -> Result<(), TheoryError> {
//! // Pages that a drive programs for each page written at random, when 90 % of its pages are valid
//! // and blocks have 64 pages. A simulated drive must come near to these.
//! let (valid, pages) = (0.9, 64);
//! let cleans_oldest = fifo_wa(valid)?;
//! let cleans_emptiest = greedy_wa(valid, pages)?;
//! assert_eq!(format!("{cleans_oldest:.2} {cleans_emptiest:.2}"), "5.18 4.82");
//!
//! let figure = Figure::find("rmipu-figure-1");
//! assert!(figure.is_some_and(|figure| figure.source.contains("HotStorage'22: figure 1")));
//! assert!(FIGURES.iter().all(|figure| !figure.setup.is_empty()), "each tells its assumptions");
//! # Ok(())
//! # }
//! ```

mod answers;
mod change;
mod curve;
mod drawn;
mod fdp_cachelib;
mod fsdv_f2fs;
mod fsdv_figure_5;
mod fsdv_figure_6;
mod fsdv_figure_7;
mod fsdv_rig;
mod fsdv_three_ways;
mod fstream;
mod iplfs;
mod iplfs_figure_12a;
mod iplfs_figure_12b;
mod iplfs_figure_13;
mod iplfs_figure_14;
mod iplfs_figure_15;
mod iplfs_figure_16a;
mod iplfs_figure_16b;
mod iplfs_figures_17_19;
mod iplfs_map_size;
mod iplfs_shadow;
mod iplfs_tables_1_2;
mod mapcache;
mod mapcache_figure_1;
mod mapcache_figure_5;
mod mapcache_figure_6;
mod mapcache_lanes;
mod mapcache_load;
mod mapcache_sizes;
mod mapcache_table_1;
pub mod measured;
mod numbers;
mod remap_cleaning;
mod remap_log;
mod rmipu_figure_1;
mod rmipu_figure_3;
mod rmipu_figure_4;
mod rmipu_fragmentation;
mod rmipu_metadata;
mod scales;
mod sensitivity;
pub mod theory;

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dovetail_lab::bench::{BenchError, Experiment, Fill, Source, Stack};
use dovetail_lab::results::{Results, RunResult};
use dovetail_lab::{FinishedRuns, Prepared, run_all};
use dovetail_time::Ratio;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use change::{Change, Changes};
pub use drawn::Drawn;
pub use scales::{AtScales, SCALES};
pub use sensitivity::{Sensitivity, SensitivityPoint};

/// All figures, in the order of the papers.
pub const FIGURES: [&Figure; 31] = [
    &rmipu_figure_1::FIGURE,
    &rmipu_metadata::FIGURE,
    &rmipu_figure_3::FIGURE,
    &rmipu_figure_4::FIGURE,
    &rmipu_fragmentation::FIGURE,
    &remap_cleaning::FIGURE,
    &remap_log::FIGURE,
    &mapcache_table_1::FIGURE,
    &mapcache_figure_1::FIGURE,
    &mapcache_figure_5::FIGURE,
    &mapcache_figure_6::FIGURE,
    &mapcache_sizes::FIGURE,
    &mapcache_lanes::FIGURE,
    &iplfs_tables_1_2::FIGURE,
    &iplfs_map_size::FIGURE,
    &iplfs_figure_12a::FIGURE,
    &iplfs_figure_12b::FIGURE,
    &iplfs_figure_13::FIGURE,
    &iplfs_figure_14::FIGURE,
    &iplfs_figure_15::FIGURE,
    &iplfs_figure_16a::FIGURE,
    &iplfs_figure_16b::FIGURE,
    &iplfs_figures_17_19::FIGURE,
    &fsdv_figure_5::FIGURE,
    &fsdv_figure_6::FIGURE,
    &fsdv_figure_7::FIGURE,
    &fsdv_f2fs::FIGURE,
    &fsdv_three_ways::FIGURE,
    &fdp_cachelib::FIGURE,
    &fstream::FIGURE,
    &answers::FIGURE,
];

/// A figure or table of a paper.
pub struct Figure {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its subject.
    pub title: &'static str,
    /// Its place: paper, figure and section.
    pub source: &'static str,
    /// Setup in the paper, as far as it is told, and the assumptions made here.
    pub setup: &'static str,
    /// The scale at which it runs unless the full one is asked for: 1 over this.
    pub reduced: u32,
    /// Runs it.
    run: fn(&Setting<'_>) -> Result<Reproduction, BenchError>,
    /// Test of the costs that its main statement depends on, if there is one.
    pub sensitivity: Option<&'static Sensitivity>,
}

/// Parameters of a figure's run.
pub struct Setting<'a> {
    /// By how much drive, files and memory are shrunk.
    pub scale: Ratio,
    /// Seeds everything.
    pub seed: u64,
    /// Runs at the same time.
    pub threads: usize,
    /// Ends all runs early when set.
    pub stop: &'a AtomicBool,
    /// Clock for figures that are measured on the host's own CPU; without it they are left out.
    pub clock: Option<&'a (dyn Fn() -> Duration + Sync)>,
    /// Experiments on the figure's stacks; none for the figure itself.
    pub changes: &'a Changes,
    /// Finished runs are kept here, and those that are here are not done again.
    pub finished: Option<&'a FinishedRuns>,
}

/// One statement of the paper beside ours, or a figure of ours that is only shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Subject of the comparison.
    pub what: String,
    /// Result of the paper.
    pub paper: String,
    /// Our result.
    pub ours: String,
    /// Rule that our result has to meet; empty for a row that is only shown.
    pub rule: String,
    /// Is true if our result meets the rule. Means nothing without a rule.
    pub agrees: bool,
}

/// Judgement of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Our result meets the rule.
    Agrees,
    /// Our result misses the rule.
    Differs,
    /// There is no rule: nobody has claimed anything of it.
    Shown,
}

impl Comparison {
    /// Judges it.
    pub fn verdict(&self) -> Verdict {
        match (self.rule.is_empty(), self.agrees) {
            (true, _) => Verdict::Shown,
            (false, true) => Verdict::Agrees,
            (false, false) => Verdict::Differs,
        }
    }

    /// The same row without its rule: shown beside one that is judged.
    fn unjudged(self) -> Self {
        Self { rule: String::new(), agrees: false, ..self }
    }

    /// The same row with its rule in words: where "direction" hides a number.
    fn by(self, rule: &str) -> Self {
        Self { rule: rule.into(), ..self }
    }

    /// A figure of ours beside a statement's: no rule, no judgement.
    fn shown(what: impl Into<String>, ours: String) -> Self {
        let (paper, rule) = (String::new(), String::new());
        Self { what: what.into(), paper, ours, rule, agrees: false }
    }
}

/// In place of `agrees` there is the verdict.
impl Serialize for Comparison {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("Comparison", 5)?;
        fields.serialize_field("what", &self.what)?;
        fields.serialize_field("paper", &self.paper)?;
        fields.serialize_field("ours", &self.ours)?;
        fields.serialize_field("rule", &self.rule)?;
        fields.serialize_field("verdict", &self.verdict())?;
        fields.end()
    }
}

/// A row without a rule is shown, whatever its verdict says.
impl<'de> Deserialize<'de> for Comparison {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            what: String,
            paper: String,
            ours: String,
            rule: String,
            verdict: Verdict,
        }
        let Written { what, paper, ours, rule, verdict } = Written::deserialize(deserializer)?;
        Ok(Self { what, paper, ours, rule, agrees: verdict == Verdict::Agrees })
    }
}

/// A figure, run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// The statements.
    pub comparisons: Vec<Comparison>,
    /// The runs behind them.
    pub results: Results,
}

impl Figure {
    /// The figure of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FIGURES.into_iter().find(|figure| figure.name == name)
    }

    /// Runs the figure.
    ///
    /// # Errors
    /// The first of its runs that failed.
    pub fn run(&self, setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
        (self.run)(setting)
    }
}

/// Runs of a figure.
struct Plan<'a> {
    source: &'a Source,
    fill: Option<Fill>,
    stacks: Vec<Stack>,
    final_sync: bool,
    restart: bool,
}

impl Setting<'_> {
    /// The results of a figure that runs no workload.
    fn no_runs(&self, name: &str) -> Results {
        Results::of(name.into(), self.scale.value(), self.seed, Vec::new())
    }

    /// An error once the figure is to end: what it would show of a part of its runs is not what the
    /// paper shows.
    fn go_on(&self) -> Result<(), BenchError> {
        if self.stop.load(Ordering::Relaxed) { Err(BenchError::Stopped) } else { Ok(()) }
    }

    /// Does `work` for each part of a figure that needs no other one, on as many threads as there
    /// may be runs at the same time. Results come in the order of the parts.
    fn each<P: Sync, R: Send>(
        &self,
        parts: &[P],
        work: impl Fn(&P) -> Result<R, BenchError> + Sync,
    ) -> Result<Vec<R>, BenchError> {
        let part = |_, part: &P| {
            self.go_on()?;
            work(part)
        };
        run_all(parts, self.threads, part).into_iter().collect()
    }

    /// The same for parts that take long: their results are kept. `what` tells the work from all
    /// others, with all that decides its results beside the part, the scale and the seed.
    fn each_kept<P: Sync + Debug, R: Send + Serialize + DeserializeOwned>(
        &self,
        what: &str,
        parts: &[P],
        work: impl Fn(&P) -> Result<R, BenchError> + Sync,
    ) -> Result<Vec<R>, BenchError> {
        self.each(parts, |part| {
            let Some(finished) = self.finished else { return work(part) };
            let key = format!("{what}: {:?}", (part, self.scale, self.seed));
            finished.get_or(&key, || work(part))
        })
    }

    /// A stack with the changes that the run is asked to make.
    fn changed(&self, stack: &Stack) -> Result<Stack, BenchError> {
        Ok(self.changes.applied(std::slice::from_ref(stack))?.remove(0))
    }

    /// Runs a plan; failed runs hold why, those that did not begin are named apart.
    fn attempt(
        &self,
        plan: &Plan<'_>,
        repetitions: u32,
    ) -> Result<(Results, Vec<BenchError>), BenchError> {
        let stacks = self.changes.applied(&plan.stacks)?;
        let experiment = Experiment {
            source: plan.source,
            fill: plan.fill,
            stacks: &stacks,
            scale: self.scale,
            seed: self.seed,
            repetitions,
            stop: self.stop,
            precondition: false,
            drives: &Prepared::none(),
            final_sync: plan.final_sync,
            restart: plan.restart,
            progress: &|_, _| {},
            finished: self.finished,
        };
        let done = experiment.run(self.threads, &|_| {});
        self.go_on().map(|()| done)
    }

    /// Runs a plan; any failure of a run is one of the whole.
    fn perform(&self, plan: &Plan<'_>) -> Result<Results, BenchError> {
        self.perform_times(plan, 1)
    }

    /// The same, but a run that ends for want of space is a result: it holds why.
    fn perform_until_full(&self, plan: &Plan<'_>) -> Result<Results, BenchError> {
        let no_space = dovetail_vfs::Error::NoSpace.to_string();
        let (results, failures) = self.attempt(plan, 1)?;
        if let Some(failure) =
            failures.into_iter().find(|error| !error.to_string().contains(&no_space))
        {
            return Err(failure);
        }
        let mut errors = results.runs.iter().filter_map(|run| run.error.as_ref());
        match errors.find(|error| !error.contains(&no_space)) {
            Some(error) => Err(BenchError::Workload(error.clone())),
            None => Ok(results),
        }
    }

    /// The same as [`Self::perform`] with several runs of each stack, each with a seed of its own.
    fn perform_times(&self, plan: &Plan<'_>, repetitions: u32) -> Result<Results, BenchError> {
        let (results, failures) = self.attempt(plan, repetitions)?;
        if let Some(error) = failures.into_iter().next() {
            return Err(error);
        }
        let failure = |run: &RunResult| Some(format!("{}: {}", run.label, run.error.as_ref()?));
        let broken = results.runs.iter().find_map(failure);
        broken.map_or(Ok(results), |error| Err(BenchError::Workload(error)))
    }
}

/// The run of a stack.
fn of<'r>(results: &'r Results, stack: &str) -> Result<&'r RunResult, BenchError> {
    let found = results.runs.iter().find(|run| run.stack.name == stack);
    found.ok_or_else(|| BenchError::UnknownStack(stack.into()))
}

/// Built-in stacks, each with the drive that the paper had.
fn stacks(names: &[&str], drive: &str) -> Result<Vec<Stack>, BenchError> {
    let on = |name: &&str| Ok(Stack { drive: drive.into(), ..Stack::load(name)? });
    names.iter().map(on).collect()
}

/// The same, with F2FS as it cleaned before Linux 6.4: RM-IPU's authors had 4.19, those of IPLFS
/// 5.11.
fn stacks_before_6_4(names: &[&str], drive: &str) -> Result<Vec<Stack>, BenchError> {
    let before = |stack: Stack| match stack.filesystem.as_str() {
        "f2fs" => stack.with_mount("nogc_after_checkpoint"),
        _ => Ok(stack),
    };
    stacks(names, drive)?.into_iter().map(before).collect()
}

/// A comparison in which ours should lie within a factor of the paper's figure.
fn within(what: impl Into<String>, unit: &str, paper: f64, ours: f64, factor: f64) -> Comparison {
    Comparison {
        what: what.into(),
        paper: format!("{} {unit}", rounded(paper)),
        ours: format!("{} {unit}", rounded(ours)),
        rule: format!("within {:.0} %", (factor - 1.0) * 100.0),
        agrees: (ours / paper - 1.0).abs() <= factor - 1.0,
    }
}

/// A figure of the paper's beside ours, which may be as much smaller as it may be larger: for what
/// is a ratio itself.
fn within_a_factor(
    what: impl Into<String>,
    unit: &str,
    paper: f64,
    ours: f64,
    factor: f64,
) -> Comparison {
    Comparison {
        what: what.into(),
        paper: format!("{} {unit}", rounded(paper)),
        ours: format!("{} {unit}", rounded(ours)),
        rule: format!("within a factor of {factor}"),
        agrees: (paper / factor..=paper * factor).contains(&ours),
    }
}

/// Three digits that count.
fn rounded(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A comparison in which ours should lie between two figures of the paper, or beyond them by at most
/// `tolerance`: half of the last digit that the paper gives.
fn between(
    what: impl Into<String>,
    unit: &str,
    (least, most): (f64, f64),
    tolerance: f64,
    ours: f64,
) -> Comparison {
    let (low, high) = (least - tolerance, most + tolerance);
    Comparison {
        what: what.into(),
        paper: format!("{} to {} {unit}", rounded(least), rounded(most)),
        ours: format!("{} {unit}", rounded(ours)),
        rule: format!("{} to {} {unit}", rounded(low), rounded(high)),
        agrees: (low..=high).contains(&ours),
    }
}

/// A comparison in which ours should be on the same side.
fn direction(
    what: impl Into<String>,
    paper: impl Into<String>,
    ours: String,
    agrees: bool,
) -> Comparison {
    Comparison { what: what.into(), paper: paper.into(), ours, rule: "direction".into(), agrees }
}

/// Work of a test at a scale.
#[cfg(test)]
pub(crate) fn with_setting<R>(scale: &str, work: impl FnOnce(&Setting<'_>) -> R) -> R {
    work(&Setting {
        scale: scale.parse().unwrap_or(Ratio::ONE),
        seed: 1,
        threads: 1,
        stop: &AtomicBool::new(false),
        clock: None,
        changes: &Changes::default(),
        finished: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_figure_says_where_it_stands() {
        for (index, figure) in FIGURES.iter().enumerate() {
            assert!(FIGURES[..index].iter().all(|other| other.name != figure.name));
            assert!(!figure.source.is_empty() && !figure.setup.is_empty() && figure.reduced >= 1);
        }
    }

    #[test]
    fn agreement_is_what_the_rule_says() {
        assert!(
            within("x", "MiB", 2.0, 2.19, 1.1).agrees && within("x", "MiB", 2.0, 1.81, 1.1).agrees
        );
        assert!(
            !within("x", "MiB", 2.0, 2.21, 1.1).agrees
                && !within("x", "MiB", 2.0, 1.79, 1.1).agrees
        );
    }

    #[test]
    fn a_row_without_a_rule_is_shown_and_judged_by_nobody() {
        assert_eq!(Comparison::shown("x", "1 s".into()).verdict(), Verdict::Shown);
        let of = |ours| between("x", "s", (2.0, 5.0), 0.5, ours).verdict();
        assert_eq!([5.4, 1.4].map(of), [Verdict::Agrees, Verdict::Differs]);
    }

    #[test]
    fn what_hangs_on_arithmetic_and_on_the_map_agrees() {
        let stop = AtomicBool::new(false);
        let setting = Setting {
            scale: "1/8".parse().unwrap(),
            seed: 1,
            threads: 1,
            stop: &stop,
            clock: None,
            changes: &Changes::default(),
            finished: None,
        };
        for figure in [&iplfs_tables_1_2::FIGURE, &iplfs_map_size::FIGURE] {
            let comparisons = figure.run(&setting).unwrap().comparisons;
            assert!(
                comparisons.len() >= 2
                    && comparisons.iter().all(|it| it.verdict() != Verdict::Differs),
                "{comparisons:#?}"
            );
        }
        assert_eq!(
            iplfs_figure_16a::FIGURE.run(&setting).unwrap().comparisons.len(),
            3,
            "there is no clock"
        );
    }

    #[test]
    fn figures_with_rm_ipu_run_at_a_small_scale() {
        let stop = AtomicBool::new(false);
        let setting = Setting {
            scale: "1/128".parse().unwrap(),
            seed: 1,
            threads: 1,
            stop: &stop,
            clock: None,
            changes: &Changes::default(),
            finished: None,
        };
        // figure 4 has one scale, that of its recordings, and takes a minute
        let reproduction = rmipu_figure_3::FIGURE.run(&setting).unwrap();
        let stacks: Vec<&str> =
            reproduction.results.runs.iter().map(|run| run.label.as_str()).collect();
        assert_eq!(stacks, ["f2fs", "f2fs-lfs", "ext4", "rm-ipu"]);
        let numbers = reproduction.comparisons.iter().all(|it| !it.ours.contains("NaN"));
        assert!(numbers && reproduction.comparisons.len() >= 7, "{:?}", reproduction.comparisons);
    }
}
