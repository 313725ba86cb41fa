//! The file system de-virtualizer (FSDV paper): lets the pointers of a mounted file system lead to
//! the device's own addresses, so that the device can forget its map, at any time and beside other
//! work.
//!
//! It knows file systems by [`dovetail_vfs::Devirtualize`] alone. Blocks are dealt with from the
//! bottom of the files' trees up, in waves: first all content, then the blocks of pointers to
//! content, then those above. Between two waves metadata are written to their place: a block of
//! pointers can be reached by another address only when its own pointers are written. Inodes,
//! directories and the journal keep their addresses, as in the paper (§III-A). With
//! [`Unit::MetadataBlock`] a run goes as the paper's tool does: one file after another, one
//! metadata block at a time.
//!
//! A run does its work batch by batch ([`Run::step`]), so that its owner can let others work in
//! between, or within a batch by its parts ([`Run::prepare`], [`Run::begin`], [`Run::end`]). It
//! keeps nothing of the volume's: one that is dropped in the midst leaves every file
//! whole.
//!
//! ```
//! use dovetail_devirt::{Run, Selection, Way};
//! use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
//! use dovetail_ext::{Ext, Options};
//! use dovetail_testkit::PlacesDevice; // a device with a map from addresses to places
//! use dovetail_time::SimTime;
//! use dovetail_vfs::{Caller, FileSystem, NewNode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut device = PlacesDevice::new(8192, 512, 1);
//! mkfs(&mut device, &MkfsOptions { block_size: Some(4096), ..MkfsOptions::new(Kind::Ext4) })?;
//! let options = Options { physical_pointers: true, ..Options::default() };
//! let mut fs = Ext::mount(device, options, SimTime::ZERO)?;
//! let (caller, root) = (Caller::default(), fs.root());
//! let file = fs.create(&caller, root, b"data", &NewNode::file(0o644))?.ino;
//! fs.write(&caller, file, 0, &[7; 100 * 4096])?;
//! fs.sync()?;
//! let entries = fs.device().entries(); // of the device's map
//!
//! let files = Selection::all(&mut fs)?;
//! let report = Run::new(&fs, Way::ToDevice, files)?.finish(&mut fs)?;
//! assert_eq!(report.content_blocks, 100);
//! // The file needs none any more; what is left is for the journal, inodes and directories.
//! assert!(fs.device().entries() < entries / 2);
//! # Ok(())
//! # }
//! ```

mod run;
mod select;

pub use dovetail_vfs::Way;
pub use run::{Report, Run, Unit, leave};
pub use select::{Hot, Selection};
