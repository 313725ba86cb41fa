//! Mounts a [`dovetail_vfs::FileSystem`] through FUSE.
//!
//! An adapter only: requests become calls, one at a time behind one lock, and results become replies. The kernel checks
//! permissions (`default_permissions`), keeps names and attributes for long because nobody else changes the volume, and
//! collects writes (writeback cache), which makes it the owner of modification times. This is the only crate with a
//! wall clock, threads and signals.
//!
//! Left out: file locks (the kernel's own work within one mount), ioctl, and `O_TMPFILE`, which fuser does not know.

mod acl;
mod adapter;
mod clock;
mod convert;
mod detach;
mod devirtualize;
mod options;
mod read_ahead;
mod rules;
mod session;
mod shared;
mod waker;

pub use detach::close_stdout;
pub use devirtualize::{ATTRIBUTE, Progress};
pub use options::{Options, UnknownOption};
pub use session::{Ending, MountError, Session, mount};
