//! The metadata blocks of a file and their pointers, from the bottom up, and the rewriting of one
//! of them.

use dovetail_block::Scheduler;
use dovetail_vfs::{Address, Error as CallError, Holder, Ino as Number, MetadataBlock, Pointer};
use dovetail_vfs::{PointerPlace, PointerWalk};
use rustc_hash::FxHashSet;

use super::Ext;
use super::meta::Kind;
use super::vfs::ino_of;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, DIRECT_POINTERS, ExtentEntries, ExtentNode, Ino, PointerWay, blocks_below,
    check_extent, pointer, set_pointer,
};

/// Message about a place without a pointer.
const NO_POINTER: &str = "there is no pointer at this place";

/// A walk under way.
struct Walk {
    ino: Ino,
    found: Vec<MetadataBlock>,
    seen: FxHashSet<BlockAddr>,
}

impl Walk {
    /// A damaged tree may lead to a block from many: the walk would not end in time.
    fn see(&mut self, at: BlockAddr, place: Place) -> Result<(), Corrupt> {
        let times = 1 + u64::from(!self.seen.insert(at));
        Corrupt::check_equal(place, "pointers to one block of pointers", times, 1u64)
    }
}

/// A block of pointers on the way down.
#[derive(Clone, Copy)]
struct Subtree {
    at: BlockAddr,
    level: u32,
    first: u64,
}

impl<D: Scheduler> Ext<D> {
    /// All of a file's metadata blocks; the inode comes last.
    pub(super) fn walk(&mut self, ino: Ino) -> Result<Vec<MetadataBlock>, Error> {
        let mut walk = Walk { ino, found: Vec::new(), seen: FxHashSet::default() };
        if !self.has_blocks(ino)? {
            walk.found.push(MetadataBlock {
                holder: Holder::Inode,
                level: 0,
                pointers: Vec::new(),
            });
        } else if self.is_extent_mapped(ino)? {
            let root = self.root(ino)?;
            self.walk_extents(&mut walk, Holder::Inode, &root)?;
        } else {
            self.walk_pointers(&mut walk)?;
        }
        Ok(walk.found)
    }

    fn walk_pointers(&mut self, walk: &mut Walk) -> Result<(), Error> {
        let tops = self.inode(walk.ino)?.pointers();
        let (mut pointers, mut level, mut first) = (Vec::new(), 0, 0);
        for (slot, &stored) in (0..).zip(&tops) {
            let depth = (slot + 1u32).saturating_sub(DIRECT_POINTERS);
            if let Some(pointer) = self.pointer_of(walk.ino, (slot, stored), first, depth > 0)? {
                pointers.push(pointer);
                level = level.max(depth);
            }
            if depth > 0 && stored != 0 {
                self.walk_below(walk, stored, depth - 1, first)?;
            }
            first += blocks_below(depth, self.per_pointer_block());
        }
        walk.found.push(MetadataBlock { holder: Holder::Inode, level, pointers });
        Ok(())
    }

    fn walk_below(
        &mut self,
        walk: &mut Walk,
        stored: u32,
        level: u32,
        first: u64,
    ) -> Result<(), Error> {
        let at = self.checked(walk.ino, stored)?;
        walk.see(at, Place::Pointers(walk.ino))?;
        self.walk_block(walk, Subtree { at, level, first })
    }

    fn walk_block(&mut self, walk: &mut Walk, tree: Subtree) -> Result<(), Error> {
        let per_block = self.per_pointer_block();
        let slots = self.meta(tree.at, Kind::Plain, Place::Pointers(walk.ino))?.to_vec();
        let mut pointers = Vec::new();
        for slot in 0..per_block {
            let stored = pointer(&slots, slot);
            let first = tree.first + u64::from(slot) * blocks_below(tree.level, per_block);
            pointers.extend(self.pointer_of(walk.ino, (slot, stored), first, tree.level > 0)?);
            if tree.level > 0 && stored != 0 {
                self.walk_below(walk, stored, tree.level - 1, first)?;
            }
        }
        let holder = Holder::Block(self.address(tree.at));
        walk.found.push(MetadataBlock { holder, level: tree.level, pointers });
        Ok(())
    }

