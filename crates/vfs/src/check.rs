//! What the checks of all formats hand back.

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is wrong; worth knowing.
    Note,
    /// Against the format, without harm to what is stored.
    Warning,
    /// The volume contradicts itself: data may be lost now or by the next write.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A name as it is stored: bytes, shown as [`crate::shown`] does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(pub Vec<u8>);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::shown(&self.0))
    }
}

/// A finding of one format's check: an enum with a variant for each kind.
pub trait Kinds: Sized + 'static {
    /// A kind without its values.
    type Kind: Copy;

    /// All kinds, in the order of the documentation.
    const KINDS: &'static [Self::Kind];

    /// The place of this one's kind in [`Self::KINDS`].
    fn index(&self) -> usize;

    /// How bad a kind is.
    fn severity_of(kind: Self::Kind) -> Severity;
}

/// What a check found: findings `F`, and what was counted on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<F, C> {
    /// The findings in the order of the check; of each kind only the first ones, as many as the check was told to keep.
    pub findings: Vec<F>,
    /// Sums over the volume.
    pub counts: C,
    seen: Vec<u64>,
}

impl<F, C: Default> Default for Report<F, C> {
    fn default() -> Self {
        Self { findings: Vec::new(), counts: C::default(), seen: Vec::new() }
    }
}

impl<F: Kinds, C> Report<F, C> {
    /// How many findings of a severity there were, kept or not.
    pub fn count(&self, severity: Severity) -> u64 {
        self.kinds().filter(|&(kind, _)| F::severity_of(kind) == severity).map(|(_, seen)| seen).sum()
    }

    /// No errors; there may be warnings and notes.
    pub fn is_clean(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// How many findings there were of each kind that occurred, in the order of [`Kinds::KINDS`].
    pub fn kinds(&self) -> impl Iterator<Item = (F::Kind, u64)> {
        F::KINDS.iter().copied().zip(self.seen.iter().copied()).filter(|&(_, seen)| seen > 0)
    }

    /// Counts a finding, and keeps it if there are fewer than `kept` of its kind.
    pub fn push(&mut self, finding: F, kept: usize) {
        let index = finding.index();
        self.seen.resize(F::KINDS.len(), 0);
        self.seen[index] += 1;
        if self.seen[index] <= kept as u64 {
            self.findings.push(finding);
        }
    }
}
