//! Putting a new volume onto its device.

use std::ops::Range;
use std::sync::Arc;

use dovetail_block::{
    BLOCK_SIZE, BlockDevice, BlockRange, Command, Completion, Content as Block, Data, DeviceError,
    DeviceInfo, Hints, Lba, SectorRange, clear_device_space, performs_at_once,
};
use dovetail_time::SimTime;

use super::content::{Content, LOST_FOUND};
use crate::format::{
    BlockAddr, Group, GroupFlags, GroupNo, Ino, Inode, RoCompat, SUPERBLOCK_OFFSET, State,
    Superblock, bitmap_checksum, set_bits,
};
use crate::io::{Channel, Io};

/// Blocks of the device zeroed at a time.
const CHUNK: u64 = 1024;

/// A device that is lent without its scheduler: nobody times the making of a volume, and its writes
/// need no order.
#[derive(Debug)]
struct Lent<'a, D>(&'a mut D);

impl<D: BlockDevice> BlockDevice for Lent<'_, D> {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.0.submit(at, command)
    }
}

performs_at_once!(impl['a, D: BlockDevice] Lent<'a, D>);

/// Writes one block after the other.
#[derive(Debug)]
pub(super) struct Writer<'a, D> {
    io: Io<Lent<'a, D>>,
    block_size: u64,
    /// The device reads as zeros where nothing is written.
    empty: bool,
    /// Inode tables are left as they are where no inode is used.
    lazy: bool,
}

impl<'a, D: BlockDevice> Writer<'a, D> {
    pub(super) fn new(device: &'a mut D, content: &Content, lazy: bool) -> Self {
        let empty = device.info().capabilities.discard;
        let block_size = u64::from(content.superblock.block_size());
        let lazy = lazy && content.superblock.has_group_checksums();
        Self {
            io: Io::new(Lent(device), block_size as usize, SimTime::ZERO),
            block_size,
            empty,
            lazy,
        }
    }

    /// Clears what was there, then writes everything, the superblock last; returns it.
    pub(super) fn write(&mut self, content: &Content) -> Result<Superblock, DeviceError> {
        self.clear(content)?;
        for (at, bytes) in &content.blocks {
            self.put(*at, bytes)?;
        }
        self.inodes(content)?;
        let descriptors = self.groups(content)?;
        let mut superblock = content.superblock.clone();
        self.descriptors(&superblock, GroupNo(0), &descriptors)?;
        superblock.kbytes_written = self.io.written().total() * self.block_size / 1024;
        self.backups(&superblock, &descriptors)?;
        self.io.flush()?;
        self.superblock(&superblock)?;
        self.io.flush()?;
        Ok(superblock)
    }

