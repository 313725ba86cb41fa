//! The mounted file system: plain synchronous calls over a block device.
//!
//! Every call runs at once and to its end. It changes the state in memory and issues I/O; where a
//! kernel would wait it waits in virtual time. What a kernel does in background threads are steps
//! that the owner calls ([`F2fs::wake`]), so that virtual and real time use the same code.
//!
//! An inode is its node block: calls edit the fields there, and what is written is what was edited.
//! Content goes through one cache of pages, directories included.
//!
//! Hazards: a block that the last checkpoint refers to is never overwritten (`space/` sees to
//! that); everything else follows from it. After the device has failed, nothing more is written.

mod adopt;
mod atomic;
mod attributes;
mod background;
mod chain;
mod checkpoint;
mod cleaner;
mod committed;
mod data;
mod devirtualize;
mod directory;
mod figures;
mod fsync;
mod held_moves;
mod inline;
mod io;
mod mount_state;
mod names;
mod nat;
mod node;
mod node_cache;
mod open;
mod options;
mod orphans;
mod past_cache;
mod pending_remaps;
mod physical;
mod pointers;
mod policy;
mod recovery;
mod remap;
mod remapped_cleaning;
mod shared;
mod simulated;
mod since;
mod space;
mod truncate;
mod updates;
mod vfs;
mod walk;
mod xattr;

use std::collections::BTreeSet;

use dovetail_block::{Lifetime, RemapPair, Scheduler};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::kit::{Rounds, Throttle};
use dovetail_vfs::{Moment, PageCache};
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::format::{Checkpoint, Nid, Superblock};
pub use atomic::AtomicWrite;
use background::Background;
use committed::Committed;
pub use figures::FIGURES;
use inline::InlineNames;
use io::Io;
pub use io::Written;
use mount_state::MountState;
use nat::NatTable;
use node_cache::NodeCache;
pub use options::{
    AllocMode, BackgroundGc, DiscardUnit, FsyncMode, GcSleep, Mode, Options, RemapOrder,
};
use orphans::Orphans;
use physical::Physical;
pub use policy::{IpuPolicy, Logs};
use since::SinceCheckpoint;
use space::Space;
use updates::UpdateState;

/// The counts that the next checkpoint will have.
#[derive(Clone, Copy, Debug)]
struct Counts {
    valid_blocks: u64,
    valid_nodes: u32,
    valid_inodes: u32,
}

/// Events since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Sections cleaned because there was no free space.
    pub foreground_cleanings: u64,
    /// Sections cleaned in the background.
    pub background_cleanings: u64,
    /// Blocks that cleaning moved.
    pub moved_blocks: u64,
    /// Of these, blocks that the device moved, or is to move: nothing was copied.
    pub gc_remapped_blocks: u64,
    /// Blocks written into holes of used segments.
    pub ssr_blocks: u64,
    /// Blocks written to the end of a log.
    pub lfs_blocks: u64,
    /// Blocks written in place.
    pub in_place_blocks: u64,
    /// Blocks written out of place that the device moved, or is to move, to where they were.
    pub remapped_blocks: u64,
    /// Segments that became free because all their blocks got addresses of the device: nothing was
    /// cleaned.
    pub left_segments: u64,
}

/// A mounted F2FS volume.
#[derive(Debug)]
pub struct F2fs<D> {
    io: Io<D>,
    superblock: Superblock,
    committed: Committed,
    options: Options,
    space: Space,
    nat: NatTable,
    nodes: NodeCache,
    pages: PageCache,
    throttle: Throttle,
    rounds: Rounds,
    inline_names: InlineNames,
    dirty_dents: BTreeSet<Nid>,
    /// Hints of programs about files, as long as the volume is mounted.
    lifetimes: FxHashMap<Nid, Lifetime>,
    counts: Counts,
    since: SinceCheckpoint,
    updates: UpdateState,
    orphans: Orphans,
    /// Pointers to the device's own addresses.
    physical: Physical,
    background: Background,
    events: Events,
    random: Rng,
    mounted_at: SimTime,
    state: MountState,
    scratch: Scratch,
}

/// Lists that calls fill again and again, kept for their memory.
#[derive(Debug, Default)]
struct Scratch {
    pages: Vec<u64>,
    nodes: Vec<Nid>,
    pairs: Vec<RemapPair>,
}

impl<D: Scheduler> F2fs<D> {
    /// The superblock of the volume.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The last complete checkpoint.
    pub fn checkpoint_state(&self) -> &Checkpoint {
        self.committed.checkpoint()
    }

    /// The events since the mount.
    pub fn events(&self) -> Events {
        self.events
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
        self.io.set_now(now.into().time);
    }

    /// Nothing can be written: mounted so, or after the device failed or damage was met in the
    /// midst of a change.
    pub fn is_read_only(&self) -> bool {
        self.state.is_mounted_read_only() || self.state.is_stopped() || self.io.failure().is_some()
    }

    fn check_writable(&self) -> Result<(), Error> {
        match self.io.failure() {
            Some(error) => Err(Error::Io(error.clone())),
            None if self.state.is_mounted_read_only() || self.state.is_stopped() => {
                Err(Error::ReadOnly)
            }
            None => Ok(()),
        }
    }

    /// Seconds for which the volume has been mounted, all mounts together: the clock of the SIT.
    fn elapsed_s(&self) -> u64 {
        let since = self.io.now().since(self.mounted_at).as_ns() / 1_000_000_000;
        self.checkpoint_base_s().saturating_add(since)
    }

    fn checkpoint_base_s(&self) -> u64 {
        self.background.elapsed_at_mount_s
    }
}
