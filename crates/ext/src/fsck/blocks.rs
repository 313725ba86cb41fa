//! The blocks of a file, through its extents or its pointers.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::{Error, Place};
use crate::format::{
    BlockAddr, DIRECT_POINTERS, Extent, ExtentEntries, ExtentNode, FileType, Inode, InodeFlags,
    blocks_below, pointer,
};

/// Facts about a file's blocks, as they were seen.
#[derive(Debug, Default)]
struct Seen {
    /// Blocks that it takes, its tree among them.
    blocks: u64,
    /// The end of what was written, in blocks of the file.
    end: u64,
    /// Something of the tree is damaged: counts cannot be told.
    damaged: bool,
}

impl<D: BlockDevice> Checker<D> {
    /// Claims the blocks of a file and compares them with its size; says how many there are, if
    /// that can be told.
    pub(super) fn check_blocks(&mut self, inode: &Inode) -> Result<Option<u64>, Error> {
        let mut seen = Seen::default();
        if inode.flags.has(InodeFlags::EXTENTS) {
            let root = self.decoded(ExtentNode::parse(&inode.block, inode.ino, BlockAddr::NONE));
            seen.damaged = root.is_none();
            if let Some(root) = root {
                self.check_extents(inode, &root, (BlockAddr::NONE, 1 << 32), &mut seen)?;
            }
        } else {
            self.check_pointers(inode, &mut seen)?;
        }
        self.check_limit(inode);
        if seen.damaged {
            return Ok(None);
        }
        self.check_size(inode, seen.end);
        Ok(Some(seen.blocks))
    }

    fn check_limit(&mut self, inode: &Inode) {
        let (ino, found) = (inode.ino, inode.size);
        let expected = self.largest_size(inode);
        if inode.file_type() == FileType::REGULAR && found > expected {
            self.found(Finding::SizeLimit { ino, found, expected });
        }
    }

    /// Extents number 2^32 blocks, pointers reach as far as three levels go.
    fn largest_size(&self, inode: &Inode) -> u64 {
        let size = u64::from(self.volume.superblock.block_size());
        if inode.flags.has(InodeFlags::EXTENTS) {
            return size << 32;
        }
        let pointers = size / 4;
        (u64::from(DIRECT_POINTERS) + pointers + pointers.pow(2) + pointers.pow(3)) * size
    }

    /// A file's size reaches into its last written block; a directory's and a link's is that of its
    /// blocks.
    fn check_size(&mut self, inode: &Inode, end: u64) {
        let (ino, found) = (inode.ino, inode.size);
        let size = u64::from(self.volume.superblock.block_size());
        let wrong = match inode.file_type() {
            FileType::DIRECTORY => found != end * size || end == 0,
            FileType::SYMLINK => found == 0 || found >= size || end != 1,
            // its hashes lie behind its end
            _ if inode.flags.has(InodeFlags::VERITY) => false,
            _ => found < end.saturating_sub(1) * size,
        };
        if wrong {
            self.found(Finding::Size { ino, found, expected: end * size });
        }
    }

    /// Node `at` of the tree, which may speak of blocks of the file before `limit`. Trees end: the
    /// depth falls with each level, and each node is entered once.
    fn check_extents(
        &mut self,
        inode: &Inode,
        node: &ExtentNode,
        (at, limit): (BlockAddr, u64),
        seen: &mut Seen,
    ) -> Result<(), Error> {
        let place = Place::Extents(inode.ino, at);
        match &node.entries {
            ExtentEntries::Leaf(list) => {
                list.iter().for_each(|extent| self.check_one_extent(inode, extent, place, seen));
                self.check_end(inode, list.last(), limit);
            }
            ExtentEntries::Index(list) => {
                for (slot, index) in list.iter().enumerate() {
                    let below = self.volume.extent_node(inode, *index, node.depth - 1, place);
                    let Some(below) = self.sound(below)? else {
                        seen.damaged = true;
                        continue;
                    };
                    if !self.enter_tree(inode, index.node, seen) {
                        continue;
                    }
                    self.check_start(inode, index.block, &below);
                    let next = list.get(slot + 1).map(|next| u64::from(next.block));
                    let end = next.map_or(limit, |next| next.min(limit));
                    self.check_extents(inode, &below, (index.node, end), seen)?;
                }
            }
        }
        Ok(())
    }

