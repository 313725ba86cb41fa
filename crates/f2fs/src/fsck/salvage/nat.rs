//! The NAT found again: each node says itself which one it is, and the SIT says which blocks are in
//! use.

use std::collections::HashMap;

use dovetail_block::{BlockBytes, BlockDevice};

use crate::error::Error;
use crate::format::{
    BLOCKS_IN_SEGMENT, BlockAddr, FIRST_NODE_LOG, Footer, InlineFlags, NIDS_IN_NODE, NatEntry, Nid,
    RawInode, SegNo, XATTR_NODE_OFFSET, check_geometry, is_indirect, node_address,
};
use crate::volume::Volume;

/// The last of the logs.
const LAST_LOG: u8 = 5;
/// The first nid that a node may have.
const FIRST_NID: u32 = 3;

/// Entries of the NAT that were put right in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundNodes {
    /// Nodes to which their entry led no longer, and leads again.
    pub found: u64,
    /// Entries that led to no such node, and for which there is none.
    pub cleared: u64,
}

/// A node block that is in use.
#[derive(Clone, Copy)]
struct Live {
    ino: Nid,
    address: BlockAddr,
    /// The checkpoint before which it was written.
    version: u32,
}

impl<D: BlockDevice> Volume<D> {
    /// Puts right, in memory, what the NAT says of the nodes that are in use as of the checkpoint.
    /// An entry that leads to another block, to a free one that is older, or nowhere, gets the
    /// block in use that says that it is this node; without one the entry is cleared. Reads every
    /// node block; nothing is guessed, as long as the SIT is whole. Of IPLFS nothing is changed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn find_nodes(&mut self) -> Result<FoundNodes, Error> {
        if self.superblock.variant.is_iplfs() || self.superblock.devirtualized {
            return Ok(FoundNodes::default());
        }
        let live = self.live_nodes()?;
        let mut done = FoundNodes::default();
        for nid in (FIRST_NID..self.superblock.max_nid()).map(Nid) {
            let entry = self.nat(nid)?;
            match live.get(&nid) {
                Some(live) if entry.address == live.address => {}
                Some(live) if self.is_astray(nid, entry.address, live)? => {
                    let version = self.version_of(nid, live.address)?;
                    let entry = NatEntry { version, ino: live.ino, address: live.address };
                    self.nat_journal.insert(nid, entry);
                    done.found += 1;
                }
                None if entry.address != BlockAddr::NULL
                    && !self.is_node(nid, entry.address)? =>
                {
                    self.nat_journal.insert(nid, NatEntry::default());
                    done.cleared += 1;
                }
                _ => {}
            }
        }
        Ok(done)
    }

    /// The nodes in use; of two blocks that say that they are one node, the newer.
    fn live_nodes(&mut self) -> Result<HashMap<Nid, Live>, Error> {
        let mut live: HashMap<Nid, Live> = HashMap::new();
        for segno in (0..self.superblock.segment_count_main).map(SegNo) {
            let entry = self.stored_segment(segno)?;
            if !(FIRST_NODE_LOG..=LAST_LOG).contains(&entry.log) {
                continue;
            }
            for offset in (0..BLOCKS_IN_SEGMENT).filter(|offset| entry.is_valid(*offset)) {
                let address = self.block_in_segment(segno, offset);
                let footer = Footer::parse(&*self.blocks.metadata(address)?);
                let version = footer.checkpoint as u32;
                let may_be = |nid: Nid| (FIRST_NID..self.superblock.max_nid()).contains(&nid.0);
                let is_node = may_be(footer.nid)
                    && may_be(footer.ino)
                    && version <= self.checkpoint.version as u32;
                let is_newer = || live.get(&footer.nid).is_none_or(|other| version > other.version);
                if is_node && is_newer() {
                    live.insert(footer.nid, Live { ino: footer.ino, address, version });
                }
            }
        }
        Ok(live)
    }

    /// The block at `address` says that it is node `nid`.
    fn is_node(&mut self, nid: Nid, address: BlockAddr) -> Result<bool, Error> {
        if !self.superblock.in_main(address) {
            return Ok(false);
        }
        Ok(Footer::parse(&*self.blocks.metadata(address)?).nid == nid)
    }

    /// The block at `address` is not node `nid`, or it is free and older than the one in use.
    fn is_astray(&mut self, nid: Nid, address: BlockAddr, live: &Live) -> Result<bool, Error> {
        if !self.is_node(nid, address)? {
            return Ok(true);
        }
        let (segno, offset) = self.place_in_main(address);
        let version = Footer::parse(&*self.blocks.metadata(address)?).checkpoint as u32;
        Ok(version < live.version && !self.stored_segment(segno)?.is_valid(offset))
    }

    /// The segment of a block of the main area, and its place there.
    fn place_in_main(&self, address: BlockAddr) -> (SegNo, u32) {
        let (index, blocks) =
            (address.0 - self.superblock.main_start.0, u64::from(BLOCKS_IN_SEGMENT));
        (SegNo((index / blocks) as u32), (index % blocks) as u32)
    }

    /// The version of a nid, as the summary of a block that its node points to has it; 0 if it
    /// points to none.
    fn version_of(&mut self, nid: Nid, address: BlockAddr) -> Result<u8, Error> {
        let block = self.blocks.metadata(address)?;
        let Some(data) = self.first_pointer(&block) else { return Ok(0) };
        let (segno, offset) = self.place_in_main(data);
        let summary = self.summaries(segno)?[offset as usize];
        Ok(if summary.nid == nid { summary.version } else { 0 })
    }

    /// The first block of content that a node leads to.
    fn first_pointer(&self, block: &BlockBytes) -> Option<BlockAddr> {
        let (footer, variant) = (Footer::parse(block), self.superblock.variant);
        let is_data = |address: &BlockAddr| self.superblock.in_main(*address);
        if footer.nid == footer.ino {
            let raw = RawInode::of(block);
            let inline = InlineFlags(raw.i_inline);
            if inline.has(InlineFlags::DATA) || inline.has(InlineFlags::DENTRY) {
                return None;
            }
            let geometry = check_geometry(raw, footer.nid, &self.superblock).ok()?;
            let at = |index| variant.address_at(block, geometry.pointer_at(index));
            return (0..geometry.pointers()).map(at).find(is_data);
        }
        if is_indirect(footer.node_offset) || footer.node_offset == XATTR_NODE_OFFSET {
            return None;
        }
        (0..NIDS_IN_NODE).map(|index| node_address(block, index, variant)).find(is_data)
    }
}
