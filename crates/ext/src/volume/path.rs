//! From a path to an inode.

use dovetail_block::BlockDevice;

use super::Volume;
use crate::error::Error;
use crate::format::{FileType, Ino, Inode};

/// How many symbolic links are followed on one path; the Linux kernel's limit (path_resolution(7)).
pub const MAX_SYMLINKS: u32 = 40;

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
        self.walk_path(path, true)
    }

    /// As [`Self::resolve`], but a symbolic link at the end is not followed.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn resolve_link(&mut self, path: &[u8]) -> Result<Inode, Error> {
        self.walk_path(path, false)
    }

    fn walk_path(&mut self, path: &[u8], follow_last: bool) -> Result<Inode, Error> {
        let mut todo = components(path);
        let mut here = self.root()?;
        let mut links = 0;
        while let Some(name) = todo.pop() {
            let next = self.step(&here, &name, path)?;
            let follow = follow_last || !todo.is_empty();
            if next.file_type() != FileType::SYMLINK || !follow {
                here = next;
                continue;
            }
            links += 1;
            if links > MAX_SYMLINKS {
                return Err(Error::TooManySymlinks { path: shown(path), limit: MAX_SYMLINKS });
            }
            let target = self.read_link(&next)?;
            if target.starts_with(b"/") {
                here = self.root()?;
            }
            todo.extend(components(&target));
        }
        Ok(here)
    }

    fn step(&mut self, here: &Inode, name: &[u8], path: &[u8]) -> Result<Inode, Error> {
        if !here.is_dir() {
            return Err(Error::NotADirectory(format!("what precedes {} in {}", shown(name), shown(path))));
        }
        let ino = match self.lookup(here, name)? {
            Some(entry) => entry.ino,
            None if name == b".." => Ino::ROOT,
            None => return Err(Error::NotFound(shown(path))),
        };
        self.inode(ino)
    }
}

/// The names of a path, the last one first; empty ones and "." say nothing.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.rev().map(<[u8]>::to_vec).collect()
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
