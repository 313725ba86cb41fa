//! The files of a new volume: root directory, lost+found, what is kept for descriptors, the
//! journal.

use std::ops::Range;

use super::geometry::default_journal_blocks;
use super::place::Places;
use super::{MkfsError, MkfsOptions};
use crate::format::{
    BlockAddr, Compat, DIRECT_POINTERS, DirBlockMut, DirFormat, Extent, ExtentEntries, ExtentIndex,
    ExtentNode, FileType, GroupNo, Incompat, Ino, Inode, InodeFlags, MAX_WRITTEN, PointerWay,
    Superblock, blocks_reached, extents_in, seal_dir_block, seal_extent_block, set_pointer,
};
use crate::journal::JournalSuperblock;

use dovetail_vfs::Timestamp;

pub(super) const LOST_FOUND: Ino = Ino(11);
/// lost+found has as many blocks as can be pointed to directly, at most this many bytes.
const LOST_FOUND_BYTES: u64 = 16 << 10;
/// Smallest journal of any kernel, and largest one that mke2fs allows, in blocks.
const MIN_JOURNAL: u64 = 1024;
const MAX_JOURNAL: u64 = 10_240_000;

/// Everything that is to be written, but bitmaps, descriptors and superblocks.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) superblock: Superblock,
    pub(super) places: Places,
    /// Blocks of directories, pointers and the journal's superblock.
    pub(super) blocks: Vec<(BlockAddr, Vec<u8>)>,
    /// Blocks that must read as zeros.
    pub(super) zeros: Vec<Range<u64>>,
    pub(super) inodes: Vec<Inode>,
    pub(super) journal_blocks: u32,
    time: Timestamp,
}

impl Content {
    pub(super) fn new(
        superblock: Superblock,
        places: Places,
        options: &MkfsOptions,
    ) -> Result<Self, MkfsError> {
        let time = Timestamp { seconds: options.time as i64, nanoseconds: 0 };
        let (blocks, zeros, inodes) = (Vec::new(), Vec::new(), Vec::new());
        let mut content =
            Self { superblock, places, blocks, zeros, inodes, journal_blocks: 0, time };
        content.add_directories(options.root_owner)?;
        content.add_reserved_inodes();
        if content.superblock.compat.has(Compat::RESIZE_INODE) {
            content.add_resize_inode()?;
        }
        if content.superblock.compat.has(Compat::HAS_JOURNAL) {
            content.add_journal(options.journal_blocks)?;
        }
        content.count();
        Ok(content)
    }

    fn block_size(&self) -> usize {
        self.superblock.block_size() as usize
    }

    fn blocks_to_sectors(&self, blocks: u64) -> u64 {
        blocks * self.block_size() as u64 / 512
    }

    /// The next free blocks from `goal` on, or from the volume's start, at most `count`.
    fn take(&mut self, goal: u64, count: u64) -> Result<Range<u64>, MkfsError> {
        let end = self.superblock.blocks_count;
        let found = self.places.space.take_next(goal..end, count);
        let found = found.or_else(|| self.places.space.take_next(0..end, count));
        let bytes = end * self.block_size() as u64;
        found.ok_or(MkfsError::TooSmall { bytes, short: "there is no room for the first files" })
    }

    fn take_all(&mut self, goal: u64, count: u64) -> Result<Vec<Range<u64>>, MkfsError> {
        let (mut found, mut left, mut goal) = (Vec::new(), count, goal);
        while left > 0 {
            let run = self.take(goal, left)?;
            left -= run.end - run.start;
            goal = run.end;
            found.push(run);
        }
        Ok(found)
    }

    /// The start of an inode's group, or of those that its group is joined to.
    fn goal_of(&self, ino: Ino) -> u64 {
        let group = self.superblock.inode_group(ino).0.0;
        let joined = self.superblock.groups_per_flex();
        self.superblock.group_start(GroupNo(group - group % joined)).0
    }

    /// The end of group 0's inode table: where files that belong to no directory begin.
    fn after_table(&self) -> u64 {
        self.places.groups[0].inode_table.0 + u64::from(self.superblock.inode_table_blocks())
    }

    fn new_inode(&self, ino: Ino, mode: u16, links: u16) -> Inode {
        let mut inode = Inode::new(ino, mode, &self.superblock);
        (inode.atime, inode.ctime, inode.mtime) = (self.time, self.time, self.time);
        inode.crtime = inode.crtime.map(|_| self.time);
        inode.links = links;
        inode
    }

