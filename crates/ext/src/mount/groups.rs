//! Block groups: their descriptors, and which of their blocks may be taken.
//!
//! A group's map for taking blocks has more bits set than the bitmap on disk: blocks freed in the
//! running transaction, and windows kept for files. It is made when it is first needed.

use std::ops::Range;

use dovetail_block::Scheduler;

use super::Ext;
use super::meta::Kind;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BlockAddr, Group, GroupFlags, GroupNo, Superblock, bitmap_checksum, count_bits, next_bit,
    set_bits,
};

#[derive(Clone, Debug)]
struct GroupState {
    desc: Group,
    /// Bits of blocks that must not be taken.
    taken: Option<Vec<u8>>,
    longest: Option<Longest>,
}

/// What is known of the longest run of free blocks in a group: none is longer.
#[derive(Clone, Copy, Debug)]
struct Longest {
    /// The first such run, counted from the group's begin.
    start: u32,
    blocks: u32,
    /// It is there still: nothing of it was taken.
    is_there: bool,
}

impl GroupState {
    /// Blocks of the group are taken.
    fn took(&mut self, range: &Range<usize>) {
        if let Some(longest) = &mut self.longest {
            let end = (longest.start + longest.blocks) as usize;
            longest.is_there &= range.end <= longest.start as usize || end <= range.start;
        }
    }

    /// The longest run, if it is known where that is and that it is shorter than `wanted`; `None`
    /// within if the group has none.
    fn longest_below(&self, wanted: u32) -> Option<Option<(u32, u32)>> {
        let Longest { start, blocks, .. } =
            self.longest.filter(|longest| longest.is_there && longest.blocks < wanted)?;
        Some((blocks > 0).then_some((start, blocks)))
    }
}

/// All groups, and the sums of what is free.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    list: Vec<GroupState>,
    free_blocks: u64,
    free_inodes: u32,
    /// Blocks that are free on disk and cannot be taken before the next commit.
    pending: u64,
    /// Blocks at places of the device: they take room, and no bitmap tells of them.
    physical: u64,
}

impl Groups {
    pub(super) fn new(descs: Vec<Group>) -> Self {
        let free_blocks = descs.iter().map(|desc| u64::from(desc.free_blocks)).sum();
        let free_inodes =
            descs.iter().fold(0_u32, |sum, desc| sum.saturating_add(desc.free_inodes));
        let list =
            descs.into_iter().map(|desc| GroupState { desc, taken: None, longest: None }).collect();
        Self { list, free_blocks, free_inodes, pending: 0, physical: 0 }
    }

    pub(super) fn desc(&self, group: GroupNo) -> &Group {
        &self.list[group.0 as usize].desc
    }

    pub(super) fn free_blocks(&self) -> u64 {
        self.free_blocks.saturating_sub(self.physical)
    }

    pub(super) fn physical(&self) -> u64 {
        self.physical
    }

    pub(super) fn set_physical(&mut self, blocks: u64) {
        self.physical = blocks;
    }

    /// Blocks that can be taken before the next commit.
    pub(super) fn takeable(&self) -> u64 {
        self.free_blocks().saturating_sub(self.pending)
    }

    pub(super) fn free_inodes(&self) -> u32 {
        self.free_inodes
    }

    pub(super) fn pending(&self) -> u64 {
        self.pending
    }

    pub(super) fn add_free_inodes(&mut self, more: i32) {
        self.free_inodes = self.free_inodes.saturating_add_signed(more);
    }

    /// No run of the group is as long as this.
    pub(super) fn cannot_hold(&self, group: GroupNo, blocks: u32) -> bool {
        let state = &self.list[group.0 as usize];
        state.desc.free_blocks == 0 || state.longest.is_some_and(|longest| longest.blocks < blocks)
    }
}

