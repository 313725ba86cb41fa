//! Inodes: decoded when they are first asked for, encoded into their table when the transaction is
//! committed.

use dovetail_block::Scheduler;
use dovetail_vfs::Caller;
use rustc_hash::FxHashMap;

use super::Ext;
use super::meta::Kind;
use super::policy::{self, DirGroup};
use crate::error::{Corrupt, Damage, Error, Place};
use crate::format::{
    BlockAddr, FileType, GroupFlags, GroupNo, Ino, Inode, InodeFlags, MAX_EXTENT_BLOCKS,
    Superblock, bit, next_bit, set_bit,
};

/// Inodes in memory at most, beside those that are edited or kept.
const BOUND: usize = 1 << 16;
/// Bytes of an inode's fields beyond 128.
const KNOWN_EXTRA_ISIZE: u16 = 32;

/// Decoded inodes, in their newest form.
#[derive(Debug, Default)]
pub(super) struct InodeCache {
    /// Place of each in `inodes`.
    places: FxHashMap<Ino, u32>,
    inodes: Vec<Inode>,
    /// The one that was asked for last, with its place.
    last: Option<(Ino, u32)>,
}

impl InodeCache {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn find(&mut self, ino: Ino) -> Option<u32> {
        match self.last {
            Some((last, place)) if last == ino => Some(place),
            _ => {
                let place = self.places.get(&ino).copied()?;
                self.last = Some((ino, place));
                Some(place)
            }
        }
    }

    pub(super) fn at(&self, place: u32) -> &Inode {
        &self.inodes[place as usize]
    }

    fn at_mut(&mut self, place: u32) -> &mut Inode {
        &mut self.inodes[place as usize]
    }

    /// The inode, if it is in memory.
    pub(super) fn peek(&self, ino: Ino) -> Option<&Inode> {
        self.places.get(&ino).map(|&place| &self.inodes[place as usize])
    }

    fn insert(&mut self, inode: Inode) -> u32 {
        if let Some(place) = self.find(inode.ino) {
            *self.at_mut(place) = inode;
            return place;
        }
        let place = self.inodes.len() as u32;
        self.places.insert(inode.ino, place);
        self.inodes.push(inode);
        place
    }

    fn remove(&mut self, ino: Ino) {
        let Some(place) = self.places.remove(&ino) else { return };
        self.last = None;
        self.inodes.swap_remove(place as usize);
        if let Some(moved) = self.inodes.get(place as usize) {
            self.places.insert(moved.ino, place);
        }
    }

    fn retain(&mut self, keep: impl Fn(Ino) -> bool) {
        self.inodes.retain(|inode| keep(inode.ino));
        self.last = None;
        self.places = (0..).zip(&self.inodes).map(|(place, inode)| (inode.ino, place)).collect();
    }
}

