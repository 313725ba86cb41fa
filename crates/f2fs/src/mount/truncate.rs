//! Giving up blocks of a file: from a point on, or in a range.

use dovetail_block::{Content, Scheduler};

use super::F2fs;
use super::pointers::{Found, Shape};
use crate::error::Error;
use crate::format::{BLOCK, BlockAddr, NIDS_IN_NODE, Nid, node_nid, set_node_nid};

/// `i_inline` bit of a compressed file whose saved blocks were given back.
const INLINE_RELEASED: u8 = 0x80;
const N: u64 = NIDS_IN_NODE as u64;

/// A node of the file's tree, and what lies below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subtree {
    pub(super) nid: Nid,
    /// Its place among the inode's nodes.
    pub(super) offset: u32,
    /// 0 for a direct node.
    pub(super) level: u32,
    /// The first block of the file below it.
    pub(super) first: u64,
}

impl Subtree {
    /// The blocks of the file below each of its pointers.
    fn step(&self, direct: u64) -> u64 {
        if self.level == 0 { 1 } else { direct * N.pow(self.level - 1) }
    }

    pub(super) fn child(&self, index: usize, nid: Nid, direct: u64) -> Self {
        let step = if self.level == 2 { N as u32 + 1 } else { 1 };
        let offset = self.offset + 1 + index as u32 * step;
        Self {
            nid,
            offset,
            level: self.level - 1,
            first: self.first + index as u64 * self.step(direct),
        }
    }
}

impl<D: Scheduler> F2fs<D> {
    /// Gives up all blocks of the file from block `from` on, and the nodes that point to nothing
    /// else.
    pub(super) fn truncate_blocks(&mut self, ino: Nid, from: u64) -> Result<(), Error> {
        self.pages.remove_range(ino.0.into(), from..u64::MAX);
        let shape = self.shape(ino)?;
        let width = self.superblock.variant.address_bytes();
        for index in from.min(shape.pointers)..shape.pointers {
            self.free_pointer(ino, ino, shape.first_at + width * index as usize)?;
        }
        for (root, subtree) in self.subtrees(ino, &shape)? {
            if self.truncate_subtree(ino, subtree, from, &shape)? {
                self.edit_inode(ino)?.i_nid[root].set(0);
            }
        }
        Ok(())
    }

    /// The five trees below an inode that are there.
    pub(super) fn subtrees(
        &mut self,
        ino: Nid,
        shape: &Shape,
    ) -> Result<Vec<(usize, Subtree)>, Error> {
        let nids = self.inode(ino)?.i_nid.map(|nid| Nid(nid.get()));
        let direct = shape.direct;
        let firsts = [0, direct, 2 * direct, 2 * direct + direct * N, 2 * direct + 2 * direct * N];
        let offsets = [1, 2, 3, 4 + N as u32, 5 + 2 * N as u32];
        let levels = [0, 0, 1, 1, 2];
        let tree = |root: usize| Subtree {
            nid: nids[root],
            offset: offsets[root],
            level: levels[root],
            first: shape.pointers + firsts[root],
        };
        Ok((0..5).filter(|&root| nids[root].is_some()).map(|root| (root, tree(root))).collect())
    }

    /// Gives up what lies at or after block `from` below a node; `true` if the node itself went.
    fn truncate_subtree(
        &mut self,
        ino: Nid,
        tree: Subtree,
        from: u64,
        shape: &Shape,
    ) -> Result<bool, Error> {
        let step = tree.step(shape.direct);
        let count = if tree.level == 0 { shape.direct } else { N };
        if from >= tree.first + step * count {
            return Ok(false);
        }
        self.load_node(tree.nid, ino, tree.offset)?;
        let keep = from.saturating_sub(tree.first) / step;
        let width = self.superblock.variant.address_bytes();
        for index in keep as usize..count as usize {
            if tree.level == 0 {
                self.free_pointer(ino, tree.nid, width * index)?;
                continue;
            }
            let nid = node_nid(self.node(tree.nid, ino, tree.offset)?, index);
            if nid.is_some()
                && self.truncate_subtree(ino, tree.child(index, nid, shape.direct), from, shape)?
            {
                self.load_node(tree.nid, ino, tree.offset)?;
                set_node_nid(self.edit_node(tree.nid)?, index, Nid::NONE);
            }
        }
        if from > tree.first {
            return Ok(false);
        }
        self.drop_node(tree.nid)?;
        self.since.note_dropped_nodes(ino);
        let inode = self.edit_inode(ino)?;
        inode.i_blocks.set(inode.i_blocks.get().saturating_sub(1));
        Ok(true)
    }