/// The first run of clear bits in `range` that has `wanted`, cut to that, or else the longest.
fn first_free_run(map: &[u8], range: Range<usize>, wanted: u32) -> Option<(u32, u32)> {
    let (mut at, mut best) = (range.start, None);
    while let Some(start) = next_bit(map, at..range.end, false) {
        let most = range.end.min(start + wanted as usize);
        at = next_bit(map, start..most, true).unwrap_or(most);
        let run = (start as u32, (at - start) as u32);
        if run.1 >= wanted {
            return Some(run);
        }
        if best.is_none_or(|(_, longest)| longest < run.1) {
            best = Some(run);
        }
    }
    best
}

/// The bits that are set in the bitmap of a group that was never written: what copies of the
/// superblock, descriptors, bitmaps and inode tables take, its own or those of other groups, and
/// what lies beyond its end.
fn initial_bitmap(
    group: GroupNo,
    descs: &[Group],
    superblock: &Superblock,
    bytes: usize,
) -> Vec<u8> {
    let mut map = vec![0; bytes];
    let blocks = superblock.group_blocks(group);
    set_bits(&mut map, 0..superblock.base_blocks(group) as usize, true);
    set_bits(&mut map, blocks as usize..bytes * 8, true);
    let start = superblock.group_start(group).0;
    let table = u64::from(superblock.inode_table_blocks());
    for desc in descs {
        for (first, len) in
            [(desc.block_bitmap.0, 1), (desc.inode_bitmap.0, 1), (desc.inode_table.0, table)]
        {
            let (from, to) = (first.max(start), (first + len).min(start + u64::from(blocks)));
            if from < to {
                set_bits(&mut map, (from - start) as usize..(to - start) as usize, true);
            }
        }
    }
    map
}

impl<D: Scheduler> Ext<D> {
    /// The descriptor, to be changed in the running transaction.
    pub(super) fn edit_group(&mut self, group: GroupNo) -> &mut Group {
        self.note_edit();
        self.running.groups.insert(group);
        &mut self.groups.list[group.0 as usize].desc
    }

    /// A bitmap as it is on disk or in the running transaction.
    pub(super) fn load_bitmap(
        &mut self,
        at: BlockAddr,
        group: GroupNo,
        blocks: bool,
    ) -> Result<&[u8], Error> {
        let desc = *self.groups.desc(group);
        let (place, bits, sum) = match blocks {
            true => (
                Place::BlockBitmap(group),
                self.superblock.clusters_per_group,
                desc.block_bitmap_csum,
            ),
            false => (
                Place::InodeBitmap(group),
                self.superblock.inodes_per_group,
                desc.inode_bitmap_csum,
            ),
        };
        let superblock = self.superblock.clone();
        // edits are summed up when they are committed
        let checked = !self.running.blocks.contains_key(&at);
        let map = self.meta(at, Kind::Plain, place)?;
        if checked && let Some(computed) = bitmap_checksum(map, bits, &superblock) {
            Corrupt::check_checksum(place, sum, computed)?;
        }
        Ok(map)
    }

    /// The bits of blocks that must not be taken, in the group's map.
    pub(super) fn taken(&mut self, group: GroupNo) -> Result<&mut Vec<u8>, Error> {
        if self.groups.list[group.0 as usize].taken.is_none() {
            let desc = *self.groups.desc(group);
            let map = if desc.flags.has(GroupFlags::BLOCK_UNINIT) {
                self.initial_bitmap(group)
            } else {
                let blocks = self.superblock.group_blocks(group) as usize;
                let mut map = self.load_bitmap(desc.block_bitmap, group, true)?.to_vec();
                let bits = map.len() * 8;
                set_bits(&mut map, blocks..bits, true);
                map
            };
            self.groups.list[group.0 as usize].taken = Some(map);
        }
        self.groups.list[group.0 as usize].taken.as_mut().ok_or(Error::NoSpace)
    }

    fn initial_bitmap(&self, group: GroupNo) -> Vec<u8> {
        let descs: Vec<Group> = self.groups.list.iter().map(|state| state.desc).collect();
        initial_bitmap(group, &descs, &self.superblock, self.block_size())
    }

