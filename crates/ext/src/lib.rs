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
