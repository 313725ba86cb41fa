//! A volume read without writing: what `inspect`, `ls` and fsck build on.
//!
//! A volume that was not unmounted is shown as it is after its recovery: blocks whose newest
//! content is in the journal are read from there; where the first superblock is damaged, a backup
//! is used. Orphans are not dealt with; they have no names, so that nobody sees them.

mod backup;
mod cache;
mod directory;
mod file;
mod inodes;
mod map;
mod open;
mod tree;
mod walk;

pub(crate) use cache::{Block, Blocks};
pub(crate) use directory::check_dir_checksum;
pub use map::{Mapped, Run};
pub use open::Recovery;
pub use walk::{Visit, WalkEntry};

use crate::error::{Corrupt, Error};
use crate::format::{DirFormat, GroupNo, Incompat, SUPERBLOCK_SIZE, Superblock};

/// An ext2, ext3 or ext4 volume, opened for reading.
#[derive(Debug)]
pub struct Volume<D> {
    pub(crate) blocks: Blocks<D>,
    pub(crate) superblock: Superblock,
    pub(crate) recovery: Option<Recovery>,
    journal_damage: Option<Error>,
    /// Damage of the first superblock, and the bytes of the backup that is used.
    backup: Option<(Corrupt, Box<[u8; SUPERBLOCK_SIZE]>)>,
}

impl<D> Volume<D> {
    /// The superblock.
    pub const fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Content that the journal still holds; `None` for a volume that was unmounted.
    pub const fn recovery(&self) -> Option<Recovery> {
        self.recovery
    }

    /// The reason why a journal that a mount would have to replay cannot be, or not to its end. The
    /// volume shows the transactions before the damage; where the journal cannot be read at all, it
    /// shows what lies in place, as a mount with `noload` does. `None` where it can be replayed, or
    /// need not be.
    pub const fn journal_damage(&self) -> Option<&Error> {
        self.journal_damage.as_ref()
    }

    /// Damage because of which a backup of the superblock is used in its place. Counts of free
    /// blocks and inodes, and the list of orphans, are then not those of the volume. `None` if the
    /// first one is whole.
    pub fn superblock_damage(&self) -> Option<&Corrupt> {
        self.backup.as_ref().map(|(damage, _)| damage)
    }

    /// The first superblock, made from the backup that is used; `None` if it is whole.
    pub fn restored_superblock(&self) -> Option<[u8; SUPERBLOCK_SIZE]> {
        let (_, base) = self.backup.as_ref()?;
        Some(Superblock { group: GroupNo(0), ..self.superblock.clone() }.encode(base))
    }

    /// Format of the directory blocks.
    pub fn dir_format(&self) -> DirFormat {
        DirFormat {
            has_type: self.superblock.incompat.has(Incompat::FILETYPE),
            has_checksum: self.superblock.checksum_seed().is_some(),
        }
    }
}
