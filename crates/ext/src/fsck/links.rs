//! Names and links: what was counted against what inodes and attribute blocks say.

use super::{Checker, Finding, Used};
use crate::format::{FileType, Ino, RoCompat};

/// Subdirectories that the links of a directory count; with more the count is 1 (the feature
/// dir_nlink).
const MOST_LINKS: u64 = 65_000;

impl<D> Checker<D> {
    pub(super) fn check_links(&mut self) {
        let inodes: Vec<(Ino, Used)> =
            self.inodes.iter().map(|(ino, used)| (*ino, *used)).collect();
        for (ino, used) in inodes {
            if self.is_kept(ino) || self.orphans.contains(&ino) {
                continue;
            }
            let is_dir = FileType::of_mode(used.mode) == FileType::DIRECTORY;
            let named =
                if is_dir { used.parent.is_some() || ino == Ino::ROOT } else { used.found > 0 };
            if !named {
                self.found(Finding::Unconnected { ino });
                continue;
            }
            if is_dir {
                self.check_parent(ino, used);
            }
            self.check_count(ino, used, is_dir);
        }
        let mut shared: Vec<_> =
            self.xattr_blocks.iter().map(|(at, counts)| (*at, *counts)).collect();
        shared.sort_unstable();
        for (address, (found, expected)) in
            shared.into_iter().filter(|(_, (found, expected))| found != expected)
        {
            self.found(Finding::XattrReferences { address, found, expected });
        }
    }

    /// Inodes kept for the format have no names.
    fn is_kept(&self, ino: Ino) -> bool {
        let superblock = &self.volume.superblock;
        ino < superblock.first_ino && ino != Ino::ROOT
            || [superblock.orphan_file_ino, superblock.project_quota_ino].contains(&ino)
    }

    fn check_parent(&mut self, ino: Ino, used: Used) {
        let expected = if ino == Ino::ROOT { Ino::ROOT } else { used.parent };
        if used.dot_dot.is_some() && used.dot_dot != expected {
            self.found(Finding::Dots { dir: ino, what: "..", found: used.dot_dot, expected });
        }
    }

    fn check_count(&mut self, ino: Ino, used: Used, is_dir: bool) {
        // an indexed directory that once had more subdirectories than can be counted says 1 for ever
        let uncounted =
            is_dir && self.volume.superblock.ro_compat.has(RoCompat::DIR_NLINK) && used.links == 1;
        if uncounted && (used.found > 2 || used.is_indexed)
            || u64::from(used.links) == used.found.min(MOST_LINKS)
        {
            return;
        }
        self.found(Finding::Links { ino, found: used.links.into(), expected: used.found });
    }
}
