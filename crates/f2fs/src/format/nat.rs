//! The node address table: nid to block address.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref};

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

    pub(super) fn encode(entry: NatEntry) -> Self {
        Self { version: entry.version, ino: U32::new(entry.ino.0), block_addr: U32::new(entry.address.0) }
    }
}

/// The entry of `nid` in `block`, the block of the NAT that covers it.
pub fn nat_entry(block: &BlockBytes, nid: Nid) -> NatEntry {
    let block: &RawNatBlock = transmute_ref!(block);
    block.entries[(nid.0 % NAT_ENTRIES_IN_BLOCK) as usize].decode()
}

/// Sets the entry of `nid` in `block`, the block of the NAT that covers it.
pub fn set_nat_entry(block: &mut BlockBytes, nid: Nid, entry: NatEntry) {
    let block: &mut RawNatBlock = transmute_mut!(block);
    block.entries[(nid.0 % NAT_ENTRIES_IN_BLOCK) as usize] = RawNatEntry::encode(entry);
}

/// Where the current copy of the NAT block that covers `nid` lies. `bitmap` tells which copy is current; the
/// copies alternate segment by segment. `nid` must be below [`Superblock::max_nid`].
pub fn nat_block_address(superblock: &Superblock, bitmap: &[u8], nid: Nid) -> BlockAddr {
    copy_address(superblock, nid, current_is_second(bitmap, nid))
}

/// Where the other copy lies, to which the block is written next.
pub fn nat_block_other(superblock: &Superblock, bitmap: &[u8], nid: Nid) -> BlockAddr {
    copy_address(superblock, nid, !current_is_second(bitmap, nid))
}

fn current_is_second(bitmap: &[u8], nid: Nid) -> bool {
    msb_first(bitmap, (nid.0 / NAT_ENTRIES_IN_BLOCK) as usize)
}

fn copy_address(superblock: &Superblock, nid: Nid, second: bool) -> BlockAddr {
    let block = nid.0 / NAT_ENTRIES_IN_BLOCK;
    let pair = block / BLOCKS_IN_SEGMENT * 2 * BLOCKS_IN_SEGMENT;
    let second = if second { BLOCKS_IN_SEGMENT } else { 0 };
    BlockAddr(superblock.nat_start.0 + pair + block % BLOCKS_IN_SEGMENT + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_set_is_read_back_and_its_neighbours_stay() {
        let mut block = [0xAB; 4096];
        let before = nat_entry(&block, Nid(455 + 6));
        let entry = NatEntry { version: 3, ino: Nid(77), address: BlockAddr(0x0123_4567) };
        set_nat_entry(&mut block, Nid(455 + 5), entry);
        assert_eq!(nat_entry(&block, Nid(5)), entry);
        assert_eq!(block[45..54], [3, 77, 0, 0, 0, 0x67, 0x45, 0x23, 0x01]);
        assert_eq!(nat_entry(&block, Nid(6)), before);
        assert_eq!(nat_entry(&block, Nid(4)), before);
    }
}
