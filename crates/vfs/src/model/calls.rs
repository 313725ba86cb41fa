//! The calls of [`FileSystem`].

use dovetail_time::SimTime;

use super::content::FileContent;
use super::{DIR, KIND, Kind, Model, REGULAR, ROOT, SYMLINK};
use crate::{
    Attr, Caller, DirEntry, Error, Fallocate, FileSystem, Ino, MAX_NAME, NewNode, RenameFlags, SetAttr,
    StatFs, XattrFlags,
};

/// The longest target of a symbolic link, in bytes, and one more.
const TARGET_LIMIT: usize = 4096;

impl Model {
    fn check_end(&self, offset: u64, len: u64) -> Result<u64, Error> {
        offset.checked_add(len).filter(|&end| end <= self.limits.file_size).ok_or(Error::FileTooBig)
    }

    fn set_size(&mut self, ino: Ino, size: u64) -> Result<(), Error> {
        self.file_mut(ino)?;
        self.check_end(size, 0)?;
        self.file_mut(ino)?.resize(size);
        Ok(())
    }

    /// The entries of a directory with their cookies, "." and ".." first.
    fn entries(&self, dir: Ino) -> Result<Vec<(u64, Vec<u8>, Ino)>, Error> {
        let content = self.dir(dir)?;
        let dots = [(1, b".".to_vec(), dir), (2, b"..".to_vec(), content.parent)];
        let rest = content.entries.iter().map(|(&cookie, (name, ino))| (cookie, name.clone(), *ino));
        Ok(dots.into_iter().chain(rest).collect())
    }
}

impl FileSystem for Model {
    fn root(&self) -> Ino {
        ROOT
    }

    fn statfs(&mut self) -> Result<StatFs, Error> {
        let (blocks, files) = (1 << 30, 1 << 30);
        Ok(StatFs { blocks, free: blocks, available: blocks, files, files_free: files })
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        if name.len() > MAX_NAME {
            return Err(Error::NameTooLong);
        }
        let ino = self.find(dir, name)?.ok_or(Error::NotFound)?;
        self.attr(ino)
    }

    fn getattr(&mut self, ino: Ino) -> Result<Attr, Error> {
        self.attr(ino)
    }

    fn setattr(&mut self, caller: &Caller, ino: Ino, changes: &SetAttr) -> Result<Attr, Error> {
        if let Some(size) = changes.size {
            self.set_size(ino, size)?;
        }
        let node = self.node_mut(ino)?;
        if let Some(mode) = changes.mode {
            node.mode = node.mode & KIND | mode & !KIND;
        }
        node.uid = changes.uid.unwrap_or(node.uid);
        node.gid = changes.gid.unwrap_or(node.gid);
        node.atime = changes.atime.unwrap_or(node.atime);
        let resized = changes.size.map(|_| caller.now);
        node.mtime = changes.mtime.or(resized).unwrap_or(node.mtime);
        node.ctime = changes.ctime.unwrap_or(caller.now);
        self.attr(ino)
    }

    fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        match &self.node(ino)?.kind {
            Kind::Symlink(target) => Ok(target.clone()),
            _ => Err(Error::Invalid("it is not a symbolic link")),
        }
    }

    fn create(&mut self, caller: &Caller, dir: Ino, name: &[u8], node: &NewNode) -> Result<Attr, Error> {
        let kind = |parent| match node.mode & KIND {
            REGULAR => Kind::File(FileContent::default()),
            DIR => Self::directory(parent),
            _ => Kind::Special,
        };
        let device = matches!(node.mode & KIND, 0o020_000 | 0o060_000);
        match node.mode & KIND {
            REGULAR | DIR | 0o010_000 | 0o020_000 | 0o060_000 | 0o140_000 => {}
            _ => return Err(Error::Invalid("the mode has no type that can be made")),
        }
        let rdev = if device { node.rdev } else { (0, 0) };
        let ino = self.make(caller, (dir, name), (node.mode, rdev), kind)?;
        self.attr(ino)
    }

    fn symlink(&mut self, caller: &Caller, dir: Ino, name: &[u8], target: &[u8]) -> Result<Attr, Error> {
        match target.len() {
            0 => return Err(Error::NotFound),
            TARGET_LIMIT.. => return Err(Error::NameTooLong),
            _ => {}
        }
        let kind = |_| Kind::Symlink(target.to_vec());
        let ino = self.make(caller, (dir, name), (SYMLINK | 0o777, (0, 0)), kind)?;
        self.attr(ino)
    }

    fn link(&mut self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        self.add_name(caller, ino, dir, name)?;
        self.attr(ino)
    }

    fn unlink(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        self.remove_file(caller, dir, name)
    }

    fn rmdir(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        self.remove_dir(caller, dir, name)
    }

    fn rename(
        &mut self,
        caller: &Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        self.rename_entry(caller, from, to, flags)
    }

    fn hold(&mut self, ino: Ino) {
        if let Ok(node) = self.node_mut(ino) {
            node.holds += 1;
        }
    }

    fn forget(&mut self, ino: Ino, count: u64) -> Result<(), Error> {
        if let Ok(node) = self.node_mut(ino) {
            node.holds = node.holds.saturating_sub(count);
            self.drop_if_gone(ino);
        }
        Ok(())
    }

    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        Ok(self.file_mut(ino)?.read(offset, into))
    }

    fn write(&mut self, caller: &Caller, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.file_mut(ino)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.check_end(offset, bytes.len() as u64)?;
        self.file_mut(ino)?.write(offset, bytes);
        self.touch(ino, caller.now)
    }

    fn fallocate(
        &mut self,
        caller: &Caller,
        ino: Ino,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        self.file_mut(ino)?;
        if len == 0 {
            return Err(Error::Invalid("the range is empty"));
        }
        let end = self.check_end(offset, len)?;
        let content = self.file_mut(ino)?;
        if !matches!(how, Fallocate::Reserve { .. }) {
            content.punch(offset, end);
        }
        if !matches!(how, Fallocate::PunchHole) {
            content.reserve(offset, end);
        }
        if let Fallocate::Reserve { keep_size: false } | Fallocate::ZeroRange { keep_size: false } = how {
            content.grow(end);
        }
        self.touch(ino, caller.now)
    }

    fn seek_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.file_mut(ino)?.next_data(offset).ok_or(Error::BeyondEnd)
    }

    fn seek_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.file_mut(ino)?.next_hole(offset).ok_or(Error::BeyondEnd)
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
        for (at, name, ino) in self.entries(dir)?.into_iter().filter(|(at, ..)| *at > cookie) {
            let kind = self.nodes.get(&ino).map_or(0, |node| node.mode & KIND);
            if !entry(DirEntry { name, ino, kind, cookie: at }) {
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
        self.set_xattr(caller, ino, (name, value), flags)
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

    fn wake(&mut self, _now: SimTime) -> Result<(), Error> {
        Ok(())
    }

    fn unmount(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}
