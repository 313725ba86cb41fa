//! Block addresses, node ids and segment numbers are three types.

use std::fmt;

/// A block address: the index of a 4 KiB block from the start of the volume, or one of three marks.
/// [`super::Variant`] gives its size on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddr(pub u64);

impl BlockAddr {
    /// A hole: nothing was ever written, or it was freed.
    pub const NULL: Self = Self(0);
    /// Reserved (by fallocate) and never written: reads as zeros.
    pub const NEW: Self = Self(u64::MAX);
    /// Stands in the first slot of a compressed cluster.
    pub const COMPRESSED: Self = Self(u64::MAX - 1);

    /// The block's content is zeros that are stored nowhere.
    pub const fn is_hole(self) -> bool {
        self.0 == Self::NULL.0 || self.0 == Self::NEW.0
    }

    /// Decodes an address of four bytes. The marks are the two highest values of any width.
    pub const fn narrow(stored: u32) -> Self {
        if stored >= 0xFFFF_FFFE {
            Self(stored as u64 | 0xFFFF_FFFF << 32)
        } else {
            Self(stored as u64)
        }
    }

    /// The lower four bytes: all of an address of F2FS.
    pub const fn low(self) -> u32 {
        self.0 as u32
    }

    /// The block `blocks` further on; the highest address at most.
    pub const fn plus(self, blocks: u64) -> Self {
        Self(self.0.saturating_add(blocks))
    }
}

impl fmt::Display for BlockAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEW => f.write_str("NEW_ADDR"),
            Self::COMPRESSED => f.write_str("COMPRESS_ADDR"),
            Self(address) => address.fmt(f),
        }
    }
}

/// The id of a node block: what the NAT translates into a block address. An inode's number is the
/// id of its node. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nid(pub u32);

impl Nid {
    /// No node.
    pub const NONE: Self = Self(0);

    /// There is a node.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Nid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a 2 MiB segment, counted from the start of the main area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegNo(pub u32);

impl fmt::Display for SegNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
