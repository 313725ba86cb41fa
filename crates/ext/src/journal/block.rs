//! Revoke and commit blocks, and the checksum at the end of descriptors and revokes.

use dovetail_vfs::Timestamp;

use super::header::{BlockType, Header};
use super::superblock::JournalFeatures;
use super::{Tid, be32, crc32c, put_be32};

/// Puts the checksum of a descriptor or revoke block into its last four bytes.
pub(super) fn seal_tail(block: &mut [u8], seed: u32) {
    let end = block.len() - 4;
    block[end..].fill(0);
    let sum = crc32c(seed, block);
    put_be32(block, end, sum);
}

/// The checksum in the last four bytes is right.
pub(super) fn tail_is_right(block: &[u8], seed: u32) -> bool {
    let end = block.len() - 4;
    let computed = crc32c(crc32c(seed, &block[..end]), &[0; 4]);
    be32(block, end) == computed
}

/// A block that names blocks which must not be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokeBlock {
    /// Numbers of blocks of the volume.
    pub blocks: Vec<u64>,
}

impl RevokeBlock {
    const COUNT: usize = Header::SIZE;
    const ENTRIES: usize = Header::SIZE + 4;

    const fn entry_size(features: JournalFeatures) -> usize {
        if features.has(JournalFeatures::WIDE) { 8 } else { 4 }
    }

    /// Number of entries that a block holds.
    pub(super) const fn per_block(features: JournalFeatures, block_size: usize) -> usize {
        let tail = if features.has_checksums() { 4 } else { 0 };
        (block_size - Self::ENTRIES - tail) / Self::entry_size(features)
    }

    /// The entries of a revoke block, as many as it says and has room for.
    pub fn parse(block: &[u8], features: JournalFeatures) -> Self {
        let tail = if features.has_checksums() { 4 } else { 0 };
        let end = (be32(block, Self::COUNT) as usize).clamp(Self::ENTRIES, block.len() - tail);
        let wide = features.has(JournalFeatures::WIDE);
        let number = |entry: &[u8]| {
            let first = u64::from(be32(entry, 0));
            if wide { (first << 32) | u64::from(be32(entry, 4)) } else { first }
        };
        let entries = block[Self::ENTRIES..end].chunks_exact(Self::entry_size(features));
        Self { blocks: entries.map(number).collect() }
    }

    /// Writes the block of transaction `sequence`.
    pub fn write(&self, block: &mut [u8], sequence: Tid, features: JournalFeatures, seed: u32) {
        Header { kind: BlockType::REVOKE, sequence }.write(block);
        let size = Self::entry_size(features);
        put_be32(block, Self::COUNT, (Self::ENTRIES + size * self.blocks.len()) as u32);
        for (entry, number) in block[Self::ENTRIES..].chunks_exact_mut(size).zip(&self.blocks) {
            entry.copy_from_slice(&number.to_be_bytes()[8 - size..]);
        }
        if features.has_checksums() {
            seal_tail(block, seed);
        }
    }
}

/// The block that ends a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitBlock {
    /// The transaction.
    pub sequence: Tid,
    /// Time of the commit.
    pub at: Timestamp,
}

impl CommitBlock {
    const CHECKSUM: usize = 0x10;
    const SECONDS: usize = 0x30;
    const NANOSECONDS: usize = 0x38;

    /// Writes the block; with checksums, it ends up with that of itself.
    pub fn write(&self, block: &mut [u8], features: JournalFeatures, seed: u32) {
        Header { kind: BlockType::COMMIT, sequence: self.sequence }.write(block);
        block[Self::SECONDS..Self::SECONDS + 8].copy_from_slice(&self.at.seconds.to_be_bytes());
        put_be32(block, Self::NANOSECONDS, self.at.nanoseconds);
        if features.has_checksums() {
            let sum = Self::checksum(block, seed);
            put_be32(block, Self::CHECKSUM, sum);
        }
    }

    fn checksum(block: &[u8], seed: u32) -> u32 {
        let head = crc32c(seed, &block[..Self::CHECKSUM]);
        crc32c(crc32c(head, &[0; 4]), &block[Self::CHECKSUM + 4..])
    }

    /// Seconds of its time, as they are stored.
    pub(super) fn seconds(block: &[u8]) -> u64 {
        let seconds = block[Self::SECONDS..].first_chunk().copied();
        u64::from_be_bytes(seconds.unwrap_or_default())
    }

    /// The checksum of a commit block is right.
    pub(super) fn is_right(block: &[u8], features: JournalFeatures, seed: u32) -> bool {
        !features.has_checksums() || be32(block, Self::CHECKSUM) == Self::checksum(block, seed)
    }
}
