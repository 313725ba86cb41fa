//! Making, naming, renaming and removing inodes.

use dovetail_block::Scheduler;
use dovetail_vfs::{Caller, Error, RenameFlags};

use super::Ext;
use super::attributes::kind;
use super::directory::Entry;
use super::inodes::NewInode;
use super::meta::Kind;
use crate::error::{Error as Failure, Place};
use crate::format::{BLOCK_AREA, FileType, Ino, InodeFlags, RoCompat};

const DIR: u16 = 0o040_000;
const SETGID: u16 = 0o2000;
/// Names of a file, and subdirectories of a directory without the feature dir_nlink (Linux 6.1: `EXT4_LINK_MAX`).
const MAX_LINKS: u16 = 65_000;
/// Blocks that a new entry may take: blocks of the directory and of its index, pointers and nodes to them.
const ENTRY_BLOCKS: u64 = 8;

impl<D: Scheduler> Ext<D> {
    fn check_dir(&mut self, dir: Ino) -> Result<(), Error> {
        if self.inode(dir)?.is_dir() { Ok(()) } else { Err(Error::NotADirectory) }
    }

    /// A directory in which something is to be named must have a name itself.
    fn check_named(&mut self, dir: Ino) -> Result<(), Error> {
        if self.inode(dir)?.links == 0 { Err(Error::NotFound) } else { Ok(()) }
    }

    pub(super) fn entry_of(&mut self, dir: Ino, name: &[u8]) -> Result<Entry, Error> {
        self.entry_if_any(dir, name)?.ok_or(Error::NotFound)
    }

    fn entry_if_any(&mut self, dir: Ino, name: &[u8]) -> Result<Option<Entry>, Error> {
        self.check_dir(dir)?;
        if name.len() > dovetail_vfs::MAX_NAME {
            return Err(Error::NameTooLong);
        }
        Ok(self.find_entry(dir, name)?)
    }

    /// The name can be added to the directory.
    fn check_free(&mut self, dir: Ino, name: &[u8]) -> Result<(), Error> {
        if self.entry_if_any(dir, name)?.is_some() {
            return Err(Error::Exists);
        }
        self.check_named(dir)
    }

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
        let is_dir = kind(mode) == DIR;
        if is_dir {
            self.check_links(dir)?;
        }
        self.check_room(ENTRY_BLOCKS + 2)?;
        let parent = self.inode(dir)?;
        let inherits = parent.mode & SETGID != 0;
        let gid = if inherits { parent.gid } else { caller.gid };
        let mode = if inherits && is_dir { mode | SETGID } else { mode };
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

    /// A directory can get another subdirectory.
    fn check_links(&mut self, dir: Ino) -> Result<(), Error> {
        let any_number = self.superblock.ro_compat.has(RoCompat::DIR_NLINK);
        if self.inode(dir)?.links >= MAX_LINKS && !any_number { Err(Error::TooManyLinks) } else { Ok(()) }
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
        self.check_room(ENTRY_BLOCKS + 1)?;
        let parent = self.inode(dir)?;
        let gid = if parent.mode & SETGID != 0 { parent.gid } else { caller.gid };
        let ino = self.new_inode(caller, &NewInode { dir, mode: 0o120_777, uid: caller.uid, gid })?;
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

    pub(super) fn add_name(&mut self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<(), Error> {
        self.check_free(dir, name)?;
        let inode = self.inode(ino)?;
        let (file_type, links) = (inode.file_type(), inode.links);
        if file_type == FileType::DIRECTORY {
            return Err(Error::NotPermitted("a directory has one name only"));
        }
        if links == 0 {
            return Err(Error::NotFound);
        }
        if links >= MAX_LINKS {
            return Err(Error::TooManyLinks);
        }
        self.check_room(ENTRY_BLOCKS)?;
        self.add_entry(dir, name, ino, file_type)?;
        self.stamp(dir, caller.now)?;
        let inode = self.edit_inode(ino)?;
        inode.links = links + 1;
        inode.ctime = caller.now;
        Ok(())
    }

    pub(super) fn unlink_entry(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        let entry = self.entry_of(dir, name)?;
        if self.inode(entry.ino)?.is_dir() {
            return Err(Error::IsADirectory);
        }
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

    pub(super) fn remove_directory(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        match name {
            b"." => return Err(Error::Invalid("\".\" cannot be removed")),
            b".." => return Err(Error::NotEmpty),
            _ => {}
        }
        let entry = self.entry_of(dir, name)?;
        self.check_dir(entry.ino)?;
        if !self.is_empty_dir(entry.ino)? {
            return Err(Error::NotEmpty);
        }
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
        if flags.no_replace && flags.exchange {
            return Err(Error::Invalid("a rename cannot both exchange and refuse to replace"));
        }
        self.check_dir(dir)?;
        self.check_dir(new_dir)?;
        let dots = |name: &[u8]| name == b"." || name == b"..";
        if dots(name) || dots(new_name) {
            return Err(Error::Busy);
        }
        let entry = self.entry_of(dir, name)?;
        let taken = self.entry_if_any(new_dir, new_name)?;
        self.check_rename((dir, entry), (new_dir, taken), flags)?;
        self.check_room(ENTRY_BLOCKS)?;
        match taken {
            Some(taken) if taken.ino == entry.ino => Ok(()),
            Some(taken) if flags.exchange => self.exchange(caller, (dir, entry), (new_dir, taken)),
            Some(taken) => self.replace(caller, (dir, entry), (new_dir, taken)),
            None => self.move_entry(caller, (dir, name, entry), (new_dir, new_name)),
        }
    }

    fn check_rename(
        &mut self,
        (dir, entry): (Ino, Entry),
        (new_dir, taken): (Ino, Option<Entry>),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        let below = Error::Invalid("a directory cannot move below itself");
        match taken {
            Some(_) if flags.no_replace => return Err(Error::Exists),
            None if flags.exchange => return Err(Error::NotFound),
            _ => {}
        }
        let is_dir = self.inode(entry.ino)?.is_dir();
        if is_dir && self.is_below(new_dir, entry.ino)? {
            return Err(below);
        }
        if is_dir && dir != new_dir && taken.is_none() {
            self.check_links(new_dir)?;
        }
        let Some(taken) = taken else { return self.check_named(new_dir) };
        let taken_is_dir = self.inode(taken.ino)?.is_dir();
        if taken_is_dir && self.is_below(dir, taken.ino)? {
            return Err(if flags.exchange { below } else { Error::NotEmpty });
        }
        if taken.ino == entry.ino || flags.exchange {
            return Ok(());
        }
        match (is_dir, taken_is_dir) {
            (true, false) => Err(Error::NotADirectory),
            (false, true) => Err(Error::IsADirectory),
            (true, true) if !self.is_empty_dir(taken.ino)? => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }

    /// `dir` is `above` or lies below it.
    fn is_below(&mut self, mut dir: Ino, above: Ino) -> Result<bool, Error> {
        let mut steps = self.superblock.inodes_count;
        while dir != above {
            if dir == Ino::ROOT || steps == 0 {
                return Ok(false);
            }
            dir = self.entry_of(dir, b"..")?.ino;
            steps -= 1;
        }
        Ok(true)
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
        // content that replaces a file is on its way before the name says so (Linux: auto_da_alloc)
        if self.delayed.count(entry.ino) > 0 {
            self.place_delayed(entry.ino)?;
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