    fn pointer_of(
        &self,
        ino: Ino,
        (slot, stored): (u32, u32),
        file_block: u64,
        is_metadata: bool,
    ) -> Result<Option<Pointer>, Error> {
        let target = self.address(BlockAddr(stored.into()));
        if matches!(target, Address::Logical(_)) && !self.checked(ino, stored)?.is_some() {
            return Ok(None);
        }
        Ok(Some(Pointer { slot, file_block, blocks: 1, target, is_metadata, written: true }))
    }

    fn walk_extents(
        &mut self,
        walk: &mut Walk,
        holder: Holder,
        node: &ExtentNode,
    ) -> Result<(), Error> {
        let pointers = self.entries(walk.ino, node)?;
        if let ExtentEntries::Index(list) = &node.entries {
            for index in list {
                walk.see(index.node, Place::Extents(walk.ino, index.node))?;
                let below = self.node(walk.ino, index.node, node.depth - 1)?;
                self.walk_extents(walk, Holder::Block(self.address(index.node)), &below)?;
            }
        }
        walk.found.push(MetadataBlock { holder, level: node.depth.into(), pointers });
        Ok(())
    }

    /// The entries of a node as pointers.
    fn entries(&self, ino: Ino, node: &ExtentNode) -> Result<Vec<Pointer>, Error> {
        let place = Place::Extents(ino, BlockAddr::NONE);
        match &node.entries {
            ExtentEntries::Leaf(list) => (0..)
                .zip(list)
                .map(|(slot, extent)| {
                    let target = self.address(extent.start);
                    if matches!(target, Address::Logical(_)) {
                        check_extent(extent, place, &self.superblock)?;
                    }
                    let (file_block, blocks) = (extent.block.into(), extent.len.into());
                    let written = extent.written;
                    Ok(Pointer { slot, file_block, blocks, target, is_metadata: false, written })
                })
                .collect(),
            ExtentEntries::Index(list) => Ok((0..)
                .zip(list)
                .map(|(slot, index)| {
                    let target = self.address(index.node);
                    let file_block = index.block.into();
                    Pointer {
                        slot,
                        file_block,
                        blocks: 1,
                        target,
                        is_metadata: true,
                        written: true,
                    }
                })
                .collect()),
        }
    }

    /// The pointer at a place, found on the way that its file block shows.
    pub(super) fn pointer_at(&mut self, ino: Ino, at: PointerPlace) -> Result<Pointer, Error> {
        let holders = self.holders_of(ino, at)?;
        let found = holders.into_iter().find(|block| block.holder == at.holder);
        let pointers = found.ok_or(Error::Rewrite(NO_POINTER))?.pointers;
        let same =
            |pointer: &Pointer| pointer.slot == at.slot && pointer.file_block == at.file_block;
        pointers.into_iter().find(same).ok_or(Error::Rewrite(NO_POINTER))
    }

    /// The metadata blocks on the way to a file block, the inode first.
    fn holders_of(&mut self, ino: Ino, at: PointerPlace) -> Result<Vec<MetadataBlock>, Error> {
        let block = u32::try_from(at.file_block).map_err(|_| Error::FileTooBig)?;
        if !self.has_blocks(ino)? {
            return Ok(Vec::new());
        }
        if self.is_extent_mapped(ino)? {
            self.nodes_to(ino, block, at.holder)
        } else {
            self.pointer_blocks_to(ino, block, at.holder)
        }
    }

    fn nodes_to(
        &mut self,
        ino: Ino,
        block: u32,
        until: Holder,
    ) -> Result<Vec<MetadataBlock>, Error> {
        let (mut found, mut holder, mut node) = (Vec::new(), Holder::Inode, self.root(ino)?);
        loop {
            let (level, pointers) = (u32::from(node.depth), self.entries(ino, &node)?);
            found.push(MetadataBlock { holder, level, pointers });
            let ExtentEntries::Index(list) = &node.entries else { return Ok(found) };
            let next =
                list[list.partition_point(|index| index.block <= block).saturating_sub(1)].node;
            if holder == until {
                return Ok(found);
            }
            node = self.node(ino, next, node.depth - 1)?;
            holder = Holder::Block(self.address(next));
        }
    }

