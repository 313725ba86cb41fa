//! The calls of [`FileSystem`]: each checks, does its work, and leaves room for the next.

use dovetail_block::Scheduler;
use dovetail_time::SimTime;
use dovetail_vfs::kit::{Names, WriteData, XattrNameSpace};
use dovetail_vfs::{
    Attr, Caller, Devirtualize, DirEntry, Error, Fallocate, FileSystem, FsyncRest, Ino as Number,
    LeftOut, Moment, NewNode, RenameFlags, SetAttr, SharedCalls, StatFs, XattrFlags, check_name,
};

use super::Ext;
use crate::format::{FileType, Ino, Xattr, XattrIndex};

pub(super) fn ino_of(number: Number) -> Ino {
    Ino(u32::try_from(number.0).unwrap_or(0))
}

impl<D: Scheduler> Ext<D> {
    /// Runs a call that changes the volume.
    pub(super) fn change<T>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check_writable()?;
        self.pages.set_now(self.io.now());
        self.edits_before_call = self.edits;
        let done = call(self);
        self.kept_from_caller = 0;
        let broken = matches!(
            done,
            Err(Error::Io(_) | Error::Corrupt(_) | Error::NotFound | Error::Unsupported(_))
        );
        // what is half done must not be committed
        self.stopped |= broken && self.edits != self.edits_before_call;
        let done = done?;
        self.edits_before_call = self.edits;
        match self.after_call() {
            // the call itself had room enough; the next one, or a sync, says that there is none
            Err(crate::Error::NoSpace) => {}
            left => left?,
        }
        Ok(done)
    }

    /// A file that was emptied is closed: as in Linux its content goes with the next commit. If it
    /// lacks room now, each commit tries it.
    fn place_if_emptied(&mut self, ino: Ino) -> Result<(), Error> {
        if !self.emptied.contains(&ino) {
            return Ok(());
        }
        if self.delayed.count(ino) > 0 {
            match self.change(|fs| Ok(fs.send_before_commit(ino)?)) {
                Err(Error::NoSpace) => return Ok(()),
                placed => placed?,
            }
        }
        self.emptied.remove(&ino);
        Ok(())
    }

    /// A change that can be made again as a whole: if it lacks room, and there is more than was
    /// counted, it is made again, as a kernel does (Linux: `ext4_should_retry_alloc`).
    pub(super) fn change_again<T>(
        &mut self,
        call: impl Fn(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.change(&call) {
            Err(Error::NoSpace) if self.makes_room()? => self.change(call),
            done => done,
        }
    }
}

impl<D: Scheduler> FileSystem for Ext<D> {
    fn root(&self) -> Number {
        Number(Ino::ROOT.0.into())
    }

    fn statfs(&mut self) -> Result<StatFs, Error> {
        let per_page = self.per_page();
        let superblock = self.superblock();
        let free = superblock.free_blocks.saturating_sub(self.delayed.total());
        Ok(StatFs {
            blocks: superblock.blocks_count.saturating_sub(superblock.overhead.into()) / per_page,
            free: free / per_page,
            available: free.saturating_sub(superblock.reserved_blocks) / per_page,
            files: superblock.inodes_count.into(),
            files_free: superblock.free_inodes.into(),
        })
    }

    fn lookup(&mut self, dir: Number, name: &[u8]) -> Result<Attr, Error> {
        let entry = self.entry_of(ino_of(dir), name)?;
        Ok(self.attr(entry.ino)?)
    }

    fn getattr(&mut self, ino: Number) -> Result<Attr, Error> {
        Ok(self.attr(ino_of(ino))?)
    }

    fn attr_of_handle(&mut self, ino: Number) -> Result<Attr, Error> {
        // a table of inodes that was never written has anything in it
        if !self.is_named_inode(ino_of(ino))? {
            return Err(Error::NotFound);
        }
        match self.getattr(ino) {
            Err(Error::Corrupt(_)) => Err(Error::NotFound),
            found => found,
        }
    }

    fn setattr(&mut self, caller: &Caller, ino: Number, changes: &SetAttr) -> Result<Attr, Error> {
        self.change_again(|fs| fs.change_attributes(caller, ino_of(ino), changes))?;
        self.getattr(ino)
    }