    fn add_directories(&mut self, (uid, gid): (u32, u32)) -> Result<(), MkfsError> {
        let root_blocks = self.take_all(self.goal_of(Ino::ROOT), 1)?;
        let size = self.block_size() as u64;
        let count = (LOST_FOUND_BYTES / size).min(DIRECT_POINTERS.into());
        let lost_blocks = self.take_all(self.goal_of(LOST_FOUND), count)?;
        let mut root = self.new_inode(Ino::ROOT, 0o040_755, 3);
        (root.uid, root.gid) = (uid, gid);
        let names: [(&[u8], Ino); 3] =
            [(b".", Ino::ROOT), (b"..", Ino::ROOT), (b"lost+found", LOST_FOUND)];
        self.add_directory(root, &root_blocks, &names)?;
        let lost = self.new_inode(LOST_FOUND, 0o040_700, 2);
        let names: [(&[u8], Ino); 2] = [(b".", LOST_FOUND), (b"..", Ino::ROOT)];
        self.add_directory(lost, &lost_blocks, &names)
    }

    fn add_directory(
        &mut self,
        mut dir: Inode,
        blocks: &[Range<u64>],
        names: &[(&[u8], Ino)],
    ) -> Result<(), MkfsError> {
        let count: u64 = blocks.iter().map(|run| run.end - run.start).sum();
        dir.size = count * self.block_size() as u64;
        dir.sectors = self.blocks_to_sectors(count);
        if self.superblock.incompat.has(Incompat::EXTENTS) {
            self.map_by_extents(&mut dir, blocks)?;
        } else {
            let all = blocks.iter().flat_map(Clone::clone).enumerate();
            all.for_each(|(slot, at)| dir.set_pointer(slot, at as u32));
        }
        for (number, at) in blocks.iter().flat_map(Clone::clone).enumerate() {
            let names = if number == 0 { names } else { &[] };
            let bytes = self.directory_block(&dir, number as u32, names);
            self.blocks.push((BlockAddr(at), bytes));
        }
        self.inodes.push(dir);
        Ok(())
    }

    fn directory_block(&self, dir: &Inode, number: u32, names: &[(&[u8], Ino)]) -> Vec<u8> {
        let seed = dir.checksum_seed(&self.superblock);
        let has_type = self.superblock.incompat.has(Incompat::FILETYPE);
        let format = DirFormat { has_type, has_checksum: seed.is_some() };
        let mut bytes = vec![0; self.block_size()];
        let mut block = DirBlockMut::init(&mut bytes, format, dir.ino, number);
        for (name, ino) in names {
            // three short names in an empty block
            let _ = block.insert(name, *ino, FileType::DIRECTORY);
        }
        if let Some(seed) = seed {
            seal_dir_block(&mut bytes, seed);
        }
        bytes
    }

    /// The inodes before the first one for files; that of bad blocks has times, as that of mke2fs.
    fn add_reserved_inodes(&mut self) {
        for ino in (1..self.superblock.first_ino.0).filter(|ino| *ino != Ino::ROOT.0).map(Ino) {
            let mut inode = Inode::new(ino, 0, &self.superblock);
            inode.xattr_area = Vec::new();
            (inode.extra_isize, inode.crtime, inode.project) = (0, None, None);
            if ino == Ino::BAD_BLOCKS {
                (inode.atime, inode.ctime, inode.mtime) = (self.time, self.time, self.time);
            }
            self.inodes.push(inode);
        }
    }

    fn replace(&mut self, inode: Inode) {
        self.inodes.retain(|other| other.ino != inode.ino);
        self.inodes.push(inode);
    }

    /// The inode that holds what is kept for more descriptors: a double indirect block leads to
    /// those of group 0, each of which leads to those in its place in the other groups.
    fn add_resize_inode(&mut self) -> Result<(), MkfsError> {
        let per_block = self.superblock.block_size() / 4;
        let kept = u32::from(self.superblock.reserved_gdt_blocks);
        let in_use = self.superblock.descriptor_blocks();
        let top = self.take(self.after_table(), 1)?.start;
        let groups = (1..self.superblock.group_count()).map(GroupNo);
        let backups: Vec<u64> = groups
            .filter(|&group| self.superblock.has_superblock(group))
            .map(|group| self.superblock.group_start(group).0)
            .collect();
        let first = self.superblock.group_start(GroupNo(0)).0;
        let mut top_block = vec![0; self.block_size()];
        for index in (in_use..in_use + kept).map(u64::from) {
            set_pointer(&mut top_block, index as u32 % per_block, (first + 1 + index) as u32);
            let mut block = vec![0; self.block_size()];
            for (slot, start) in backups.iter().enumerate() {
                set_pointer(&mut block, slot as u32, (start + 1 + index) as u32);
            }
            self.blocks.push((BlockAddr(first + 1 + index), block));
        }
        self.blocks.push((BlockAddr(top), top_block));
        let mut inode = self.new_inode(Ino::RESIZE, 0o100_600, 1);
        inode.set_pointer(13, top as u32);
        let (p, size) = (u64::from(per_block), self.block_size() as u64);
        inode.size = (u64::from(DIRECT_POINTERS) + p + p * p) * size;
        inode.sectors = self.blocks_to_sectors(1 + u64::from(kept) * (1 + backups.len() as u64));
        self.replace(inode);
        Ok(())
    }

