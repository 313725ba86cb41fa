//! A tree of files that is only read: a mounted file system, or a volume as of its last checkpoint.

use dovetail_f2fs::Volume;
use dovetail_f2fs::format::{FileType, Inode, Nid};
use dovetail_vfs::{Attr, DirEntry, Error, FileSystem, Ino, LeftOut, Timestamp};

use crate::medium::Medium;

/// Entries that are read at a time.
const BATCH: usize = 1024;

/// The names of extended attributes with their values, or why one cannot be read.
pub(super) type Xattrs = Vec<(Vec<u8>, Result<Vec<u8>, Error>)>;

/// What `ls`, `cat`, `extract` and `cp` need of a file system.
pub(super) trait Tree {
    fn root(&self) -> Ino;

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error>;

    fn attr(&mut self, ino: Ino) -> Result<Attr, Error>;

    fn read_link(&mut self, ino: Ino) -> Result<Vec<u8>, Error>;

    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error>;

    /// The first byte at or after `offset` that is data; the end of the file if there is none.
    fn next_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error>;

    /// The first byte after `offset`, which is data, that is in a hole; the end of the file if
    /// there is none.
    fn next_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error>;

    /// Some of the entries after `cookie` (0: from the start), without "." and ".."; none at the end.
    fn list(&mut self, dir: Ino, cookie: u64) -> Result<Vec<DirEntry>, Error>;

    /// What [`Self::list`] leaves out, since the directory is damaged.
    fn left_out(&mut self, dir: Ino) -> Result<LeftOut, Error>;

    fn xattrs(&mut self, ino: Ino) -> Result<Xattrs, Error>;
}

fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

impl Tree for Box<dyn FileSystem> {
    fn root(&self) -> Ino {
        (**self).root()
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        (**self).lookup(dir, name)
    }

    fn attr(&mut self, ino: Ino) -> Result<Attr, Error> {
        self.getattr(ino)
    }

    fn read_link(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        self.readlink(ino)
    }

    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        (**self).read(ino, offset, into)
    }

    fn next_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        match self.seek_data(ino, offset) {
            Err(Error::BeyondEnd) => Ok(self.getattr(ino)?.size),
            found => found,
        }
    }

    fn next_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.seek_hole(ino, offset)
    }

    fn list(&mut self, dir: Ino, cookie: u64) -> Result<Vec<DirEntry>, Error> {
        let mut entries = Vec::new();
        self.readdir(dir, cookie, &mut |entry| {
            entries.push(entry);
            entries.len() < BATCH
        })?;
        entries.retain(|entry| !is_dots(&entry.name));
        Ok(entries)
    }

    fn left_out(&mut self, dir: Ino) -> Result<LeftOut, Error> {
        (**self).left_out(dir)
    }

    fn xattrs(&mut self, ino: Ino) -> Result<Xattrs, Error> {
        let names = self.listxattr(ino)?;
        Ok(names.into_iter().map(|name| (name.clone(), self.getxattr(ino, &name))).collect())
    }
}

impl Tree for Volume<Medium> {
    fn root(&self) -> Ino {
        Ino(self.superblock().root.0.into())
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        let inode = inode(self, dir)?;
        if !inode.is_dir() {
            return Err(Error::NotADirectory);
        }
        match Self::lookup(self, &inode, name).map_err(told)? {
            Some(entry) => self.attr(Ino(entry.ino.0.into())),
            None if name == b".." => self.attr(Tree::root(self)),
            None => Err(Error::NotFound),
        }
    }

    fn attr(&mut self, ino: Ino) -> Result<Attr, Error> {
        Ok(attr_of(&inode(self, ino)?))
    }

    fn read_link(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        let inode = inode(self, ino)?;
        Self::read_link(self, &inode).map_err(told)
    }

    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let inode = inode(self, ino)?;
        Self::read(self, &inode, offset, into).map_err(told)
    }

    fn next_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        let inode = inode(self, ino)?;
        Self::next_data(self, &inode, offset).map_err(told)
    }

    fn next_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        let inode = inode(self, ino)?;
        Self::next_hole(self, &inode, offset).map_err(told)
    }

    /// All entries at once.
    fn list(&mut self, dir: Ino, cookie: u64) -> Result<Vec<DirEntry>, Error> {
        if cookie != 0 {
            return Ok(Vec::new());
        }
        let inode = inode(self, dir)?;
        let (mut entries, _) = self.whole_entries(&inode).map_err(told)?;
        entries.retain(|entry| !entry.is_dot());
        let entry = |entry: dovetail_f2fs::format::DirEntry| DirEntry {
            name: entry.name,
            ino: Ino(entry.ino.0.into()),
            kind: 0, // the inode says it better than a damaged entry
            cookie: 1,
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    fn left_out(&mut self, dir: Ino) -> Result<LeftOut, Error> {
        let inode = inode(self, dir)?;
        Ok(self.whole_entries(&inode).map_err(told)?.1)
    }

    fn xattrs(&mut self, ino: Ino) -> Result<Xattrs, Error> {
        let inode = inode(self, ino)?;
        let list = Self::xattrs(self, &inode).map_err(told)?;
        Ok(list.iter().map(|xattr| (xattr.full_name().into_bytes(), Ok(xattr.system_value()))).collect())
    }
}

fn inode(volume: &mut Volume<Medium>, ino: Ino) -> Result<Inode, Error> {
    volume.inode(Nid(u32::try_from(ino.0).unwrap_or(0))).map_err(told)
}

/// A damaged volume is asked for its files as well: what is wrong with one keeps its sentence.
fn told(error: dovetail_f2fs::Error) -> Error {
    match error {
        dovetail_f2fs::Error::Corrupt(what) => Error::Corrupt(what.to_string()),
        error => error.into(),
    }
}

fn attr_of(inode: &Inode) -> Attr {
    let time = |time: dovetail_f2fs::format::Timestamp| Timestamp {
        seconds: time.seconds,
        nanoseconds: time.nanoseconds,
    };
    let is_device = matches!(inode.file_type(), FileType::CHAR_DEVICE | FileType::BLOCK_DEVICE);
    Attr {
        ino: Ino(inode.ino.0.into()),
        mode: inode.mode,
        links: inode.links,
        uid: inode.uid,
        gid: inode.gid,
        rdev: if is_device { inode.device() } else { (0, 0) },
        size: inode.size,
        blocks: inode.blocks * 8,
        atime: time(inode.atime),
        mtime: time(inode.mtime),
        ctime: time(inode.ctime),
        generation: inode.generation,
    }
}
