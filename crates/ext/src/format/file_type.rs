//! What kind of file an inode is: in its mode, and as a directory entry says it.

/// What a directory entry says that its inode is; 0 where entries do not say it (without the feature filetype).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileType(pub u8);

impl FileType {
    /// Not said.
    pub const UNKNOWN: Self = Self(0);
    /// A regular file.
    pub const REGULAR: Self = Self(1);
    /// A directory.
    pub const DIRECTORY: Self = Self(2);
    /// A character device.
    pub const CHAR_DEVICE: Self = Self(3);
    /// A block device.
    pub const BLOCK_DEVICE: Self = Self(4);
    /// A fifo.
    pub const FIFO: Self = Self(5);
    /// A socket.
    pub const SOCKET: Self = Self(6);
    /// A symbolic link.
    pub const SYMLINK: Self = Self(7);

    /// The type that the mode of an inode gives it; [`Self::UNKNOWN`] for none that there is.
    pub const fn of_mode(mode: u16) -> Self {
        match mode & 0o170_000 {
            0o100_000 => Self::REGULAR,
            0o040_000 => Self::DIRECTORY,
            0o020_000 => Self::CHAR_DEVICE,
            0o060_000 => Self::BLOCK_DEVICE,
            0o010_000 => Self::FIFO,
            0o140_000 => Self::SOCKET,
            0o120_000 => Self::SYMLINK,
            _ => Self::UNKNOWN,
        }
    }
}
