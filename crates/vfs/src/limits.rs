//! Limits of a file system.

/// Space that an extended attribute takes of the room for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XattrLayout {
    /// 4 bytes, its name without the prefix and its value, rounded up to a multiple of 4: F2FS.
    Together,
    /// 16 bytes and its name, and its value, each rounded up to a multiple of 4: ext.
    Apart,
}

/// Limits of the modelled file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a file.
    pub file_size: u64,
    /// Names of an inode.
    pub links: u32,
    /// Bytes of an extended attribute's value.
    pub xattr_value: usize,
    /// Bytes of all extended attributes of an inode, as many each as the layout says.
    pub xattr_total: usize,
    /// Space that an extended attribute takes.
    pub xattr_layout: XattrLayout,
    /// Bytes of a symbolic link's target: a path with its NUL is at most 4096 bytes (`PATH_MAX`).
    pub symlink: usize,
    /// Blocks can be reserved (fallocate).
    pub reserves: bool,
    /// Blocks of 4096 bytes that statfs shows.
    pub blocks: u64,
}

impl Default for Limits {
    /// Limits of F2FS with 200 bytes of inline attributes (`inline_xattr`, the default).
    fn default() -> Self {
        Self {
            file_size: 4096 * (2 * 1018 + 2 * 1018 * 1018 + 1018 * 1018 * 1018),
            links: u32::MAX,
            xattr_value: 200 + 4072 - 24 - 4,
            xattr_total: 200 + 4072 - 24,
            xattr_layout: XattrLayout::Together,
            symlink: 4095,
            reserves: true,
            blocks: 1 << 20,
        }
    }
}
