//! Calls that change nothing but bytes of blocks, for callers who share the mount: answered from
//! what is in memory and the blocks of the content. All else is left to the calls of the same name,
//! which tell errors and bring into memory what is missing.

use std::ops::Range;

use dovetail_block::{BLOCK_SIZE, Scheduler};
use dovetail_vfs::kit::{StoredBytes, read_shared};
use dovetail_vfs::{Attr, Caller, Ino as Number, SharedCalls};

use super::map::{Run, State};
use super::vfs::ino_of;
use super::{DataMode, Ext};
use crate::format::{
    BLOCK_AREA, BlockAddr, ExtentEntry, FileType, Inode, InodeFlags, search_extents,
};

impl<D: Scheduler> SharedCalls for Ext<D> {
    fn read(&self, ino: Number, offset: u64, into: &mut [u8]) -> Option<usize> {
        let inode = self.inodes.peek(ino_of(ino))?;
        if !self.is_plain(inode) {
            return None;
        }
        let len = inode.size.saturating_sub(offset).min(into.len() as u64) as usize;
        let stored = |range: Range<u64>| self.stored_bytes(inode, range);
        let read = |at, into: &mut [u8]| self.io.read_shared(at, into);
        read_shared((&self.pages, ino.0), offset, &mut into[..len], stored, read)?;
        Some(len)
    }

    /// Whole pages of blocks that hold content, within one tick of the clock: an overwrite that the
    /// journal has nothing of.
    fn write(&self, caller: &Caller, ino: Number, offset: u64, bytes: &[u8]) -> Option<()> {
        let inode = self.inodes.peek(ino_of(ino))?;
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= inode.size)?;
        let whole = offset.is_multiple_of(BLOCK_SIZE) && end.is_multiple_of(BLOCK_SIZE);
        let is_stamped = (inode.mtime, inode.ctime) == (caller.now, caller.now);
        let is_plain = self.is_plain(inode) && self.per_page() == 1 && self.io.space().is_none();
        let fixed = InodeFlags::IMMUTABLE.0 | InodeFlags::APPEND.0 | InodeFlags::VERITY.0;
        let may = !self.is_read_only() && self.changed.is_none() && inode.flags.0 & fixed == 0;
        let pages = offset / BLOCK_SIZE..end / BLOCK_SIZE;
        if !whole || !is_stamped || !is_plain || !may || self.pages.first_in(ino.0, pages).is_some()
        {
            return None;
        }
        // one run: a write of which only a part can be done is not begun
        let stored = self.stored_bytes(inode, offset..end)?;
        let at = stored.at.filter(|_| stored.end >= end)?;
        self.io.write_shared(at, bytes).then_some(())
    }

    fn getattr(&self, ino: Number) -> Option<Attr> {
        self.inodes.peek(ino_of(ino)).map(|inode| self.attr_of(inode))
    }
}

impl<D: Scheduler> Ext<D> {
    /// A regular file of extents, whose content lies in its blocks and nowhere else.
    fn is_plain(&self, inode: &Inode) -> bool {
        let other = InodeFlags::ENCRYPT.0 | InodeFlags::INLINE_DATA.0 | InodeFlags::JOURNAL_DATA.0;
        inode.file_type() == FileType::REGULAR
            && inode.flags.has(InodeFlags::EXTENTS)
            && inode.flags.0 & other == 0
            && self.options.data != DataMode::Journal
    }

    /// Location of the bytes at the start of `range`.
    fn stored_bytes(&self, inode: &Inode, range: Range<u64>) -> Option<StoredBytes> {
        let size = self.block_size() as u64;
        let block = u32::try_from(range.start / size).ok()?;
        let run = self.run_in_memory(inode, block)?;
        let at = match run.state {
            State::Written(at) => Some(at.0.checked_mul(size)? + range.start % size),
            State::Hole | State::Unwritten(_) => None,
        };
        Some(StoredBytes { end: run.end() * size, at })
    }

    /// The run that a block is in, if all nodes on the way to it are in memory.
    pub(super) fn run_in_memory(&self, inode: &Inode, block: u32) -> Option<Run> {
        let (mut depth, mut entry, mut end) =
            search_extents(inode.block.get(..BLOCK_AREA)?, None, block)?;
        while let ExtentEntry::Index(index) = entry {
            let node = &self.meta.peek(index.node)?[..self.block_size()];
            let (next, found, before) = search_extents(node, Some(depth - 1), block)?;
            (depth, entry, end) = (next, found, end.min(before));
        }
        match entry {
            ExtentEntry::Extent(extent) => {
                let last = BlockAddr(extent.start.0 + u64::from(extent.len) - 1);
                let inside =
                    self.superblock.contains(extent.start) && self.superblock.contains(last);
                inside.then(|| Run::of(&extent).from(block))
            }
            _ => {
                let blocks = (end - u64::from(block)).min(u32::MAX.into()) as u32;
                Some(Run { block, blocks, state: State::Hole })
            }
        }
    }
}
