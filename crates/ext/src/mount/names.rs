//! Making, naming, renaming and removing inodes.

use dovetail_block::Scheduler;
use dovetail_vfs::kit::{Marks, Names, Rename};
use dovetail_vfs::mode::{S_ISGID, is_dir};
use dovetail_vfs::{Caller, Error, RenameFlags};

use super::Ext;
use super::directory::Entry;
use super::inodes::NewInode;
use super::meta::Kind;
use crate::error::{Error as Failure, Place};
use crate::format::{BLOCK_AREA, FileType, Ino, InodeFlags, RoCompat};

/// Names of a file, and subdirectories of a directory without the feature dir_nlink (Linux 6.1:
/// `EXT4_LINK_MAX`).
const MAX_LINKS: u16 = 65_000;
/// Blocks that a new entry may take: blocks of the directory and of its index, pointers and nodes
/// to them.
const ENTRY_BLOCKS: u64 = 8;

impl<D: Scheduler> Names for Ext<D> {
    type Ino = Ino;
    type Entry = Entry;

    const MAX_LINKS: u64 = MAX_LINKS as u64;

    fn target_of(entry: &Entry) -> Ino {
        entry.ino
    }

    fn root_dir(&self) -> Ino {
        Ino::ROOT
    }

    fn inode_bound(&self) -> u64 {
        self.superblock.inodes_count.into()
    }

    fn is_directory(&mut self, ino: Ino) -> Result<bool, Error> {
        Ok(self.inode(ino)?.is_dir())
    }

    fn link_count(&mut self, ino: Ino) -> Result<u64, Error> {
        Ok(self.inode(ino)?.links.into())
    }

    fn marks(&mut self, ino: Ino) -> Result<Marks, Error> {
        let flags = self.inode(ino)?.flags;
        let (immutable, append_only) =
            (flags.has(InodeFlags::IMMUTABLE), flags.has(InodeFlags::APPEND));
        Ok(Marks { immutable, append_only })
    }

    fn search(&mut self, dir: Ino, name: &[u8]) -> Result<Option<Entry>, Error> {
        Ok(self.find_entry(dir, name)?)
    }

    fn holds_nothing(&mut self, dir: Ino) -> Result<bool, Error> {
        Ok(self.is_empty_dir(dir)?)
    }

    fn check_subdirectory(&mut self, dir: Ino) -> Result<(), Error> {
        let any_number = self.superblock.ro_compat.has(RoCompat::DIR_NLINK);
        if self.inode(dir)?.links >= MAX_LINKS && !any_number {
            Err(Error::TooManyLinks)
        } else {
            Ok(())
        }
    }
}

impl<D: Scheduler> Ext<D> {
    /// Makes an inode that is not a link and names it.
    pub(super) fn make(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        mode: u16,
        rdev: (u32, u32),
    ) -> Result<Ino, Error> {
        self.check_free(dir, name)?;
        let is_dir = is_dir(mode);
        if is_dir {
            self.check_subdirectory(dir)?;
        }
        self.check_room_for_few(ENTRY_BLOCKS + 2)?;
        let parent = self.inode(dir)?;
        let inherits = parent.mode & S_ISGID != 0;
        let gid = if inherits { parent.gid } else { caller.gid };
        let mode = if inherits && is_dir { mode | S_ISGID } else { mode };
        let ino = self.new_inode(caller, &NewInode { dir, mode, uid: caller.uid, gid })?;
        if matches!(FileType::of_mode(mode), FileType::CHAR_DEVICE | FileType::BLOCK_DEVICE) {
            self.edit_inode(ino)?.set_device(rdev.0, rdev.1);
        }
        if is_dir {
            self.fill_directory(ino, dir)?;
        }
        self.name_new(caller, dir, name, ino)?;
        if is_dir {
            self.add_dir_link(dir)?;
        }
        Ok(ino)
    }

    /// Names a new inode; if that fails it goes.
    fn name_new(&mut self, caller: &Caller, dir: Ino, name: &[u8], ino: Ino) -> Result<(), Error> {
        let file_type = self.inode(ino)?.file_type();
        if let Err(error) = self.add_entry(dir, name, ino, file_type) {
            self.drop_inode(ino)?;
            return Err(error.into());
        }
        Ok(self.stamp(dir, caller.now)?)
    }

