//! Inodes without a name that are still in use, and what happens when the last user goes.

use std::collections::BTreeSet;

use dovetail_block::Scheduler;
use rustc_hash::FxHashMap;

use super::F2fs;
use crate::error::{Corrupt, Error, Place};
use crate::format::{Nid, ORPHANS_IN_BLOCK, XATTR_NODE_OFFSET};
use dovetail_vfs::mode::{S_IFDIR, S_IFLNK, S_IFREG, kind};

/// Inodes that users keep, and those of them without a name.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    listed: BTreeSet<Nid>,
    /// The numbers of devices among them: a checkpoint must not show those where pointers could be.
    devices: FxHashMap<Nid, (u32, u32)>,
    /// Users that keep an inode, open or known to the kernel.
    holds: FxHashMap<Nid, u64>,
}

impl Orphans {
    pub(super) fn len(&self) -> usize {
        self.listed.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    pub(super) fn contains(&self, ino: Nid) -> bool {
        self.listed.contains(&ino)
    }

    /// All of them, in order.
    pub(super) fn list(&self) -> Vec<Nid> {
        self.listed.iter().copied().collect()
    }

    /// The number of an orphan that is a device.
    pub(super) fn device(&self, ino: Nid) -> Option<(u32, u32)> {
        self.devices.get(&ino).copied()
    }

    /// One more user keeps the inode.
    pub(super) fn hold(&mut self, ino: Nid) {
        *self.holds.entry(ino).or_default() += 1;
    }

    /// So many users of an inode go; `true` if it had some and the last one has gone.
    pub(super) fn release(&mut self, ino: Nid, count: u64) -> bool {
        let Some(held) = self.holds.get_mut(&ino) else { return false };
        *held = held.saturating_sub(count);
        let is_last = *held == 0;
        if is_last {
            self.holds.remove(&ino);
        }
        is_last
    }

    fn is_held(&self, ino: Nid) -> bool {
        self.holds.get(&ino).is_some_and(|&count| count > 0)
    }

    fn remove(&mut self, ino: Nid) {
        self.listed.remove(&ino);
        self.devices.remove(&ino);
    }
}

impl<D: Scheduler> F2fs<D> {
    /// The number of orphans that a checkpoint can list.
    fn orphan_capacity(&self) -> usize {
        self.superblock.orphan_blocks() as usize * ORPHANS_IN_BLOCK
    }

    /// Checks that one more orphan can be listed.
    pub(super) fn check_orphan_capacity(&self) -> Result<(), Error> {
        if self.orphans.len() < self.orphan_capacity() { Ok(()) } else { Err(Error::NoSpace) }
    }

    /// The inode has lost its last name: it goes now, or when its last user does.
    pub(super) fn orphan_or_drop(&mut self, ino: Nid) -> Result<(), Error> {
        if self.orphans.is_held(ino) {
            self.orphans.listed.insert(ino);
            return self.take_device_number(ino);
        }
        self.drop_inode(ino)
    }

    /// fsck.f2fs takes the number of a device for pointers if the inode is an orphan: it is
    /// remembered beside the inode.
    fn take_device_number(&mut self, ino: Nid) -> Result<(), Error> {
        let rdev = self.attr(ino)?.rdev;
        if rdev != (0, 0) {
            self.set_device(ino, (0, 0))?;
            self.orphans.devices.insert(ino, rdev);
        }
        Ok(())
    }

    /// Gives up an inode with all its blocks and nodes.
    pub(super) fn drop_inode(&mut self, ino: Nid) -> Result<(), Error> {
        let place = Place::Checkpoint(self.committed.checkpoint().pack);
        Corrupt::check_range(
            place,
            "valid_inode_count",
            self.counts.valid_inodes,
            (1, u32::MAX.into()),
        )?;
        self.pages.remove_inode(ino.0.into());
        self.inline_names.forget(ino);
        self.dirty_dents.remove(&ino);
        self.lifetimes.remove(&ino);
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
        self.orphans.remove(ino);
        self.since.note_dropped_inode(ino);
        self.forget_changes(ino);
        Ok(())
    }

    /// Gives up an orphan if all its nodes can be read. Otherwise it stays listed, whole, and the
    /// error is returned as a value.
    pub(super) fn drop_if_readable(&mut self, ino: Nid) -> Result<Option<Error>, Error> {
        let walked = self.walk_file(ino).map(drop);
        let unreadable = self.concerns_one_file(walked)?;
        if unreadable.is_none() {
            self.drop_inode(ino)?;
        }
        Ok(unreadable)
    }

    /// Its pointer area holds pointers: not content, not entries, not a device's number.
    pub(super) fn has_block_pointers(&mut self, ino: Nid) -> Result<bool, Error> {
        let raw = self.inode(ino)?;
        let inline = raw.i_inline & 0x06 != 0;
        let kind = kind(raw.i_mode.get());
        Ok(!inline && matches!(kind, S_IFREG | S_IFDIR | S_IFLNK))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_user_lets_an_inode_go() {
        let mut orphans = Orphans::default();
        orphans.hold(Nid(5));
        orphans.hold(Nid(5));
        assert!(orphans.is_held(Nid(5)) && !orphans.release(Nid(5), 1));
        assert!(orphans.release(Nid(5), 7), "more users than are known");
        assert!(!orphans.is_held(Nid(5)) && !orphans.release(Nid(5), 1), "it has gone once");
    }
}
