//! Node blocks: what all have in common (the footer), and the pointer nodes.

use dovetail_block::BlockBytes;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{
    FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute_mut, transmute_ref,
};

use super::layout::prove_layout;
use super::{BlockAddr, Nid, Variant};

/// Nids in an indirect node.
pub const NIDS_IN_NODE: usize = 1018;

/// The node offset of an inode's xattr node: all 29 bits set.
pub const XATTR_NODE_OFFSET: u32 = 0x1FFF_FFFF;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawFooter {
    nid: U32,
    ino: U32,
    flag: U32,
    cp_ver: U64,
    next_blkaddr: U32,
}

prove_layout!(RawFooter, 24, { 8 => flag, 12 => cp_ver, 20 => next_blkaddr });

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawNodeBlock {
    nids: [U32; NIDS_IN_NODE],
    footer: RawFooter,
}

prove_layout!(RawNodeBlock, 4096, { 4072 => footer });

/// Footer of a node block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The node.
    pub nid: Nid,
    /// The inode that it belongs to; the same for an inode.
    pub ino: Nid,
    /// It belongs to something that is not a directory.
    pub cold: bool,
    /// Written by an fsync: recovery reads it.
    pub fsync_mark: bool,
    /// Written by the first fsync of a new file: recovery inserts its name.
    pub dentry_mark: bool,
    /// Its place among the nodes of the inode, 0 for the inode; [`XATTR_NODE_OFFSET`] for the xattr
    /// node.
    pub node_offset: u32,
    /// The last checkpoint before it was written (see [`super::Checkpoint::footer_version`]).
    pub checkpoint: u64,
    /// Block that the same log wrote (or was to write) next, in stored form: see [`Self::next_of`].
    pub next: u32,
}

impl Footer {
    /// The footer of `block`.
    pub fn parse(block: &BlockBytes) -> Self {
        let block: &RawNodeBlock = transmute_ref!(block);
        let raw = &block.footer;
        let flag = raw.flag.get();
        Self {
            nid: Nid(raw.nid.get()),
            ino: Nid(raw.ino.get()),
            cold: flag & 1 != 0,
            fsync_mark: flag & 2 != 0,
            dentry_mark: flag & 4 != 0,
            node_offset: flag >> 3,
            checkpoint: raw.cp_ver.get(),
            next: raw.next_blkaddr.get(),
        }
    }

    /// Stored `next` of a node at `at` that `to` follows in its log. In F2FS it is the address. In
    /// IPLFS it is the distance, 0 for none: its addresses have no room here, and its logs never
    /// jump.
    pub const fn next_of(variant: Variant, at: BlockAddr, to: BlockAddr) -> u32 {
        match variant {
            Variant::F2fs => to.low(),
            Variant::Iplfs(_) => to.0.saturating_sub(at.0) as u32,
        }
    }

    /// Address at which the log goes on after this node, which lies at `at`.
    pub const fn next_address(&self, variant: Variant, at: BlockAddr) -> BlockAddr {
        match variant {
            Variant::F2fs => BlockAddr::narrow(self.next),
            Variant::Iplfs(_) if self.next == 0 => BlockAddr::NULL,
            Variant::Iplfs(_) => at.plus(self.next as u64),
        }
    }

    /// Puts the footer into `block`.
    pub fn write(&self, block: &mut BlockBytes) {
        let block: &mut RawNodeBlock = transmute_mut!(block);
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let flag = self.node_offset << 3
            | bit(self.cold, 1)
            | bit(self.fsync_mark, 2)
            | bit(self.dentry_mark, 4);
        block.footer = RawFooter {
            nid: U32::new(self.nid.0),
            ino: U32::new(self.ino.0),
            flag: U32::new(flag),
            cp_ver: U64::new(self.checkpoint),
            next_blkaddr: U32::new(self.next),
        };
    }
}

/// Nid `index` (below [`NIDS_IN_NODE`]; none from there on) of an indirect node.
pub fn node_nid(block: &BlockBytes, index: usize) -> Nid {
    let block: &RawNodeBlock = transmute_ref!(block);
    Nid(block.nids.get(index).map_or(0, |nid| nid.get()))
}

/// Sets nid `index` (below [`NIDS_IN_NODE`]) of an indirect node.
pub fn set_node_nid(block: &mut BlockBytes, index: usize, to: Nid) {
    let block: &mut RawNodeBlock = transmute_mut!(block);
    if let Some(nid) = block.nids.get_mut(index) {
        nid.set(to.0);
    }
}

/// Pointer `index` (below [`Variant::direct_pointers`]; a hole from there on) of a direct node.
pub fn node_address(block: &BlockBytes, index: usize, variant: Variant) -> BlockAddr {
    variant.address_at(&block[..4 * NIDS_IN_NODE], variant.address_bytes() * index)
}

/// Sets pointer `index` (below [`Variant::direct_pointers`]) of a direct node.
pub fn set_node_address(block: &mut BlockBytes, index: usize, to: BlockAddr, variant: Variant) {
    variant.put_address(&mut block[..4 * NIDS_IN_NODE], variant.address_bytes() * index, to);
}