    /// The directory has one subdirectory more; 1 stands for too many to count.
    fn add_dir_link(&mut self, dir: Ino) -> Result<(), Failure> {
        let inode = self.edit_inode(dir)?;
        inode.links = match inode.links {
            1 | MAX_LINKS.. => 1,
            links => links + 1,
        };
        Ok(())
    }

    fn remove_dir_link(&mut self, dir: Ino) -> Result<(), Failure> {
        let inode = self.edit_inode(dir)?;
        inode.links = if inode.links > 2 { inode.links - 1 } else { inode.links };
        Ok(())
    }

    pub(super) fn make_symlink(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        target: &[u8],
    ) -> Result<Ino, Error> {
        if target.is_empty() {
            return Err(Error::NotFound);
        }
        if target.len() >= self.block_size() {
            return Err(Error::NameTooLong);
        }
        self.check_free(dir, name)?;
        self.check_room_for_few(ENTRY_BLOCKS + 1)?;
        let parent = self.inode(dir)?;
        let gid = if parent.mode & S_ISGID != 0 { parent.gid } else { caller.gid };
        let ino =
            self.new_inode(caller, &NewInode { dir, mode: 0o120_777, uid: caller.uid, gid })?;
        self.write_target(ino, target)?;
        self.name_new(caller, dir, name, ino)?;
        Ok(ino)
    }

    fn write_target(&mut self, ino: Ino, target: &[u8]) -> Result<(), Failure> {
        if target.len() < BLOCK_AREA {
            let inode = self.edit_inode(ino)?;
            inode.flags = inode.flags.without(InodeFlags::EXTENTS);
            inode.block = [0; BLOCK_AREA];
            inode.block[..target.len()].copy_from_slice(target);
        } else if let super::map::State::Written(at) = self.allocate_run(ino, 0, 1, true)?.state {
            self.new_meta(at, Kind::Plain)[..target.len()].copy_from_slice(target);
        }
        self.edit_inode(ino)?.size = target.len() as u64;
        Ok(())
    }

    pub(super) fn target(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        let superblock = self.superblock.clone();
        let inode = self.inode(ino)?;
        if inode.file_type() != FileType::SYMLINK {
            return Err(Error::Invalid("it is not a symbolic link"));
        }
        let size = inode.size as usize;
        if inode.is_fast_symlink(&superblock) {
            return Ok(inode.block[..size.min(BLOCK_AREA)].to_vec());
        }
        let most = self.block_size() as u64;
        crate::Corrupt::check_range(Place::Inode(ino), "i_size", size as u64, (1, most))
            .map_err(Failure::from)?;
        match self.map(ino, 0)?.state {
            super::map::State::Written(at) => {
                let block = self.meta(at, Kind::Plain, Place::Inode(ino))?;
                Ok(block[..size].to_vec())
            }
            _ => Err(Error::Corrupt(format!("inode {ino}: a link without a target"))),
        }
    }

    pub(super) fn add_name(
        &mut self,
        caller: &Caller,
        ino: Ino,
        dir: Ino,
        name: &[u8],
    ) -> Result<(), Error> {
        self.check_link(ino, dir, name)?;
        let inode = self.inode(ino)?;
        let (file_type, links) = (inode.file_type(), inode.links);
        self.check_room_for_few(ENTRY_BLOCKS)?;
        self.add_entry(dir, name, ino, file_type)?;
        self.stamp(dir, caller.now)?;
        let inode = self.edit_inode(ino)?;
        inode.links = links + 1;
        inode.ctime = caller.now;
        Ok(())
    }

    pub(super) fn unlink_entry(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
    ) -> Result<(), Error> {
        let entry = self.entry_to_unlink(dir, name)?;
        self.remove_entry(dir, &entry)?;
        self.stamp(dir, caller.now)?;
        self.edit_inode(entry.ino)?.ctime = caller.now;
        Ok(self.lose_name(entry.ino)?)
    }

    /// The inode has one name less; of a directory, the last one.
    fn lose_name(&mut self, ino: Ino) -> Result<(), Failure> {
        let inode = self.edit_inode(ino)?;
        inode.links = if inode.is_dir() { 0 } else { inode.links.saturating_sub(1) };
        if inode.links == 0 { self.orphan_or_drop(ino) } else { Ok(()) }
    }

