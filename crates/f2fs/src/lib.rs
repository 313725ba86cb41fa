//! F2FS in user space: the on-disk format, and a volume read from any block device.
//!
//! [`Volume::open`] takes a [`dovetail_block::BlockDevice`], picks the newest checkpoint, and from there everything is
//! read as it was at that checkpoint: [`Volume::resolve`] walks a path, [`Volume::entries`] lists a directory,
//! [`Volume::read`] reads a file. Nothing is written. [`mkfs::mkfs`] makes a new volume.
//!
//! What it leaves out: writing; what fsyncs wrote after the last checkpoint (roll-forward recovery); the content of
//! encrypted files; volumes over several devices or on zoned ones. `docs/f2fs-format.md` has the list.
//!
//! Hazards: an image is input from strangers. Every pointer is checked against the main area, every node against
//! its footer (so that a node has one place in one file, and loops end), every name for slashes. What does not fit
//! comes back as [`Corrupt`], with the structure and the values.

pub mod format;
pub mod fsck;
pub mod mkfs;

mod compress;
mod error;
mod mount;
mod volume;

pub use error::{ClusterFault, Corrupt, Error, Incompatible, Place};
pub use mount::{
    AllocMode, BackgroundGc, Events, F2fs, FsyncMode, IpuPolicy, Logs, Mode, OptionError, Options, Written,
};
pub use volume::{MAX_SYMLINKS, Visit, Volume, WalkEntry};
