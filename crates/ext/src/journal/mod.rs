//! The journal: its format, its replay after a crash, and the writing of transactions.
//!
//! The format is JBD2's, as the kernel's documentation has it ("ext4 Data Structures and
//! Algorithms: Journal"): all numbers are big-endian; a transaction is a row of revoke and
//! descriptor blocks, each descriptor followed by the blocks that it names, and ends with a commit
//! block. Where the journal's blocks lie is a [`JournalMap`], so that nothing here knows inodes.
//!
//! Left out: fast commits, asynchronous commits and the checksums of version 1 (which are optional
//! for the reader). Journals with the first two are refused by name.

mod block;
mod error;
mod header;
mod map;
mod read;
mod replay;
mod superblock;
mod tag;
mod tid;
mod transaction;
mod writer;

pub use block::{CommitBlock, RevokeBlock};
pub use error::JournalError;
pub use header::{BlockType, Header, MAGIC};
pub use map::{JournalExtent, JournalMap};
pub(crate) use replay::UseOfLog;
pub use replay::{Replay, Replayed, Source, Stop, recover, replay};
pub use superblock::{JournalFeatures, JournalSuperblock};
pub use tag::{Tag, TagFlags, TagFormat};
pub use tid::Tid;
pub use transaction::Transaction;
pub use writer::JournalEvents;
pub(crate) use writer::{CommitMode, Journal};

/// Blocks of a journal at most, the limit of mke2fs.
pub(crate) const MAX_BLOCKS: u64 = 10_240_000;

/// CRC-32C as the journal uses it: no inversion at the end.
pub(crate) fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, bytes)
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn put_be32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests;
