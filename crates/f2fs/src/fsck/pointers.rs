//! From an inode to all its blocks.

use dovetail_block::{BlockBytes, BlockDevice};

use super::inodes::File;
use super::nodes::Node;
use super::summary::Owner;
use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BlockAddr, NIDS_IN_NODE, Nid, RawInode, node_address, node_nid};

const N: u64 = NIDS_IN_NODE as u64;

/// A node of pointers, to be entered.
#[derive(Clone, Copy)]
struct PointerNode {
    nid: Nid,
    /// Its place among the nodes of the file.
    offset: u64,
    /// The first block of the file below it.
    first: u64,
    /// Levels of nodes below it: 0 for a direct node, at most 2.
    below: u32,
}

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn walk_pointers(&mut self, file: &mut File, node: &Node) -> Result<(), Error> {
        let pointers = file.geometry.pointers() as u64;
        let pointers = pointers - pointers % file.cluster;
        let variant = self.volume.superblock.variant;
        for index in 0..pointers {
            let address =
                variant.address_at(&*node.block, file.geometry.pointer_at(index as usize));
            if address != BlockAddr::NULL {
                let owner = Owner { nid: file.ino, version: node.version, index: index as u32 };
                self.enter_data(file, index, address, owner)?;
            }
        }
        let direct = self.direct_of(file);
        let roots = [
            (1, pointers, 0),
            (2, pointers + direct, 0),
            (3, pointers + 2 * direct, 1),
            (4 + N, pointers + 2 * direct + N * direct, 1),
            (5 + 2 * N, pointers + 2 * direct + 2 * N * direct, 2),
        ];
        let nids = RawInode::of(&node.block).i_nid.map(|nid| Nid(nid.get()));
        for (nid, (offset, first, below)) in nids.into_iter().zip(roots) {
            self.walk_node(file, PointerNode { nid, offset, first, below })?;
        }
        Ok(())
    }

    /// Pointers used in a direct node of the file.
    fn direct_of(&self, file: &File) -> u64 {
        let all = self.volume.superblock.variant.direct_pointers() as u64;
        all - all % file.cluster
    }

    /// Calls itself at most twice below itself: the levels are given by the format.
    fn walk_node(&mut self, file: &mut File, step: PointerNode) -> Result<(), Error> {
        let PointerNode { nid, offset, first, below } = step;
        if nid == Nid::NONE {
            return Ok(());
        }
        if !self.is_nid(nid) {
            self.found(Finding::NidRange { ino: file.ino, field: "a node pointer", found: nid });
            return Ok(());
        }
        let Some(node) = self.enter_node(nid, file.ino, offset as u32)? else { return Ok(()) };
        self.check_cold(nid, &node.footer, file.is_dir);
        file.blocks += 1;
        let direct = self.direct_of(file);
        if below == 0 {
            return self.walk_direct(file, &node.block, (nid, node.version), first..first + direct);
        }
        let (nodes, blocks) = if below == 1 { (1, direct) } else { (N + 1, N * direct) };
        for k in 0..N {
            let nid = node_nid(&node.block, k as usize);
            let (offset, first) = (offset + 1 + k * nodes, first + k * blocks);
            self.walk_node(file, PointerNode { nid, offset, first, below: below - 1 })?;
        }
        Ok(())
    }

    fn walk_direct(
        &mut self,
        file: &mut File,
        node: &BlockBytes,
        (nid, version): (Nid, u8),
        blocks: std::ops::Range<u64>,
    ) -> Result<(), Error> {
        for (index, block) in blocks.enumerate() {
            let address = node_address(node, index, self.volume.superblock.variant);
            if address != BlockAddr::NULL {
                let owner = Owner { nid, version, index: index as u32 };
                self.enter_data(file, block, address, owner)?;
            }
        }
        Ok(())
    }

    /// Block `block` of the file, which `owner` says lies at `address` (not 0).
    fn enter_data(
        &mut self,
        file: &mut File,
        block: u64,
        address: BlockAddr,
        owner: Owner,
    ) -> Result<(), Error> {
        if address == BlockAddr::COMPRESSED {
            if file.cluster == 1 || !block.is_multiple_of(file.cluster) {
                self.found(Finding::ClusterMark { ino: file.ino, block });
            }
            if file.released {
                return Ok(());
            }
        }
        file.last = Some(block);
        file.blocks += 1;
        self.report.counts.blocks += 1;
        if address == BlockAddr::COMPRESSED || address == BlockAddr::NEW {
            return Ok(());
        }
        if !self.enter_data_block(file, block, address, owner)? {
            return Ok(());
        }
        if file.is_dir {
            let bytes = self.volume.blocks.metadata(address)?;
            self.check_dentry_block(file, block, &bytes)?;
        }
        Ok(())
    }

    /// Compares what is known of a block of content with `owner`; false if it is another's.
    fn enter_data_block(
        &mut self,
        file: &mut File,
        block: u64,
        address: BlockAddr,
        owner: Owner,
    ) -> Result<bool, Error> {
        if self.is_held_address(address) {
            return Ok(self.claim_place(address, owner.nid));
        }
        if !self.volume.superblock.in_main(address) {
            self.found(Finding::DataAddress { ino: file.ino, block, address });
            self.outside.push((file.ino, owner.nid, owner.index));
            return Ok(false);
        }
        let (first, start, count) = file.extent;
        let inside = block.wrapping_sub(first.into());
        if inside < count.into() && u64::from(start) + inside == address.0 {
            file.in_extent += 1;
        }
        if !self.check_log(address, owner.nid, false) || !self.claim(address, owner.nid, false) {
            return Ok(false);
        }
        self.check_data_summary(address, owner)?;
        Ok(true)
    }
}