    fn add_journal(&mut self, asked: Option<u32>) -> Result<(), MkfsError> {
        let Some(blocks) = asked.or_else(|| default_journal_blocks(self.superblock.blocks_count))
        else {
            // too small for a journal: as mke2fs, without one
            self.superblock.compat = self.superblock.compat.without(Compat::HAS_JOURNAL);
            return Ok(());
        };
        let free =
            self.superblock.blocks_count - self.places.space.count(0..self.superblock.blocks_count);
        // as mke2fs: one that is asked for leaves half of the room
        let room = if asked.is_some() { free / 2 } else { free };
        let max = MAX_JOURNAL.min(room).min(self.longest_journal());
        if !(MIN_JOURNAL..=max).contains(&blocks.into()) {
            return Err(MkfsError::Journal { blocks: blocks.into(), min: MIN_JOURNAL, max });
        }
        self.journal_blocks = blocks;
        let mut inode = self.new_inode(Ino::JOURNAL, 0o100_600, 1);
        inode.size = u64::from(blocks) * self.block_size() as u64;
        let runs = if self.superblock.incompat.has(Incompat::EXTENTS) {
            let goal = self.superblock.group_start(self.middle_group()).0;
            let runs = self.take_all(goal, blocks.into())?;
            let used = u64::from(blocks) + self.map_by_extents(&mut inode, &runs)?;
            inode.sectors = self.blocks_to_sectors(used);
            runs
        } else {
            self.map_by_pointers(&mut inode, blocks)?
        };
        let first = runs[0].start;
        self.zeros.extend(runs);
        let journal =
            JournalSuperblock::new(self.superblock.block_size(), blocks, self.superblock.uuid);
        let mut bytes = vec![0; self.block_size()];
        bytes[..1024].copy_from_slice(&journal.encode());
        self.blocks.push((BlockAddr(first), bytes));
        self.remember_journal(&inode);
        self.replace(inode);
        Ok(())
    }

    /// Blocks that an inode leads to through one node of extents, or through its pointers.
    fn longest_journal(&self) -> u64 {
        if self.superblock.incompat.has(Incompat::EXTENTS) {
            // a run may be cut by copies of the superblock: half of the entries are enough for that
            u64::from(extents_in(self.block_size()) / 2) * u64::from(MAX_WRITTEN)
        } else {
            blocks_reached(self.superblock.block_size() / 4)
        }
    }

    /// Stores the journal's inode number, and a copy of where its blocks lie.
    fn remember_journal(&mut self, inode: &Inode) {
        self.superblock.journal_ino = inode.ino;
        self.superblock.journal_backup_type = 1;
        let mut backup = [0; 17];
        backup[..15].copy_from_slice(&inode.pointers());
        (backup[15], backup[16]) = ((inode.size >> 32) as u32, inode.size as u32);
        self.superblock.journal_backup = backup;
    }

    /// The group for the journal: one in the middle of the volume, so that the way to it is short;
    /// of three neighbours the one with most room. Where groups are joined, the three begin with
    /// the joint's first group that has room.
    fn middle_group(&self) -> GroupNo {
        let groups = self.superblock.group_count();
        let middle =
            (self.superblock.blocks_count - u64::from(self.superblock.first_data_block)) / 2;
        let middle = self.superblock.group_of(BlockAddr(middle)).0.0;
        let step = self.superblock.groups_per_flex();
        let (first, middle) = if step > 1 && middle > step {
            let start = middle - middle % step;
            let start =
                (start..groups).find(|&group| self.free_in(GroupNo(group)) > 0).unwrap_or(0);
            (start, start)
        } else {
            (middle.saturating_sub(1), middle)
        };
        let last = (middle + 1).min(groups - 1);
        let most = (first..=last).rev().max_by_key(|&group| self.free_in(GroupNo(group)));
        GroupNo(most.unwrap_or(first))
    }

    /// Free blocks of a group.
    pub(super) fn free_in(&self, group: GroupNo) -> u64 {
        let start = self.superblock.group_start(group).0;
        let blocks = u64::from(self.superblock.group_blocks(group));
        blocks - self.places.space.count(start..start + blocks)
    }

