//! Walking a whole tree: [`dovetail_vfs::walk`].

use dovetail_block::BlockDevice;
pub use dovetail_vfs::Visit;
use dovetail_vfs::{Names, Walk};

use super::Volume;
use crate::error::{Corrupt, Error};
use crate::format::{Ino, Inode};

/// Entry that a walk has come to.
pub type WalkEntry = dovetail_vfs::WalkEntry<Inode, Error>;

impl<D: BlockDevice> Walk for Volume<D> {
    type Number = Ino;
    type Inode = Inode;
    type Error = Error;

    fn inode_of(&mut self, number: Ino) -> Result<Inode, Error> {
        self.inode(number)
    }

    fn names_in(&mut self, dir: &Inode) -> Result<Names<Ino>, Error> {
        let mut entries = self.entries(dir)?;
        entries.retain(|entry| !entry.is_dot());
        Ok(entries.into_iter().map(|entry| (entry.name, entry.ino)).collect())
    }

    fn is_dir(inode: &Inode) -> bool {
        inode.is_dir()
    }

    fn loop_at(number: Ino) -> Error {
        Corrupt::DirectoryLoop(number).into()
    }
}

impl<D: BlockDevice> Volume<D> {
    /// Calls `visit` for `start` and all below it. A directory that cannot be listed is visited a
    /// second time with the error. A directory that is reached twice is an error and is not
    /// entered, so that every walk ends.
    pub fn walk(&mut self, start: Inode, visit: impl FnMut(&mut Self, WalkEntry) -> Visit) {
        dovetail_vfs::walk(self, start.ino, visit);
    }
}
