//! The files of a volume that is read without a mount: paths, attributes, content.

use crate::{Attr, Ino, LeftOut, MAX_SYMLINKS, PathTree, mode, resolve, shown};

/// A reason why a path leads nowhere, or a file is not of the kind that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// No entry of that name.
    #[error("there is no {0}")]
    NotFound(String),
    /// A file in the place of a directory.
    #[error("{0} is not a directory")]
    NotADirectory(String),
    /// Something other than a symbolic link in the place of one.
    #[error("inode {0} is not a symbolic link")]
    NotASymlink(u64),
    /// More symbolic links on one path than the kernel follows.
    #[error("{path} leads through more than {limit} symbolic links")]
    TooManySymlinks {
        /// The path as it was given.
        path: String,
        /// The links that are followed.
        limit: u32,
    },
}

impl From<PathError> for crate::Error {
    fn from(error: PathError) -> Self {
        match error {
            PathError::NotFound(_) => Self::NotFound,
            PathError::NotADirectory(_) => Self::NotADirectory,
            error => Self::Corrupt(error.to_string()),
        }
    }
}

/// Names with their inodes.
pub type NamedInodes = Vec<(Vec<u8>, Ino)>;

/// Names with their values.
pub type NamedValues = Vec<(Vec<u8>, Vec<u8>)>;

/// A volume that is read without a mount.
pub trait VolumeTree {
    /// An inode.
    type Inode;
    /// Everything that goes wrong.
    type Error: From<PathError>;

    /// The root directory.
    ///
    /// # Errors
    /// A damaged inode.
    fn root_inode(&mut self) -> Result<Self::Inode, Self::Error>;

    /// The inode of a number.
    ///
    /// # Errors
    /// A number without an inode; a damaged one.
    fn inode_of(&mut self, ino: Ino) -> Result<Self::Inode, Self::Error>;

    /// The attributes of an inode.
    fn attr_of(inode: &Self::Inode) -> Attr;

    /// An error as a mounted file system tells it.
    fn told(error: Self::Error) -> crate::Error;

    /// The number of the root directory.
    fn root_ino(&self) -> Ino;

    /// The inode called `name` in `dir`, a directory.
    ///
    /// # Errors
    /// A damaged directory or inode.
    fn child(&mut self, dir: &Self::Inode, name: &[u8])
    -> Result<Option<Self::Inode>, Self::Error>;

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// A damaged inode.
    fn link_target(&mut self, link: &Self::Inode) -> Result<Vec<u8>, Self::Error>;

    /// The names of a directory that are whole, with their inodes, and why others are not; "." and
    /// ".." are left out.
    ///
    /// # Errors
    /// A directory that cannot be read.
    fn names_in(&mut self, dir: &Self::Inode) -> Result<(NamedInodes, LeftOut), Self::Error>;

    /// Reads from `offset` on; returns the bytes that were read.
    ///
    /// # Errors
    /// Damage; the device.
    fn read_at(
        &mut self,
        file: &Self::Inode,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Self::Error>;

    /// The first byte at or after `offset` that is data; the end of the file if there is none.
    ///
    /// # Errors
    /// Damage; the device.
    fn data_from(&mut self, file: &Self::Inode, offset: u64) -> Result<u64, Self::Error>;

    /// The first byte after `offset`, which is data, that is in a hole; the end of the file if
    /// there is none.
    ///
    /// # Errors
    /// Damage; the device.
    fn hole_from(&mut self, file: &Self::Inode, offset: u64) -> Result<u64, Self::Error>;

    /// The names and values of the extended attributes, as the system shows them.
    ///
    /// # Errors
    /// Damage; the device.
    fn attributes_of(&mut self, file: &Self::Inode) -> Result<NamedValues, Self::Error>;

    /// The inode that `path` leads to from the root, following symbolic links (inside the volume: a
    /// target that begins with a slash begins at its root). "", "/" and "." are the root; ".." in
    /// the root is the root.
    ///
    /// # Errors
    /// [`PathError::NotFound`], [`PathError::NotADirectory`], [`PathError::TooManySymlinks`];
    /// damaged directories on the way.
    fn resolve(&mut self, path: &[u8]) -> Result<Self::Inode, Self::Error> {
        resolve(&mut OnPath { volume: self, path }, path, true)
    }

    /// As [`Self::resolve`], but a symbolic link at the end is not followed.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    fn resolve_link(&mut self, path: &[u8]) -> Result<Self::Inode, Self::Error> {
        resolve(&mut OnPath { volume: self, path }, path, false)
    }
}

/// A volume in which a path is being followed, which errors name.
struct OnPath<'a, V: ?Sized> {
    volume: &'a mut V,
    path: &'a [u8],
}

impl<V: VolumeTree + ?Sized> PathTree for OnPath<'_, V> {
    type File = V::Inode;
    type Error = V::Error;

    fn root(&mut self) -> Result<V::Inode, V::Error> {
        self.volume.root_inode()
    }

    fn enter(&mut self, here: &V::Inode, name: &[u8]) -> Result<V::Inode, V::Error> {
        if !V::attr_of(here).is_dir() {
            let before = format!("what precedes {} in {}", shown(name), shown(self.path));
            return Err(PathError::NotADirectory(before).into());
        }
        match self.volume.child(here, name)? {
            Some(inode) => Ok(inode),
            None if name == b".." => self.volume.root_inode(),
            None => Err(PathError::NotFound(shown(self.path)).into()),
        }
    }

    fn target(&mut self, file: &V::Inode) -> Result<Option<Vec<u8>>, V::Error> {
        let is_link = mode::is_symlink(V::attr_of(file).mode);
        is_link.then(|| self.volume.link_target(file)).transpose()
    }

    fn too_many_symlinks(&self) -> V::Error {
        PathError::TooManySymlinks { path: shown(self.path), limit: MAX_SYMLINKS }.into()
    }
}
