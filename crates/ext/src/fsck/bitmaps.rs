//! Bitmaps and counts: what was reached against what they say.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{
    BlockAddr, Group, GroupFlags, GroupNo, Incompat, Ino, bit, bitmap_checksum, count_bits,
    next_bit, set_bit, set_bits,
};
use crate::volume::Block;

/// Differences between two bitmaps: the first one and how many, of bits that are only in the one,
/// and only in the other.
type Differences = [Option<(usize, u64)>; 2];

impl<D: BlockDevice> Checker<D> {
    pub(super) fn check_bitmaps(&mut self) -> Result<(), Error> {
        let groups: Vec<_> = self.groups.iter().map(|(number, group)| (*number, *group)).collect();
        let complete = groups.len() as u64 == u64::from(self.volume.superblock.group_count());
        let (mut free_blocks, mut free_inodes) = (0, 0);
        for (number, group) in &groups {
            free_blocks += u64::from(self.check_group_blocks(*number, group)?);
            free_inodes += u64::from(self.check_group_inodes(*number, group)?);
        }
        let blocks = self.volume.superblock.blocks_count;
        let places = if self.volume.superblock.incompat.has(Incompat::DEVIRTUALIZED) {
            self.check_places()
        } else {
            0
        };
        self.report.counts.blocks = self.space.count(0..blocks) + places;
        if complete {
            self.check_total(
                "s_free_blocks_count",
                self.volume.superblock.free_blocks,
                free_blocks - places.min(free_blocks),
            );
            self.check_total(
                "s_free_inodes_count",
                self.volume.superblock.free_inodes.into(),
                free_inodes,
            );
        }
        Ok(())
    }

    /// In a volume that was not unmounted the superblock's counts are old.
    pub(super) fn check_total(&mut self, field: &'static str, found: u64, expected: u64) {
        if found != expected && self.volume.recovery().is_none() {
            self.found(Finding::Total { field, found, expected });
        }
    }

    fn check_group_blocks(&mut self, number: GroupNo, group: &Group) -> Result<u32, Error> {
        let superblock = self.volume.superblock.clone();
        let (start, blocks) = (superblock.group_start(number).0, superblock.group_blocks(number));
        let mut expected = vec![0; superblock.block_size() as usize];
        for taken in self.space.taken(start..start + u64::from(blocks)) {
            set_bits(
                &mut expected,
                (taken.start - start) as usize..(taken.end - start) as usize,
                true,
            );
        }
        let used = count_bits(&expected, 0..blocks as usize) as u32;
        let free = blocks - used;
        self.check_count_of(number, "bg_free_blocks_count", group.free_blocks, free);
        if superblock.has_group_checksums() && group.flags.has(GroupFlags::BLOCK_UNINIT) {
            if used != self.own_blocks(number) {
                self.found(Finding::Uninitialised { group: number, what: "block bitmap" });
            }
            return Ok(free);
        }
        let bitmap = self.volume.blocks.metadata(group.block_bitmap)?;
        let checksum = bitmap_checksum(&bitmap, superblock.clusters_per_group, &superblock);
        self.check_bitmap(number, "block", &bitmap, blocks, (checksum, group.block_bitmap_csum));
        let [missing, extra] = differences(&expected, &bitmap, blocks);
        if let Some((first, count)) = missing {
            let first = BlockAddr(start + first as u64);
            self.found(Finding::BlocksFree { group: number, first, count });
        }
        if let Some((first, count)) = extra {
            let first = BlockAddr(start + first as u64);
            self.found(Finding::BlocksLeaked { group: number, first, count });
        }
        Ok(free)
    }

    /// Blocks of a group that its own head, bitmaps and table take, and those of other groups in
    /// it.
    fn own_blocks(&self, number: GroupNo) -> u32 {
        let superblock = &self.volume.superblock;
        let inside = |at: BlockAddr| superblock.group_of(at).0 == number;
        let table = superblock.inode_table_blocks();
        let tables: u32 = self
            .groups
            .get(&number)
            .map(|group| {
                u32::from(inside(group.block_bitmap))
                    + u32::from(inside(group.inode_bitmap))
                    + if inside(group.inode_table) { table } else { 0 }
            })
            .unwrap_or(0);
        superblock.base_blocks(number) + tables
    }

    fn check_group_inodes(&mut self, number: GroupNo, group: &Group) -> Result<u32, Error> {
        let superblock = self.volume.superblock.clone();
        let per_group = superblock.inodes_per_group;
        let first = number.0 * per_group + 1;
        let mut expected = vec![0; superblock.block_size() as usize];
        let mut dirs = 0;
        for (ino, used) in self.inodes.range(Ino(first)..Ino(first.saturating_add(per_group))) {
            set_bit(&mut expected, (ino.0 - first) as usize, true);
            dirs += u32::from(
                crate::format::FileType::of_mode(used.mode) == crate::format::FileType::DIRECTORY,
            );
        }
        let reserved = superblock.first_ino.0.saturating_sub(first).min(per_group);
        set_bits(&mut expected, 0..reserved as usize, true);
        let used = count_bits(&expected, 0..per_group as usize) as u32;
        self.check_count_of(number, "bg_free_inodes_count", group.free_inodes, per_group - used);
        self.check_count_of(number, "bg_used_dirs_count", group.used_dirs, dirs);
        if superblock.has_group_checksums() && group.flags.has(GroupFlags::INODE_UNINIT) {
            if used > 0 {
                self.found(Finding::Uninitialised { group: number, what: "inode bitmap" });
            }
            return Ok(per_group - used);
        }
        let bitmap = self.volume.blocks.metadata(group.inode_bitmap)?;
        let checksum = bitmap_checksum(&bitmap, per_group, &superblock);
        self.check_bitmap(number, "inode", &bitmap, per_group, (checksum, group.inode_bitmap_csum));
        let [missing, extra] = differences(&expected, &bitmap, per_group);
        if let Some((at, count)) = missing {
            self.found(Finding::InodesFree { group: number, first: Ino(first + at as u32), count });
        }
        if let Some((at, count)) = extra {
            self.found(Finding::InodesLeaked {
                group: number,
                first: Ino(first + at as u32),
                count,
            });
        }
        Ok(per_group - used)
    }

    fn check_count_of(&mut self, group: GroupNo, field: &'static str, found: u32, expected: u32) {
        if found != expected {
            self.found(Finding::GroupCount { group, field, found, expected });
        }
    }

    /// Checksum, computed and stored, and what lies behind the end.
    fn check_bitmap(
        &mut self,
        group: GroupNo,
        what: &'static str,
        bitmap: &Block,
        bits: u32,
        (computed, stored): (Option<u32>, u32),
    ) {
        if let Some(expected) = computed.filter(|&computed| computed != stored) {
            self.found(Finding::BitmapChecksum { group, what, found: stored, expected });
        }
        if next_bit(bitmap, bits as usize..bitmap.len() * 8, false).is_some() {
            self.found(Finding::Padding { group, what });
        }
    }
}

fn differences(expected: &[u8], found: &[u8], bits: u32) -> Differences {
    let mut differences: Differences = [None, None];
    for n in 0..bits as usize {
        if n.is_multiple_of(8) && expected[n / 8] == found[n / 8] {
            continue;
        }
        let (wanted, there) = (bit(expected, n), bit(found, n));
        if wanted != there {
            let slot = &mut differences[usize::from(there)];
            *slot = Some(slot.map_or((n, 1), |(first, count)| (first, count + 1)));
        }
    }
    differences
}
