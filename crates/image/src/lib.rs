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
mod line;
mod list;
mod medium;
mod part;
mod partitions;
mod path;
mod raw_block;
mod source;
mod sparse;
mod tree;
mod zoned;

pub use check::{Check, Counted, Found, Repair};
pub use copy_in::CopyIn;
pub use copy_out::{CopyOut, Done, Keep, TellCopied};
pub use edit::{Edit, same_name, split, would_overwrite};
pub use error::Error;
pub use fit::{Content, content_of, free_bytes, replaced};
pub use format::{FORMATS, Files, Format, Inspected, Mount, Structure, Tell, format_of};
pub use list::{Entry, Listing, entries, list, list_tree};
pub use medium::{Medium, NewZones, OpenError, is_drive};
pub use part::{Part, write_whole};
pub use partitions::Partition;
pub use path::{find, resolve};
pub use source::Source;
pub use sparse::{ConvertError, SparseError, SparseImage, to_plain, to_sparse};
pub use tree::{Tree, Xattrs};
pub use zoned::ZonedImage;

/// Bytes copied at a time.
pub const CHUNK: usize = 1 << 20;
