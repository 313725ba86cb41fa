//! Addresses of a file's blocks, by pointers or by extents.

use dovetail_block::Scheduler;

use super::Ext;
use super::allocate::Request;
use super::policy::goal;
use crate::error::Error;
use crate::format::{
    BlockAddr, Extent, FileType, Incompat, Ino, InodeFlags, MAX_EXTENT_BLOCKS, RoCompat,
    blocks_reached,
};

/// State of the blocks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There are none.
    Hole,
    /// They hold content, and the first one lies here.
    Written(BlockAddr),
    /// They are reserved, and read as zeros.
    Unwritten(BlockAddr),
}

/// A run of blocks of a file in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The first block.
    pub(super) block: u32,
    /// Number of blocks, at least 1; as many as are known to be alike, there may be more.
    pub(super) blocks: u32,
    /// State of the blocks.
    pub(super) state: State,
}

impl Run {
    /// The blocks of an extent.
    pub(super) fn of(extent: &Extent) -> Self {
        let state = if extent.written {
            State::Written(extent.start)
        } else {
            State::Unwritten(extent.start)
        };
        Self { block: extent.block, blocks: extent.len.into(), state }
    }

    /// The first block of the file after it.
    pub(super) fn end(&self) -> u64 {
        u64::from(self.block) + u64::from(self.blocks)
    }

    /// The run from `block` on, which lies in it.
    pub(super) fn from(&self, block: u32) -> Self {
        let skipped = block - self.block;
        let moved = |at: BlockAddr| BlockAddr(at.0 + u64::from(skipped));
        let state = match self.state {
            State::Hole => State::Hole,
            State::Written(at) => State::Written(moved(at)),
            State::Unwritten(at) => State::Unwritten(moved(at)),
        };
        Self { block, blocks: self.blocks - skipped, state }
    }
}

impl<D: Scheduler> Ext<D> {
    /// New files have extents.
    pub(super) fn has_extents(&self) -> bool {
        self.superblock.incompat.has(Incompat::EXTENTS)
    }

    pub(super) fn is_extent_mapped(&mut self, ino: Ino) -> Result<bool, Error> {
        Ok(self.inode(ino)?.flags.has(InodeFlags::EXTENTS))
    }

    /// The first block that a file of this inode's kind cannot have.
    pub(super) fn max_blocks(&mut self, ino: Ino) -> Result<u64, Error> {
        let extents = self.is_extent_mapped(ino)?;
        if extents && self.superblock.ro_compat.has(RoCompat::HUGE_FILE) {
            return Ok(MAX_EXTENT_BLOCKS);
        }
        // sectors are counted with 32 bits without the feature huge_file, and those of nodes or
        // pointers are among them: a node in a block of 1 KiB has 42 entries after a split
        let counted = (u64::from(u32::MAX) * 512) / self.block_size() as u64;
        let (reached, in_one_node) = if extents {
            (MAX_EXTENT_BLOCKS, 32)
        } else {
            (blocks_reached((self.block_size() / 4) as u32), 256)
        };
        Ok(reached.min(counted - counted / in_one_node).min(MAX_EXTENT_BLOCKS))
    }

    /// The run that block `block` of the file is in, from it on.
    pub(super) fn map(&mut self, ino: Ino, block: u32) -> Result<Run, Error> {
        if self.is_extent_mapped(ino)? {
            self.map_extent(ino, block)
        } else {
            self.map_pointer(ino, block)
        }
    }

    /// Gives blocks, which were a hole, a place; it lies in one run on the volume.
    pub(super) fn insert_run(&mut self, ino: Ino, run: Run) -> Result<(), Error> {
        let sectors = u64::from(run.blocks) * (self.block_size() as u64 / 512);
        self.add_sectors(ino, sectors)?;
        if self.is_extent_mapped(ino)? {
            return self.insert_extent(ino, run);
        }
        match run.state {
            State::Written(at) => self.insert_pointers(ino, run.block, run.blocks, at),
            _ => Err(Error::NoSpace),
        }
    }

