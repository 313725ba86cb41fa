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
                self.check_extents(inode, &root, BlockAddr::NONE, &mut seen)?;
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
            _ => found < end.saturating_sub(1) * size,
        };
        if wrong {
            self.found(Finding::Size { ino, found, expected: end * size });
        }
    }

    /// Trees end: the depth falls with each level.
    fn check_extents(
        &mut self,
        inode: &Inode,
        node: &ExtentNode,
        at: BlockAddr,
        seen: &mut Seen,
    ) -> Result<(), Error> {
        let place = Place::Extents(inode.ino, at);
        match &node.entries {
            ExtentEntries::Leaf(list) => {
                list.iter().for_each(|extent| self.check_one_extent(inode, extent, place, seen));
            }
            ExtentEntries::Index(list) => {
                for index in list {
                    let below = self.volume.extent_node(inode, *index, node.depth - 1, place);
                    let Some(below) = self.sound(below)? else {
                        seen.damaged = true;
                        continue;
                    };
                    self.claim_tree(inode, index.node, seen);
                    self.check_start(inode, index.block, &below);
                    self.check_extents(inode, &below, index.node, seen)?;
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

    fn check_one_extent(&mut self, inode: &Inode, extent: &Extent, place: Place, seen: &mut Seen) {
        if self.decoded(self.volume.check_extent(extent, place)).is_none() {
            seen.damaged = true;
            return;
        }
        self.claim(extent.start.0, extent.len.into(), || format!("inode {}", inode.ino));
        seen.blocks += u64::from(extent.len);
        if extent.written {
            seen.end = seen.end.max(extent.end());
        }
    }

    fn claim_tree(&mut self, inode: &Inode, at: BlockAddr, seen: &mut Seen) {
        self.claim(at.0, 1, || format!("the tree of inode {}", inode.ino));
        seen.blocks += 1;
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
            self.claim(at.0, 1, || format!("inode {}", inode.ino));
            seen.blocks += 1;
            seen.end = seen.end.max(block + 1);
            return Ok(());
        }
        if !self.space.is_free(at.0..at.0 + 1) {
            // two pointers to one block of pointers would be followed without end
            self.found(Finding::BlockShared {
                address: at,
                what: format!("the pointers of inode {}", inode.ino),
            });
            seen.damaged = true;
            return Ok(());
        }
        self.claim_tree(inode, at, seen);
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
