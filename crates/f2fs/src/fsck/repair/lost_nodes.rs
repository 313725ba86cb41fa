//! Pointers to nodes that are lost, cut off; nodes whose inode is lost, given up.

use dovetail_block::BlockDevice;

use super::{Repair, RepairError};
use crate::format::{
    BlockAddr, Footer, NIDS_IN_NODE, NatEntry, Nid, RawInode, is_indirect, node_nid, set_node_nid,
};
use crate::fsck::finding::Finding;

/// Place of the doubly indirect node among the nids of an inode; indirect ones begin at 2.
const DOUBLE: usize = 4;
const FIRST_INDIRECT: usize = 2;

impl<D: BlockDevice> Repair<'_, D> {
    /// Cuts off the nodes that are missing, and gives up those that nothing leads to.
    pub(super) fn cut_lost_nodes(&mut self, findings: &[Finding]) -> Result<(), RepairError> {
        for finding in findings {
            match *finding {
                Finding::NodeMissing { nid, ino } if nid != ino => self.cut_off(ino, nid)?,
                Finding::NodeUnreachable { nid, .. } => {
                    let version = self.nat_of(nid)?.version.wrapping_add(1);
                    self.nat.insert(nid, NatEntry { version, ..NatEntry::default() });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a hole of what node `nid` of an inode led to.
    fn cut_off(&mut self, ino: Nid, nid: Nid) -> Result<(), RepairError> {
        let Some(block) = self.node_mut(ino)? else { return Ok(()) };
        let raw = RawInode::of_mut(block);
        if raw.i_xattr_nid.get() == nid.0 {
            raw.i_xattr_nid.set(0);
            return Ok(());
        }
        if let Some(pointer) = raw.i_nid.iter_mut().find(|pointer| pointer.get() == nid.0) {
            pointer.set(0);
            return Ok(());
        }
        let roots = raw.i_nid.map(|pointer| Nid(pointer.get()));
        for root in roots[FIRST_INDIRECT..].iter().copied() {
            let below = self.cut_below(root, nid)?;
            // the nodes below the last one have nodes below themselves
            for middle in below.into_iter().filter(|_| root == roots[DOUBLE]) {
                self.cut_below(middle, nid)?;
            }
        }
        Ok(())
    }

    /// Cuts `nid` off an indirect node; returns the nodes that it leads to.
    fn cut_below(&mut self, indirect: Nid, nid: Nid) -> Result<Vec<Nid>, RepairError> {
        if !self.checker.is_nid(indirect) || self.nat_of(indirect)?.address == BlockAddr::NULL {
            return Ok(Vec::new());
        }
        let block = self.checker.volume.node_block(indirect)?;
        let footer = Footer::parse(&block);
        if footer.nid != indirect || !is_indirect(footer.node_offset) {
            return Ok(Vec::new());
        }
        let nids: Vec<Nid> = (0..NIDS_IN_NODE).map(|index| node_nid(&block, index)).collect();
        if let Some(index) = nids.iter().position(|found| *found == nid)
            && let Some(block) = self.node_mut(indirect)?
        {
            set_node_nid(block, index, Nid::NONE);
        }
        Ok(nids.into_iter().filter(|nid| nid.is_some()).collect())
    }
}