    pub(super) fn remove_directory(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
    ) -> Result<(), Error> {
        let entry = self.entry_to_rmdir(dir, name)?;
        self.remove_entry(dir, &entry)?;
        self.remove_dir_link(dir)?;
        self.stamp(dir, caller.now)?;
        self.edit_inode(entry.ino)?.ctime = caller.now;
        Ok(self.lose_name(entry.ino)?)
    }

    pub(super) fn rename_entry(
        &mut self,
        caller: &Caller,
        (dir, name): (Ino, &[u8]),
        (new_dir, new_name): (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        let rename = self.plan_rename((dir, name), (new_dir, new_name), flags)?;
        match rename {
            Rename::Nothing => Ok(()),
            Rename::Exchange { entry, taken } => {
                self.exchange(caller, (dir, entry), (new_dir, taken))
            }
            Rename::Replace { entry, taken } => {
                self.replace(caller, (dir, entry), (new_dir, taken))
            }
            Rename::Move { entry } => {
                self.check_room_for_few(ENTRY_BLOCKS)?;
                self.move_entry(caller, (dir, name, entry), (new_dir, new_name))
            }
        }
    }

    fn move_entry(
        &mut self,
        caller: &Caller,
        (dir, name, entry): (Ino, &[u8], Entry),
        (new_dir, new_name): (Ino, &[u8]),
    ) -> Result<(), Error> {
        let file_type = self.inode(entry.ino)?.file_type();
        self.add_entry(new_dir, new_name, entry.ino, file_type)?;
        // the new entry may have moved the old one to another block
        let entry = self.entry_of(dir, name)?;
        self.remove_entry(dir, &entry)?;
        self.renamed(caller, entry.ino, dir, new_dir)?;
        self.stamp(dir, caller.now)?;
        Ok(self.stamp(new_dir, caller.now)?)
    }

    fn replace(
        &mut self,
        caller: &Caller,
        (dir, entry): (Ino, Entry),
        (new_dir, taken): (Ino, Entry),
    ) -> Result<(), Error> {
        let file_type = self.inode(entry.ino)?.file_type();
        // content that replaces a file is on its way before the name says so
        if self.options.auto_da_alloc && self.delayed.count(entry.ino) > 0 {
            self.send_before_commit(entry.ino)?;
        }
        self.set_entry(new_dir, &taken, entry.ino, file_type)?;
        self.remove_entry(dir, &entry)?;
        if self.inode(taken.ino)?.is_dir() {
            self.remove_dir_link(new_dir)?;
        }
        self.renamed(caller, entry.ino, dir, new_dir)?;
        self.stamp(dir, caller.now)?;
        self.stamp(new_dir, caller.now)?;
        self.edit_inode(taken.ino)?.ctime = caller.now;
        Ok(self.lose_name(taken.ino)?)
    }

    fn exchange(
        &mut self,
        caller: &Caller,
        (dir, entry): (Ino, Entry),
        (new_dir, taken): (Ino, Entry),
    ) -> Result<(), Error> {
        let file_type = self.inode(entry.ino)?.file_type();
        let other_type = self.inode(taken.ino)?.file_type();
        self.set_entry(new_dir, &taken, entry.ino, file_type)?;
        self.set_entry(dir, &entry, taken.ino, other_type)?;
        self.renamed(caller, entry.ino, dir, new_dir)?;
        self.renamed(caller, taken.ino, new_dir, dir)?;
        self.stamp(dir, caller.now)?;
        Ok(self.stamp(new_dir, caller.now)?)
    }

    /// An inode has moved from one directory to another (or the same).
    fn renamed(&mut self, caller: &Caller, ino: Ino, from: Ino, to: Ino) -> Result<(), Error> {
        if self.inode(ino)?.is_dir() && from != to {
            let up = self.entry_of(ino, b"..")?;
            self.set_entry(ino, &up, to, FileType::DIRECTORY)?;
            self.remove_dir_link(from)?;
            self.add_dir_link(to)?;
        }
        self.edit_inode(ino)?.ctime = caller.now;
        Ok(())
    }
}