    fn clear(&mut self, content: &Content) -> Result<(), DeviceError> {
        let now = self.io.now();
        let done = clear_device_space(self.io.device_mut(), now)?;
        self.io.set_now(done);
        let blocks = self.io.device().info().blocks;
        if self.empty {
            let all = [SectorRange::from(BlockRange::new(Lba(0), blocks))];
            return self.submit(Command::Discard { ranges: &all });
        }
        self.zero(0..(2 * SUPERBLOCK_OFFSET).div_ceil(self.block_size))?;
        self.io.flush()?;
        content.zeros.iter().try_for_each(|range| self.zero(range.clone()))?;
        let table_blocks = u64::from(content.superblock.inode_table_blocks());
        let tables =
            content.places.groups.iter().filter(|_| !self.lazy).map(|group| group.inode_table.0);
        tables
            .collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|start| self.zero(start..start + table_blocks))
    }

    fn submit(&mut self, command: Command<'_>) -> Result<(), DeviceError> {
        let now = self.io.now();
        let done = self.io.device_mut().submit(now, command)?.done;
        self.io.set_now(done);
        Ok(())
    }

    /// Zeroes blocks: those of the device at once, where they are covered as a whole.
    fn zero(&mut self, range: Range<u64>) -> Result<(), DeviceError> {
        let per = BLOCK_SIZE / self.block_size;
        let whole = range.start.next_multiple_of(per)
            ..(range.end / per * per).max(range.start.next_multiple_of(per));
        let zeros = vec![0; self.block_size as usize];
        for at in
            (range.start..whole.start.min(range.end)).chain(whole.end.min(range.end)..range.end)
        {
            self.put(BlockAddr(at), &zeros)?;
        }
        self.io.kick()?;
        let empty = vec![Block::Empty; CHUNK as usize];
        let (mut at, end) = (whole.start / per, whole.end / per);
        while at < end {
            let blocks = CHUNK.min(end - at);
            let (data, range) =
                (Data::Blocks(&empty[..blocks as usize]), BlockRange::new(Lba(at), blocks));
            self.submit(Command::Write { range, data, hints: Hints::default(), fua: false })?;
            at += blocks;
        }
        Ok(())
    }

    fn put(&mut self, at: BlockAddr, bytes: &[u8]) -> Result<(), DeviceError> {
        let mut block = [0; BLOCK_SIZE as usize];
        block[..bytes.len()].copy_from_slice(bytes);
        self.io.write(Channel::Home, at.0, Block::Bytes(Arc::new(block)))
    }

    fn inodes(&mut self, content: &Content) -> Result<(), DeviceError> {
        let superblock = &content.superblock;
        let groups = LOST_FOUND.0.div_ceil(superblock.inodes_per_group);
        (0..groups).try_for_each(|group| self.inodes_of(content, GroupNo(group)))
    }

    /// The blocks of a group's inode table that hold inodes.
    fn inodes_of(&mut self, content: &Content, group: GroupNo) -> Result<(), DeviceError> {
        let superblock = &content.superblock;
        let used = first_inodes(superblock, group).div_ceil(superblock.inodes_per_block());
        let mut table = vec![0; used as usize * self.block_size as usize];
        for inode in content.inodes.iter().filter(|inode| has_bytes(inode, superblock)) {
            let (its_group, index) = superblock.inode_group(inode.ino);
            if its_group != group {
                continue;
            }
            let slot = superblock.inode_slot(index);
            let start = slot.block as usize * self.block_size as usize + slot.offset;
            inode.encode(&mut table[start..], superblock);
        }
        let first = content.places.groups[group.0 as usize].inode_table.0;
        for (number, bytes) in (0..).zip(table.chunks(self.block_size as usize)) {
            self.put(BlockAddr(first + number), bytes)?;
        }
        Ok(())
    }

    /// Writes the bitmaps of all groups and returns their descriptors.
    fn groups(&mut self, content: &Content) -> Result<Vec<u8>, DeviceError> {
        let superblock = &content.superblock;
        let size = superblock.descriptor_size();
        let mut table = vec![0; superblock.descriptor_blocks() as usize * self.block_size as usize];
        for number in (0..superblock.group_count()).map(GroupNo) {
            let group = self.group(content, number)?;
            group.encode(&mut table[number.0 as usize * size..][..size], number, superblock);
        }
        Ok(table)
    }

    fn group(&mut self, content: &Content, number: GroupNo) -> Result<Group, DeviceError> {
        let superblock = &content.superblock;
        let mut group = content.places.groups[number.0 as usize];
        let used = first_inodes(superblock, number);
        let dirs = [Ino::ROOT, LOST_FOUND].map(|ino| superblock.inode_group(ino).0);
        group.free_blocks = content.free_in(number) as u32;
        group.free_inodes = superblock.inodes_per_group - used;
        group.used_dirs = dirs.iter().filter(|group| **group == number).count() as u32;
        group.flags =
            if self.empty || !self.lazy { GroupFlags::INODE_ZEROED } else { GroupFlags(0) };
        if superblock.has_group_checksums() {
            group.itable_unused = group.free_inodes;
            group.flags = group.flags.with(uninit_flags(content, number));
        }
        if !group.flags.has(GroupFlags::BLOCK_UNINIT) {
            let bitmap = block_bitmap(content, number);
            group.block_bitmap_csum =
                bitmap_checksum(&bitmap, superblock.clusters_per_group, superblock).unwrap_or(0);
            self.put(group.block_bitmap, &bitmap)?;
        }
        if !group.flags.has(GroupFlags::INODE_UNINIT) {
            let mut bitmap = vec![0; self.block_size as usize];
            set_bits(&mut bitmap, 0..used as usize, true);
            set_bits(
                &mut bitmap,
                superblock.inodes_per_group as usize..self.block_size as usize * 8,
                true,
            );
            group.inode_bitmap_csum =
                bitmap_checksum(&bitmap, superblock.inodes_per_group, superblock).unwrap_or(0);
            self.put(group.inode_bitmap, &bitmap)?;
        }
        Ok(group)
    }

    fn descriptors(
        &mut self,
        superblock: &Superblock,
        group: GroupNo,
        table: &[u8],
    ) -> Result<(), DeviceError> {
        let first = superblock.group_start(group).0 + 1;
        for (number, bytes) in (0..).zip(table.chunks(self.block_size as usize)) {
            self.put(BlockAddr(first + number), bytes)?;
        }
        Ok(())
    }

    /// Copies of superblock and descriptors. Those of the superblock do not say that the volume was
    /// unmounted.
    fn backups(&mut self, superblock: &Superblock, descriptors: &[u8]) -> Result<(), DeviceError> {
        for group in (1..superblock.group_count()).map(GroupNo) {
            if superblock.has_superblock(group) {
                let copy = Superblock { group, state: State(0), ..superblock.clone() };
                self.put(superblock.group_start(group), &copy.encode(&[0; 1024]))?;
                self.descriptors(superblock, group, descriptors)?;
            }
        }
        Ok(())
    }

    fn superblock(&mut self, superblock: &Superblock) -> Result<(), DeviceError> {
        let offset = (SUPERBLOCK_OFFSET % self.block_size) as usize;
        let mut bytes = vec![0; offset];
        bytes.extend(superblock.encode(&[0; 1024]));
        self.put(BlockAddr(SUPERBLOCK_OFFSET / self.block_size), &bytes)
    }
}

