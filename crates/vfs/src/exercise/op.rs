//! The operations.

use crate::{Fallocate, RenameFlags, SetAttr, XattrFlags};

/// A name in a directory that a path from the root leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The directory, component by component.
    pub dir: Vec<Vec<u8>>,
    /// The name in it.
    pub name: Vec<u8>,
}

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The root.
    Root,
    /// By its name.
    Named(At),
    /// The one that is held in this slot, which may have no name any more.
    Held(u8),
}

/// An operation. Written bytes follow from their position and `fill`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called as the calls of FileSystem")]
pub enum Op {
    Create {
        at: At,
        mode: u16,
        rdev: (u32, u32),
    },
    Symlink {
        at: At,
        target: Vec<u8>,
    },
    Link {
        target: Target,
        at: At,
    },
    Unlink {
        at: At,
    },
    Rmdir {
        at: At,
    },
    Rename {
        from: At,
        to: At,
        flags: RenameFlags,
    },
    Lookup {
        at: At,
    },
    Stat {
        target: Target,
    },
    SetAttr {
        target: Target,
        changes: SetAttr,
    },
    Readlink {
        target: Target,
    },
    Write {
        target: Target,
        offset: u64,
        len: u64,
        fill: u8,
    },
    Read {
        target: Target,
        offset: u64,
        len: u64,
    },
    Fallocate {
        target: Target,
        how: Fallocate,
        offset: u64,
        len: u64,
    },
    SeekData {
        target: Target,
        offset: u64,
    },
    SeekHole {
        target: Target,
        offset: u64,
    },
    Readdir {
        target: Target,
    },
    SetXattr {
        target: Target,
        name: Vec<u8>,
        value: Vec<u8>,
        flags: XattrFlags,
    },
    GetXattr {
        target: Target,
        name: Vec<u8>,
    },
    ListXattr {
        target: Target,
    },
    RemoveXattr {
        target: Target,
        name: Vec<u8>,
    },
    Fsync {
        target: Target,
        data_only: bool,
    },
    Sync,
    /// Keeps an inode in a slot; what was in there is let go.
    Hold {
        slot: u8,
        target: Target,
    },
    /// Lets go what is in a slot.
    Forget {
        slot: u8,
    },
}
