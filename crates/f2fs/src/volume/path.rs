//! From a path to an inode.

use dovetail_block::BlockDevice;
use dovetail_vfs::kit::VolumeTree;

use super::Volume;
use crate::error::Error;
use crate::format::{Inode, Nid};

impl<D: BlockDevice> Volume<D> {
    /// The root directory.
    ///
    /// # Errors
    /// A damaged inode.
    pub fn root(&mut self) -> Result<Inode, Error> {
        self.inode(self.superblock.root)
    }
}

impl<D: BlockDevice> VolumeTree for Volume<D> {
    type Inode = Inode;
    type Error = Error;

    fn root_inode(&mut self) -> Result<Inode, Error> {
        self.root()
    }

    fn mode_of(inode: &Inode) -> u16 {
        inode.mode
    }

    fn child(&mut self, dir: &Inode, name: &[u8]) -> Result<Option<Inode>, Error> {
        let Some(entry) = self.lookup(dir, name)? else { return Ok(None) };
        self.inode(if entry.ino == Nid::NONE { dir.ino } else { entry.ino }).map(Some)
    }

    fn link_target(&mut self, link: &Inode) -> Result<Vec<u8>, Error> {
        self.read_link(link)
    }
}
