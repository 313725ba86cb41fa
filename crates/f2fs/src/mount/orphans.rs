//! Inodes without a name that are still in use, and what happens when the last user goes.

use dovetail_block::Scheduler;

use super::F2fs;
use crate::error::{Corrupt, Error, Place};
use crate::format::{Nid, ORPHANS_IN_BLOCK, XATTR_NODE_OFFSET};

impl<D: Scheduler> F2fs<D> {
    /// How many orphans a checkpoint can list.
    fn orphan_capacity(&self) -> usize {
        self.superblock.orphan_blocks() as usize * ORPHANS_IN_BLOCK
    }

    /// Checks that one more orphan can be listed.
    pub(super) fn check_orphan_room(&self) -> Result<(), Error> {
        if self.orphans.len() < self.orphan_capacity() { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// The inode has lost its last name: it goes now, or when its last user does.
    pub(super) fn orphan_or_drop(&mut self, ino: Nid) -> Result<(), Error> {
        if self.holds.get(&ino).is_some_and(|&count| count > 0) {
            self.orphans.insert(ino);
            return self.take_device_number(ino);
        }
        self.drop_inode(ino)
    }

    /// fsck.f2fs takes the number of a device for pointers if the inode is an orphan: it is remembered beside the inode.
    fn take_device_number(&mut self, ino: Nid) -> Result<(), Error> {
        let rdev = self.attr(ino)?.rdev;
        if rdev != (0, 0) {
            self.set_device(ino, (0, 0))?;
            self.orphan_devices.insert(ino, rdev);
        }
        Ok(())
    }

    /// Gives up an inode with all its blocks and nodes.
    pub(super) fn drop_inode(&mut self, ino: Nid) -> Result<(), Error> {
        let place = Place::Checkpoint(self.checkpoint.pack);
        Corrupt::check_range(place, "valid_inode_count", self.counts.valid_inodes, (1, u32::MAX.into()))?;
        self.pages.remove_inode(ino.0.into());
        self.dirty_dents.remove(&ino);
        if self.has_block_pointers(ino)? {
            self.truncate_blocks(ino, 0)?;
        }
        let xattr = Nid(self.inode(ino)?.i_xattr_nid.get());
        if xattr.is_some() {
            self.load_node(xattr, ino, XATTR_NODE_OFFSET)?;
            self.drop_node(xattr)?;
        }
        self.drop_node(ino)?;
        self.counts.valid_inodes -= 1;
        self.orphans.remove(&ino);
        self.orphan_devices.remove(&ino);
        self.since.new_inodes.remove(&ino);
        self.since.logged.remove(&ino);
        Ok(())
    }

    /// Its pointer area holds pointers: not content, not entries, not a device's number.
    pub(super) fn has_block_pointers(&mut self, ino: Nid) -> Result<bool, Error> {
        let raw = self.inode(ino)?;
        let inline = raw.i_inline & 0x06 != 0;
        let kind = raw.i_mode.get() & 0o170_000;
        Ok(!inline && matches!(kind, 0o100_000 | 0o040_000 | 0o120_000))
    }

    /// Gives up the inodes that the last checkpoint listed.
    pub(super) fn drop_listed_orphans(&mut self, listed: &[Nid]) -> Result<(), Error> {
        for &ino in listed {
            let links = self.inode(ino)?.i_links.get();
            Corrupt::check_equal(Place::Inode(ino), "i_links of an orphan", links, 0_u32)?;
            self.drop_inode(ino)?;
        }
        Ok(())
    }
}
