//! A tree of files that is only read: a mounted file system, or a volume as of its last checkpoint.

use dovetail_vfs::kit::VolumeTree;
use dovetail_vfs::{Attr, DirEntry, Error, FileSystem, Ino, LeftOut};

/// Entries that are read at a time.
const BATCH: usize = 1024;
/// Bytes that are read at a time near what cannot be read.
const BLOCK: usize = 4096;

/// The names of extended attributes with their values, or why one cannot be read.
pub type Xattrs = Vec<(Vec<u8>, Result<Vec<u8>, Error>)>;

/// The files of a file system, to be listed and copied.
pub trait Tree {
    /// The root directory.
    fn root(&self) -> Ino;

    /// The file called `name` in `dir`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotADirectory`]; damage; the device.
    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error>;

    /// The attributes of a file.
    ///
    /// # Errors
    /// Damage; the device.
    fn attr(&mut self, ino: Ino) -> Result<Attr, Error>;

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// Damage; the device.
    fn read_link(&mut self, ino: Ino) -> Result<Vec<u8>, Error>;

    /// Reads from `offset` on; returns the bytes that were read.
    ///
    /// # Errors
    /// Damage; the device.
    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error>;

    /// As [`Self::read`]; if damage lies ahead, what can be read before it is: a block at least.
    ///
    /// # Errors
    /// Damage in the first block; the device.
    fn read_up_to_damage(
        &mut self,
        ino: Ino,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Error> {
        let first = (BLOCK - (offset % BLOCK as u64) as usize).min(into.len());
        match self.read(ino, offset, into) {
            Err(_) if first < into.len() => self.read(ino, offset, &mut into[..first]),
            read => read,
        }
    }

    /// The first byte at or after `offset` that is data; the end of the file if there is none.
    ///
    /// # Errors
    /// Damage; the device.
    fn next_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error>;

    /// The first byte after `offset`, which is data, that is in a hole; the end of the file if
    /// there is none.
    ///
    /// # Errors
    /// Damage; the device.
    fn next_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error>;

    /// Some of the entries after `cookie` (0: from the start), without "." and ".."; none at the
    /// end.
    ///
    /// # Errors
    /// Damage; the device.
    fn list(&mut self, dir: Ino, cookie: u64) -> Result<Vec<DirEntry>, Error>;

    /// The entries that [`Self::list`] leaves out, since the directory is damaged.
    ///
    /// # Errors
    /// Damage; the device.
    fn left_out(&mut self, dir: Ino) -> Result<LeftOut, Error>;

    /// The extended attributes.
    ///
    /// # Errors
    /// Damage; the device.
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

/// A volume that is not mounted, as a tree.
pub(crate) struct Unmounted<V>(pub(crate) V);

impl<V: VolumeTree> Unmounted<V> {
    fn with<T>(
        &mut self,
        ino: Ino,
        what: impl FnOnce(&mut V, &V::Inode) -> Result<T, V::Error>,
    ) -> Result<T, Error> {
        let inode = self.0.inode_of(ino).map_err(V::told)?;
        what(&mut self.0, &inode).map_err(V::told)
    }
}

impl<V: VolumeTree> Tree for Unmounted<V> {
    fn root(&self) -> Ino {
        self.0.root_ino()
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        let inode = self.0.inode_of(dir).map_err(V::told)?;
        if !V::attr_of(&inode).is_dir() {
            return Err(Error::NotADirectory);
        }
        match self.0.child(&inode, name).map_err(V::told)? {
            Some(found) => Ok(V::attr_of(&found)),
            None if name == b".." => self.attr(self.root()),
            None => Err(Error::NotFound),
        }
    }

    fn attr(&mut self, ino: Ino) -> Result<Attr, Error> {
        self.with(ino, |_, inode| Ok(V::attr_of(inode)))
    }

    fn read_link(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        self.with(ino, V::link_target)
    }

    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.with(ino, |volume, inode| volume.read_at(inode, offset, into))
    }

    fn next_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.with(ino, |volume, inode| volume.data_from(inode, offset))
    }

    fn next_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        self.with(ino, |volume, inode| volume.hole_from(inode, offset))
    }

    /// All entries at once.
    fn list(&mut self, dir: Ino, cookie: u64) -> Result<Vec<DirEntry>, Error> {
        if cookie != 0 {
            return Ok(Vec::new());
        }
        let (names, _) = self.with(dir, V::names_in)?;
        // the inode says its kind better than a damaged entry
        Ok(names
            .into_iter()
            .map(|(name, ino)| DirEntry { name, ino, kind: 0, cookie: 1 })
            .collect())
    }

    fn left_out(&mut self, dir: Ino) -> Result<LeftOut, Error> {
        Ok(self.with(dir, V::names_in)?.1)
    }

    fn xattrs(&mut self, ino: Ino) -> Result<Xattrs, Error> {
        let list = self.with(ino, V::attributes_of)?;
        Ok(list.into_iter().map(|(name, value)| (name, Ok(value))).collect())
    }
}
