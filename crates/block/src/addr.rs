//! Addresses: an index, ranges of blocks, of sectors and of bytes are types of their own.

use std::fmt;

/// Bytes in a block, the unit of every read and write.
pub const BLOCK_SIZE: u64 = 4096;

/// Bytes in a sector, the unit in which discards are addressed.
pub const SECTOR_SIZE: u64 = 512;

/// Sectors in a block.
pub const SECTORS_IN_BLOCK: u64 = BLOCK_SIZE / SECTOR_SIZE;

/// A logical block address: the index of a 4 KiB block on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A run of whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRange {
    /// The first block.
    pub start: Lba,
    /// Number of blocks.
    pub blocks: u64,
}

impl BlockRange {
    /// The `blocks` blocks from `start` on.
    pub const fn new(start: Lba, blocks: u64) -> Self {
        Self { start, blocks }
    }

    /// The first block after the range; saturates at 2^64 - 1.
    pub const fn end(self) -> Lba {
        Lba(self.start.0.saturating_add(self.blocks))
    }

    /// Every block of the range, in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Lba> {
        (self.start.0..self.end().0).map(Lba)
    }
}

impl fmt::Display for BlockRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blocks {}..{}", self.start, self.end())
    }
}

/// A run of sectors, as discards give it: with 64 bits it spans the largest address space, of which
/// bytes would not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SectorRange {
    /// The first sector.
    pub start: u64,
    /// Number of sectors.
    pub sectors: u64,
}

impl SectorRange {
    /// The `sectors` sectors from sector `start` on.
    pub const fn new(start: u64, sectors: u64) -> Self {
        Self { start, sectors }
    }

    /// The sectors that lie in `bytes` as a whole; possibly none.
    pub const fn inside(bytes: ByteRange) -> Self {
        let first = bytes.start.div_ceil(SECTOR_SIZE);
        Self::new(first, (bytes.end() / SECTOR_SIZE).saturating_sub(first))
    }

    /// The first sector after the range; saturates at 2^64 - 1.
    pub const fn end(self) -> u64 {
        self.start.saturating_add(self.sectors)
    }

    /// The blocks that the range touches, also in part.
    pub const fn blocks_touched(self) -> BlockRange {
        let first = self.start / SECTORS_IN_BLOCK;
        BlockRange::new(Lba(first), self.end().div_ceil(SECTORS_IN_BLOCK) - first)
    }

    /// The blocks that lie in the range as a whole; possibly none.
    pub const fn blocks_inside(self) -> BlockRange {
        let first = self.start.div_ceil(SECTORS_IN_BLOCK);
        BlockRange::new(Lba(first), (self.end() / SECTORS_IN_BLOCK).saturating_sub(first))
    }
}

impl From<BlockRange> for SectorRange {
    fn from(range: BlockRange) -> Self {
        let sectors = |blocks: u64| blocks.saturating_mul(SECTORS_IN_BLOCK);
        Self::new(sectors(range.start.0), sectors(range.blocks))
    }
}

/// A run of bytes at any alignment, as traces give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// Number of bytes.
    pub len: u64,
}

impl ByteRange {
    /// The `len` bytes from byte `start` on.
    pub const fn new(start: u64, len: u64) -> Self {
        Self { start, len }
    }

    /// The first byte after the range; saturates at 2^64 - 1.
    pub const fn end(self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// The blocks that the range touches, also in part.
    pub const fn blocks_touched(self) -> BlockRange {
        let first = self.start / BLOCK_SIZE;
        BlockRange::new(Lba(first), self.end().div_ceil(BLOCK_SIZE) - first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unaligned_bytes_touch_more_blocks_than_they_cover() {
        let range = ByteRange::new(512, 8192);
        assert_eq!(range.blocks_touched(), BlockRange::new(Lba(0), 3));
        let inside = |start, len| SectorRange::inside(ByteRange::new(start, len));
        assert_eq!(inside(512, 8192).blocks_inside(), BlockRange::new(Lba(1), 1));
        assert_eq!(inside(512, 512).blocks_inside().blocks, 0);
        assert_eq!(inside(100, 1024), SectorRange::new(1, 1));
        assert_eq!(ByteRange::new(4096, 0).blocks_touched().blocks, 0);
    }

    #[test]
    fn sectors_reach_the_end_of_the_largest_address_space() {
        let last = BlockRange::new(Lba((1 << 61) - 2), 1);
        let sectors = SectorRange::from(last);
        assert_eq!((sectors.blocks_inside(), sectors.blocks_touched()), (last, last));
        assert_eq!(SectorRange::new(9, 15).blocks_inside(), BlockRange::new(Lba(2), 1));
        assert_eq!(SectorRange::new(9, 15).blocks_touched(), BlockRange::new(Lba(1), 2));
        assert_eq!(SectorRange::new(u64::MAX - 3, 100).blocks_inside().blocks, 0);
    }
}
