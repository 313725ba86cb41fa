//! Directories: their entries one by one, and where each lies in the hash table.

use std::collections::HashSet;

use dovetail_block::BlockDevice;

use super::dentries::{DentryPosition, Fix};
use super::inodes::File;
use super::tree::Child;
use super::{Checker, Finding, Name};
use crate::error::Error;
use crate::format::{DentryBlock, FileType, InodeFlags, Nid, RawInode, dentry_slots, name_hash};

const ENCRYPTED: u8 = 0x04;

/// A directory that is being read.
pub(super) struct Directory {
    ino: Nid,
    /// Parent that its inode names.
    parent: Nid,
    level: u32,
    folds_case: bool,
    encrypted: bool,
    dots: u32,
    /// Hashes of the names, 96 bits each, because a name takes more room in memory than on disk.
    names: HashSet<(u64, u32)>,
}

/// FNV-1a (Fowler, Noll, Vo), 64 bits.
fn mixed(name: &[u8]) -> u64 {
    name.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

impl Directory {
    pub(super) fn new(ino: Nid, raw: &RawInode) -> Self {
        Self {
            ino,
            parent: Nid(raw.i_pino.get()),
            level: raw.i_dir_level.into(),
            folds_case: InodeFlags(raw.i_flags.get()).has(InodeFlags::CASEFOLD),
            encrypted: raw.i_advise & ENCRYPTED != 0,
            dots: 0,
            names: HashSet::new(),
        }
    }

    /// Buckets of a level, and blocks of each.
    fn shape(&self, level: u32) -> (u64, u64) {
        (1 << (level + self.level).min(30), if level < 31 { 2 } else { 4 })
    }

    /// The level of a block, and its bucket there.
    fn place(&self, block: u64) -> (u32, u64) {
        let mut rest = block;
        for level in 0..63 {
            let (buckets, blocks) = self.shape(level);
            if rest < buckets * blocks {
                return (level, rest / blocks);
            }
            rest -= buckets * blocks;
        }
        (63, 0)
    }

    /// Number of levels that a lookup needs to reach a block.
    pub(super) fn levels_to(&self, block: u64) -> u32 {
        self.place(block).0 + 1
    }

    fn belongs(&self, block: u64, hash: u32) -> bool {
        let (level, bucket) = self.place(block);
        u64::from(hash) % self.shape(level).0 == bucket
    }
}

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn check_dentry_block(
        &mut self,
        file: &mut File,
        block: u64,
        bytes: &[u8; 4096],
    ) -> Result<(), Error> {
        let Some(directory) = &mut file.directory else { return Ok(()) };
        let entries = DentryBlock::block(bytes, directory.ino);
        self.check_entries(directory, entries, Some(block))
    }

    pub(super) fn check_inline_entries(
        &mut self,
        file: &mut File,
        area: &[u8],
    ) -> Result<(), Error> {
        let Some(directory) = &mut file.directory else { return Ok(()) };
        let entries = DentryBlock::inline(area, directory.ino);
        self.check_entries(directory, entries, None)
    }

    /// `block` is `None` for inline entries.
    fn check_entries(
        &mut self,
        directory: &mut Directory,
        slots: DentryBlock<'_>,
        block: Option<u64>,
    ) -> Result<(), Error> {
        let mut slot = 0;
        while slot < slots.slots() {
            if !slots.is_used(slot) {
                slot += 1;
                continue;
            }
            let Some(name) = slots.name(slot) else {
                let (dir, block, found) =
                    (directory.ino, block.unwrap_or(0), slots.name_len(slot) as u16);
                self.found(Finding::DentryLength { dir, block, slot, found });
                slot += 1;
                continue;
            };
            let place = DentryPosition { dir: directory.ino, block, slot };
            self.check_tail(place, slots, name);
            self.check_entry(directory, slots, place, name)?;
            slot += dentry_slots(name.len());
        }
        Ok(())
    }

    /// The second and later slots of a long name.
    fn check_tail(&mut self, place: DentryPosition, slots: DentryBlock<'_>, name: &[u8]) {
        let (dir, first, len) = (place.dir, place.slot, dentry_slots(name.len()));
        let name = || Name(name.to_vec());
        for slot in first + 1..first + len {
            if !slots.is_used(slot) {
                self.fix(DentryPosition { slot, ..place }, Fix::Used);
                self.found(Finding::DentrySlots { dir, name: name(), slot });
            }
            let found = slots.name_len(slot) as u16;
            if found != 0 {
                self.fix(DentryPosition { slot, ..place }, Fix::NoLength);
                self.found(Finding::DentryTail { dir, name: name(), slot, found });
            }
        }
    }

    fn check_entry(
        &mut self,
        directory: &mut Directory,
        slots: DentryBlock<'_>,
        place: DentryPosition,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let DentryPosition { block, slot, .. } = place;
        let (dir, hash) = (directory.ino, slots.hash(slot));
        let name = || Name(bytes.to_vec());
        let dots = bytes == b"." || bytes == b"..";
        if !directory.encrypted && bytes.iter().any(|&byte| byte == 0 || byte == b'/') {
            self.found(Finding::DentryName { dir, name: name() });
        }
        let plain = name_hash(bytes);
        let expected = if directory.folds_case && !dots { hash } else { plain };
        if hash != expected {
            self.fix(place, Fix::Hash(expected));
            self.found(Finding::DentryHash { dir, name: name(), found: hash, expected });
        }
        if let Some(block) = block.filter(|&block| !directory.belongs(block, expected)) {
            self.found(Finding::DentryBucket { dir, name: name(), block });
        }
        if dots {
            self.check_dot(directory, slots, place, bytes);
            return Ok(());
        }
        if !directory.names.insert((mixed(bytes), plain)) {
            self.found(Finding::DuplicateName { dir, name: name() });
        }
        let (ino, file_type) = (slots.ino(slot), slots.file_type(slot));
        self.follow(Child { dir, name: name(), ino, file_type, place })
    }

    fn check_dot(
        &mut self,
        directory: &mut Directory,
        slots: DentryBlock<'_>,
        place: DentryPosition,
        name: &[u8],
    ) {
        let slot = place.slot;
        directory.dots += 1;
        let (ino, found) = (directory.ino, slots.ino(slot));
        if name == b"." {
            if found != ino {
                self.found(Finding::DotInode { ino, found });
            }
        } else {
            let expected = if ino == Nid(3) { ino } else { directory.parent };
            if found != expected {
                self.found(Finding::DotDotInode { ino, found, expected });
            }
        }
        let (found, expected) = (slots.file_type(slot).0, FileType::DIRECTORY.0);
        if found != expected {
            let name = Name(name.to_vec());
            self.fix(place, Fix::Type(expected));
            self.found(Finding::DentryType { dir: ino, name, found, expected });
        }
    }

    /// After all entries: "." and "..".
    pub(super) fn finish_directory(&mut self, file: &mut File) {
        if let Some(directory) = file.directory.as_ref().filter(|directory| directory.dots != 2) {
            self.found(Finding::Dots { ino: directory.ino, found: directory.dots });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_know_their_level_and_bucket() {
        let mut directory = Directory {
            ino: Nid(3),
            parent: Nid(3),
            level: 0,
            folds_case: false,
            encrypted: false,
            dots: 0,
            names: HashSet::new(),
        };
        assert_eq!(
            [0, 1, 2, 4, 6, 13].map(|block| directory.place(block)),
            [(0, 0), (0, 0), (1, 0), (1, 1), (2, 0), (2, 3)]
        );
        assert_eq!((directory.levels_to(0), directory.levels_to(6)), (1, 3));
        assert!(directory.belongs(5, 7) && !directory.belongs(5, 6));
        directory.level = 255;
        assert_eq!(directory.place(u64::MAX), (63, 0), "beyond all levels");
        assert_eq!(directory.place(2), (0, 1));
    }
}
