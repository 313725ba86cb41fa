//! F2FS in user space: the on-disk format, and volumes made, read, mounted, checked and repaired
//! over any block device.
//!
//! [`mkfs::mkfs`] makes a volume. [`F2fs::mount`] takes a [`dovetail_block::BlockDevice`], recovers
//! what was fsynced after the last checkpoint, and is a [`dovetail_vfs::FileSystem`].
//! [`Volume::open`] reads a volume as of its last checkpoint and writes nothing; [`fsck::check`]
//! finds what is wrong with one.
//!
//! Left out: the content of encrypted files, writing compressed ones, quota, casefold.
//! `docs/f2fs-format.md` has the list.
//!
//! Hazards: an image is input from strangers. Every pointer is checked against the main area, every
//! node against its footer (so that a node has one place in one file, and loops end), every name
//! for slashes. What does not fit comes back as [`Corrupt`], with the structure and the values.

pub mod format;
pub mod fsck;
pub mod mkfs;

mod compress;
mod device_addresses;
mod error;
mod mount;
mod section_zones;
mod volume;

pub use error::{ClusterFault, Corrupt, Damage, Error, Incompatible, Place};
pub use mount::{
    AllocMode, AtomicWrite, BackgroundGc, DiscardUnit, Events, F2fs, FIGURES, FsyncMode, GcSleep,
    IpuPolicy, Logs, Mode, Options, RemapOrder, Written,
};
pub use volume::{Owner, Visit, Volume, WalkEntry};
