//! Remap configuration: what a drive takes, and where it keeps what the out-of-band areas do not
//! say.

use dovetail_block::RemapLimits;
use dovetail_time::SimSpan;

/// The remap command of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapConfig {
    /// Pairs that it takes.
    pub limits: RemapLimits,
    /// Place where the reverse map survives a power cut.
    pub store: RemapStore,
}

/// The place where the reverse map of remapped pages survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapStore {
    /// In byte-addressable non-volatile memory, together with the newest records of discards.
    NonVolatile {
        /// Writing one entry.
        access: SimSpan,
        /// Records of discards that it has room for, at least 1: when there are as many, they go to
        /// flash.
        discard_records: u32,
    },
    /// In a log on flash: a remap is complete when its log pages are programmed.
    Log,
}

impl RemapConfig {
    /// Pairs that one remap may have at most: what a command brings, and what was held before it.
    pub(crate) fn most_pairs(&self) -> u64 {
        u64::from(self.limits.pairs_per_command) + u64::from(self.limits.held_pairs)
    }
}
