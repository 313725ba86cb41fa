//! Blocks of the orphan file: numbers of inodes that are still to be freed or cut (the kernel's
//! documentation, "Orphan file").

use super::{BlockAddr, Ino, crc32c, u32_at};
use crate::error::{Corrupt, Place};

/// The magic number at the end of each block.
pub const ORPHAN_MAGIC: u32 = 0x0B10_CA04;
/// Bytes at the end of a block: the magic number and the checksum.
const TAIL: usize = 8;

/// The inodes that a block lists, in any order; empty places are left out. `file` is the orphan
/// file. The checksum is not looked at.
///
/// # Errors
/// A wrong magic number.
pub fn parse_orphan_block(bytes: &[u8], file: Ino) -> Result<Vec<Ino>, Corrupt> {
    let magic = u32_at(bytes, tail_offset(bytes));
    Corrupt::check_equal(Place::Inode(file), "ob_magic", magic, ORPHAN_MAGIC)?;
    let numbers = bytes[..tail_offset(bytes)].chunks_exact(4).map(|number| u32_at(number, 0));
    Ok(numbers.filter(|&number| number != 0).map(Ino).collect())
}

/// The checksum of a block, stored and computed. The block is at `at`; `seed` is
/// [`super::Inode::checksum_seed`] of the orphan file.
pub fn orphan_block_checksums(bytes: &[u8], at: BlockAddr, seed: u32) -> (u32, u32) {
    let tail = tail_offset(bytes);
    let seed = crc32c(seed, &at.0.to_le_bytes());
    (u32_at(bytes, tail + 4), crc32c(seed, &bytes[..tail]))
}

fn tail_offset(bytes: &[u8]) -> usize {
    bytes.len().saturating_sub(TAIL)
}
