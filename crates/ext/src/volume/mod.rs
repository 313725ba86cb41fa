//! A volume read without writing: what `inspect`, `ls` and fsck build on.
//!
//! A volume that was not unmounted is shown as it is after its recovery: blocks whose newest content is in the journal are
//! read from there. Orphans are not dealt with; they have no names, so that nobody sees them.

mod cache;
mod directory;
mod file;
mod inodes;
mod map;
mod open;
mod path;
mod walk;

pub(crate) use cache::{Block, Blocks};
pub(crate) use directory::check_dir_checksum;
pub use map::{Mapped, Run};
pub use open::Recovery;
pub use walk::{Visit, WalkEntry};

use crate::format::{DirFormat, Incompat, Superblock};

/// An ext2, ext3 or ext4 volume, opened for reading.
#[derive(Debug)]
pub struct Volume<D> {
    pub(crate) blocks: Blocks<D>,
    pub(crate) superblock: Superblock,
    pub(crate) recovery: Option<Recovery>,
}

impl<D> Volume<D> {
    /// What the volume is.
    pub const fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// What the journal still holds; `None` for a volume that was unmounted.
    pub const fn recovery(&self) -> Option<Recovery> {
        self.recovery
    }

    /// How blocks of directories look.
    pub fn dir_format(&self) -> DirFormat {
        DirFormat {
            has_type: self.superblock.incompat.has(Incompat::FILETYPE),
            has_checksum: self.superblock.checksum_seed().is_some(),
        }
    }
}
