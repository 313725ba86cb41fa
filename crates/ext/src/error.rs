//! Errors of a volume.

use std::fmt;

use dovetail_block::{DeviceError, WrongDrive};
use dovetail_vfs::kit::PathError;

use crate::format::{BlockAddr, GroupNo, Incompat, Ino, PHYSICAL_BIT, RoCompat};
use crate::journal::JournalError;
use crate::mkfs::MkfsError;

/// Error of an operation. Damage, unsupported features and failures of the device are kept apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The device failed.
    #[error("the device failed: {0}")]
    Io(#[from] DeviceError),
    /// The superblock does not carry ext's magic number.
    #[error(
        "this is not an ext2, ext3 or ext4 volume: its magic number is {found:#06x} instead of 0xef53"
    )]
    NotExt {
        /// Value in the place of the magic number.
        found: u16,
    },
    /// The volume contradicts itself or the format.
    #[error("the volume is damaged: {0}")]
    Corrupt(#[from] Corrupt),
    /// The volume is sound as far as is known, and uses what is not supported.
    #[error("{0}")]
    Incompatible(#[from] Incompatible),
    /// The journal cannot be replayed.
    #[error("the journal cannot be used: {0}")]
    Journal(#[from] JournalError),
    /// No volume can be made like this.
    #[error("{0}")]
    Mkfs(#[from] MkfsError),
    /// The volume is full, or as good as full.
    #[error("no space is left on the volume")]
    NoSpace,
    /// The volume is mounted for reading only.
    #[error("the volume is mounted read-only")]
    ReadOnly,
    /// A commit is under way, and the device makes plans: the call has to be made again when it is
    /// over.
    #[error("a commit is under way: try again")]
    Again,
    /// A block beyond the largest file.
    #[error("the file would be larger than this volume can store")]
    FileTooBig,
    /// A pointer leads to an address of the device, which nothing below can read yet.
    #[error("access to block {at} of the device's own addresses, in inode {ino},")]
    PhysicalBlock {
        /// The file.
        ino: Ino,
        /// The device's address.
        at: u64,
    },
    /// A pointer cannot be rewritten like this.
    #[error("{0}")]
    Rewrite(&'static str),
    /// A path leads nowhere, or to a file of another kind.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Something that is read or written nowhere here, by the feature's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// Feature bits without support, each by the name that mke2fs gives it.
    #[error("the volume uses features that are not supported: {0}")]
    Features(Incompat),
    /// Features that allow reading only.
    #[error("the volume uses {0}, which is read but not written: mount it with the option ro")]
    ReadOnlyFeatures(RoCompat),
    /// Features that are read, but whose structures are not kept right by changes.
    #[error("the volume uses {0}, which is read but not written: mount it with the option ro")]
    Unmaintained(Incompat),
    /// Blocks of another size than 1, 2 or 4 KiB.
    #[error("the volume has blocks of 2^{log} bytes; 1024, 2048 and 4096 are supported")]
    BlockSize {
        /// The logarithm of the size.
        log: u32,
    },
    /// A revision that nobody has defined.
    #[error("the volume is of revision {0}; 0 and 1 are known")]
    Revision(u32),
    /// There is no journal: ext2.
    #[error(
        "the volume has no journal, without which it is read but not written: mount it with the option ro"
    )]
    NoJournal,
    /// The journal is not to be looked at, on a mount that writes.
    #[error(
        "noload and norecovery leave the journal alone, which a mount that writes needs: add ro"
    )]
    NoLoad,
    /// Features that are read, but whose structures are not checked.
    #[error("the volume uses {0}, which is read but not checked: use e2fsck")]
    NotChecked(RoCompat),
    /// The journal lies on another device.
    #[error("the volume's journal lies on another device, which is not supported")]
    ExternalJournal,
    /// Block numbers reach the bit that tells physical addresses.
    #[error(
        "the volume has {blocks} blocks; pointers to physical addresses need fewer than {limit}"
    )]
    NoSpareBit {
        /// Blocks of the volume.
        blocks: u64,
        /// The first count that is too many.
        limit: u64,
    },
    /// Pointers lead to addresses of a drive that is not the one below.
    #[error(transparent)]
    WrongDrive(#[from] WrongDrive),
    /// Pointers to places of the device, without what they need.
    #[error("letting pointers lead to the device's own addresses needs {0}: that")]
    DeviceAddresses(&'static str),
    /// A physical address, without the capability.
    #[error("a pointer to a physical address, on a mount without them,")]
    NoPhysicalPointers,
    /// Content that is moved past the journal.
    #[error("moving blocks of a file other than a regular one outside data=journal")]
    Unmovable,
}

/// Part of the volume in which something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The superblock; of a backup the group that it lies in.
    Superblock(GroupNo),
    /// The descriptor of a block group.
    Group(GroupNo),
    /// The bitmap of a group's blocks.
    BlockBitmap(GroupNo),
    /// The bitmap of a group's inodes.
    InodeBitmap(GroupNo),
    /// An inode.
    Inode(Ino),
    /// The extent tree of an inode; a node of it by its block, the root by 0.
    Extents(Ino, BlockAddr),
    /// The block pointers of an inode.
    Pointers(Ino),
    /// A block of a directory, counted from its start.
    Directory(Ino, u32),
    /// The extended attributes of an inode.
    Xattrs(Ino),
    /// A block of extended attributes.
    XattrBlock(BlockAddr),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock(GroupNo(0)) => f.write_str("superblock"),
            Self::Superblock(group) => write!(f, "superblock copy in group {group}"),
            Self::Group(group) => write!(f, "descriptor of group {group}"),
            Self::BlockBitmap(group) => write!(f, "block bitmap of group {group}"),
            Self::InodeBitmap(group) => write!(f, "inode bitmap of group {group}"),
            Self::Inode(ino) => write!(f, "inode {ino}"),
            Self::Extents(ino, BlockAddr(0)) => write!(f, "extent tree of inode {ino}, root"),
            Self::Extents(ino, block) => write!(f, "extent tree of inode {ino}, block {block}"),
            Self::Pointers(ino) => write!(f, "block pointers of inode {ino}"),
            Self::Directory(ino, block) => write!(f, "directory {ino}, block {block}"),
            Self::Xattrs(ino) => write!(f, "extended attributes of inode {ino}"),
            Self::XattrBlock(block) => write!(f, "extended attribute block {block}"),
        }
    }
}

