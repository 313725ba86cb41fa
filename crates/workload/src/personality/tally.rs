//! Counts of what was done, as Filebench's per-operation breakdown has them.

use super::model::{Action, Measure};

/// Tally of a flowop, over all instances of its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowopTally {
    /// The process.
    pub process: String,
    /// The flowop.
    pub name: String,
    /// Times that it ended.
    pub count: u64,
    /// Bytes that it read or wrote.
    pub bytes: u64,
}

/// A count of operations and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) operations: u64,
    pub(super) transfers: u64,
    pub(super) bytes: u64,
}

impl Tally {
    pub(super) fn add(&mut self, action: &Action, bytes: u64) {
        self.operations += 1;
        self.transfers += u64::from(action.transfers());
        self.bytes += bytes;
    }

    pub(super) fn measure(&self, what: Measure) -> u64 {
        match what {
            Measure::Operations => self.operations,
            Measure::Transfers => self.transfers,
            Measure::Bytes => self.bytes,
        }
    }
}
