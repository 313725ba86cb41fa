//! The mounted file system: plain synchronous calls over a block device.
//!
//! Every call runs at once and to its end. It changes the state in memory and issues I/O; where a kernel would wait it
//! waits in virtual time. What a kernel does in background threads are steps that the owner calls ([`F2fs::wake`]),
//! so that virtual and real time use the same code.
//!
//! An inode is its node block: calls edit the fields there, and what is written is what was edited. Content goes through
//! one cache of pages, directories included.
//!
//! Hazards: a block that the last checkpoint refers to is never overwritten (`segments.rs` and `logs.rs` see to
//! that); everything else follows from it. After the device has failed, nothing more is written.

mod atomic;
mod attributes;
mod background;
mod bits;
mod checkpoint;
mod cleaner;
mod data;
mod devirtualize;
mod directory;
mod discard;
mod endless;
mod figures;
mod fsync;
mod inline;
mod io;
mod logs;
mod names;
mod nat;
mod node;
mod nodes;
mod open;
mod options;
mod orphans;
mod physical;
mod pointers;
mod policy;
mod recovery;
mod remap;
mod segments;
mod simulated;
mod slots;
mod truncate;
mod vfs;
mod waiting;
mod walk;
mod xattr;

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_block::{BlockBytes, Scheduler};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::PageCache;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::format::{Bitmaps, Checkpoint, Nid, SegNo, Superblock};
pub use atomic::AtomicWrite;
use background::Background;
use cleaner::Cleaner;
use discard::DiscardQueue;
use endless::Endless;
pub use figures::FIGURES;
use io::Io;
pub use io::Written;
use logs::CurrentSegment;
use nat::NatTable;
use nodes::NodeCache;
pub use options::{AllocMode, BackgroundGc, FsyncMode, Mode, OptionError, Options, RemapOrder};
use physical::Physical;
pub use policy::{IpuPolicy, Logs};
use segments::Segments;
use slots::Slots;

/// What the volume holds, as the next checkpoint will say.
#[derive(Clone, Copy, Debug)]
struct Counts {
    valid_blocks: u64,
    valid_nodes: u32,
    valid_inodes: u32,
}

/// What happened since the last checkpoint, as far as an fsync asks for it.
#[derive(Debug, Default)]
struct SinceCheckpoint {
    /// Inodes that the last checkpoint does not know.
    new_inodes: BTreeSet<Nid>,
    /// Inodes whose block was logged by an fsync.
    logged: BTreeSet<Nid>,
    /// Directories whose extended attributes changed.
    xattr_dirs: BTreeSet<Nid>,
    /// Directories that lost an entry.
    changed_dirs: BTreeSet<Nid>,
    /// Directories from which a directory was removed or moved away.
    lost_dirs: BTreeSet<Nid>,
    /// Inodes of which cleaning moved nodes, after the last mark in the chain if there is one.
    unmarked: BTreeSet<Nid>,
    /// The warm node log could not go on where its last block says.
    chain_broken: bool,
    /// Inodes that lost whole nodes by a truncation.
    dropped_nodes: BTreeSet<Nid>,
    /// Blocks that came to be used, as opposed to rewritten.
    allocated: u64,
}

/// What was written otherwise than by a remap since the last flush; kept only in modes that remap.
#[derive(Debug, Default)]
struct Unflushed {
    /// Something of these files.
    files: BTreeSet<Nid>,
    /// A block of the warm node log, behind which recovery does not see.
    chain: bool,
}

/// Events since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Sections cleaned because there was no room.
    pub foreground_cleanings: u64,
    /// Sections cleaned in the background.
    pub background_cleanings: u64,
    /// Blocks that cleaning moved.
    pub moved_blocks: u64,
    /// Blocks written into holes of used segments.
    pub ssr_blocks: u64,
    /// Blocks written to the end of a log.
    pub lfs_blocks: u64,
    /// Blocks written in place.
    pub in_place_blocks: u64,
    /// Blocks written out of place that the device moved, or is to move, to where they were.
    pub remapped_blocks: u64,
    /// Segments that became free because all their blocks got addresses of the device: nothing was cleaned.
    pub left_segments: u64,
}

/// A mounted F2FS volume.
#[derive(Debug)]
pub struct F2fs<D> {
    io: Io<D>,
    superblock: Superblock,
    /// The last complete checkpoint.
    checkpoint: Checkpoint,
    head: Arc<BlockBytes>,
    bitmaps: Bitmaps,
    sit_journal: BTreeSet<SegNo>,
    options: Options,
    ipu_policy: IpuPolicy,
    alloc_mode: AllocMode,
    /// The space of a volume of segments; there are none on an endless one.
    segments: Segments,
    logs: [CurrentSegment; 6],
    /// The space of an endless volume.
    endless: Option<Endless>,
    nat: NatTable,
    nodes: NodeCache,
    pages: PageCache,
    dirty_dents: BTreeSet<Nid>,
    /// Dirty inodes of which only times changed, by writing content.
    time_only: BTreeSet<Nid>,
    counts: Counts,
    since: SinceCheckpoint,
    /// Where updates lie that the device is to move.
    slots: Slots,
    /// Updates wait for an fsync whatever the options say: an atomic write is being carried out.
    committing: bool,
    unflushed: Unflushed,
    orphans: BTreeSet<Nid>,
    /// The numbers of devices among the orphans: a checkpoint must not show them where pointers could be.
    orphan_devices: FxHashMap<Nid, (u32, u32)>,
    /// How many users keep an inode, open or known to the kernel.
    holds: FxHashMap<Nid, u64>,
    cleaner: Cleaner,
    discards: DiscardQueue,
    /// Pointers to the device's own addresses.
    physical: Physical,
    background: Background,
    events: Events,
    random: Rng,
    mounted_at: SimTime,
    recovering: bool,
    read_only: bool,
    /// A call failed when it had changed a part of what it was to change.
    stopped: bool,
    written_kib: u64,
}

impl<D: Scheduler> F2fs<D> {
    /// What the volume is.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The last complete checkpoint.
    pub fn checkpoint_state(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// What happened since the mount.
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

    /// The device as it is, as after a power cut that loses nothing the device has acknowledged: what was only in
    /// memory is gone.
    pub fn into_device(self) -> D {
        self.io.into_device()
    }

    /// The time at which the last call was through.
    pub fn now(&self) -> SimTime {
        self.io.now()
    }

    /// Sets the time at which the next call begins; time never goes back.
    pub fn set_now(&mut self, now: SimTime) {
        self.io.set_now(now);
    }

    /// Nothing can be written: mounted so, or after the device failed or damage was met in the midst of a change.
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

    /// Seconds for which the volume has been mounted, all mounts together: the clock of the SIT.
    fn elapsed_s(&self) -> u64 {
        let since = self.io.now().since(self.mounted_at).as_ns() / 1_000_000_000;
        self.checkpoint_base_s().saturating_add(since)
    }

    fn checkpoint_base_s(&self) -> u64 {
        self.background.elapsed_at_mount_s
    }
}