/// Attributes of a new inode.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewInode {
    pub(super) dir: Ino,
    pub(super) mode: u16,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl<D: Scheduler> Ext<D> {
    /// The block of the inode table and the byte in it where an inode lies.
    pub(super) fn inode_place(&self, ino: Ino) -> Result<(BlockAddr, usize), Error> {
        if ino.0 == 0 || ino.0 > self.superblock.inodes_count {
            return Err(Damage::FreeInode(ino).into());
        }
        let (group, index) = self.superblock.inode_group(ino);
        let slot = self.superblock.inode_slot(index);
        Ok((BlockAddr(self.groups.desc(group).inode_table.0 + slot.block), slot.offset))
    }

    #[inline]
    pub(super) fn load_inode(&mut self, ino: Ino) -> Result<u32, Error> {
        match self.inodes.find(ino) {
            Some(place) => Ok(place),
            None => self.fetch_inode(ino),
        }
    }

    #[cold]
    fn fetch_inode(&mut self, ino: Ino) -> Result<u32, Error> {
        let (at, offset) = self.inode_place(ino)?;
        let size = usize::from(self.superblock.inode_size);
        let superblock = self.superblock.clone();
        let block = self.meta(at, Kind::Plain, Place::Inode(ino))?;
        let bytes = block.get(offset..offset + size).unwrap_or_default();
        if bytes.iter().all(|&byte| byte == 0) {
            return Err(Damage::FreeInode(ino).into());
        }
        let mut inode = Inode::parse(bytes, ino, &superblock)?;
        inode.use_spare_fields();
        let reserved = ino.0 < superblock.first_ino.0 && ino != Ino::ROOT;
        if inode.links == 0 && !reserved && !self.orphans.contains(&ino) {
            return Err(Damage::FreeInode(ino).into());
        }
        let most = MAX_EXTENT_BLOCKS * u64::from(superblock.block_size());
        Corrupt::check_range(Place::Inode(ino), "i_size", inode.size, (0, most))?;
        Ok(self.insert_inode(inode))
    }

    /// Takes in an inode; returns its place.
    fn insert_inode(&mut self, inode: Inode) -> u32 {
        if self.inodes.inodes.len() >= BOUND {
            let (running, holds) = (&self.running.inodes, &self.holds);
            self.inodes.retain(|ino| running.contains(&ino) || holds.contains_key(&ino));
        }
        self.inodes.insert(inode)
    }

    /// The inode.
    ///
    /// # Errors
    /// [`Damage::FreeInode`] if there is none of the number.
    pub(super) fn inode(&mut self, ino: Ino) -> Result<&Inode, Error> {
        let place = self.load_inode(ino)?;
        Ok(self.inodes.at_mut(place))
    }

    /// The inode, to be changed in the running transaction.
    pub(super) fn edit_inode(&mut self, ino: Ino) -> Result<&mut Inode, Error> {
        self.load_inode(ino)?;
        self.add_content(ino)?;
        self.edit_times(ino)
    }

    /// The inode, of which only times change.
    pub(super) fn edit_times(&mut self, ino: Ino) -> Result<&mut Inode, Error> {
        let place = self.load_inode(ino)?;
        self.note_edit();
        self.add_inode(ino)?;
        Ok(self.inodes.at_mut(place))
    }

    /// Writes the edited inodes into their tables.
    pub(super) fn encode_inodes(&mut self) -> Result<(), Error> {
        let superblock = self.superblock.clone();
        let size = usize::from(superblock.inode_size);
        for ino in std::mem::take(&mut self.running.inodes) {
            let (at, offset) = self.inode_place(ino)?;
            let Some(inode) = self.inodes.peek(ino).cloned() else { continue };
            let block = self.edit_meta(at, Kind::Plain, Place::Inode(ino))?;
            if let Some(bytes) = block.get_mut(offset..offset + size) {
                inode.encode(bytes, &superblock);
            }
        }
        Ok(())
    }

    /// Initial value of the checksums of an inode's own blocks.
    pub(super) fn seed_of(&mut self, ino: Ino) -> Result<Option<u32>, Error> {
        self.load_inode(ino)?;
        Ok(self.inodes.peek(ino).and_then(|inode| inode.checksum_seed(&self.superblock)))
    }

    /// Takes a number for a new inode, and makes it.
    pub(super) fn new_inode(&mut self, caller: &Caller, new: &NewInode) -> Result<Ino, Error> {
        let is_dir = FileType::of_mode(new.mode) == FileType::DIRECTORY;
        let parent_flags = self.inode(new.dir)?.flags;
        let ino = self.take_ino(new.dir, is_dir)?;
        let mut inode = Inode::new(ino, new.mode, &self.with_extra_size());
        (inode.uid, inode.gid) = (new.uid, new.gid);
        (inode.atime, inode.mtime, inode.ctime) = (caller.now, caller.now, caller.now);
        inode.crtime = inode.crtime.map(|_| caller.now);
        inode.links = if is_dir { 2 } else { 1 };
        inode.generation = self.random.next_u64() as u32;
        let inherited = InodeFlags::SYNC.0 | InodeFlags::NOATIME.0 | InodeFlags::JOURNAL_DATA.0;
        inode.flags = InodeFlags(
            parent_flags.0 & if is_dir { inherited | InodeFlags::DIRSYNC.0 } else { inherited },
        );
        let has_blocks = matches!(
            FileType::of_mode(new.mode),
            FileType::REGULAR | FileType::DIRECTORY | FileType::SYMLINK
        );
        if has_blocks && self.has_extents() {
            inode.flags = inode.flags.with(InodeFlags::EXTENTS);
            super::extents::init_root(&mut inode);
        }
        self.clear_slot(ino)?;
        self.insert_inode(inode);
        self.edit_inode(ino)?;
        Ok(ino)
    }

    /// The superblock with what new inodes should have beyond 128 bytes, which mke2fs says for ext4
    /// only; kernels then take all the fields that they know.
    fn with_extra_size(&self) -> Superblock {
        let wanted = self.superblock.want_extra_isize & !3; // inodes with other sizes are damaged
        let want_extra_isize = if wanted == 0 { KNOWN_EXTRA_ISIZE } else { wanted };
        Superblock { want_extra_isize, ..self.superblock.clone() }
    }

    /// Clears the bytes that an earlier inode left in the place.
    fn clear_slot(&mut self, ino: Ino) -> Result<(), Error> {
        let (at, offset) = self.inode_place(ino)?;
        let size = usize::from(self.superblock.inode_size);
        let block = self.edit_meta(at, Kind::Plain, Place::Inode(ino))?;
        if let Some(bytes) = block.get_mut(offset..offset + size) {
            bytes.fill(0);
        }
        Ok(())
    }

    fn take_ino(&mut self, dir: Ino, is_dir: bool) -> Result<Ino, Error> {
        let (parent, _) = self.superblock.inode_group(dir);
        let first =
            if is_dir { self.directory_group(dir, parent)? } else { self.file_group(parent)? };
        let count = self.superblock.group_count();
        for step in 0..count {
            let group = GroupNo((first.0 + step) % count);
            if self.groups.desc(group).free_inodes == 0 {
                continue;
            }
            if let Some(index) = self.free_inode_in(group)? {
                return self.use_inode(group, index, is_dir);
            }
        }
        Err(Error::NoSpace)
    }

    /// Group for a new directory.
    fn directory_group(&mut self, dir: Ino, parent: GroupNo) -> Result<GroupNo, Error> {
        let flags = self.inode(dir)?.flags;
        let top = dir == Ino::ROOT || flags.has(InodeFlags::TOPDIR);
        let start = if top {
            self.random.below(self.superblock.group_count().into()) as u32
        } else {
            parent.0
        };
        let facts: Vec<DirGroup> = (0..self.superblock.group_count())
            .map(|group| {
                let desc = self.groups.desc(GroupNo(group));
                DirGroup {
                    free_inodes: desc.free_inodes,
                    free_blocks: desc.free_blocks,
                    dirs: desc.used_dirs,
                }
            })
            .collect();
        let per_group = (self.superblock.inodes_per_group, self.superblock.blocks_per_group);
        policy::directory_group(&facts, start, top, per_group).map(GroupNo).ok_or(Error::NoSpace)
    }

    /// Group for a new file: that of its directory, or one that has room for its content as well.
    fn file_group(&mut self, parent: GroupNo) -> Result<GroupNo, Error> {
        let free = |group: u32| {
            let desc = self.groups.desc(GroupNo(group));
            (desc.free_inodes, desc.free_blocks)
        };
        policy::file_group(free, parent.0, self.superblock.group_count())
            .map(GroupNo)
            .ok_or(Error::NoSpace)
    }

    /// A free inode of the group, by its place in it.
    fn free_inode_in(&mut self, group: GroupNo) -> Result<Option<u32>, Error> {
        let per_group = self.superblock.inodes_per_group;
        let reserved = self.superblock.first_ino.0 - 1;
        let before = group.0.saturating_mul(per_group);
        let first = reserved.saturating_sub(before).min(per_group);
        let map = self.inode_bitmap(group)?;
        Ok(next_bit(map, first as usize..per_group as usize, false).map(|index| index as u32))
    }

    fn use_inode(&mut self, group: GroupNo, index: u32, is_dir: bool) -> Result<Ino, Error> {
        self.init_inode_bitmap(group)?;
        let at = self.groups.desc(group).inode_bitmap;
        set_bit(self.edit_meta(at, Kind::Plain, Place::InodeBitmap(group))?, index as usize, true);
        let per_group = self.superblock.inodes_per_group;
        let counts_unused = self.superblock.checksum_seed().is_some()
            || self.superblock.ro_compat.has(crate::format::RoCompat::GDT_CSUM);
        let desc = self.edit_group(group);
        desc.free_inodes = desc.free_inodes.saturating_sub(1);
        desc.used_dirs = desc.used_dirs.saturating_add(is_dir.into());
        if counts_unused {
            desc.itable_unused = desc.itable_unused.min(per_group - index - 1);
        }
        self.groups.add_free_inodes(-1);
        Ok(Ino(group.0 * per_group + index + 1))
    }

    /// The number can be taken again.
    pub(super) fn free_ino(&mut self, ino: Ino, is_dir: bool) -> Result<(), Error> {
        let (group, index) = self.superblock.inode_group(ino);
        let at = self.groups.desc(group).inode_bitmap;
        let place = Place::InodeBitmap(group);
        let map = self.edit_meta(at, Kind::Plain, place)?;
        Corrupt::check_equal(place, "the bit of an inode in use", bit(map, index as usize), true)?;
        set_bit(map, index as usize, false);
        let desc = self.edit_group(group);
        desc.free_inodes = desc.free_inodes.saturating_add(1);
        desc.used_dirs = desc.used_dirs.saturating_sub(u32::from(is_dir));
        self.groups.add_free_inodes(1);
        Ok(())
    }

    /// The inode is no longer in memory: its next user reads it from its table.
    pub(super) fn drop_cached_inode(&mut self, ino: Ino) -> Result<(), Error> {
        // what it says last is written now, as a later inode of the number is another one
        if self.running.inodes.remove(&ino)
            && let Some(inode) = self.inodes.peek(ino).cloned()
        {
            let (at, offset) = self.inode_place(ino)?;
            let superblock = self.superblock.clone();
            let size = usize::from(superblock.inode_size);
            let block = self.edit_meta(at, Kind::Plain, Place::Inode(ino))?;
            if let Some(bytes) = block.get_mut(offset..offset + size) {
                inode.encode(bytes, &superblock);
            }
        }
        self.running.content.remove(&ino);
        self.running.ordered.remove(&ino);
        self.emptied.remove(&ino);
        if let Some(changed) = &mut self.changed {
            changed.remove(&ino);
        }
        self.inodes.remove(ino);
        Ok(())
    }

    /// The bits of a group's inodes, as they are; none is set where no bitmap was written.
    pub(super) fn inode_bits(&mut self, group: GroupNo) -> Result<Vec<u8>, Error> {
        let desc = *self.groups.desc(group);
        if desc.flags.has(GroupFlags::INODE_UNINIT) {
            return Ok(vec![0; self.block_size()]);
        }
        Ok(self.load_bitmap(desc.inode_bitmap, group, false)?.to_vec())
    }

    /// A number that a directory may lead to is in use: the root, or one that is not reserved.
    pub(super) fn is_named_inode(&mut self, ino: Ino) -> Result<bool, Error> {
        let superblock = &self.superblock;
        let numbered = (superblock.first_ino.0..=superblock.inodes_count).contains(&ino.0);
        if !numbered {
            return Ok(ino == Ino::ROOT);
        }
        let (group, index) = superblock.inode_group(ino);
        Ok(bit(&self.inode_bits(group)?, index as usize))
    }

    /// The bitmap of a group's inodes; all free if it was never written.
    fn inode_bitmap(&mut self, group: GroupNo) -> Result<&[u8], Error> {
        self.init_inode_bitmap(group)?;
        let at = self.groups.desc(group).inode_bitmap;
        self.load_bitmap(at, group, false)
    }

    /// Writes the bitmap of a group of which none was written yet.
    fn init_inode_bitmap(&mut self, group: GroupNo) -> Result<(), Error> {
        let desc = *self.groups.desc(group);
        if !desc.flags.has(GroupFlags::INODE_UNINIT) {
            return Ok(());
        }
        let per_group = self.superblock.inodes_per_group as usize;
        let map = self.new_meta(desc.inode_bitmap, Kind::Plain);
        let bits = map.len() * 8;
        crate::format::set_bits(map, per_group..bits, true);
        let desc = self.edit_group(group);
        desc.flags = desc.flags.without(GroupFlags::INODE_UNINIT);
        Ok(())
    }
}
