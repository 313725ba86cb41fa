//! The node address table: nid to block address.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref,
};

use super::layout::prove_layout;
use super::{AddressWidth, BLOCKS_IN_SEGMENT, BlockAddr, Nid, Superblock, Variant, msb_first};

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
    entries: [RawNatEntry; Variant::F2fs.nat_entries_in_block() as usize],
    spare: u8,
}

prove_layout!(RawNatBlock, 4096, { 0 => entries });

/// As wide IPLFS has it in the NAT, and all IPLFS in the journal of a checkpoint.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RawWideEntry {
    version: u8,
    ino: U32,
    block_addr: U64,
}

prove_layout!(RawWideEntry, 13, { 0 => version, 1 => ino, 5 => block_addr });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawWideBlock {
    entries: [RawWideEntry; Variant::IPLFS.nat_entries_in_block() as usize],
    spare: u8,
}

prove_layout!(RawWideBlock, 4096, { 0 => entries });

/// Entry of the NAT: the address of a node.
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
    pub(super) fn decode(&self, variant: Variant) -> NatEntry {
        NatEntry {
            version: self.version,
            ino: Nid(self.ino.get()),
            address: variant.unpack(self.block_addr.get()),
        }
    }

    pub(super) fn encode(entry: NatEntry, variant: Variant) -> Self {
        Self {
            version: entry.version,
            ino: U32::new(entry.ino.0),
            block_addr: U32::new(variant.pack(entry.address)),
        }
    }
}

impl RawWideEntry {
    pub(super) fn decode(&self) -> NatEntry {
        NatEntry {
            version: self.version,
            ino: Nid(self.ino.get()),
            address: BlockAddr(self.block_addr.get()),
        }
    }

    pub(super) fn encode(entry: NatEntry) -> Self {
        Self {
            version: entry.version,
            ino: U32::new(entry.ino.0),
            block_addr: U64::new(entry.address.0),
        }
    }
}

/// The entry of `nid` in `block`, the block of the NAT that covers it.
pub fn nat_entry(block: &BlockBytes, nid: Nid, variant: Variant) -> NatEntry {
    let (_, at) = variant.nat_position(nid);
    match variant {
        Variant::Iplfs(AddressWidth::Wide) => {
            let block: &RawWideBlock = transmute_ref!(block);
            block.entries[at].decode()
        }
        Variant::F2fs | Variant::Iplfs(AddressWidth::Narrow) => {
            let block: &RawNatBlock = transmute_ref!(block);
            block.entries[at].decode(variant)
        }
    }
}

/// Sets the entry of `nid` in `block`, the block of the NAT that covers it.
pub fn set_nat_entry(block: &mut BlockBytes, nid: Nid, entry: NatEntry, variant: Variant) {
    let (_, at) = variant.nat_position(nid);
    match variant {
        Variant::Iplfs(AddressWidth::Wide) => {
            let block: &mut RawWideBlock = transmute_mut!(block);
            block.entries[at] = RawWideEntry::encode(entry);
        }
        Variant::F2fs | Variant::Iplfs(AddressWidth::Narrow) => {
            let block: &mut RawNatBlock = transmute_mut!(block);
            block.entries[at] = RawNatEntry::encode(entry, variant);
        }
    }
}

/// Address of the current copy of the NAT block that covers `nid`. `bitmap` tells which copy is
/// current; the copies alternate segment by segment. `nid` must be below [`Superblock::max_nid`].
pub fn nat_block_address(superblock: &Superblock, bitmap: &[u8], nid: Nid) -> BlockAddr {
    let (block, _) = superblock.variant.nat_position(nid);
    copy_address(superblock, block, msb_first(bitmap, block as usize))
}

/// Address of the other copy, to which the block is written next.
pub fn nat_block_other(superblock: &Superblock, bitmap: &[u8], nid: Nid) -> BlockAddr {
    let (block, _) = superblock.variant.nat_position(nid);
    copy_address(superblock, block, !msb_first(bitmap, block as usize))
}

fn copy_address(superblock: &Superblock, block: u32, second: bool) -> BlockAddr {
    let (block, segment) = (u64::from(block), u64::from(BLOCKS_IN_SEGMENT));
    let pair = block / segment * 2 * segment;
    let second = if second { segment } else { 0 };
    superblock.nat_start.plus(pair + block % segment + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_is_set_is_read_back_and_its_neighbours_stay() {
        let mut block = [0xAB; 4096];
        let variant = Variant::F2fs;
        let before = nat_entry(&block, Nid(455 + 6), variant);
        let entry = NatEntry { version: 3, ino: Nid(77), address: BlockAddr(0x0123_4567) };
        set_nat_entry(&mut block, Nid(455 + 5), entry, variant);
        assert_eq!(nat_entry(&block, Nid(5), variant), entry);
        assert_eq!(block[45..54], [3, 77, 0, 0, 0, 0x67, 0x45, 0x23, 0x01]);
        assert_eq!(nat_entry(&block, Nid(6), variant), before);
        assert_eq!(nat_entry(&block, Nid(4), variant), before);
    }

    #[test]
    fn a_wide_entry_has_thirteen_bytes() {
        let mut block = [0xAB; 4096];
        let entry = NatEntry { version: 3, ino: Nid(77), address: BlockAddr(6 << 58 | 5) };
        set_nat_entry(&mut block, Nid(315 + 2), entry, Variant::IPLFS);
        assert_eq!(nat_entry(&block, Nid(2), Variant::IPLFS), entry);
        assert_eq!(block[25..40], [0xAB, 3, 77, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0x18, 0xAB]);
    }
}
