//! An ext volume as a tree: as its next mount would show it, read without writing.

use dovetail_ext::Volume;
use dovetail_ext::format::{FileType, Inode};
use dovetail_vfs::{Attr, DirEntry, Error, Ino, LeftOut};

use super::tree::{Tree, Xattrs};

use crate::medium::Medium;

impl Tree for Volume<Medium> {
    fn root(&self) -> Ino {
        Ino(dovetail_ext::format::Ino::ROOT.0.into())
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
        let entry = |entry: dovetail_ext::format::DirEntry| DirEntry {
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
    volume.inode(dovetail_ext::format::Ino(u32::try_from(ino.0).unwrap_or(0))).map_err(told)
}

/// A damaged volume is asked for its files as well: what is wrong with one keeps its sentence.
fn told(error: dovetail_ext::Error) -> Error {
    match error {
        dovetail_ext::Error::Corrupt(what) => Error::Corrupt(what.to_string()),
        error => error.into(),
    }
}

fn attr_of(inode: &Inode) -> Attr {
    let is_device = matches!(inode.file_type(), FileType::CHAR_DEVICE | FileType::BLOCK_DEVICE);
    Attr {
        ino: Ino(inode.ino.0.into()),
        mode: inode.mode,
        links: inode.links.into(),
        uid: inode.uid,
        gid: inode.gid,
        rdev: if is_device { inode.device() } else { (0, 0) },
        size: inode.size,
        blocks: inode.sectors,
        atime: inode.atime,
        mtime: inode.mtime,
        ctime: inode.ctime,
        generation: inode.generation,
    }
}