    fn check_start(&mut self, inode: &Inode, found: u32, below: &ExtentNode) {
        let first = match &below.entries {
            ExtentEntries::Leaf(list) => list.first().map(|extent| extent.block),
            ExtentEntries::Index(list) => list.first().map(|index| index.block),
        };
        if let Some(expected) = first.filter(|&first| first != found) {
            self.found(Finding::ExtentStart { ino: inode.ino, found, expected });
        }
    }

    /// The last extent of a leaf against the blocks of the file that the leaf may speak of.
    fn check_end(&mut self, inode: &Inode, last: Option<&Extent>, limit: u64) {
        if let Some(found) = last.map(Extent::end).filter(|&end| end > limit) {
            self.found(Finding::ExtentEnd { ino: inode.ino, found, expected: limit });
        }
    }

    fn check_one_extent(&mut self, inode: &Inode, extent: &Extent, place: Place, seen: &mut Seen) {
        if self.decoded(self.volume.check_extent(extent, place)).is_none() {
            seen.damaged = true;
            return;
        }
        self.claim_content(inode, extent.start.0, extent.len.into());
        seen.blocks += u64::from(extent.len);
        if extent.written {
            seen.end = seen.end.max(extent.end());
        }
    }

    /// Claims a block of extents or pointers. False if it belongs to something: two ways to one
    /// block would be followed without end.
    fn enter_tree(&mut self, inode: &Inode, at: BlockAddr, seen: &mut Seen) -> bool {
        let is_free = self.space.is_free(at.0..at.0 + 1);
        self.claim(at.0, 1, || format!("the tree of inode {}", inode.ino));
        seen.blocks += u64::from(is_free);
        seen.damaged |= !is_free;
        is_free
    }

    fn check_pointers(&mut self, inode: &Inode, seen: &mut Seen) -> Result<(), Error> {
        let pointers = inode.pointers();
        let per_block = self.volume.superblock.block_size() / 4;
        let mut block = 0;
        for (slot, at) in pointers.into_iter().enumerate() {
            let depth = (slot as u32 + 1).saturating_sub(DIRECT_POINTERS);
            self.check_pointer(inode, (at, depth), block, seen)?;
            block += blocks_below(depth, per_block);
        }
        Ok(())
    }

    /// A pointer that stands `depth` blocks of pointers above the data, to what begins at `block`
    /// of the file.
    fn check_pointer(
        &mut self,
        inode: &Inode,
        (at, depth): (u32, u32),
        block: u64,
        seen: &mut Seen,
    ) -> Result<(), Error> {
        if at == 0 {
            return Ok(());
        }
        let at = BlockAddr(at.into());
        let place = Place::Pointers(inode.ino);
        if self.decoded(self.volume.check_address(place, "a pointer", at)).is_none() {
            seen.damaged = true;
            return Ok(());
        }
        if depth == 0 {
            self.claim_content(inode, at.0, 1);
            seen.blocks += 1;
            seen.end = seen.end.max(block + 1);
            return Ok(());
        }
        if !self.enter_tree(inode, at, seen) {
            return Ok(());
        }
        let bytes = self.volume.blocks.metadata(at)?;
        let per_block = self.volume.superblock.block_size() / 4;
        let step = blocks_below(depth - 1, per_block);
        for slot in 0..per_block {
            let below = (pointer(&bytes, slot), depth - 1);
            self.check_pointer(inode, below, block + u64::from(slot) * step, seen)?;
        }
        Ok(())
    }
}
