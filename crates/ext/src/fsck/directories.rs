//! Directories: every entry of every block.

use std::collections::HashSet;

use dovetail_block::BlockDevice;

use super::{Checker, Finding, Name};
use crate::error::Error;
use crate::format::{DirBlock, DirRecord, FileType, Incompat, Ino, Inode, InodeFlags};
use crate::volume::{Block, check_dir_checksum};

/// A directory that is being read.
struct Reading {
    dir: Inode,
    names: HashSet<Vec<u8>>,
    dots: u32,
}

impl<D: BlockDevice> Checker<D> {
    pub(super) fn check_directories(&mut self) -> Result<(), Error> {
        let is_dir = |mode: u16| FileType::of_mode(mode) == FileType::DIRECTORY;
        let dirs: Vec<Ino> =
            self.inodes.iter().filter(|(_, used)| is_dir(used.mode)).map(|(ino, _)| *ino).collect();
        for ino in dirs {
            self.report.counts.directories += 1;
            let dir = self.volume.inode(ino);
            // an inode that is damaged was told of before
            let Ok(dir) = dir else { continue };
            self.check_directory(dir)?;
        }
        Ok(())
    }

    fn check_directory(&mut self, dir: Inode) -> Result<(), Error> {
        let blocks = dir.size / u64::from(self.volume.superblock.block_size());
        let mut reading = Reading { dir, names: HashSet::new(), dots: 0 };
        let mut next = 0;
        while next < blocks {
            let run = self.volume.run(&reading.dir, next);
            // a damaged tree was told of before
            let Ok(run) = run else { return Ok(()) };
            let len = run.len.min(blocks - next);
            let number = next as u32;
            match run.mapped.data() {
                None => self.found(Finding::DirectoryHole { dir: reading.dir.ino, block: number }),
                Some(start) => {
                    for n in 0..len {
                        let block =
                            self.volume.blocks.metadata(crate::format::BlockAddr(start.0 + n))?;
                        self.check_dir_block(&mut reading, number + n as u32, &block);
                    }
                }
            }
            next += len;
        }
        if reading.dir.flags.has(InodeFlags::INDEX) {
            self.check_index(&reading.dir)?;
        }
        Ok(())
    }

    fn check_dir_block(&mut self, reading: &mut Reading, number: u32, block: &Block) {
        if let Some(seed) = reading.dir.checksum_seed(&self.volume.superblock) {
            self.decoded(check_dir_checksum(block, &reading.dir, number, seed));
        }
        let format = self.volume.dir_format();
        for record in DirBlock::new(block, format, reading.dir.ino, number).entries() {
            let Some(record) = self.decoded(record) else { continue };
            if number == 0 && reading.dots < 2 {
                self.check_dot(reading, &record);
            } else {
                self.check_entry(reading, &record);
            }
        }
        if number == 0 && reading.dots < 2 {
            let (dir, what) = (reading.dir.ino, if reading.dots == 0 { "." } else { ".." });
            self.found(Finding::Dots { dir, what, found: Ino::NONE, expected: dir });
        }
    }

    /// The first two entries.
    fn check_dot(&mut self, reading: &mut Reading, record: &DirRecord<'_>) {
        let dir = reading.dir.ino;
        let what = [".", ".."][reading.dots as usize];
        reading.dots += 1;
        if record.name != what.as_bytes() {
            self.found(Finding::Dots { dir, what, found: Ino::NONE, expected: dir });
            self.check_entry(reading, record);
            return;
        }
        if what == "." {
            if record.ino != dir {
                self.found(Finding::Dots { dir, what, found: record.ino, expected: dir });
            }
        } else if let Some(used) = self.inodes.get_mut(&dir) {
            used.dot_dot = record.ino;
        }
        if let Some(target) = self.inodes.get_mut(&record.ino) {
            target.found += 1;
        }
    }

    fn check_entry(&mut self, reading: &mut Reading, record: &DirRecord<'_>) {
        let (dir, ino) = (reading.dir.ino, record.ino);
        let name = || Name(record.name.to_vec());
        if record.name == b"." || record.name == b".." {
            self.found(Finding::DotElsewhere { dir, name: name() });
            return;
        }
        if !reading.names.insert(record.name.to_vec()) {
            self.found(Finding::NameTwice { dir, name: name() });
        }
        self.report.counts.names += 1;
        let superblock = &self.volume.superblock;
        if ino.0 > superblock.inodes_count || ino < superblock.first_ino && ino != Ino::ROOT {
            self.found(Finding::EntryInode { dir, name: name(), ino });
            return;
        }
        let has_type = superblock.incompat.has(Incompat::FILETYPE);
        let Some(used) = self.inodes.get_mut(&ino) else {
            self.found(Finding::EntryFree { dir, name: name(), ino });
            return;
        };
        used.found += 1;
        let expected = FileType::of_mode(used.mode);
        let second = expected == FileType::DIRECTORY && (used.parent.is_some() || ino == Ino::ROOT);
        used.parent = dir;
        if second {
            self.found(Finding::DirectoryShared { dir, ino });
        }
        if has_type && expected != record.file_type {
            let (found, expected) = (record.file_type.0, expected.0);
            self.found(Finding::EntryType { dir, name: name(), found, expected });
        }
    }
}
