//! Node blocks: from the NAT's entry to a block that is this node.

use std::sync::Arc;

use dovetail_block::{BlockBytes, BlockDevice};

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BlockAddr, Footer, Nid, XATTR_NODE_OFFSET};

/// A node that was reached and may be used.
pub(super) struct Node {
    pub(super) block: Arc<BlockBytes>,
    pub(super) version: u8,
    pub(super) footer: Footer,
}

impl<D: BlockDevice> Checker<'_, D> {
    /// A nid that a node may have.
    pub(super) fn is_nid(&self, nid: Nid) -> bool {
        (3..self.volume.superblock.max_nid()).contains(&nid.0)
    }

    /// Enters node `nid` of inode `ino`, which should be number `offset` of its nodes. `None` if it
    /// cannot be used; why is reported.
    pub(super) fn enter_node(
        &mut self,
        nid: Nid,
        ino: Nid,
        offset: u32,
    ) -> Result<Option<Node>, Error> {
        if self.nodes.contains_key(&nid) {
            self.found(Finding::NodeShared { nid, ino });
            return Ok(None);
        }
        self.nodes.insert(nid, ino);
        let entry = self.volume.nat(nid)?;
        let address = entry.address;
        if address == BlockAddr::NULL {
            self.found(Finding::NodeMissing { nid, ino });
            return Ok(None);
        }
        self.report.counts.nodes += 1;
        self.report.counts.blocks += 1;
        if entry.ino == Nid::NONE {
            self.found(Finding::NatNoInode { nid });
        } else if entry.ino != ino {
            self.found(Finding::NatInode { nid, found: entry.ino, expected: ino });
        }
        if self.is_held_address(address) {
            if !self.claim_place(address, nid) {
                return Ok(None);
            }
        } else if !self.volume.superblock.in_main(address) {
            self.found(Finding::NatAddress { nid, address });
            return Ok(None);
        } else if !self.check_log(address, nid, true) || !self.claim(address, nid, true) {
            return Ok(None);
        } else {
            self.check_node_summary(address, nid)?;
        }
        let block = self.volume.blocks.metadata(address)?;
        let footer = Footer::parse(&block);
        let usable = self.check_footer(&footer, address, (nid, ino, offset));
        Ok(usable.then_some(Node { block, version: entry.version, footer }))
    }

    /// The number of a block of the main area in it.
    pub(super) fn main_index(&self, address: BlockAddr) -> u64 {
        address.0 - self.volume.superblock.main_start.0
    }

    /// Marks a block of the main area as reached; false if it was before.
    pub(super) fn claim(&mut self, address: BlockAddr, nid: Nid, node: bool) -> bool {
        let first = self.claims.claim(self.main_index(address), node);
        if !first {
            self.found(Finding::BlockShared { address, nid });
        }
        first
    }

    /// False for a block that is another node.
    fn check_footer(
        &mut self,
        footer: &Footer,
        address: BlockAddr,
        (nid, ino, offset): (Nid, Nid, u32),
    ) -> bool {
        if footer.nid != nid {
            self.found(Finding::FooterNid { nid, found: footer.nid, address });
            return false;
        }
        if footer.ino != ino {
            self.found(Finding::FooterInode { nid, found: footer.ino, expected: ino });
        }
        // an inode's place is told by its number, an xattr node's by all bits
        if footer.node_offset != offset {
            self.found(Finding::FooterOffset { nid, found: footer.node_offset, expected: offset });
        }
        let next = footer.next_address(self.volume.superblock.variant, address);
        if next != BlockAddr::NULL && !self.volume.superblock.in_main(next) {
            self.found(Finding::FooterNext { nid, found: next });
        }
        let (found, max) = (footer.checkpoint as u32, self.volume.checkpoint.version as u32);
        if found > max {
            self.found(Finding::FooterVersion { nid, found, max });
        }
        true
    }

    /// The cold bit tells files from directories. mkfs.f2fs leaves it out of quota files.
    pub(super) fn check_cold(&mut self, nid: Nid, footer: &Footer, is_dir: bool) {
        let is_quota = self.volume.superblock.quota_files.contains(&footer.ino);
        if footer.cold == is_dir && !is_quota {
            self.found(Finding::FooterCold { nid, found: footer.cold });
        }
    }

    /// Enters the node of an inode's extended attributes.
    pub(super) fn enter_xattr_node(&mut self, nid: Nid, ino: Nid) -> Result<Option<Node>, Error> {
        if !self.is_nid(nid) {
            self.found(Finding::NidRange { ino, field: "i_xattr_nid", found: nid });
            return Ok(None);
        }
        self.enter_node(nid, ino, XATTR_NODE_OFFSET)
    }
}
