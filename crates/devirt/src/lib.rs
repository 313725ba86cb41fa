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

mod run;
mod select;

pub use dovetail_vfs::Way;
pub use run::{Report, Run, Unit, leave};
pub use select::{Hot, Selection};
