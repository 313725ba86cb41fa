//! From a path to an inode.

use dovetail_block::BlockDevice;
use dovetail_vfs::{MAX_SYMLINKS, PathTree, resolve};

use super::Volume;
use crate::error::Error;
use crate::format::{FileType, Ino, Inode};

impl<D: BlockDevice> Volume<D> {
    /// The root directory.
    ///
    /// # Errors
    /// A damaged inode.
    pub fn root(&mut self) -> Result<Inode, Error> {
        self.inode(Ino::ROOT)
    }

    /// The inode that `path` leads to from the root, following symbolic links (inside the volume: a target that
    /// begins with a slash begins at its root). "", "/" and "." are the root; ".." in the root is the root.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotADirectory`], [`Error::TooManySymlinks`]; damaged directories on the way.
    pub fn resolve(&mut self, path: &[u8]) -> Result<Inode, Error> {
        resolve(&mut OnPath { volume: self, path }, path, true)
    }

    /// As [`Self::resolve`], but a symbolic link at the end is not followed.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn resolve_link(&mut self, path: &[u8]) -> Result<Inode, Error> {
        resolve(&mut OnPath { volume: self, path }, path, false)
    }
}

/// A volume in which a path is being followed, which errors name.
struct OnPath<'a, D> {
    volume: &'a mut Volume<D>,
    path: &'a [u8],
}

impl<D: BlockDevice> PathTree for OnPath<'_, D> {
    type File = Inode;
    type Error = Error;

    fn root(&mut self) -> Result<Inode, Error> {
        self.volume.root()
    }

    fn enter(&mut self, here: &Inode, name: &[u8]) -> Result<Inode, Error> {
        if !here.is_dir() {
            return Err(Error::NotADirectory(format!(
                "what precedes {} in {}",
                shown(name),
                shown(self.path)
            )));
        }
        let ino = match self.volume.lookup(here, name)? {
            Some(entry) => entry.ino,
            None if name == b".." => Ino::ROOT,
            None => return Err(Error::NotFound(shown(self.path))),
        };
        self.volume.inode(ino)
    }

    fn target(&mut self, file: &Inode) -> Result<Option<Vec<u8>>, Error> {
        let is_link = file.file_type() == FileType::SYMLINK;
        is_link.then(|| self.volume.read_link(file)).transpose()
    }

    fn too_many_symlinks(&self) -> Error {
        Error::TooManySymlinks { path: shown(self.path), limit: MAX_SYMLINKS }
    }
}

fn shown(bytes: &[u8]) -> String {
    dovetail_vfs::shown(bytes)
}
