//! Orphan blocks: the inodes that are unlinked and still open, listed in a checkpoint.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute, transmute_ref};

use super::Nid;
use super::layout::prove_layout;

/// Inodes that one block lists.
pub const ORPHANS_IN_BLOCK: usize = 1020;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawOrphanBlock {
    ino: [U32; ORPHANS_IN_BLOCK],
    reserved: U32,
    blk_addr: U16,
    blk_count: U16,
    entry_count: U32,
    check_sum: U32,
}

prove_layout!(RawOrphanBlock, 4096, {
    4080 => reserved, 4084 => blk_addr, 4086 => blk_count, 4088 => entry_count, 4092 => check_sum,
});

/// The blocks that list `inos`; none for none. A checkpoint has room for (512 - 2 - 6 - payload) of
/// them.
pub fn orphan_blocks(inos: &[Nid]) -> Vec<BlockBytes> {
    let chunks = inos.chunks(ORPHANS_IN_BLOCK);
    let count = chunks.len() as u16;
    chunks.zip(1..).map(|(inos, number)| orphan_block(inos, number, count)).collect()
}

fn orphan_block(inos: &[Nid], number: u16, count: u16) -> BlockBytes {
    transmute!(RawOrphanBlock {
        ino: std::array::from_fn(|n| U32::new(inos.get(n).map_or(0, |ino| ino.0))),
        reserved: U32::ZERO,
        blk_addr: U16::new(number),
        blk_count: U16::new(count),
        entry_count: U32::new(inos.len() as u32),
        check_sum: U32::ZERO, // nobody fills or checks it
    })
}

/// Counts stored in an orphan block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanCounts {
    /// Its number among the blocks, from 1.
    pub number: u16,
    /// Number of blocks.
    pub blocks: u16,
    /// Number of inodes that it lists, 1020 at most.
    pub entries: u32,
}

/// Counts stored in `block`.
pub fn orphan_counts(block: &BlockBytes) -> OrphanCounts {
    let block: &RawOrphanBlock = transmute_ref!(block);
    OrphanCounts {
        number: block.blk_addr.get(),
        blocks: block.blk_count.get(),
        entries: block.entry_count.get(),
    }
}

/// The inodes that `block` lists. A count above the capacity is cut.
pub fn parse_orphans(block: &BlockBytes) -> Vec<Nid> {
    let block: &RawOrphanBlock = transmute_ref!(block);
    let inos = block.ino.iter().take(block.entry_count.get() as usize);
    inos.map(|ino| Nid(ino.get())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_several_blocks_are_read_back() {
        for count in [0, 1, 1020, 1021, 3000] {
            let inos: Vec<_> = (0..count).map(|n| Nid(n * 3 + 4)).collect();
            let blocks = orphan_blocks(&inos);
            assert_eq!(blocks.len(), count.div_ceil(1020) as usize);
            assert_eq!(blocks.iter().flat_map(parse_orphans).collect::<Vec<_>>(), inos);
        }
    }

    #[test]
    fn each_block_says_which_of_how_many_it_is() {
        let blocks = orphan_blocks(&[Nid(5); 1021]);
        assert_eq!(blocks[0][4084..], [1, 0, 2, 0, 0xFC, 3, 0, 0, 0, 0, 0, 0]);
        assert_eq!(orphan_counts(&blocks[1]), OrphanCounts { number: 2, blocks: 2, entries: 1 });
        assert_eq!(blocks[1][4084..], [2, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_count_beyond_the_block_is_cut() {
        assert_eq!(parse_orphans(&[0xFF; 4096]).len(), 1020);
    }
}