/// Inodes of a group that a new volume uses: those before the first one for files, and lost+found.
fn first_inodes(superblock: &Superblock, group: GroupNo) -> u32 {
    let before = group.0.saturating_mul(superblock.inodes_per_group);
    LOST_FOUND.0.saturating_sub(before).min(superblock.inodes_per_group)
}

/// Flags for the parts of a group that need not be written. The last group always has a bitmap of
/// its blocks, because it may be shorter.
fn uninit_flags(content: &Content, number: GroupNo) -> GroupFlags {
    let superblock = &content.superblock;
    if first_inodes(superblock, number) > 0 {
        return GroupFlags(0);
    }
    let last = number.0 + 1 == superblock.group_count();
    let taken = superblock.group_blocks(number) - content.free_in(number) as u32;
    let untouched = !last && taken == superblock.base_blocks(number) + own_tables(superblock);
    let flags = GroupFlags::INODE_UNINIT;
    if untouched { flags.with(GroupFlags::BLOCK_UNINIT) } else { flags }
}

/// Blocks of a group's own bitmaps and table, where groups are not joined: its descriptor says
/// where they are, so they need no bitmap.
fn own_tables(superblock: &Superblock) -> u32 {
    let joined = superblock.groups_per_flex() > 1;
    if joined { 0 } else { 2 + superblock.inode_table_blocks() }
}

/// The inodes without a mode are zeros, but for their checksums and the times of the first one.
fn has_bytes(inode: &Inode, superblock: &Superblock) -> bool {
    inode.mode != 0
        || inode.ino == Ino::BAD_BLOCKS
        || superblock.ro_compat.has(RoCompat::METADATA_CSUM)
}

/// The bitmap of a group's blocks; what lies beyond its end counts as taken.
fn block_bitmap(content: &Content, number: GroupNo) -> Vec<u8> {
    let superblock = &content.superblock;
    let mut bitmap = vec![0; superblock.block_size() as usize];
    let start = superblock.group_start(number).0;
    let blocks = u64::from(superblock.group_blocks(number));
    for taken in content.places.space.taken(start..start + blocks) {
        set_bits(&mut bitmap, (taken.start - start) as usize..(taken.end - start) as usize, true);
    }
    let bits = bitmap.len() * 8;
    set_bits(&mut bitmap, blocks as usize..bits, true);
    bitmap
}
