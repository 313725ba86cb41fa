//! ext3 and ext4 in their real on-disk format: files in place, a journal for what describes them.
//!
//! [`mkfs::mkfs`] makes a volume. [`Volume::open`] reads one and writes nothing: what its journal
//! still holds is read from there. [`fsck::check`] finds what is wrong with one. `format` knows
//! bytes only; `journal` is JBD2's. Behaviour written from the published documentation of the
//! format and from what the reference tools and kernels do; `docs/ext-format.md` has the list of
//! what is supported and refused.
//!
//! Hazards: an image is input from strangers. Every block number is checked against the volume,
//! every count against the block that it counts in. What does not fit comes back as [`Corrupt`],
//! with the structure and the values.
//!
//! ```
//! use dovetail_block::MemoryDevice;
//! use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
//! use dovetail_ext::{Ext, Options, Volume, fsck};
//! use dovetail_time::SimTime;
//! use dovetail_vfs::{Caller, FileSystem, NewNode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut device = MemoryDevice::new(4096); // blocks of 4 KiB: 16 MiB
//! let made = mkfs(&mut device, &MkfsOptions::new(Kind::Ext4))?;
//! assert_eq!(made.journal_blocks, 1024);
//!
//! let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO)?;
//! let (caller, root) = (Caller::default(), fs.root());
//! let file = fs.create(&caller, root, b"hello", &NewNode::file(0o644))?.ino;
//! fs.write(&caller, file, 0, b"Hello, disk!\n")?;
//! fs.fsync(file, false)?;
//!
//! let device = fs.unmount()?;
//! let report = fsck::check(device, fsck::Options::default())?;
//! assert!(report.is_clean(), "{:?}", report.findings);
//! # Ok(())
//! # }
//! ```

mod error;
pub mod format;
pub mod fsck;
mod io;
pub mod journal;
pub mod mkfs;
mod mount;
mod places;
mod space;
mod volume;

pub use error::{Corrupt, Damage, Error, Incompatible, Place};
pub use io::Written;
pub use mount::{DataMode, Ext, FIGURES, Options};
pub use volume::{Mapped, Recovery, Run, Visit, Volume, WalkEntry};