    /// The pointer at byte `at` of a node in memory becomes a hole.
    fn free_pointer(&mut self, ino: Nid, nid: Nid, at: usize) -> Result<(), Error> {
        let variant = self.superblock.variant;
        let address = variant.address_at(self.cached(nid)?, at);
        if address == BlockAddr::NULL {
            return Ok(());
        }
        self.free_address(ino, address)?;
        variant.put_address(self.edit_node(nid)?, at, BlockAddr::NULL);
        self.space.note_promise(address, BlockAddr::NULL);
        self.drop_extent(ino)?;
        self.uncount(ino, address)
    }

    /// Subtracts the block that a pointer to `address` counted for. The mark of a cluster counts
    /// for a block that compression saved, unless those were released.
    fn uncount(&mut self, ino: Nid, address: BlockAddr) -> Result<(), Error> {
        let saved = address == BlockAddr::COMPRESSED;
        if saved && self.inode(ino)?.i_inline & INLINE_RELEASED != 0 {
            return Ok(());
        }
        self.count_blocks(ino, -1)
    }

    /// Frees a block that a pointer led to, if it is one. A pointer out of the main area leads to
    /// none: the file can be removed all the same, and the damage with it.
    fn free_address(&mut self, ino: Nid, address: BlockAddr) -> Result<(), Error> {
        if address.is_hole() || address == BlockAddr::COMPRESSED {
            return Ok(());
        }
        if self.check_address(crate::Place::Inode(ino), "a data pointer", address).is_err() {
            return Ok(());
        }
        Ok(self.free_block(address)?)
    }

    fn drop_extent(&mut self, ino: Nid) -> Result<(), Error> {
        if self.inode(ino)?.i_ext[2].get() != 0 {
            self.edit_inode(ino)?.i_ext[2].set(0);
        }
        Ok(())
    }

    /// The blocks of a range become holes; their nodes stay.
    pub(super) fn punch_blocks(&mut self, ino: Nid, from: u64, end: u64) -> Result<(), Error> {
        self.pages.remove_range(ino.0.into(), from..end);
        let (mut block, mut dirty) = (from, self.nodes.dirty_count());
        while let Some((found, address)) = self.next_mapped(ino, block, end)? {
            if let Found::Pointer(pointer) = self.find_pointer(ino, found)? {
                self.free_address(ino, address)?;
                self.set_pointer(ino, &pointer, BlockAddr::NULL)?;
                self.uncount(ino, address)?;
            }
            block = found + 1;
            self.look_for_node_headroom(&mut dirty)?;
        }
        Ok(())
    }

    /// Bytes `from..to` of the page that holds byte `from` become zeros; a hole stays one.
    pub(super) fn zero_in_page(&mut self, ino: Nid, from: u64, to: u64) -> Result<(), Error> {
        let (index, block) = (from / BLOCK as u64, BLOCK as u64);
        let mapped = matches!(self.find_pointer(ino, index)?, Found::Pointer(p) if p.address != BlockAddr::NULL);
        if !mapped || from >= to {
            return Ok(());
        }
        let start = (from % block) as usize;
        let end = start + (to - from).min(block - start as u64) as usize;
        // a name stands for zeros behind the end of the file
        if !matches!(self.read_page(ino, index)?, Content::Pattern(_)) {
            self.read_page_to_edit(ino, index)?[start..end].fill(0);
        }
        self.pages.mark_dirty(ino.0.into(), index);
        Ok(())
    }
}
