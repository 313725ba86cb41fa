//! Header of every block of the journal but the logged ones.

use super::{Tid, be32, put_be32};

/// The first four bytes of a journal block.
pub const MAGIC: u32 = 0xC03B_3998;

/// Type of a journal block; a number may be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockType(pub u32);

impl BlockType {
    /// Names the blocks that follow it.
    pub const DESCRIPTOR: Self = Self(1);
    /// Ends a transaction.
    pub const COMMIT: Self = Self(2);
    /// The superblock without features.
    pub const SUPERBLOCK_V1: Self = Self(3);
    /// The superblock with features.
    pub const SUPERBLOCK_V2: Self = Self(4);
    /// Names blocks that must not be replayed from this transaction and earlier ones.
    pub const REVOKE: Self = Self(5);
}

/// The first twelve bytes of a journal block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the block.
    pub kind: BlockType,
    /// The transaction that it belongs to.
    pub sequence: Tid,
}

impl Header {
    /// Its size in bytes.
    pub const SIZE: usize = 12;

    /// The header of a block, if it has the magic number.
    pub fn parse(block: &[u8]) -> Option<Self> {
        if block.len() < Self::SIZE || be32(block, 0) != MAGIC {
            return None;
        }
        Some(Self { kind: BlockType(be32(block, 4)), sequence: Tid(be32(block, 8)) })
    }

    /// Writes the header to the start of a block.
    pub fn write(self, block: &mut [u8]) {
        put_be32(block, 0, MAGIC);
        put_be32(block, 4, self.kind.0);
        put_be32(block, 8, self.sequence.0);
    }
}
