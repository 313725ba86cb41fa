//! The mounted file system: plain synchronous calls over a block device.
//!
//! Every call runs at once and to its end. It changes the state in memory and issues I/O; where a
//! kernel would wait it waits in virtual time. What a kernel does in background threads are steps
//! that the owner calls ([`Ext::wake`]).
//!
//! Metadata is edited in memory, in the one running transaction, and reaches its place by way of
//! the journal: inodes in `inodes.rs`, all other blocks in `meta.rs`, `commit.rs` puts checksums on
//! them and commits. A commit comes between calls, never within one, so that a call is in one
//! transaction as a whole.
//!
//! Hazards: a block that was freed is used again only when that is committed (`groups.rs`), or an
//! older state would show the newer content. A file's content is written before the transaction
//! that makes it reachable (`data.rs`, ordered mode). After the device has failed, or damage was
//! met in the midst of a change, nothing more is written.

mod allocate;
mod attributes;
mod background;
mod commit;
mod data;
mod devirtualize;
mod directory;
mod extents;
mod figures;
mod groups;
mod htree;
mod inodes;
mod map;
mod meta;
mod names;
mod open;
mod options;
mod orphans;
mod past_cache;
mod physical;
mod pointers;
mod policy;
mod relocate;
mod shared;
mod simulated;
mod space;
#[cfg(test)]
mod tests;
mod vfs;
mod waiting;
mod walk;
mod xattr;

use std::collections::{BTreeMap, BTreeSet};

use dovetail_block::{BLOCK_SIZE, BlockRange, Lba, Lifetime, Scheduler};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::kit::{Rounds, Throttle};
use dovetail_vfs::{Moment, PageCache, Timestamp};
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::format::{Ino, Superblock};
use crate::io::{Io, Written};
use crate::journal::{Journal, JournalEvents, JournalExtent};
use allocate::Windows;
use background::Background;
use directory::Listing;
use extents::Roots;
pub use figures::FIGURES;
use groups::Groups;
use inodes::InodeCache;
use meta::{MetaCache, Running};
pub use options::{DataMode, Options};
use waiting::Waiting;

/// A mounted ext3 or ext4 volume.
#[derive(Debug)]
pub struct Ext<D> {
    io: Io<D>,
    superblock: Superblock,
    options: Options,
    groups: Groups,
    meta: MetaCache,
    inodes: InodeCache,
    /// Extent trees that were decoded lately.
    roots: Roots,
    /// A list of pages that calls fill again and again, kept for its memory.
    scratch: Vec<u64>,
    pages: PageCache,
    throttle: Throttle,
    rounds: Rounds,
    /// Blocks that have content in memory and no place yet.
    delayed: Waiting,
    /// Blocks that have content in memory and a place that is reserved, not written.
    unwritten: Waiting,
    /// Reserved blocks that the present call may not take.
    kept_from_caller: u64,
    /// A call was refused for want of blocks.
    lacked_room: bool,
    /// Files that were truncated to nothing and are still in use.
    emptied: BTreeSet<Ino>,
    windows: Windows,
    running: Running,
    last_commit: Option<commit::LastCommit>,
    /// None on a volume without one, which is mounted read-only.
    journal: Option<Journal>,
    /// Inodes without names that are still kept, the newest first, as the list on disk has them.
    orphans: Vec<Ino>,
    /// Hints of programs about files, as long as the volume is mounted.
    lifetimes: FxHashMap<Ino, Lifetime>,
    /// Number of users that keep an inode, open or known to the kernel.
    holds: FxHashMap<Ino, u64>,
    listing: Option<Listing>,
    /// Files whose content changed and when, for a tool that has asked before.
    changed: Option<BTreeMap<Ino, SimTime>>,
    /// Renames whose pointers the running transaction has.
    batch: Option<devirtualize::Batch>,
    background: Background,
    /// Today's date.
    date: Timestamp,
    random: Rng,
    read_only: bool,
    /// A call failed when it had changed a part of what it was to change.
    stopped: bool,
    /// Counts changes, so that a failed call can be told from one that did nothing.
    edits: u64,
    /// Number of changes when the present call began.
    edits_before_call: u64,
}

impl<D: Scheduler> Ext<D> {
    /// The superblock, with the present counts of free blocks and inodes.
    pub fn superblock(&self) -> Superblock {
        let (free_blocks, free_inodes) = (self.groups.free_blocks(), self.groups.free_inodes());
        let physical_blocks = self.groups.physical();
        Superblock { free_blocks, free_inodes, physical_blocks, ..self.superblock.clone() }
    }

    /// Location of the journal, in runs of the device's blocks.
    pub fn journal_ranges(&self) -> Vec<BlockRange> {
        let extents = self.journal.iter().flat_map(|journal| journal.extents());
        let size = u64::from(self.superblock.block_size());
        let range = |extent: JournalExtent| {
            let (first, end) =
                (extent.start * size, (extent.start + u64::from(extent.blocks)) * size);
            BlockRange::new(Lba(first / BLOCK_SIZE), end.div_ceil(BLOCK_SIZE) - first / BLOCK_SIZE)
        };
        extents.map(range).collect()
    }

    /// Events of the journal since the mount.
    pub fn journal_events(&self) -> JournalEvents {
        self.journal.as_ref().map(Journal::events).unwrap_or_default()
    }

    /// Blocks written since the mount, by cause.
    pub fn written(&self) -> Written {
        self.io.written()
    }

    /// The device below.
    pub fn device(&self) -> &D {
        self.io.device()
    }

    /// The device below, to be changed: for switches of tests and models, not to write to.
    pub fn device_mut(&mut self) -> &mut D {
        self.io.device_mut()
    }

    /// The device as it is, as after a power cut that loses nothing the device has acknowledged:
    /// what was only in memory is gone.
    pub fn into_device(self) -> D {
        self.io.into_device()
    }

    /// The time at which the last call was through.
    pub fn now(&self) -> SimTime {
        self.io.now()
    }

    /// Sets the time at which the next call begins; time never goes back.
    pub fn set_now(&mut self, now: impl Into<Moment>) {
        let Moment { time, date } = now.into();
        self.io.set_now(time);
        self.date = date;
    }

    /// Nothing can be written: mounted so, or after the device failed or damage was met in the
    /// midst of a change.
    pub fn is_read_only(&self) -> bool {
        self.read_only || self.stopped || self.io.failure().is_some()
    }

    fn check_writable(&self) -> Result<(), Error> {
        match self.io.failure() {
            Some(error) => Err(Error::Io(error.clone())),
            None if self.read_only || self.stopped => Err(Error::ReadOnly),
            None => Ok(()),
        }
    }

    /// Bytes in a block of the volume.
    fn block_size(&self) -> usize {
        self.superblock.block_size() as usize
    }

    /// Blocks of the volume in a page of 4 KiB.
    fn per_page(&self) -> u64 {
        4096 / self.block_size() as u64
    }
}
