//! Images: files, block devices and drives in files that hold a volume of some file system.
//!
//! [`format_of`] finds the file system of an image in [`FORMATS`], the only list of them. What it
//! gives opens the volume's files, mounts, checks, repairs and inspects it; listing, copying and
//! changing ([`list`], [`CopyOut`], [`CopyIn`], [`Edit`]) are the same for all. A function that
//! finds damage which it can do without tells it to its caller, and goes on. Left out: locks,
//! clocks, output; they are the caller's.
//!
//! ```
//! use dovetail_block::ImageDevice;
//! use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
//! use dovetail_image::{Source, format_of, list};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("disk.img");
//! std::fs::File::create(&path)?.set_len(8 << 20)?;
//! mkfs(&mut ImageDevice::open_read_write(&path)?, &MkfsOptions::new(Kind::Ext4))?;
//!
//! // Nobody says which file system it is.
//! let image = Source::from(path);
//! let format = format_of(&image)?;
//! assert_eq!(format.variant_on(&image)?, "ext4");
//!
//! let mut files = format.files(&image, Ok(()), &mut |damage| panic!("{damage}"))?;
//! let root = list(files.tree.as_mut(), b"/")?;
//! assert!(root.lines.starts_with("drwx------") && root.lines.ends_with(" lost+found
//! "));
//!
//! assert!(format.check(&image, &mut |_, _| {})?.is_clean);
//! # Ok(())
//! # }
//! ```

#[cfg(unix)]
mod check;
#[cfg(unix)]
mod copy_in;
#[cfg(unix)]
mod copy_out;
#[cfg(unix)]
mod disk_bytes;
#[cfg(unix)]
mod edit;
#[cfg(unix)]
mod error;
mod ext;
mod f2fs;
#[cfg(unix)]
mod fit;
#[cfg(unix)]
mod foreign;
#[cfg(unix)]
mod format;
mod kept;
#[cfg(unix)]
mod line;
#[cfg(unix)]
mod list;
#[cfg(unix)]
mod medium;
#[cfg(unix)]
mod partitions;
#[cfg(unix)]
mod path;
#[cfg(unix)]
mod raw_block;
#[cfg(unix)]
mod source;
#[cfg(unix)]
mod sparse;
mod stack;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod zoned;

#[cfg(unix)]
pub use check::{Check, Counted, Found, Repair};
#[cfg(unix)]
pub use copy_in::CopyIn;
#[cfg(unix)]
pub use copy_out::{CopyOut, Done, Keep};
#[cfg(unix)]
pub use edit::{Edit, same_name, split, would_overwrite};
#[cfg(unix)]
pub use error::Error;
#[cfg(unix)]
pub use fit::{Content, content_of, free_bytes, replaced};
#[cfg(unix)]
pub use format::{FORMATS, Files, Format, Inspected, Mount, Structure, Tell, format_of};
#[cfg(unix)]
pub use list::{Listing, list, list_tree};
#[cfg(unix)]
pub use medium::{Medium, NewZones, OpenError, is_drive};
#[cfg(unix)]
pub use partitions::Partition;
#[cfg(unix)]
pub use path::{find, resolve};
#[cfg(unix)]
pub use source::Source;
#[cfg(unix)]
pub use sparse::{ConvertError, SparseError, SparseImage, to_plain, to_sparse};
pub use stack::{Device, InStacks, Mounted, Setup, SetupError, Variant, discards, in_stacks};
#[cfg(unix)]
pub use tree::{Tree, Xattrs};
#[cfg(unix)]
pub use zoned::ZonedImage;

#[cfg(unix)]
/// Bytes copied at a time.
pub const CHUNK: usize = 1 << 20;