    fn pointer_blocks_to(
        &mut self,
        ino: Ino,
        block: u32,
        until: Holder,
    ) -> Result<Vec<MetadataBlock>, Error> {
        let per_block = self.per_pointer_block();
        let way = PointerWay::to(block, per_block).ok_or(Error::FileTooBig)?;
        let mut stored = self.inode(ino)?.pointers()[way.slots()[0] as usize];
        let mut found = Vec::new();
        let (mut holder, mut level) = (Holder::Inode, way.depth());
        for (step, &slot) in way.slots().iter().enumerate() {
            if step > 0 {
                let at = self.checked(ino, stored)?;
                if !at.is_some() {
                    break;
                }
                holder = Holder::Block(self.address(at));
                level -= 1;
                stored = pointer(self.meta(at, Kind::Plain, Place::Pointers(ino))?, slot);
            }
            let is_metadata = level > 0;
            let pointers = self.pointer_of(ino, (slot, stored), block.into(), is_metadata)?;
            found.push(MetadataBlock { holder, level, pointers: pointers.into_iter().collect() });
            if holder == until {
                break;
            }
        }
        Ok(found)
    }

    /// Puts a new address into the pointer at a place; it must be there.
    pub(super) fn set_pointer_at(
        &mut self,
        ino: Ino,
        at: PointerPlace,
        new: Address,
    ) -> Result<(), Error> {
        if matches!(new, Address::Physical(_)) {
            // what is dirty is written while the volume's own address still leads to it; this may
            // change the tree
            self.write_back_at_once(ino)?;
        }
        let old = self.pointer_at(ino, at)?;
        let extents = self.is_extent_mapped(ino)?;
        let to = self.stored(new, old.blocks)?;
        if !old.is_metadata && matches!(new, Address::Physical(_)) {
            self.let_go_of_pages(ino, &old);
        }
        match (extents, at.holder) {
            (_, Holder::Table) => Err(Error::Rewrite(NO_POINTER)),
            (true, holder) => self.set_extent_entry(ino, holder, old.slot, to),
            (false, Holder::Inode) => {
                self.edit_inode(ino)?.set_pointer(old.slot as usize, to.0 as u32);
                Ok(())
            }
            (false, Holder::Block(block)) => {
                let at = self.holder_block(ino, block)?;
                let bytes = self.edit_meta(at, Kind::Plain, Place::Pointers(ino))?;
                set_pointer(bytes, old.slot, to.0 as u32);
                self.edit_inode(ino)?;
                Ok(())
            }
        }
    }

    /// Pages of a block that is no longer reached must not answer for it.
    fn let_go_of_pages(&mut self, ino: Ino, old: &Pointer) {
        let per_page = self.per_page();
        let end = (old.file_block + u64::from(old.blocks)).div_ceil(per_page);
        self.pages.remove_range(ino.0.into(), old.file_block / per_page..end);
    }

    pub(super) fn set_extent_entry(
        &mut self,
        ino: Ino,
        holder: Holder,
        slot: u32,
        to: BlockAddr,
    ) -> Result<(), Error> {
        let mut node = match holder {
            Holder::Inode => self.root(ino)?,
            Holder::Block(at) => self.node_of_any_depth(ino, self.holder_block(ino, at)?)?,
            Holder::Table => return Err(Error::Rewrite(NO_POINTER)),
        };
        match &mut node.entries {
            ExtentEntries::Leaf(list) => list[slot as usize].start = to,
            ExtentEntries::Index(list) => list[slot as usize].node = to,
        }
        match holder {
            Holder::Block(at) => {
                self.edit_inode(ino)?;
                self.write_node(ino, self.holder_block(ino, at)?, node, false)
            }
            Holder::Inode | Holder::Table => {
                node.encode(&mut self.edit_inode(ino)?.block);
                Ok(())
            }
        }
    }

    fn node_of_any_depth(&mut self, ino: Ino, at: BlockAddr) -> Result<ExtentNode, Error> {
        let kind = Kind::Extents(self.seed_of(ino)?);
        Ok(ExtentNode::parse(self.meta(at, kind, Place::Extents(ino, at))?, ino, at)?)
    }
}

impl<D: Scheduler> PointerWalk for Ext<D> {
    fn metadata_of(&mut self, ino: Number) -> Result<Vec<MetadataBlock>, CallError> {
        Ok(self.walk(ino_of(ino))?)
    }

    fn rewrite_pointer(
        &mut self,
        ino: Number,
        at: PointerPlace,
        new: Address,
    ) -> Result<(), CallError> {
        self.change(|fs| Ok(fs.set_pointer_at(ino_of(ino), at, new)?))
    }
}
