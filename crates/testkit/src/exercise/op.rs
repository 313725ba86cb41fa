//! Operations, with names instead of inode numbers, so that every file system understands them.

use dovetail_vfs::{Caller, Fallocate, RenameFlags, SetAttr, XattrFlags};

/// Names from the root on; none is the root itself.
pub type Path = Vec<Vec<u8>>;

/// An inode, by a path to it or as one that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Inode that the path leads to; symbolic links are not followed.
    Path(Path),
    /// Inode that was held last under this number.
    Held(usize),
}

/// An operation by a caller at a time.
#[derive(Clone, Debug)]
pub struct Step {
    /// User and group of the call, and its time.
    pub caller: Caller,
    /// The operation.
    pub op: Op,
}

/// An operation. Content is made of `fill`: byte `i` of the file is a function of the two.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of the call")]
pub enum Op {
    /// Anything but a symbolic link.
    Create { path: Path, mode: u16, rdev: (u32, u32) },
    /// A symbolic link to a target of `len` bytes.
    Symlink { path: Path, len: usize },
    /// Another name.
    Link { target: Target, path: Path },
    /// A name less.
    Unlink { path: Path },
    /// A directory less.
    Rmdir { path: Path },
    /// A name moves.
    Rename { from: Path, to: Path, flags: RenameFlags },
    /// The inode is kept under a number from now on; what was kept there is let go.
    Hold { path: Path, slot: usize },
    /// The inode that was kept is let go.
    Release { slot: usize },
    /// Content changes.
    Write { target: Target, offset: u64, len: usize, fill: u8 },
    /// Content is compared.
    Read { target: Target, offset: u64, len: usize },
    /// Blocks are reserved or given back.
    Fallocate { target: Target, how: Fallocate, offset: u64, len: u64 },
    /// Attributes change; so does the size.
    SetAttr { target: Target, changes: SetAttr },
    /// Data and holes: what is found must be true of the content.
    Seek { target: Target, offset: u64 },
    /// An extended attribute changes.
    SetXattr { target: Target, name: Vec<u8>, len: usize, fill: u8, flags: XattrFlags },
    /// An extended attribute is compared.
    GetXattr { target: Target, name: Vec<u8> },
    /// An extended attribute goes.
    RemoveXattr { target: Target, name: Vec<u8> },
    /// Attributes are compared.
    Stat { target: Target },
    /// The target of a symbolic link is compared.
    Readlink { target: Target },
    /// A directory is listed, `chunk` entries at a time.
    List { target: Target, chunk: usize },
    /// The same, with another operation after the first chunk; what is there before and after must
    /// come once.
    ListDuring { target: Target, chunk: usize, between: Box<Op> },
    /// One file becomes durable.
    Fsync { target: Target, data_only: bool },
    /// Everything becomes durable.
    Sync,
}

/// Byte `position` of content made of `fill`.
pub(super) fn byte_at(fill: u8, position: u64) -> u8 {
    fill.wrapping_add((position ^ position >> 8 ^ position >> 16) as u8)
}

/// `len` bytes of content made of `fill`, from `offset` on.
pub fn content(fill: u8, offset: u64, len: usize) -> Vec<u8> {
    (offset..offset + len as u64).map(|position| byte_at(fill, position)).collect()
}