    /// Free blocks of a group, from `from` on: the first run that has `wanted`, or else the longest.
    pub(super) fn find_run(
        &mut self,
        group: GroupNo,
        from: u32,
        wanted: u32,
    ) -> Result<Option<(u32, u32)>, Error> {
        let blocks = from as usize..self.superblock.group_blocks(group) as usize;
        if from == 0
            && let Some(longest) = self.groups.list[group.0 as usize].longest_below(wanted)
        {
            debug_assert_eq!(first_free_run(self.taken(group)?, blocks, wanted), longest);
            return Ok(longest);
        }
        let found = first_free_run(self.taken(group)?, blocks, wanted);
        if from == 0 && found.is_none_or(|(_, blocks)| blocks < wanted) {
            let (start, blocks) = found.unwrap_or_default();
            let longest = Longest { start, blocks, is_there: true };
            self.groups.list[group.0 as usize].longest = Some(longest);
        }
        Ok(found)
    }

    /// The first `blocks` blocks of a group from `from` on can be taken.
    pub(super) fn are_free(
        &mut self,
        group: GroupNo,
        from: u32,
        blocks: u32,
    ) -> Result<bool, Error> {
        let range = from as usize..(from + blocks) as usize;
        Ok(next_bit(self.taken(group)?, range, true).is_none())
    }

    /// Tells the device of all blocks that can be taken: it may still hold something of them.
    pub(super) fn discard_free(&mut self) -> Result<(), Error> {
        for group in (0..self.superblock.group_count()).map(GroupNo) {
            let start = self.superblock.group_start(group).0;
            let end = self.superblock.group_blocks(group) as usize;
            let map = self.taken(group)?;
            let (mut free, mut at) = (Vec::new(), 0);
            while let Some(first) = next_bit(map, at..end, false) {
                at = next_bit(map, first..end, true).unwrap_or(end);
                free.push((start + first as u64, (at - first) as u64));
            }
            self.io.discard(&free)?;
        }
        Ok(())
    }

    /// Marks blocks as kept, or no longer kept, without using them.
    pub(super) fn keep(&mut self, start: BlockAddr, blocks: u32, kept: bool) -> Result<(), Error> {
        let (group, first) = self.superblock.group_of(start);
        let range = first as usize..(first + blocks) as usize;
        set_bits(self.taken(group)?, range.clone(), kept);
        let state = &mut self.groups.list[group.0 as usize];
        if kept {
            state.took(&range);
        } else {
            state.longest = None;
        }
        Ok(())
    }

    /// The blocks, which lie in one group, are used from now on.
    pub(super) fn use_blocks(&mut self, start: BlockAddr, blocks: u32) -> Result<(), Error> {
        let (group, first) = self.superblock.group_of(start);
        let range = first as usize..(first + blocks) as usize;
        self.init_block_bitmap(group)?;
        set_bits(self.taken(group)?, range.clone(), true);
        self.groups.list[group.0 as usize].took(&range);
        let (at, place) = (self.groups.desc(group).block_bitmap, Place::BlockBitmap(group));
        let map = self.edit_meta(at, Kind::Plain, place)?;
        Corrupt::check_equal(
            place,
            "used bits of free blocks",
            count_bits(map, range.clone()) as u64,
            0_u64,
        )?;
        set_bits(map, range, true);
        let desc = self.edit_group(group);
        desc.free_blocks = desc.free_blocks.saturating_sub(blocks);
        self.groups.free_blocks = self.groups.free_blocks.saturating_sub(blocks.into());
        Ok(())
    }

    fn init_block_bitmap(&mut self, group: GroupNo) -> Result<(), Error> {
        let desc = *self.groups.desc(group);
        if !desc.flags.has(GroupFlags::BLOCK_UNINIT) {
            return Ok(());
        }
        let initial = self.initial_bitmap(group);
        self.new_meta(desc.block_bitmap, Kind::Plain).copy_from_slice(&initial);
        let desc = self.edit_group(group);
        desc.flags = desc.flags.without(GroupFlags::BLOCK_UNINIT);
        Ok(())
    }

    /// The blocks are free once this is committed.
    pub(super) fn free_blocks(&mut self, start: BlockAddr, blocks: u32) -> Result<(), Error> {
        if self.is_place(start) {
            self.free_places(start, blocks);
            return Ok(());
        }
        for (start, blocks) in self.by_group(start, blocks) {
            self.unuse_blocks(start, blocks)?;
            self.groups.pending += u64::from(blocks);
            self.running.freed.push((start, blocks));
        }
        Ok(())
    }

