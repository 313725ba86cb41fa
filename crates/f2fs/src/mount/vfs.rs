//! The calls of [`FileSystem`]: each checks, does its work, and leaves space for the next if it took
//! some.

use std::ops::Range;

use dovetail_block::Scheduler;
use dovetail_time::SimTime;
use dovetail_vfs::kit::Names;
use dovetail_vfs::kit::WriteData;
use dovetail_vfs::mode::is_symlink;
use dovetail_vfs::{
    Attr, Caller, Devirtualize, DirEntry, Error, Fallocate, FileSystem, FsyncRest, Ino, LeftOut,
    Moment, NewNode, RenameFlags, SetAttr, SharedCalls, StatFs, XattrFlags, check_name,
};

use super::F2fs;
use crate::format::{FileType, Nid};

pub(super) fn nid(ino: Ino) -> Nid {
    Nid(u32::try_from(ino.0).unwrap_or(0))
}

impl<D: Scheduler> F2fs<D> {
    /// Runs a call that changes the volume.
    pub(super) fn change<T>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let done = self.attempt(call)?;
        self.after_change()?;
        Ok(done)
    }

    /// Runs a write that stays in the page cache. One that reserves no block takes no space, and
    /// does not clean (Linux 6.12: `f2fs_write_begin`): who writes its pages looks for space. No
    /// page is written of a file that lies in its inode.
    pub(super) fn write_buffered(
        &mut self,
        caller: &Caller,
        ino: Nid,
        offset: u64,
        data: WriteData<'_>,
    ) -> Result<(), Error> {
        let valid = self.counts.valid_blocks;
        self.attempt(|fs| fs.write_content(caller, ino, offset, data))?;
        self.after_buffered_write()?;
        let takes_space = self.counts.valid_blocks != valid || self.has_inline_data(ino)?;
        if takes_space || self.has_many_dirty_nodes() {
            self.keep_space()?;
        }
        Ok(())
    }

    fn attempt<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.check_writable()?;
        self.pages.set_now(self.io.now());
        let edits = self.nodes.edits();
        let done = call(self);
        let broken = matches!(done, Err(Error::Io(_) | Error::Corrupt(_) | Error::NotFound));
        // what is half done must not reach the next checkpoint
        self.state.stop_if(broken && self.nodes.edits() != edits);
        done
    }
}

impl<D: Scheduler> FileSystem for F2fs<D> {
    fn root(&self) -> Ino {
        Ino(self.superblock.root.0.into())
    }

    fn statfs(&mut self) -> Result<StatFs, Error> {
        let user = self.committed.checkpoint().user_block_count;
        let free = user.saturating_sub(self.counts.valid_blocks);
        let inodes = u64::from(self.nat.max_nid() - 3).min(user);
        Ok(StatFs {
            blocks: self.superblock.space_blocks(),
            free,
            available: free,
            files: inodes,
            files_free: inodes.saturating_sub(self.counts.valid_inodes.into()).min(free),
        })
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        let entry = self.entry_of(nid(dir), name)?;
        Ok(self.attr(entry.ino)?)
    }

    fn getattr(&mut self, ino: Ino) -> Result<Attr, Error> {
        Ok(self.attr(nid(ino))?)
    }

    fn setattr(&mut self, caller: &Caller, ino: Ino, changes: &SetAttr) -> Result<Attr, Error> {
        self.change(|fs| fs.change_attributes(caller, nid(ino), changes))?;
        self.getattr(ino)
    }

    fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        let raw = self.inode(nid(ino))?;
        if !is_symlink(raw.i_mode.get()) {
            return Err(Error::Invalid("it is not a symbolic link"));
        }
        let size = raw.i_size.get();
        crate::Corrupt::check_range(crate::Place::Inode(nid(ino)), "i_size", size, (1, 4095))
            .map_err(crate::Error::from)?;
        let mut target = vec![0; size as usize];
        self.read_content(nid(ino), 0, &mut target)?;
        Ok(target)
    }

    fn create(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        node: &NewNode,
    ) -> Result<Attr, Error> {
        check_name(name)?;
        if !matches!(FileType::of_mode(node.mode).0, 1..=6) {
            return Err(Error::Invalid("the mode has no type that can be made"));
        }
        let ino = self.change(|fs| fs.make(caller, nid(dir), name, node.mode, node.rdev))?;
        Ok(self.attr(ino)?)
    }

    fn symlink(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        target: &[u8],
    ) -> Result<Attr, Error> {
        check_name(name)?;
        let ino = self.change(|fs| fs.make_symlink(caller, nid(dir), name, target))?;
        Ok(self.attr(ino)?)
    }

    fn link(&mut self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        check_name(name)?;
        self.change(|fs| fs.add_name(caller, nid(ino), nid(dir), name))?;
        self.getattr(ino)
    }

    fn unlink(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        check_name(name)?;
        self.change(|fs| fs.unlink_entry(caller, nid(dir), name))
    }

    fn rmdir(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        check_name(name)?;
        self.change(|fs| fs.remove_directory(caller, nid(dir), name))
    }

    fn rename(
        &mut self,
        caller: &Caller,
        (dir, name): (Ino, &[u8]),
        (new_dir, new_name): (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        check_name(name)?;
        check_name(new_name)?;
        self.change(|fs| fs.rename_entry(caller, (nid(dir), name), (nid(new_dir), new_name), flags))
    }

    fn hold(&mut self, ino: Ino) {
        self.orphans.hold(nid(ino));
    }

    fn forget(&mut self, ino: Ino, count: u64) -> Result<(), Error> {
        let ino = nid(ino);
        let is_last = self.orphans.release(ino, count);
        if is_last && self.orphans.contains(ino) && !self.is_read_only() {
            return self.change(|fs| Ok(fs.drop_inode(ino)?));
        }
        Ok(())
    }

    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.check_regular(nid(ino))?;
        self.read_content(nid(ino), offset, into)
    }

    fn write(&mut self, caller: &Caller, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let data = WriteData::Bytes(bytes);
        if self.options.writes_past_cache {
            self.change(|fs| fs.write_content(caller, nid(ino), offset, data))?;
        } else {
            self.write_buffered(caller, nid(ino), offset, data)?;
        }
        Ok(self.io.kick().map_err(crate::Error::from)?)
    }

    fn fallocate(
        &mut self,
        caller: &Caller,
        ino: Ino,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        self.change(|fs| fs.allocate_range(caller, nid(ino), how, offset, len))
    }

    fn seek_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.check_regular(nid(ino))?;
        self.next_data(nid(ino), offset)
    }

    fn seek_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.check_regular(nid(ino))?;
        self.next_hole(nid(ino), offset)
    }

    fn fsync(&mut self, ino: Ino, data_only: bool) -> Result<(), Error> {
        Ok(self.sync_file(nid(ino).0, data_only)?)
    }

    fn begin_fsync(&mut self, ino: Ino, data_only: bool) -> Result<FsyncRest, Error> {
        Ok(self.begin_sync_file(nid(ino), data_only)?)
    }

    fn sync(&mut self) -> Result<(), Error> {
        Ok(self.sync_all()?)
    }

    fn readdir(
        &mut self,
        dir: Ino,
        cookie: u64,
        entry: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), Error> {
        if !self.is_dir(nid(dir))? {
            return Err(Error::NotADirectory);
        }
        self.list(nid(dir), cookie, &mut |found| {
            let Ok((cookie, found)) = found else { return true };
            let kind = found.file_type.mode_bits();
            entry(DirEntry { name: found.name, ino: Ino(found.ino.0.into()), kind, cookie })
        })?;
        Ok(())
    }

    fn left_out(&mut self, dir: Ino) -> Result<LeftOut, Error> {
        if !self.is_dir(nid(dir))? {
            return Err(Error::NotADirectory);
        }
        Ok(self.left_out_of(nid(dir))?)
    }

    fn getxattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error> {
        self.xattr(nid(ino), name)
    }

    fn setxattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<(), Error> {
        self.change(|fs| fs.set_xattr(caller, nid(ino), name, value, flags))
    }

    fn listxattr(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>, Error> {
        let list = self.xattr_list(nid(ino))?;
        Ok(list.iter().map(|xattr| xattr.system_name()).collect())
    }

    fn removexattr(&mut self, caller: &Caller, ino: Ino, name: &[u8]) -> Result<(), Error> {
        self.change(|fs| fs.remove_xattr(caller, nid(ino), name))
    }

    fn devirtualizer(&mut self) -> Option<&mut dyn Devirtualize> {
        Some(self)
    }

    fn next_wake(&self) -> Option<SimTime> {
        F2fs::next_wake(self)
    }

    fn set_now(&mut self, now: Moment) {
        Self::set_now(self, now);
    }

    fn wake(&mut self) -> Result<(), Error> {
        Ok(F2fs::wake(self)?)
    }

    fn shared(&self) -> Option<&dyn SharedCalls> {
        Some(self)
    }

    fn prepare_shared_read(&mut self, ino: Ino, bytes: Range<u64>) -> Result<bool, Error> {
        Ok(self.load_pointers(nid(ino), bytes)?)
    }

    fn unmount(self: Box<Self>) -> Result<(), Error> {
        Ok(F2fs::unmount(*self).map(drop)?)
    }
}
