//! Figures that a file system counts about itself. The file system owns their names: keys of
//! results, titles of tables and reports, and the rows of documents follow from here.

/// A figure of a file system.
#[derive(Debug, PartialEq, Eq)]
pub struct Figure {
    /// The name in results, in snake case.
    pub key: &'static str,
    /// The name in tables, in lower case but for abbreviations.
    pub title: &'static str,
    /// The unit, in the plural.
    pub unit: &'static str,
    /// The sentence of the documents.
    pub about: &'static str,
}

/// All figures of a file system, in the order in which tables show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Blocks written to the device, by cause.
    pub written: &'static [Figure],
    /// Events, by kind.
    pub events: &'static [Figure],
}

/// A figure with its count since the mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The counted figure.
    pub figure: &'static Figure,
    /// The count, in the figure's unit.
    pub count: u64,
}

impl Count {
    /// The counts of `figures`, one for each in their order.
    pub fn all<const N: usize>(figures: &'static [Figure; N], counts: [u64; N]) -> Vec<Self> {
        figures.iter().zip(counts).map(|(figure, count)| Self { figure, count }).collect()
    }
}