    fn readlink(&mut self, ino: Number) -> Result<Vec<u8>, Error> {
        self.target(ino_of(ino))
    }

    fn create(
        &mut self,
        caller: &Caller,
        dir: Number,
        name: &[u8],
        node: &NewNode,
    ) -> Result<Attr, Error> {
        check_name(name)?;
        if !matches!(FileType::of_mode(node.mode).0, 1..=6) {
            return Err(Error::Invalid("the mode has no type that can be made"));
        }
        let ino =
            self.change_again(|fs| fs.make(caller, ino_of(dir), name, node.mode, node.rdev))?;
        Ok(self.attr(ino)?)
    }

    fn symlink(
        &mut self,
        caller: &Caller,
        dir: Number,
        name: &[u8],
        target: &[u8],
    ) -> Result<Attr, Error> {
        check_name(name)?;
        let ino = self.change_again(|fs| fs.make_symlink(caller, ino_of(dir), name, target))?;
        Ok(self.attr(ino)?)
    }

    fn link(
        &mut self,
        caller: &Caller,
        ino: Number,
        dir: Number,
        name: &[u8],
    ) -> Result<Attr, Error> {
        check_name(name)?;
        self.change_again(|fs| fs.add_name(caller, ino_of(ino), ino_of(dir), name))?;
        self.getattr(ino)
    }

    fn unlink(&mut self, caller: &Caller, dir: Number, name: &[u8]) -> Result<(), Error> {
        check_name(name)?;
        self.change(|fs| fs.unlink_entry(caller, ino_of(dir), name))
    }

    fn rmdir(&mut self, caller: &Caller, dir: Number, name: &[u8]) -> Result<(), Error> {
        check_name(name)?;
        self.change(|fs| fs.remove_directory(caller, ino_of(dir), name))
    }

