//! What a check hands back.

use super::finding::{Finding, Severity};

/// Sums over the volume, as they were counted (not as they are stored).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inodes in use; the reserved ones without content are not counted.
    pub inodes: u64,
    /// Directories.
    pub directories: u64,
    /// Names, "." and ".." not counted.
    pub names: u64,
    /// Blocks in use, the format's own among them.
    pub blocks: u64,
    /// Inodes without a name that are still to be freed.
    pub orphans: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The findings in the order of the check; of each kind at most [`super::Options::kept_per_kind`].
    pub findings: Vec<Finding>,
    /// What was counted on the way.
    pub counts: Counts,
    seen: Vec<u64>,
}

impl Report {
    /// How many findings of a severity there were, kept or not.
    pub fn count(&self, severity: Severity) -> u64 {
        let kinds = Finding::KINDS.iter().zip(&self.seen);
        kinds.filter(|(kind, _)| kind.severity == severity).map(|(_, seen)| seen).sum()
    }

    /// No errors; there may be warnings and notes.
    pub fn is_clean(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// How many findings there were of each kind that occurred, in the order of [`Finding::KINDS`].
    pub fn kinds(&self) -> impl Iterator<Item = (super::Kind, u64)> {
        let kinds = Finding::KINDS.iter().copied().zip(self.seen.iter().copied());
        kinds.filter(|&(_, seen)| seen > 0)
    }

    pub(super) fn push(&mut self, finding: Finding, kept: usize) {
        let index = finding.index();
        if self.seen.is_empty() {
            self.seen = vec![0; Finding::KINDS.len()];
        }
        self.seen[index] += 1;
        if self.seen[index] <= kept as u64 {
            self.findings.push(finding);
        }
    }
}
