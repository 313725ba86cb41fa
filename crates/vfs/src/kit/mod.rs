//! The parts that file systems share, whatever their format: one concept a file.
//!
//! A file system of its own format takes them instead of writing them again: damage and its
//! sentences ([`Corrupt`]), the files of a volume that is not mounted ([`VolumeTree`]), listings of
//! damaged directories, extended attributes, mount options ([`OptionTable`]), the rules of names
//! ([`Names`]), writes cut into pages ([`WriteData`]), writers that wait for write-back
//! ([`Throttle`]), how long the background writes back ([`Rounds`]), reads of callers who share a
//! file system ([`read_shared`]). Of all these only the throttle reaches a device: it submits what a
//! file system has gathered, and tells whoever schedules its commands.

mod corrupt;
mod direct;
mod entries;
mod names;
mod options;
mod rounds;
mod shared_read;
mod throttle;
mod volume;
mod write;
mod xattr;

pub use corrupt::Corrupt;
pub use direct::put_dirty_over;
pub use entries::{Dots, all_entries, find_entry, whole_entries};
pub use names::{Marks, Names, Rename};
pub use options::{Flag, OptionError, OptionTable, Valued, Values};
pub use rounds::{Rounds, WRITE_BACK_EVERY, old_since};
pub use shared_read::{StoredBytes, read_shared};
pub use throttle::Throttle;
pub use volume::{NamedInodes, NamedValues, PathError, VolumeTree};
pub use write::{PageContent, PageWrite, Parts, WriteData};
pub use xattr::{Xattr, XattrNameSpace, XattrRefused, shared_xattr_prefix};
