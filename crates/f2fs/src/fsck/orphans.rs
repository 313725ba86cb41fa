//! Orphans: inodes without a name that the next mount frees.

use dovetail_block::BlockDevice;

use super::tree::Role;
use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BlockAddr, Nid, ORPHANS_IN_BLOCK, orphan_counts, parse_orphans};
use crate::volume::open::pack_start;

impl<D: BlockDevice> Checker<'_, D> {
    /// Orphan blocks count even when the checkpoint lacks the flag: that was reported, and nothing
    /// else leads there.
    pub(super) fn check_orphans(&mut self) -> Result<(), Error> {
        let start = pack_start(&self.volume.superblock, self.volume.checkpoint.pack);
        let (first, blocks) =
            (start.plus(1 + u64::from(self.volume.superblock.cp_payload)), self.orphan_blocks());
        for block in 0..blocks {
            let bytes = self.volume.blocks.metadata(first.plus(block.into()))?;
            let counts = orphan_counts(&bytes);
            let entries = counts.entries.min(ORPHANS_IN_BLOCK as u32);
            self.check_orphan_field(block, "blk_addr", counts.number.into(), block + 1);
            self.check_orphan_field(block, "blk_count", counts.blocks.into(), blocks);
            self.check_orphan_field(block, "entry_count", counts.entries, entries);
            for ino in parse_orphans(&bytes) {
                self.enter_orphan(ino)?;
            }
        }
        self.follow_names()
    }

    fn check_orphan_field(&mut self, block: u32, field: &'static str, found: u32, expected: u32) {
        if found != expected {
            self.found(Finding::OrphanBlock { block, field, found, expected });
        }
    }

    fn enter_orphan(&mut self, ino: Nid) -> Result<(), Error> {
        if !self.is_nid(ino) {
            self.found(Finding::OrphanMissing { ino });
            return Ok(());
        }
        if let Some(visited) = self.inodes.get(&ino) {
            let twice = visited.role == Role::Orphan;
            self.found(if twice {
                Finding::OrphanTwice { ino }
            } else {
                Finding::OrphanNamed { ino }
            });
            return Ok(());
        }
        if self.volume.nat(ino)?.address == BlockAddr::NULL {
            self.found(Finding::OrphanMissing { ino });
            return Ok(());
        }
        if self.nodes.contains_key(&ino) {
            self.found(Finding::NodeShared { nid: ino, ino });
            return Ok(());
        }
        self.report.counts.orphans += 1;
        self.orphans.push(ino);
        self.enter_inode(ino, Role::Orphan)?;
        let links = self.inodes[&ino].links;
        if links != 0 {
            self.found(Finding::OrphanLinks { ino, found: links });
        }
        Ok(())
    }
}