    fn rename(
        &mut self,
        caller: &Caller,
        (dir, name): (Number, &[u8]),
        (new_dir, new_name): (Number, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        check_name(name)?;
        check_name(new_name)?;
        self.change_again(|fs| {
            fs.rename_entry(caller, (ino_of(dir), name), (ino_of(new_dir), new_name), flags)
        })
    }

    fn hold(&mut self, ino: Number) {
        *self.holds.entry(ino_of(ino)).or_default() += 1;
    }

    fn forget(&mut self, ino: Number, count: u64) -> Result<(), Error> {
        let ino = ino_of(ino);
        let Some(held) = self.holds.get_mut(&ino) else { return Ok(()) };
        *held = held.saturating_sub(count);
        if *held > 0 {
            return Ok(());
        }
        self.holds.remove(&ino);
        if self.is_read_only() {
            return Ok(());
        }
        if self.orphans.contains(&ino) {
            self.drop_window(ino)?;
            return self.change(|fs| Ok(fs.clean_orphan(ino)?));
        }
        self.place_if_emptied(ino)?;
        Ok(self.drop_window(ino)?)
    }

    fn read(&mut self, ino: Number, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.check_regular(ino_of(ino))?;
        self.read_content(ino_of(ino), offset, into)
    }

    fn write(
        &mut self,
        caller: &Caller,
        ino: Number,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        self.write_pieces(caller, ino_of(ino), offset, WriteData::Bytes(bytes))
    }

    fn fallocate(
        &mut self,
        caller: &Caller,
        ino: Number,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        self.change_again(|fs| fs.allocate_range(caller, ino_of(ino), how, offset, len))
    }

    fn seek_data(&mut self, ino: Number, offset: u64) -> Result<u64, Error> {
        self.check_regular(ino_of(ino))?;
        self.next_data(ino_of(ino), offset)
    }

    fn seek_hole(&mut self, ino: Number, offset: u64) -> Result<u64, Error> {
        self.check_regular(ino_of(ino))?;
        self.next_hole(ino_of(ino), offset)
    }

    fn fsync(&mut self, ino: Number, data_only: bool) -> Result<(), Error> {
        Ok(self.sync_file(ino_of(ino), data_only)?)
    }

    fn begin_fsync(&mut self, ino: Number, data_only: bool) -> Result<FsyncRest, Error> {
        if self.is_read_only() {
            return Ok(FsyncRest::Fsync);
        }
        Ok(self.begin_sync_file(ino_of(ino), data_only)?)
    }

    /// The first that commits does so for all: the others find nothing left to do.
    fn fsync_several(&mut self, files: &[(Number, bool)]) -> Vec<Result<(), Error>> {
        for &(ino, _) in files {
            // what fails here fails again, and is told, when it is that file's turn
            let _ = self.write_back(ino_of(ino));
        }
        files.iter().map(|&(ino, data_only)| self.fsync(ino, data_only)).collect()
    }

    fn begin_fsyncs(&mut self, files: &[(Number, bool)]) -> Result<FsyncRest, Error> {
        if self.is_read_only() {
            return Ok(FsyncRest::Fsync);
        }
        let files: Vec<_> = files.iter().map(|&(ino, only)| (ino_of(ino), only)).collect();
        Ok(self.begin_sync_files(&files)?)
    }

    fn go_on_after_flush(&mut self, flushed: Result<(), String>) -> Result<FsyncRest, Error> {
        Ok(self.go_on_with_commit(flushed)?)
    }

    fn sync(&mut self) -> Result<(), Error> {
        Ok(self.sync_all()?)
    }

    fn readdir(
        &mut self,
        dir: Number,
        cookie: u64,
        entry: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), Error> {
        let dir = ino_of(dir);
        if !self.inode(dir)?.is_dir() {
            return Err(Error::NotADirectory);
        }
        if self.superblock.incompat.has(crate::format::Incompat::FILETYPE) {
            return Ok(self.list(dir, cookie, &mut |cookie, found| {
                let (name, ino, kind) =
                    (found.name.clone(), Number(found.ino.0.into()), found.file_type.mode_bits());
                entry(DirEntry { name, ino, kind, cookie })
            })?);
        }
        // entries do not say what they name
        let mut all = Vec::new();
        self.list(dir, cookie, &mut |cookie, found| {
            all.push((cookie, found.clone()));
            true
        })?;
        for (cookie, found) in all {
            // of a damaged inode the name is listed all the same
            let kind =
                self.inode(found.ino).map_or(0, |inode| dovetail_vfs::mode::kind(inode.mode));
            if !entry(DirEntry { name: found.name, ino: Number(found.ino.0.into()), kind, cookie })
            {
                break;
            }
        }
        Ok(())
    }

    fn left_out(&mut self, dir: Number) -> Result<LeftOut, Error> {
        let dir = ino_of(dir);
        if !self.inode(dir)?.is_dir() {
            return Err(Error::NotADirectory);
        }
        Ok(self.left_out_of(dir)?)
    }

    fn getxattr(&mut self, ino: Number, name: &[u8]) -> Result<Vec<u8>, Error> {
        self.xattr(ino_of(ino), name)
    }

    fn setxattr(
        &mut self,
        caller: &Caller,
        ino: Number,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<(), Error> {
        self.change_again(|fs| fs.set_xattr(caller, ino_of(ino), name, value, flags))
    }

    fn listxattr(&mut self, ino: Number) -> Result<Vec<Vec<u8>>, Error> {
        let list = self.xattr_list(ino_of(ino))?;
        // names of no space that a call can name are not found either
        let names = list.iter().map(Xattr::system_name);
        Ok(names.filter(|name| XattrIndex::of_name(name).is_some()).collect())
    }

    fn removexattr(&mut self, caller: &Caller, ino: Number, name: &[u8]) -> Result<(), Error> {
        self.change_again(|fs| fs.remove_xattr(caller, ino_of(ino), name))
    }

    fn next_wake(&self) -> Option<SimTime> {
        Ext::next_wake(self)
    }

    fn set_now(&mut self, now: Moment) {
        Self::set_now(self, now);
    }

    fn wake(&mut self) -> Result<(), Error> {
        Ok(Ext::wake(self)?)
    }

    fn devirtualizer(&mut self) -> Option<&mut dyn Devirtualize> {
        Some(self)
    }

    fn shared(&self) -> Option<&dyn SharedCalls> {
        Some(self)
    }

    fn unmount(self: Box<Self>) -> Result<(), Error> {
        Ok(Ext::unmount(*self).map(drop)?)
    }
}
