//! Inodes without names: kept while someone uses them, in a list on disk that the next mount works
//! off.

use dovetail_block::Scheduler;

use super::Ext;
use crate::error::{Corrupt, Error, Place};
use crate::format::{FileType, Ino};

impl<D: Scheduler> Ext<D> {
    /// An inode has lost its last name: it goes, or waits for those who keep it.
    pub(super) fn orphan_or_drop(&mut self, ino: Ino) -> Result<(), Error> {
        if !self.holds.contains_key(&ino) && self.is_removable(ino)? {
            return self.drop_inode(ino);
        }
        self.list_orphan(ino)
    }

    fn list_orphan(&mut self, ino: Ino) -> Result<(), Error> {
        if self.orphans.contains(&ino) {
            return Ok(());
        }
        let next = self.superblock.last_orphan;
        self.edit_inode(ino)?.dtime = next.0;
        self.set_first_orphan(ino);
        self.orphans.insert(0, ino);
        Ok(())
    }

    fn set_first_orphan(&mut self, ino: Ino) {
        self.note_edit();
        self.superblock.last_orphan = ino;
        self.running.superblock = true;
    }

    /// Takes an inode out of the list.
    pub(super) fn unlist_orphan(&mut self, ino: Ino) -> Result<(), Error> {
        let Some(at) = self.orphans.iter().position(|&orphan| orphan == ino) else { return Ok(()) };
        let next = self.orphans.get(at + 1).copied().unwrap_or(Ino::NONE);
        match at.checked_sub(1).map(|before| self.orphans[before]) {
            Some(before) => self.edit_inode(before)?.dtime = next.0,
            None => self.set_first_orphan(next),
        }
        self.orphans.remove(at);
        Ok(())
    }

    /// The inode goes, with all that it has; it stays in the list if that cannot be given back.
    pub(super) fn drop_inode(&mut self, ino: Ino) -> Result<(), Error> {
        if !self.is_removable(ino)? {
            return Ok(());
        }
        let is_dir = self.inode(ino)?.is_dir();
        self.cut_off(ino, 0)?;
        self.drop_xattr_block(ino)?;
        self.unlist_orphan(ino)?;
        // a board without a battery starts in 1970, and a small number would be taken for the next
        // orphan of a list
        let date = self.date_s().max(self.superblock.mkfs_time).max(1);
        let inode = self.edit_inode(ino)?;
        inode.dtime = date as u32;
        inode.links = 0;
        inode.size = 0;
        self.lifetimes.remove(&ino);
        self.free_ino(ino, is_dir)?;
        self.drop_window(ino)?;
        self.drop_cached_inode(ino)
    }

    /// Cuts off what a file holds from block `from` on, in memory and on disk. Its size, or that it
    /// has no name, must say so already: if it takes more than one transaction, it is in the list
    /// of orphans in between, and the next mount goes on.
    pub(super) fn cut_off(&mut self, ino: Ino, from: u64) -> Result<(), Error> {
        let first_page = from.div_ceil(self.per_page());
        self.pages.remove_range(ino.0.into(), first_page..u64::MAX);
        self.forget_waiting(ino, from..u64::MAX);
        if self.has_blocks(ino)? && !self.remove_blocks(ino, from, u64::MAX)? {
            self.list_orphan(ino)?;
            self.commit_if_large()?;
            self.remove_in_parts(ino, from, u64::MAX)?;
        }
        self.unlist_named(ino)
    }

    /// Takes a file that has a name out of the list, if it is there: nothing is left to cut off.
    fn unlist_named(&mut self, ino: Ino) -> Result<(), Error> {
        if self.orphans.contains(&ino) && self.inode(ino)?.links > 0 {
            self.unlist_orphan(ino)?;
            self.edit_inode(ino)?.dtime = 0;
        }
        Ok(())
    }

    /// The inode's block area leads to blocks.
    pub(super) fn has_blocks(&mut self, ino: Ino) -> Result<bool, Error> {
        let superblock = self.superblock.clone();
        let inode = self.inode(ino)?;
        Ok(match inode.file_type() {
            FileType::REGULAR | FileType::DIRECTORY => true,
            FileType::SYMLINK => !inode.is_fast_symlink(&superblock),
            _ => false,
        })
    }

    /// Works off the list that the last mount left: inodes without names go, others lose what lies
    /// beyond their end.
    pub(super) fn clean_orphans(&mut self) -> Result<(), Error> {
        let mut next = self.superblock.last_orphan;
        while next.is_some() {
            let first = u64::from(self.superblock.first_ino.0);
            let last = u64::from(self.superblock.inodes_count);
            Corrupt::check_range(
                Place::Inode(next),
                "the number of an orphan",
                next.0,
                (first, last),
            )?;
            if self.orphans.contains(&next) {
                let place = Place::Inode(next);
                return Err(Corrupt::Mismatch {
                    place,
                    field: "times in the list of orphans",
                    found: 2,
                    expected: 1,
                }
                .into());
            }
            self.orphans.push(next);
            next = Ino(self.inode(next)?.dtime);
        }
        for ino in self.orphans.clone() {
            self.clean_orphan(ino)?;
            self.commit_if_large()?;
        }
        Ok(())
    }

    /// An inode of the list goes if it has no name, and else loses what lies beyond its end.
    pub(super) fn clean_orphan(&mut self, ino: Ino) -> Result<(), Error> {
        if self.inode(ino)?.links == 0 {
            return self.drop_inode(ino);
        }
        if !self.is_removable(ino)? {
            return Ok(());
        }
        let size = self.inode(ino)?.size;
        self.cut_off(ino, size.div_ceil(self.block_size() as u64))
    }
}
