//! The model as a file system.

use dovetail_time::SimTime;
use dovetail_vfs::{
    Attr, Caller, DirEntry, Error, Fallocate, FileSystem, Ino, Moment, NewNode, RenameFlags,
    SetAttr, SharedCalls, StatFs, XattrFlags,
};

use super::directory::{AFTER_DOT, AFTER_DOTS};
use super::{Body, Model, ROOT};

impl Model {
    fn entry(&self, name: &[u8], ino: Ino, cookie: u64) -> Result<DirEntry, Error> {
        Ok(DirEntry { name: name.to_vec(), ino, kind: self.node(ino)?.attr.kind(), cookie })
    }

    /// Entries that a listing shows after `cookie`.
    fn entries(&self, dir: Ino, cookie: u64) -> Result<Vec<DirEntry>, Error> {
        let directory = self.directory(dir)?;
        let dots = [(AFTER_DOT, ".", dir), (AFTER_DOTS, "..", directory.parent())];
        let dots = dots.into_iter().map(|(after, name, ino)| (after, name.as_bytes(), ino));
        let all = dots.filter(|dot| dot.0 > cookie).chain(directory.list(cookie.max(AFTER_DOTS)));
        all.map(|(after, name, ino)| self.entry(name, ino, after)).collect()
    }

    fn check_end(&self, offset: u64, len: u64) -> Result<u64, Error> {
        let end = offset.checked_add(len).ok_or(Error::FileTooBig)?;
        if end > self.limits.file_size { Err(Error::FileTooBig) } else { Ok(end) }
    }

    fn used_blocks(&self) -> u64 {
        self.nodes.values().map(|node| node.shown().blocks.div_ceil(8)).sum()
    }
}

impl FileSystem for Model {
    fn root(&self) -> Ino {
        ROOT
    }

    fn statfs(&mut self) -> Result<StatFs, Error> {
        let free = self.limits.blocks.saturating_sub(self.used_blocks());
        Ok(StatFs {
            blocks: self.limits.blocks,
            free,
            available: free,
            files: self.limits.blocks,
            files_free: self.limits.blocks.saturating_sub(self.nodes.len() as u64),
        })
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        self.getattr(self.find(dir, name)?)
    }

    fn getattr(&mut self, ino: Ino) -> Result<Attr, Error> {
        Ok(self.node(ino)?.shown())
    }

    fn setattr(&mut self, caller: &Caller, ino: Ino, changes: &SetAttr) -> Result<Attr, Error> {
        self.set_attributes(caller, ino, changes)
    }

    fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        match &self.node(ino)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(Error::Invalid("it is no symbolic link")),
        }
    }

    fn create(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        node: &NewNode,
    ) -> Result<Attr, Error> {
        self.make(caller, dir, name, node)
    }

    fn symlink(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        target: &[u8],
    ) -> Result<Attr, Error> {
        self.make_symlink(caller, dir, name, target)
    }

    fn link(&mut self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        self.add_link(caller, ino, dir, name)
    }

    fn unlink(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        self.remove_file(caller, dir, name)
    }

    fn rmdir(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        self.remove_directory(caller, dir, name)
    }

    fn rename(
        &mut self,
        caller: &Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        self.move_name(caller, from, to, flags)
    }

    fn hold(&mut self, ino: Ino) {
        self.nodes.entry(ino).and_modify(|node| node.holds += 1);
    }

    fn forget(&mut self, ino: Ino, count: u64) -> Result<(), Error> {
        self.nodes.entry(ino).and_modify(|node| node.holds = node.holds.saturating_sub(count));
        self.drop_if_unused(ino);
        Ok(())
    }

    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        Ok(self.node(ino)?.file()?.read(offset, into))
    }

    fn write(&mut self, caller: &Caller, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let end = self.check_end(offset, bytes.len() as u64);
        let node = self.node_mut(ino)?;
        let file = node.file_mut()?;
        end?;
        if !bytes.is_empty() {
            file.write(offset, bytes);
            node.modified(caller.now);
        }
        Ok(())
    }

    fn fallocate(
        &mut self,
        caller: &Caller,
        ino: Ino,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        let end = self.check_end(offset, len);
        let reserves = self.limits.reserves;
        let node = self.node_mut(ino)?;
        let file = node.file_mut()?;
        if len == 0 {
            return Err(Error::Invalid("the range is empty"));
        }
        let end = end?;
        if !reserves && how != Fallocate::PunchHole {
            return Err(Error::Unsupported("reserving blocks".to_string()));
        }
        match how {
            Fallocate::Reserve { .. } => file.reserve(offset, end),
            Fallocate::PunchHole if offset >= file.size() => return Ok(()),
            Fallocate::PunchHole => file.punch(offset, end),
            Fallocate::ZeroRange { .. } => file.zero_range(offset, end),
        }
        if let Fallocate::Reserve { keep_size: false } | Fallocate::ZeroRange { keep_size: false } =
            how
        {
            file.grow(end);
        }
        node.modified(caller.now);
        Ok(())
    }

    fn seek_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.node(ino)?.file()?.seek_data(offset)
    }

    fn seek_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.node(ino)?.file()?.seek_hole(offset)
    }

    fn fsync(&mut self, ino: Ino, _data_only: bool) -> Result<(), Error> {
        self.node(ino).map(drop)
    }

    fn sync(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn readdir(
        &mut self,
        dir: Ino,
        cookie: u64,
        entry: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), Error> {
        for found in self.entries(dir, cookie)? {
            if !entry(found) {
                break;
            }
        }
        Ok(())
    }

    fn getxattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error> {
        self.xattr(ino, name)
    }

    fn setxattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<(), Error> {
        self.set_xattr(caller, ino, name, value, flags)
    }

    fn listxattr(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>, Error> {
        Ok(self.node(ino)?.xattrs.keys().cloned().collect())
    }

    fn removexattr(&mut self, caller: &Caller, ino: Ino, name: &[u8]) -> Result<(), Error> {
        self.remove_xattr(caller, ino, name)
    }

    fn next_wake(&self) -> Option<SimTime> {
        None
    }

    fn set_now(&mut self, _: Moment) {}

    fn wake(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn shared(&self) -> Option<&dyn SharedCalls> {
        Some(self)
    }

    fn unmount(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}

impl SharedCalls for Model {
    fn read(&self, ino: Ino, offset: u64, into: &mut [u8]) -> Option<usize> {
        Some(self.node(ino).ok()?.file().ok()?.read(offset, into))
    }

    fn getattr(&self, ino: Ino) -> Option<Attr> {
        Some(self.node(ino).ok()?.shown())
    }
}
