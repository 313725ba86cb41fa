//! Checking a volume.
//!
//! [`check`] reads the volume as after its recovery: it visits every inode in use and every block
//! that it leads to, walks all directories, and then compares what it reached with what bitmaps,
//! descriptors and superblock say. Each disagreement is a [`Finding`].
//!
//! Hazards: the volume is damaged, so no field is believed before it is checked. Trees end because
//! their depth does, and every inode and directory block is visited once; memory follows what is in
//! use.
//!
//! Left out: repairing; the content of quota files and of lists of bad blocks; volumes with
//! clusters.

mod bitmaps;
mod blocks;
mod directories;
mod finding;
mod groups;
mod htree;
mod inodes;
mod links;
mod orphans;
mod places;
mod report;
mod resize;

pub use dovetail_vfs::check::{Name, Severity};
pub use finding::Finding;
pub use report::{Counts, Report};

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use dovetail_block::BlockDevice;

use crate::error::{Corrupt, Error, Incompatible};
use crate::format::{BlockAddr, Compat, Group, GroupNo, Ino, RoCompat, State};
use crate::journal::JournalError;
use crate::space::Space;
use crate::volume::Volume;

/// Options of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Findings kept of one kind; more are only counted.
    pub kept_per_kind: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { kept_per_kind: 1000 } // assumed: more than anybody reads
    }
}

/// Facts about an inode in use.
#[derive(Clone, Copy, Debug)]
struct Used {
    mode: u16,
    links: u16,
    /// A directory with an index.
    is_indexed: bool,
    /// Entries that lead to it, "." and ".." of directories among them.
    found: u64,
    /// The directory that has an entry for it, if it is one itself.
    parent: Ino,
    /// Inode that its ".." names, if it is a directory.
    dot_dot: Ino,
}

/// Checks the volume on `device`, without writing.
///
/// # Errors
/// [`Error::NotExt`], [`Error::Incompatible`], [`Error::Io`]. A volume that is too damaged to be
/// opened is a report with [`Finding::Unusable`].
pub fn check<D: BlockDevice>(device: D, options: Options) -> Result<Report, Error> {
    match Volume::open(device) {
        Ok(volume) => run(volume, options),
        Err(Error::Corrupt(reason)) => Ok(single(Finding::Unusable { reason })),
        Err(error) => Err(error),
    }
}

fn single(finding: Finding) -> Report {
    let mut report = Report::default();
    report.push(finding, 1);
    report
}

/// A check in progress.
struct Checker<D> {
    volume: Volume<D>,
    options: Options,
    report: Report,
    /// The groups whose descriptors can be used.
    groups: BTreeMap<GroupNo, Group>,
    /// Every block that was reached.
    space: Space,
    /// Those of them that are content of files, if files may share them.
    content: Space,
    /// Places of the device by which it holds a block.
    held: BTreeSet<u64>,
    inodes: BTreeMap<Ino, Used>,
    orphans: HashSet<Ino>,
    /// Attribute blocks: how many inodes they say use them, and how many do.
    xattr_blocks: HashMap<BlockAddr, (u32, u32)>,
}

impl<D> Checker<D> {
    fn found(&mut self, finding: Finding) {
        self.report.push(finding, self.options.kept_per_kind);
    }

    /// Notes what is damaged and goes on without it; other errors end the check.
    fn sound<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::Corrupt(reason)) => {
                self.found(Finding::Damaged { reason });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// As [`Self::sound`], for what only decodes.
    fn decoded<T>(&mut self, result: Result<T, Corrupt>) -> Option<T> {
        result.map_err(|reason| self.found(Finding::Damaged { reason })).ok()
    }
}

fn run<D: BlockDevice>(volume: Volume<D>, options: Options) -> Result<Report, Error> {
    let mut checker = Checker {
        volume,
        options,
        report: Report::default(),
        groups: BTreeMap::new(),
        space: Space::default(),
        content: Space::default(),
        held: BTreeSet::new(),
        inodes: BTreeMap::new(),
        orphans: HashSet::new(),
        xattr_blocks: HashMap::new(),
    };
    if checker.volume.superblock.ro_compat.has(RoCompat::BIGALLOC) {
        return Err(Incompatible::NotChecked(RoCompat::BIGALLOC).into());
    }
    if let Some(reason) = checker.volume.superblock_damage().cloned() {
        checker.found(Finding::Backup { reason });
    }
    checker.read_places()?;
    checker.check_superblock()?;
    checker.check_descriptors()?;
    checker.check_orphans()?;
    checker.check_inodes()?;
    checker.check_directories()?;
    checker.check_links();
    checker.check_bitmaps()?;
    Ok(checker.report)
}

impl<D: BlockDevice> Checker<D> {
    fn check_superblock(&mut self) -> Result<(), Error> {
        let superblock = self.volume.superblock.clone();
        let most = superblock.blocks_count / 2;
        if superblock.reserved_blocks > most {
            self.found(Finding::Reserved { found: superblock.reserved_blocks, expected: most });
        }
        if superblock.error_count > 0 {
            self.found(Finding::ErrorsNoted { count: superblock.error_count });
        }
        match self.volume.journal_damage().cloned() {
            // nothing is wrong with what is not known here
            Some(error @ (Error::Incompatible(_) | Error::Journal(JournalError::Features(_)))) => {
                return Err(error);
            }
            Some(damage) => self.found(Finding::Journal { reason: damage.to_string() }),
            None => {}
        }
        if let Some(recovery) = self.volume.recovery() {
            self.found(Finding::AwaitsRecovery { count: recovery.blocks });
        } else if !superblock.state.has(State::VALID) || superblock.state.has(State::ERROR) {
            self.found(Finding::NotUnmounted { found: superblock.state.0 });
        }
        if superblock.journal_ino.is_some() {
            self.check_journal()?;
        } else if superblock.compat.has(Compat::HAS_JOURNAL) {
            let elsewhere = superblock.journal_dev != 0 || superblock.journal_uuid != [0; 16];
            self.found(match elsewhere {
                true => {
                    Finding::NotChecked { what: "the journal, which is on another device".into() }
                }
                false => Finding::Journal {
                    reason: "the feature has_journal is set, and no inode is it".into(),
                },
            });
        }
        Ok(())
    }

    /// The journal's inode and its superblock; its log was read when the volume was opened.
    fn check_journal(&mut self) -> Result<(), Error> {
        if self.volume.journal_damage().is_some() {
            return Ok(()); // found already
        }
        let map = self.volume.journal_map();
        let Some(map) = self.sound(map)? else { return Ok(()) };
        match self.volume.journal_superblock(&map) {
            Err(Error::Journal(error)) => {
                self.found(Finding::Journal { reason: error.to_string() });
            }
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        Ok(())
    }
}
