//! Mounts a [`dovetail_vfs::FileSystem`] through FUSE.
//!
//! An adapter only: requests become calls behind one lock, and results become replies. Reads, and
//! writes that change nothing but bytes of blocks, share the lock where the file system can answer
//! them without a change of itself ([`dovetail_vfs::SharedCalls`]); all other calls come one at a
//! time. The kernel checks permissions (`default_permissions`), and keeps names, attributes and
//! content for long because nobody else changes the volume. A write goes through that cache at
//! once: a kernel that collects writes (FUSE's writeback cache) learns only later that the volume
//! is full, and write(2) cannot tell. The clock is the wall's, and requests have threads.
//!
//! The process never asks its own mount for anything: a thread that waits for the threads that
//! serve it can no longer be killed once they are.
//!
//! Left out: file locks (the kernel's own work within one mount), ioctl, and `O_TMPFILE`, which
//! fuser does not know.
//!
//! ```
//! use std::path::Path;
//!
//! use dovetail_front::{MountError, Options, Session, UnknownOption, mount};
//! use dovetail_vfs::FileSystem;
//!
//! /// Serves any file system at a directory. Not called here: that takes /dev/fuse.
//! fn serve(fs: Box<dyn FileSystem + Send + Sync>, options: Options) -> Result<Session, MountError> {
//!     mount(fs, Path::new("/mnt/volume"), options)
//! }
//!
//! # fn main() -> Result<(), UnknownOption> {
//! // Options as mount(8) and fstab(5) have them.
//! let mut options = Options::new("disk.img", "f2fs");
//! for option in "ro,noatime,nofail".split(',') {
//!     options.set(option)?;
//! }
//! assert!(options.read_only);
//! // One that only F2FS has is not the mount's: the caller hands it to the file system.
//! assert!(options.set("background_gc=off").is_err());
//! # Ok(())
//! # }
//! ```

mod acl;
mod adapter;
mod asker;
mod clock;
mod convert;
mod detach;
mod devirtualize;
mod faults;
mod flusher;
mod mountinfo;
mod operation;
mod options;
mod read_ahead;
mod rules;
mod session;
mod shared;
mod unmount;
mod waker;

pub use detach::close_stdout;
pub use devirtualize::{ATTRIBUTE, Progress};
pub use faults::Fault;
pub use options::{Options, UnknownOption};
pub use session::{Ending, MountError, Session, mount};
