//! Images: files, block devices and drives in files that hold a volume of some file system.
//!
//! [`format_of`] finds the file system of an image in [`FORMATS`], the only list of them. What it
//! gives opens the volume's files, mounts, checks, repairs and inspects it; listing, copying and
//! changing ([`list`], [`CopyOut`], [`CopyIn`], [`Edit`]) are the same for all. A function that
//! finds damage which it can do without tells it to its caller, and goes on. Left out: locks,
//! clocks, output; they are the caller's.

mod check;
mod copy_in;
mod copy_out;
mod disk_bytes;
mod edit;
mod error;
mod ext;
mod f2fs;
mod fit;
mod foreign;
mod format;
mod kept;
mod line;
mod list;
mod medium;
mod partitions;
mod path;
mod raw_block;
mod source;
mod sparse;
mod stack;
mod tree;
mod zoned;

pub use check::{Check, Counted, Found, Repair};
pub use copy_in::CopyIn;
pub use copy_out::{CopyOut, Done, Keep};
pub use edit::{Edit, split};
pub use error::Error;
pub use fit::{Content, content_of, free_bytes, replaced};
pub use format::{FORMATS, Files, Format, Inspected, Mount, Structure, Tell, format_of};
pub use list::{Listing, list, list_tree};
pub use medium::{Medium, NewZones, OpenError, is_drive};
pub use partitions::Partition;
pub use path::{find, resolve};
pub use source::Source;
pub use sparse::{ConvertError, SparseError, SparseImage, to_plain, to_sparse};
pub use stack::{Device, InStacks, Mounted, Setup, SetupError, Variant, discards, in_stacks};
pub use tree::{Tree, Xattrs};
pub use zoned::ZonedImage;

/// Bytes copied at a time.
pub const CHUNK: usize = 1 << 20;