    /// Lets an inode lead to runs of blocks; returns how many blocks the tree takes beside the
    /// inode.
    fn map_by_extents(&mut self, inode: &mut Inode, runs: &[Range<u64>]) -> Result<u64, MkfsError> {
        let extents = extents_of(runs);
        inode.flags = inode.flags.with(InodeFlags::EXTENTS);
        let mut root = ExtentNode::new_leaf(inode.block.len());
        let mut used = 0;
        if extents.len() <= usize::from(root.max) {
            root.entries = ExtentEntries::Leaf(extents);
        } else {
            let before = extents[0].start.0 - 1;
            let node = if self.places.space.is_free(before..before + 1) {
                before
            } else {
                extents[0].start.0
            };
            let node = BlockAddr(self.take(node, 1)?.start);
            let leaf = ExtentNode {
                entries: ExtentEntries::Leaf(extents),
                ..ExtentNode::new_leaf(self.block_size())
            };
            self.add_extent_block(inode, node, &leaf);
            root.depth = 1;
            root.entries = ExtentEntries::Index(vec![ExtentIndex { block: 0, node }]);
            used = 1;
        }
        root.encode(&mut inode.block);
        Ok(used)
    }

    fn add_extent_block(&mut self, inode: &Inode, at: BlockAddr, node: &ExtentNode) {
        let mut bytes = vec![0; self.block_size()];
        node.encode(&mut bytes);
        if let Some(seed) = inode.checksum_seed(&self.superblock) {
            seal_extent_block(&mut bytes, seed);
        }
        self.blocks.push((at, bytes));
    }

    /// Gives an inode `count` blocks through pointers, in the order of the file: a block of
    /// pointers lies before what it leads to. Returns where the blocks of the file lie.
    fn map_by_pointers(
        &mut self,
        inode: &mut Inode,
        count: u32,
    ) -> Result<Vec<Range<u64>>, MkfsError> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut open: Vec<(BlockAddr, Vec<u8>)> = Vec::new();
        let (mut goal, mut used) = (self.after_table(), 0);
        let mut next = |content: &mut Self| {
            let at = content.take(goal, 1)?.start;
            (goal, used) = (at + 1, used + 1);
            Ok::<u64, MkfsError>(at)
        };
        for block in 0..count {
            let Some(way) = PointerWay::to(block, self.superblock.block_size() / 4) else { break };
            let slots = way.slots();
            for level in 1..slots.len() {
                if slots[level..].iter().all(|slot| *slot == 0) {
                    let at = next(self)?;
                    self.blocks.extend(open.drain(level - 1..));
                    put_pointer(inode, &mut open, slots[level - 1], at);
                    open.push((BlockAddr(at), vec![0; self.block_size()]));
                }
            }
            let at = next(self)?;
            put_pointer(inode, &mut open, slots[slots.len() - 1], at);
            match runs.last_mut() {
                Some(run) if run.end == at => run.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        self.blocks.extend(open);
        inode.sectors = self.blocks_to_sectors(used);
        Ok(runs)
    }

    /// Counts free blocks and inodes, and the blocks that the format takes.
    fn count(&mut self) {
        let taken = self.places.space.count(0..self.superblock.blocks_count);
        let boot = u64::from(self.superblock.first_data_block);
        self.superblock.free_blocks = self.superblock.blocks_count - taken;
        self.superblock.free_inodes = self.superblock.inodes_count - LOST_FOUND.0;
        let groups = self.superblock.group_count();
        let base: u64 =
            (0..groups).map(|group| u64::from(self.superblock.base_blocks(GroupNo(group)))).sum();
        let tables = u64::from(groups) * (2 + u64::from(self.superblock.inode_table_blocks()));
        self.superblock.overhead = (boot + base + tables + u64::from(self.journal_blocks)) as u32;
    }
}

/// Sets a pointer in the lowest open block of pointers, or in the inode if there is none.
fn put_pointer(inode: &mut Inode, open: &mut [(BlockAddr, Vec<u8>)], slot: u32, to: u64) {
    match open.last_mut() {
        Some((_, block)) => set_pointer(block, slot, to as u32),
        None => inode.set_pointer(slot as usize, to as u32),
    }
}

fn extents_of(runs: &[Range<u64>]) -> Vec<Extent> {
    let mut list: Vec<Extent> = Vec::new();
    let mut block = 0;
    for run in runs {
        let mut at = run.start;
        while at < run.end {
            let len = (run.end - at).min(MAX_WRITTEN.into()) as u16;
            list.push(Extent { block, len, start: BlockAddr(at), written: true });
            (block, at) = (block + u32::from(len), at + u64::from(len));
        }
    }
    list
}
