//! Kind of file: in an inode's mode, and in a directory entry of ext and F2FS.

use crate::mode::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK, kind};

/// Kind of file in a directory entry: a number that ext and F2FS share with the kernel's VFS
/// (`FT_REG_FILE` and its kin).
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
        match kind(mode) {
            S_IFREG => Self::REGULAR,
            S_IFDIR => Self::DIRECTORY,
            S_IFCHR => Self::CHAR_DEVICE,
            S_IFBLK => Self::BLOCK_DEVICE,
            S_IFIFO => Self::FIFO,
            S_IFSOCK => Self::SOCKET,
            S_IFLNK => Self::SYMLINK,
            _ => Self::UNKNOWN,
        }
    }
    /// The type bits of a mode; 0 for a number that has no meaning.
    pub const fn mode_bits(self) -> u16 {
        match self {
            Self::REGULAR => S_IFREG,
            Self::DIRECTORY => S_IFDIR,
            Self::CHAR_DEVICE => S_IFCHR,
            Self::BLOCK_DEVICE => S_IFBLK,
            Self::FIFO => S_IFIFO,
            Self::SOCKET => S_IFSOCK,
            Self::SYMLINK => S_IFLNK,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_and_its_mode_are_one_to_one() {
        for number in 0..=u8::MAX {
            let known = (1..=7).contains(&number);
            let bits = FileType(number).mode_bits();
            assert_eq!(FileType::of_mode(bits | 0o644), FileType(if known { number } else { 0 }));
            assert_eq!(bits != 0, known);
        }
    }
}
