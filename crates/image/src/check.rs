//! Results of checks and repairs, for all formats.

use dovetail_vfs::check::{self, Kind, Severity};
use serde_json::{Map, Value};

/// A finding, whatever the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name of its kind.
    pub kind: &'static str,
    /// Severity of the finding.
    pub severity: Severity,
    /// The sentence.
    pub text: String,
    /// The values that disagree, by name.
    pub values: Vec<(&'static str, String)>,
    /// A repair needs no guess.
    pub is_repairable: bool,
}

/// Something that was counted on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its name in JSON.
    pub key: &'static str,
    /// Its name in a table; `None` if the table leaves it out.
    pub title: Option<&'static str>,
    /// The count.
    pub count: u64,
}

/// The outcome of a check.
#[derive(Clone, Debug)]
pub struct Check {
    /// The findings in the order of the check; of each kind only the first ones.
    pub findings: Vec<Found>,
    /// Sums over the volume and over the findings.
    pub counts: Vec<Counted>,
    /// Findings of each kind that occurred, where the table shows them.
    pub kinds: Vec<(&'static str, u64)>,
    /// Lines of the format's own below the table.
    pub lines: String,
    /// Fields of the format's own in JSON.
    pub fields: Map<String, Value>,
    /// No errors; there may be warnings and notes.
    pub is_clean: bool,
    /// A repair may have something to do.
    pub needs_repair: bool,
    /// Volumes of the format can be repaired.
    pub can_be_repaired: bool,
}

/// The outcome of a repair.
#[derive(Clone, Debug)]
pub enum Repair {
    /// Nothing was written, and why.
    Refused(String),
    /// The findings that were repaired.
    Done(Vec<Found>),
    /// The account of a salvage: notes tell what was saved, warnings what is lost.
    Salvaged(Vec<Found>),
}

/// The numbers of errors, warnings and notes of a report.
pub(crate) fn severities<F: check::Finding, C>(report: &check::Report<F, C>) -> [Counted; 3] {
    [("errors", Severity::Error), ("warnings", Severity::Warning), ("notes", Severity::Note)]
        .map(|(name, severity)| counted(name, report.count(severity)))
}

/// A count with one name everywhere.
pub(crate) const fn counted(name: &'static str, count: u64) -> Counted {
    Counted { key: name, title: Some(name), count }
}

/// The findings of one kind.
pub(crate) fn by_kind<F: check::Finding, C>(
    report: &check::Report<F, C>,
) -> Vec<(&'static str, u64)> {
    report.kinds().map(|(kind, count)| (kind.name, count)).collect()
}

/// A finding of a kind.
pub(crate) fn found<R>(
    kind: Kind<R>,
    text: String,
    values: Vec<(&'static str, String)>,
    is_repairable: bool,
) -> Found {
    Found { kind: kind.name, severity: kind.severity, text, values, is_repairable }
}
