//! The blocks of an IPLFS volume that are in use, to be compared with what its device holds.

use std::collections::BTreeSet;

use dovetail_block::Scheduler;

use super::super::super::F2fs;
use super::super::Space;
use super::LogSpace;
use crate::error::Error;
use crate::format::{
    BlockAddr, Extent, Nid, RawInode, XATTR_NODE_OFFSET, is_indirect, node_address,
};

impl LogSpace {
    fn awaiting_discard(&self) -> Vec<Extent> {
        self.fresh.extents().into_iter().chain(self.queued.extents()).collect()
    }
}

impl<D: Scheduler> F2fs<D> {
    /// The blocks in the logs that nodes and files have: when all was written ([`Self::sync_all`])
    /// and the device was told of all that waits ([`Self::trim`]), those and no others are what the
    /// device holds there. Reads every node.
    ///
    /// # Errors
    /// [`Error::Io`]; damaged nodes.
    pub fn live_blocks(&mut self) -> Result<BTreeSet<BlockAddr>, Error> {
        let mut live = BTreeSet::new();
        for nid in (3..self.nat.max_nid()).map(Nid) {
            let address = self.nat_entry(nid)?.address;
            if self.superblock.in_main(address) {
                live.insert(address);
            }
            if address != BlockAddr::NULL || self.nodes.contains(nid) {
                self.live_content(nid, &mut live)?;
            }
        }
        Ok(live)
    }

    /// The blocks that a node points to.
    fn live_content(&mut self, nid: Nid, live: &mut BTreeSet<BlockAddr>) -> Result<(), Error> {
        let (ino, offset) = self.load_any_node(nid)?;
        if offset == XATTR_NODE_OFFSET || is_indirect(offset) {
            return Ok(());
        }
        if offset == 0 && !self.has_block_pointers(ino)? {
            return Ok(());
        }
        let layout = self.superblock.layout();
        let block = self.cached(nid)?;
        let geometry = RawInode::of(block).geometry(layout);
        let found: Vec<BlockAddr> = if offset == 0 {
            let at = |index| geometry.pointer_at(index);
            (0..geometry.pointers()).map(|index| layout.0.address_at(block, at(index))).collect()
        } else {
            (0..layout.0.direct_pointers())
                .map(|index| node_address(block, index, layout.0))
                .collect()
        };
        live.extend(found.into_iter().filter(|&address| self.superblock.in_main(address)));
        Ok(())
    }

    /// Blocks given up that the device still holds; none on a volume with segments.
    pub fn awaiting_discard(&self) -> Vec<Extent> {
        match &self.space {
            Space::Segmented(_) => Vec::new(),
            Space::Iplfs(space) => space.awaiting_discard(),
        }
    }

    /// Writes a checkpoint if anything changed since the last one, and tells the device of all that
    /// it no longer has to hold: what fstrim is for.
    ///
    /// # Errors
    /// As [`Self::sync_all`].
    pub fn trim(&mut self) -> Result<(), Error> {
        self.check_writable()?;
        self.checkpoint_if_dirty()?;
        self.discard_some(usize::MAX, 1)?;
        Ok(self.io.flush()?)
    }
}
