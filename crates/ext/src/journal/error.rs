//! Errors of a journal.

use dovetail_block::DeviceError;

use super::Tid;
use super::superblock::JournalFeatures;

/// Reason why a journal cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The device failed.
    #[error("the device failed: {0}")]
    Io(#[from] DeviceError),
    /// Its superblock has no magic number, or is of an unknown kind.
    #[error("the journal has no superblock")]
    NoSuperblock,
    /// A field of the superblock outside the values that it may have.
    #[error("the journal's superblock: {field} is {found}, allowed is {min} to {max}")]
    Range {
        /// The field, by the kernel's name.
        field: &'static str,
        /// Value that it holds.
        found: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// A checksum of the superblock that does not fit.
    #[error(
        "the journal's superblock: the checksum is {found:#010x}, its bytes give {computed:#010x}"
    )]
    Checksum {
        /// The stored checksum.
        found: u32,
        /// The checksum that the bytes give.
        computed: u32,
    },
    /// Features that are not known.
    #[error("the journal uses features that are not supported: {0}")]
    Features(JournalFeatures),
    /// A replay that would write beyond the end of the volume.
    #[error("the journal holds a copy of block {block}, and the volume has {blocks}")]
    Target {
        /// The block that is named.
        block: u64,
        /// Blocks of the volume.
        blocks: u64,
    },
    /// A committed transaction with a wrong checksum: it and those behind it are lost.
    #[error(
        "transaction {tid} in the journal is damaged: the checksum of block {at} of the journal is wrong"
    )]
    Transaction {
        /// The transaction.
        tid: Tid,
        /// The block of the journal, from 0.
        at: u32,
    },
    /// A transaction that no empty log could hold.
    #[error("a transaction takes {needed} blocks of the log, which has {capacity}")]
    TooLarge {
        /// Blocks that it takes.
        needed: u32,
        /// Blocks that the log has.
        capacity: u32,
    },
    /// A block number beyond 2^32 in a journal without the feature for it.
    #[error("block {0} has no number that this journal could hold: it lacks the feature 64bit")]
    Narrow(u64),
}

impl JournalError {
    pub(super) fn check_range(
        field: &'static str,
        found: u32,
        (min, max): (u32, u32),
    ) -> Result<(), Self> {
        if (min..=max).contains(&found) {
            return Ok(());
        }
        Err(Self::Range { field, found: found.into(), min: min.into(), max: max.into() })
    }
}
