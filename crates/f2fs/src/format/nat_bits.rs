//! NAT bits: which blocks of the NAT are full and which are empty, at the end of a checkpoint
//! pack's segment.
//!
//! They spare the kernel reading the NAT when it is mounted, and are valid only for the checkpoint
//! whose version and checksum they begin with. The maps are least significant bit first.

use dovetail_block::BlockBytes;

use super::{BLOCK, BLOCKS_IN_SEGMENT, Superblock};

/// Version and checksum of the checkpoint.
const HEADER: usize = 8;

/// Blocks that the NAT bits of a volume take: the last ones of a pack's segment, if the pack leaves
/// them free.
pub fn nat_bits_blocks(superblock: &Superblock) -> u32 {
    ((HEADER + 2 * map_bytes(superblock)).div_ceil(BLOCK)) as u32
}

/// A bit for each block of the NAT.
fn map_bytes(superblock: &Superblock) -> usize {
    (superblock.segment_count_nat / 2 * (BLOCKS_IN_SEGMENT / 8)) as usize
}

/// The NAT bits of the checkpoint of this version and checksum, on a volume whose nodes all stand
/// in the first block of the NAT: no block is full, and all but the first are empty.
pub fn new_nat_bits(superblock: &Superblock, version: u64, checksum: u32) -> Vec<BlockBytes> {
    let map = map_bytes(superblock);
    let mut blocks = vec![[0; BLOCK]; nat_bits_blocks(superblock) as usize];
    let bytes = blocks.as_flattened_mut();
    bytes[..HEADER].copy_from_slice(&(version | u64::from(checksum) << 32).to_le_bytes());
    let empty = &mut bytes[HEADER + map..HEADER + 2 * map];
    empty.fill(0xFF);
    empty[0] = 0xFE;
    blocks
}
