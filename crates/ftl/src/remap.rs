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
    /// In a segmented log in byte-addressable non-volatile memory, as long as remaps and not as the
    /// flash; the newest records of discards are there, too.
    SegmentedLog {
        /// Writing one entry.
        access: SimSpan,
        /// As with [`RemapStore::NonVolatile`].
        discard_records: u32,
        /// Segments. Raised to what the longest remap may need.
        segments: u32,
        /// Bytes of a segment: 8 for its head, and its entries.
        segment_bytes: u32,
    },
    /// In a log on flash: a remap is complete when its log pages are programmed.
    Log,
}

impl RemapStore {
    /// Bytes of a segment of a log in non-volatile memory; `None` of other stores.
    pub(crate) const fn segment_bytes(&self) -> Option<u64> {
        match self {
            Self::SegmentedLog { segment_bytes, .. } => Some(*segment_bytes as u64),
            Self::NonVolatile { .. } | Self::Log => None,
        }
    }

    /// Records of discards that non-volatile memory has room for; `None` without such memory.
    pub const fn discard_records(&self) -> Option<u32> {
        match self {
            Self::NonVolatile { discard_records, .. }
            | Self::SegmentedLog { discard_records, .. } => Some(*discard_records),
            Self::Log => None,
        }
    }

    /// Changes the room for records of discards, where there is any.
    pub const fn set_discard_records(&mut self, records: u32) {
        match self {
            Self::NonVolatile { discard_records, .. }
            | Self::SegmentedLog { discard_records, .. } => *discard_records = records,
            Self::Log => {}
        }
    }
}

impl RemapConfig {
    /// Pairs that one remap may have at most: what a command brings, and what was held before it.
    pub(crate) fn most_pairs(&self) -> u64 {
        u64::from(self.limits.pairs_per_command) + u64::from(self.limits.held_pairs)
    }
}
