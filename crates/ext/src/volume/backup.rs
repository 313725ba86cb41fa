//! The superblock of group 1, for a volume whose first one is damaged.
//!
//! A superblock has two sectors of 512 bytes: a power cut may leave the first of one state and the
//! second of another. Nobody writes the backups after mkfs (but for a new size or feature), so that
//! the one taken says nothing of what is free or was unmounted; the journal says for itself whether
//! it is to be replayed.

use dovetail_block::{BLOCK_SIZE, BlockDevice, Lba};

use super::Blocks;
use crate::error::Error;
use crate::format::{GroupNo, SUPERBLOCK_SIZE, Superblock};

/// Block sizes, in the order in which they are tried; e2fsck tries them too.
const BLOCK_SIZES: [u64; 3] = [1024, 2048, 4096];

/// A superblock, and its bytes.
pub(super) type Found = (Superblock, [u8; SUPERBLOCK_SIZE]);

/// The backup in group 1, where it lies in a group of ordinary size: as many blocks as a block has
/// bits.
pub(super) fn backup<D: BlockDevice>(blocks: &mut Blocks<D>) -> Result<Option<Found>, Error> {
    for size in BLOCK_SIZES {
        let first_data_block = u64::from(size == 1024);
        let start = (8 * size + first_data_block) * size;
        if start + SUPERBLOCK_SIZE as u64 > blocks.bytes() {
            continue;
        }
        let bytes = bytes_at(blocks, start)?;
        let Ok(superblock) = Superblock::parse_on_drive(&bytes, GroupNo(1)) else { continue };
        let fits = u64::from(superblock.block_size()) == size
            && u64::from(superblock.blocks_per_group) == 8 * size
            && superblock.group == GroupNo(1);
        if fits {
            return Ok(Some((superblock, bytes)));
        }
    }
    Ok(None)
}

/// The bytes of a superblock, which lies in one block of the device.
pub(super) fn bytes_at<D: BlockDevice>(
    blocks: &mut Blocks<D>,
    start: u64,
) -> Result<[u8; SUPERBLOCK_SIZE], Error> {
    let whole = blocks.whole(Lba(start / BLOCK_SIZE))?;
    let mut bytes = [0; SUPERBLOCK_SIZE];
    bytes.copy_from_slice(&whole[(start % BLOCK_SIZE) as usize..][..SUPERBLOCK_SIZE]);
    Ok(bytes)
}