/// One way of being damaged, with the values that disagree.
pub type Corrupt = dovetail_vfs::kit::Corrupt<Place, Ino, Damage>;

/// Damage that only ext knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The device ends before the volume.
    #[error(
        "the volume has {expected} bytes, the device {found}: the image is cut short; what is there can be read from \
         a copy that is extended to that size (truncate -s {expected})"
    )]
    Truncated {
        /// Bytes of the device.
        found: u64,
        /// Bytes of the volume.
        expected: u64,
    },
    /// A block number outside the volume.
    #[error(
        "{place}: {field} points to block {found}, outside the volume's blocks {first} to {last}{}",
        spare_bit(*place, *found)
    )]
    Address {
        /// Place of the number.
        place: Place,
        /// The pointer's field.
        field: &'static str,
        /// The number.
        found: BlockAddr,
        /// The first block that may be pointed to.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// Extents that are not in order, or that overlap.
    #[error(
        "{place}: the entry at file block {block} does not come after the one before it, which ends at {end}"
    )]
    Order {
        /// Place of the extents.
        place: Place,
        /// The entry's first file block.
        block: u32,
        /// End of the one before it.
        end: u64,
    },
    /// An inode that is used and has no content.
    #[error("inode {0} is named or used, and is free")]
    FreeInode(Ino),
    /// An extended attribute whose name or value does not fit its area.
    #[error("{place}: the entry at byte {offset} goes beyond the area, which ends at {end}")]
    XattrOverrun {
        /// Place of the attributes.
        place: Place,
        /// Start of the entry.
        offset: u64,
        /// The size of the area.
        end: u64,
    },
}

/// Explanation of an address whose spare bit is set, for the message.
fn spare_bit(place: Place, address: BlockAddr) -> &'static str {
    let holds_pointers = matches!(place, Place::Pointers(_) | Place::Extents(..));
    if !holds_pointers || address.0 & PHYSICAL_BIT == 0 {
        return "";
    }
    "; its bit 31 is set: if the volume was mounted with physical pointers, this is an address of its drive, and only \
     a mount like that on the drive can follow it"
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::Corrupt(damage.into())
    }
}

impl From<Error> for dovetail_vfs::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NoSpace => Self::NoSpace,
            Error::ReadOnly => Self::ReadOnly,
            Error::Again => Self::Again,
            Error::FileTooBig => Self::FileTooBig,
            Error::Path(error) => error.into(),
            Error::Rewrite(why) => Self::Invalid(why),
            Error::PhysicalBlock { .. } => Self::Unsupported(error.to_string()),
            Error::Incompatible(what) => Self::Unsupported(what.to_string()),
            Error::Corrupt(Corrupt::Format(Damage::FreeInode(_))) => Self::NotFound,
            Error::Io(_) | Error::Journal(JournalError::Io(_)) => Self::Io(error.to_string()),
            error => Self::Corrupt(error.to_string()),
        }
    }
}
