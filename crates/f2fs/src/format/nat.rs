//! The node address table: nid to block address.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_ref};

use super::layout::prove_layout;
use super::{BLOCKS_IN_SEGMENT, BlockAddr, Nid, Superblock, msb_first};

/// Entries in a block of the NAT.
pub const NAT_ENTRIES_IN_BLOCK: u32 = 455;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawNatEntry {
    version: u8,
    ino: U32,
    block_addr: U32,
}

prove_layout!(RawNatEntry, 9, { 0 => version, 1 => ino, 5 => block_addr });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawNatBlock {
    entries: [RawNatEntry; NAT_ENTRIES_IN_BLOCK as usize],
    spare: u8,
}

prove_layout!(RawNatBlock, 4096, { 0 => entries });

/// Where a node lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NatEntry {
    /// Counts how often the nid was freed, since it was last allocated.
    pub version: u8,
    /// The inode that the node belongs to.
    pub ino: Nid,
    /// Its block; [`BlockAddr::NULL`] for a nid that is free.
    pub address: BlockAddr,
}

impl RawNatEntry {
    pub(super) fn decode(&self) -> NatEntry {
        NatEntry {
            version: self.version,
            ino: Nid(self.ino.get()),
            address: BlockAddr(self.block_addr.get()),
        }
    }
}

/// The entry of `nid` in `block`, the block of the NAT that covers it.
pub fn nat_entry(block: &BlockBytes, nid: Nid) -> NatEntry {
    let block: &RawNatBlock = transmute_ref!(block);
    block.entries[(nid.0 % NAT_ENTRIES_IN_BLOCK) as usize].decode()
}

/// Where the current copy of the NAT block that covers `nid` lies. `bitmap` tells which copy is current; the
/// copies alternate segment by segment. `nid` must be below [`Superblock::max_nid`].
pub fn nat_block_address(superblock: &Superblock, bitmap: &[u8], nid: Nid) -> BlockAddr {
    let block = nid.0 / NAT_ENTRIES_IN_BLOCK;
    let pair = block / BLOCKS_IN_SEGMENT * 2 * BLOCKS_IN_SEGMENT;
    let second = if msb_first(bitmap, block as usize) { BLOCKS_IN_SEGMENT } else { 0 };
    BlockAddr(superblock.nat_start.0 + pair + block % BLOCKS_IN_SEGMENT + second)
}
