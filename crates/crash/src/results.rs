//! The results of an exploration.

use dovetail_testkit::crash::Survey;
use dovetail_time::SimSpan;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::Violation;
use crate::judge::Finding;

/// The results' name, for who reads them.
pub const SCHEMA: &str = "dovetail-crash";
/// Their version: it rises when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// An exploration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrashResults {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`].
    pub version: u32,
    /// The workload.
    pub workload: String,
    /// Bytes of the drives.
    pub drive_bytes: u64,
    /// Bytes of each stack's page cache, if they were chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Seed of all that is random.
    pub seed: u64,
    /// One entry for each stack.
    pub stacks: Vec<StackResult>,
}

/// The results of one stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StackResult {
    /// The stack.
    pub stack: String,
    /// Runs that were played.
    pub runs: u64,
    /// Operations that they made.
    pub operations: u64,
    /// Operations that promised something: fsync, fdatasync, sync.
    pub promises: u64,
    /// Moments between which a cut leaves something else.
    pub moments: u64,
    /// Cuts that were recovered and judged.
    pub cuts: u64,
    /// Cuts within recoveries.
    pub cuts_in_recovery: u64,
    /// A state that no promise allows.
    pub violations: Vec<Violation>,
    /// Files with changes that were not durable, found as they were when they were last made
    /// durable.
    pub old: u64,
    /// Such files, found with all changes.
    pub new: u64,
    /// Such files, found with a part of the changes.
    pub mixed: u64,
    /// Such files, not found under their newest name.
    pub absent: u64,
    /// Acknowledged operations after the one whose names were found, of each cut.
    pub lost_operations: Distribution,
    /// Virtual milliseconds of work that were lost, of each cut.
    pub lost_ms: Distribution,
    /// Virtual milliseconds that the drive takes to recover.
    pub drive_ms: Distribution,
    /// Virtual milliseconds from then until the volume is mounted.
    pub mount_ms: Distribution,
    /// Blocks of 4 KiB that a mount reads.
    pub blocks_read: Distribution,
}

/// A distribution over cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Sums over cuts, to be merged in any order.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    pub(crate) runs: u64,
    pub(crate) operations: u64,
    pub(crate) promises: u64,
    pub(crate) moments: u64,
    cuts: u64,
    in_recovery: u64,
    survey: Survey,
    lost_operations: Histogram<u64>,
    lost: Histogram<u64>,
    drive: Histogram<u64>,
    mount: Histogram<u64>,
    blocks_read: Histogram<u64>,
}

fn histogram() -> Histogram<u64> {
    // three digits from 1 ns to 18 minutes are always a possible range
    Histogram::new_with_max(1 << 40, 3).unwrap_or_else(|_| unreachable!("the range is a constant"))
}

impl Default for Totals {
    fn default() -> Self {
        let counts = || histogram();
        Self {
            runs: 0,
            operations: 0,
            promises: 0,
            moments: 0,
            cuts: 0,
            in_recovery: 0,
            survey: Survey::default(),
            lost_operations: counts(),
            lost: counts(),
            drive: counts(),
            mount: counts(),
            blocks_read: counts(),
        }
    }
}

impl Totals {
    pub(crate) fn add(&mut self, finding: &Finding) {
        self.cuts += 1;
        self.in_recovery += finding.in_recovery;
        self.survey += finding.survey;
        let ns = |span: SimSpan| span.as_ns();
        self.lost_operations.saturating_record(finding.lost_operations);
        self.lost.saturating_record(ns(finding.lost));
        self.drive.saturating_record(ns(finding.drive_ready));
        self.mount.saturating_record(ns(finding.mount));
        self.blocks_read.saturating_record(finding.blocks_read);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.operations += other.operations;
        self.promises += other.promises;
        self.moments += other.moments;
        self.cuts += other.cuts;
        self.in_recovery += other.in_recovery;
        self.survey += other.survey;
        let pairs = [
            (&mut self.lost_operations, &other.lost_operations),
            (&mut self.lost, &other.lost),
            (&mut self.drive, &other.drive),
            (&mut self.mount, &other.mount),
            (&mut self.blocks_read, &other.blocks_read),
        ];
        for (into, from) in pairs {
            // both have the same range
            into.add(from).unwrap_or_else(|_| unreachable!("the ranges are the same"));
        }
    }

    pub(crate) fn result(&self, stack: &str, violations: Vec<Violation>) -> StackResult {
        const MS: f64 = 1e6;
        StackResult {
            stack: stack.into(),
            runs: self.runs,
            operations: self.operations,
            promises: self.promises,
            moments: self.moments,
            cuts: self.cuts,
            cuts_in_recovery: self.in_recovery,
            violations,
            old: self.survey.old,
            new: self.survey.new,
            mixed: self.survey.mixed,
            absent: self.survey.absent,
            lost_operations: distribution(&self.lost_operations, 1.0),
            lost_ms: distribution(&self.lost, MS),
            drive_ms: distribution(&self.drive, MS),
            mount_ms: distribution(&self.mount, MS),
            blocks_read: distribution(&self.blocks_read, 1.0),
        }
    }
}

fn distribution(from: &Histogram<u64>, unit: f64) -> Distribution {
    if from.is_empty() {
        return Distribution::default();
    }
    Distribution {
        mean: from.mean() / unit,
        p50: from.value_at_quantile(0.5) as f64 / unit,
        p99: from.value_at_quantile(0.99) as f64 / unit,
        max: from.max() as f64 / unit,
    }
}
