//! Block numbers, inode numbers and group numbers are three types.

use std::fmt;

macro_rules! number {
    ($(#[$about:meta])* $name:ident($inner:ty)) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A block of the volume, in the volume's block size, counted from the start of the device. 0
    /// is none (a hole).
    BlockAddr(u64)
}

number! {
    /// The number of an inode, from 1 on. 0 is none.
    Ino(u32)
}

number! {
    /// The number of a block group, from 0 on.
    GroupNo(u32)
}

/// The bit of a block number that mounts with physical pointers use to tell the places of their
/// device: the highest one of a pointer of ext3. A volume with such pointers has fewer blocks.
pub(crate) const PHYSICAL_BIT: u64 = 1 << 31;

impl BlockAddr {
    /// No block: a hole.
    pub const NONE: Self = Self(0);

    /// There is a block.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl Ino {
    /// No inode.
    pub const NONE: Self = Self(0);
    /// The list of bad blocks.
    pub const BAD_BLOCKS: Self = Self(1);
    /// The root directory.
    pub const ROOT: Self = Self(2);
    /// Inode of the blocks that are kept for more group descriptors.
    pub const RESIZE: Self = Self(7);
    /// The journal, by custom.
    pub const JOURNAL: Self = Self(8);

    /// There is an inode.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}
