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
//!
//! ```
//! use dovetail_block::MemoryDevice;
//! use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
//! use dovetail_f2fs::{F2fs, Options, fsck};
//! use dovetail_time::SimTime;
//! use dovetail_vfs::{Caller, FileSystem, NewNode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut device = MemoryDevice::new(16_384); // blocks of 4 KiB: 64 MiB
//! mkfs(&mut device, &MkfsOptions::default())?;
//!
//! let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO)?;
//! let (caller, root) = (Caller::default(), fs.root());
//! let file = fs.create(&caller, root, b"hello", &NewNode::file(0o644))?.ino;
//! fs.write(&caller, file, 0, b"Hello, flash!\n")?;
//! fs.fsync(file, false)?;
//!
//! // The power is cut here: the next mount recovers what was fsynced.
//! let device = fs.into_device();
//! let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO)?;
//! assert_eq!(fs.lookup(root, b"hello")?.size, 14);
//!
//! let report = fsck::check(fs.unmount()?, fsck::Options::default(), |_| {})?;
//! assert!(report.is_clean(), "{:?}", report.findings);
//! assert_eq!(report.counts.files, 1);
//! # Ok(())
//! # }
//! ```

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
pub use volume::{Owner, Visit, Volume, WalkEntry, check_device};