    /// Blocks of the volume, cut where a group ends.
    fn by_group(&self, start: BlockAddr, blocks: u32) -> Vec<(BlockAddr, u32)> {
        let (mut pieces, mut at, mut left) = (Vec::new(), start, blocks);
        while left > 0 {
            let len = left.min(self.superblock.blocks_per_group - self.superblock.group_of(at).1);
            pieces.push((at, len));
            at = BlockAddr(at.0 + u64::from(len));
            left -= len;
        }
        pieces
    }

    /// Blocks at places of the device are given back to it once this is committed.
    fn free_places(&mut self, start: BlockAddr, blocks: u32) {
        self.note_edit();
        self.running.superblock = true;
        self.groups.physical = self.groups.physical.saturating_sub(blocks.into());
        self.groups.pending += u64::from(blocks);
        self.running.freed.push((start, blocks));
    }

    /// The blocks, which lie in one group, are free on disk once this is committed. They can be
    /// taken when the caller no longer keeps them.
    pub(super) fn unuse_blocks(&mut self, start: BlockAddr, blocks: u32) -> Result<(), Error> {
        let (group, first) = self.superblock.group_of(start);
        let range = first as usize..(first + blocks) as usize;
        self.taken(group)?; // as it was before
        let (at, place) = (self.groups.desc(group).block_bitmap, Place::BlockBitmap(group));
        let map = self.edit_meta(at, Kind::Plain, place)?;
        let used = count_bits(map, range.clone()) as u64;
        Corrupt::check_equal(place, "used bits of used blocks", used, u64::from(blocks))?;
        set_bits(map, range, false);
        let desc = self.edit_group(group);
        desc.free_blocks = desc.free_blocks.saturating_add(blocks);
        self.groups.free_blocks += u64::from(blocks);
        Ok(())
    }

    /// Makes freed blocks available again, after the commit of their release.
    pub(super) fn release_freed(&mut self, freed: &[(BlockAddr, u32)]) -> Result<(), Error> {
        for &(start, blocks) in freed {
            if !self.is_place(start) {
                self.keep(start, blocks, false)?;
            }
            self.groups.pending = self.groups.pending.saturating_sub(blocks.into());
        }
        Ok(())
    }

    /// Writes the changed descriptors, with the checksums of their bitmaps, into their table.
    pub(super) fn encode_groups(&mut self) -> Result<(), Error> {
        let superblock = self.superblock.clone();
        for group in std::mem::take(&mut self.running.groups) {
            self.sum_bitmaps(group)?;
            let slot = superblock.descriptor_slot(group);
            let desc = *self.groups.desc(group);
            let block = self.edit_meta(BlockAddr(slot.block), Kind::Plain, Place::Group(group))?;
            let size = superblock.descriptor_size();
            if let Some(bytes) = block.get_mut(slot.offset..slot.offset + size) {
                desc.encode(bytes, group, &superblock);
            }
        }
        Ok(())
    }

    fn sum_bitmaps(&mut self, group: GroupNo) -> Result<(), Error> {
        let superblock = self.superblock.clone();
        let desc = *self.groups.desc(group);
        if self.running.blocks.contains_key(&desc.block_bitmap) {
            let map = self.meta(desc.block_bitmap, Kind::Plain, Place::BlockBitmap(group))?;
            if let Some(sum) = bitmap_checksum(map, superblock.clusters_per_group, &superblock) {
                self.groups.list[group.0 as usize].desc.block_bitmap_csum = sum;
            }
        }
        if self.running.blocks.contains_key(&desc.inode_bitmap) {
            let map = self.meta(desc.inode_bitmap, Kind::Plain, Place::InodeBitmap(group))?;
            if let Some(sum) = bitmap_checksum(map, superblock.inodes_per_group, &superblock) {
                self.groups.list[group.0 as usize].desc.inode_bitmap_csum = sum;
            }
        }
        Ok(())
    }
}