    /// Takes a place for up to `blocks` blocks of the file, a hole so far, from `block` on, and
    /// maps them.
    pub(super) fn allocate_run(
        &mut self,
        ino: Ino,
        block: u32,
        blocks: u32,
        written: bool,
    ) -> Result<Run, Error> {
        self.check_nodes()?;
        let goal = self.goal(ino, block)?;
        let size_blocks = self.inode(ino)?.size.div_ceil(self.block_size() as u64);
        let size_blocks = size_blocks.max(u64::from(block) + u64::from(blocks));
        let windowed = FileType::of_mode(self.inode(ino)?.mode) == FileType::REGULAR && written;
        let most = if written {
            u32::from(crate::format::MAX_WRITTEN)
        } else {
            crate::format::MAX_UNWRITTEN.into()
        };
        let blocks = blocks.min(most).min(self.most_beside_nodes());
        let reach = self.reach_of(ino)?;
        let request = Request { ino: windowed.then_some(ino), goal, blocks, size_blocks, reach };
        let (at, len) = self.allocate(request)?;
        let state = if written { State::Written(at) } else { State::Unwritten(at) };
        let run = Run { block, blocks: len, state };
        let inserted = self.insert_run(ino, run);
        self.must_have_room(inserted)?;
        Ok(run)
    }

    /// Preferred address of block `block` of the file.
    pub(super) fn goal(&mut self, ino: Ino, block: u32) -> Result<u64, Error> {
        let near = if self.is_extent_mapped(ino)? {
            self.extent_before(ino, block)?
        } else {
            self.pointer_before(ino, block)?
        };
        let (group, _) = self.superblock.inode_group(ino);
        Ok(goal(block, near, self.superblock.group_start(group).0))
    }

    /// The blocks from `from` to before `to` become a hole, and what held them is freed; all of
    /// them, or as many as one transaction should free: then the answer is false, and the rest is
    /// for another call.
    pub(super) fn remove_blocks(&mut self, ino: Ino, from: u64, to: u64) -> Result<bool, Error> {
        let (from, to) = (from.min(MAX_EXTENT_BLOCKS), to.min(MAX_EXTENT_BLOCKS + 1));
        if from >= to {
            return Ok(true);
        }
        self.check_removable(ino)?;
        let mut budget = (self.max_transaction() / 2).max(16);
        if self.is_extent_mapped(ino)? {
            self.remove_extents(ino, from as u32, to, &mut budget)?;
        } else {
            self.remove_pointers(ino, from as u32, to, &mut budget)?;
        }
        Ok(budget > 0)
    }

    /// As [`Self::remove_blocks`], in as many transactions as it takes. After each the file must be
    /// what it may be after a power cut.
    pub(super) fn remove_in_parts(&mut self, ino: Ino, from: u64, to: u64) -> Result<(), Error> {
        while !self.remove_blocks(ino, from, to)? {
            self.commit_if_large()?;
        }
        Ok(())
    }

    /// Frees blocks of content, and counts them off the inode.
    pub(super) fn free_content(
        &mut self,
        ino: Ino,
        start: BlockAddr,
        blocks: u32,
    ) -> Result<(), Error> {
        let is_content = FileType::of_mode(self.inode(ino)?.mode) == FileType::REGULAR;
        if !is_content || self.journals_content(ino)? {
            (0..u64::from(blocks)).for_each(|offset| self.forget_meta(BlockAddr(start.0 + offset)));
        }
        self.free_blocks(start, blocks)?;
        self.count_off(ino, blocks)
    }

    /// Frees a block that held pointers or a node.
    pub(super) fn free_meta(&mut self, ino: Ino, at: BlockAddr) -> Result<(), Error> {
        self.forget_meta(at);
        self.free_blocks(at, 1)?;
        self.count_off(ino, 1)
    }

    fn add_sectors(&mut self, ino: Ino, sectors: u64) -> Result<(), Error> {
        let inode = self.edit_inode(ino)?;
        inode.sectors = inode.sectors.saturating_add(sectors);
        Ok(())
    }

    fn count_off(&mut self, ino: Ino, blocks: u32) -> Result<(), Error> {
        let sectors = u64::from(blocks) * (self.block_size() as u64 / 512);
        let inode = self.edit_inode(ino)?;
        inode.sectors = inode.sectors.saturating_sub(sectors);
        Ok(())
    }

    /// Takes a block for pointers or a node of the file.
    pub(super) fn take_meta(&mut self, ino: Ino, goal: u64) -> Result<BlockAddr, Error> {
        let reach = self.reach_of(ino)?;
        let at = self.allocate_meta(goal, reach)?;
        let sectors = self.block_size() as u64 / 512;
        self.add_sectors(ino, sectors)?;
        Ok(at)
    }
}
