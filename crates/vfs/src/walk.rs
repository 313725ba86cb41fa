//! A file's pointers, laid open to a tool that rewrites them.

use crate::{Error, Ino};

/// Target of a pointer: a block number of the volume, or one that the device below gave away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A block of the volume, in the volume's block size.
    Logical(u64),
    /// A block of the device behind its map; one spare bit of the pointer says so.
    Physical(u64),
}

/// Inode, block or table that holds pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The file's inode.
    Inode,
    /// A block of its own: of pointers, of extents, of a node.
    Block(Address),
    /// A table of the volume that says where numbered blocks of metadata lie, the slot being the
    /// number: the NAT of F2FS.
    Table,
}

/// A pointer, to one block or to a run of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Index of the pointer or entry in its holder, from 0 on.
    pub slot: u32,
    /// The first block of the file that it leads to.
    pub file_block: u64,
    /// Number of blocks that it points to: 1 but for extents. Those behind the first follow it.
    pub blocks: u32,
    /// The first block that it points to.
    pub target: Address,
    /// It leads to a block of pointers.
    pub is_metadata: bool,
    /// The blocks hold content; otherwise they are reserved and read as zeros.
    pub written: bool,
}

/// A block of metadata of a file, with the pointers that are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataBlock {
    /// Holder of the pointers.
    pub holder: Holder,
    /// Levels of metadata below it: 0 if it points to content only.
    pub level: u32,
    /// The pointers, in the order of their slots; holes are left out.
    pub pointers: Vec<Pointer>,
}

/// Place of a pointer. It stays valid until the file's tree changes otherwise than by rewriting
/// pointers below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerPlace {
    /// Holder of the pointer.
    pub holder: Holder,
    /// [`Pointer::slot`].
    pub slot: u32,
    /// [`Pointer::file_block`]; it leads the way to the holder.
    pub file_block: u64,
}

impl MetadataBlock {
    /// The place of one of its pointers.
    pub fn place_of(&self, pointer: &Pointer) -> PointerPlace {
        PointerPlace { holder: self.holder, slot: pointer.slot, file_block: pointer.file_block }
    }
}

/// File systems whose pointers can be listed and rewritten one by one.
pub trait PointerWalk {
    /// The metadata blocks of a file from the bottom up: each after all those that it points to,
    /// the inode last, and behind it what a table of the volume says of the file. What has no place
    /// yet (delayed blocks) is not in it.
    ///
    /// # Errors
    /// Damage; [`Error::Unsupported`] if metadata lie at physical addresses that cannot be read.
    fn metadata_of(&mut self, ino: Ino) -> Result<Vec<MetadataBlock>, Error>;

    /// Lets a pointer lead to `new`, a run of as many blocks as before; the metadata block stays
    /// where it is, and the change is atomic and durable with the next sync. What `new` holds, and
    /// which blocks are in use, is the caller's.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no such pointer, or `new` does not fit;
    /// [`Error::Unsupported`] for a physical address where the mount does not have them.
    fn rewrite_pointer(&mut self, ino: Ino, at: PointerPlace, new: Address) -> Result<(), Error>;
}
