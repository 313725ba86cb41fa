//! The list of inodes without a name that are still to be freed or cut: each leads to the next by
//! its time of deletion.

use std::collections::HashSet;

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{Compat, Ino};

impl<D: BlockDevice> Checker<D> {
    pub(super) fn check_orphans(&mut self) -> Result<(), Error> {
        if self.volume.superblock.compat.has(Compat::ORPHAN_FILE) {
            self.found(Finding::NotChecked { what: "the orphan file".into() });
        }
        let mut seen = HashSet::new();
        let mut next = self.volume.superblock.last_orphan;
        while next.is_some() {
            if !seen.insert(next) {
                self.found(Finding::Orphan { ino: next, what: "is listed twice" });
                break;
            }
            let inode = self.volume.inode(next);
            let Some(inode) = self.sound(inode)? else { break };
            self.report.counts.orphans += 1;
            self.orphans.push(next);
            next = Ino(inode.dtime);
        }
        Ok(())
    }
}
