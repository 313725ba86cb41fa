//! Interface of a file system for its users: a mount, a simulated host, a test.
//!
//! [`FileSystem`] has what FUSE needs and no more. Calls are plain synchronous code; clocks,
//! threads and permission checks are the caller's. Errors carry the errno that a system call
//! returns.
//!
//! ```
//! use dovetail_testkit::Model; // a file system in memory; any other does
//! use dovetail_vfs::{Caller, Error, FileSystem, Limits, NewNode};
//!
//! # fn main() -> Result<(), Error> {
//! let caller = Caller::default(); // root, in 1970
//! let mut fs: Box<dyn FileSystem> = Box::new(Model::new(Limits::default(), &caller));
//! let root = fs.root();
//! let file = fs.create(&caller, root, b"list", &NewNode::file(0o644))?.ino;
//! fs.write(&caller, file, 0, b"bread, milk")?;
//! fs.fsync(file, false)?;
//!
//! assert_eq!(fs.lookup(root, b"list")?.size, 11);
//! let mut bytes = [0; 4];
//! assert_eq!(fs.read(file, 7, &mut bytes)?, 4);
//! assert_eq!(&bytes, b"milk");
//! // An error is the one that the system call would return.
//! assert_eq!(fs.rmdir(&caller, root, b"list"), Err(Error::NotADirectory));
//! fs.unmount()
//! # }
//! ```

mod cache;
pub mod check;
mod devirtualize;
mod error;
mod figure;
mod file_type;
mod fs;
mod guarantees;
pub mod kit;
mod left_out;
mod limits;
pub mod mode;
mod moment;
mod names;
mod path;
pub mod posix_acl;
mod shared;
mod shown;
mod simulated;
mod tree_walk;
mod walk;

pub use cache::PageCache;
pub use devirtualize::{Devirtualize, Target, Way};
pub use error::Error;
pub use figure::{Count, Figure, Figures};
pub use file_type::FileType;
pub use fs::{
    Attr, Caller, DirEntry, Fallocate, FileSystem, FsyncRest, Ino, NewNode, RenameFlags, SetAttr,
    StatFs, Timestamp, XattrFlags,
};
pub use guarantees::Guarantees;
pub use left_out::LeftOut;
pub use limits::{Limits, XattrLayout};
pub use moment::Moment;
pub use names::check_name;
pub use path::{MAX_SYMLINKS, PathTree, resolve};
pub use shared::SharedCalls;
pub use shown::shown;
pub use simulated::{BackgroundThread, Simulated};
pub use tree_walk::{Names, Visit, Walk, WalkEntry, walk};
pub use walk::{Address, Holder, MetadataBlock, Pointer, PointerPlace, PointerWalk};

/// The longest name, in bytes.
pub const MAX_NAME: usize = 255;
