//! The mode of an inode by the names of inode(7).

/// The bits that tell the type.
pub const S_IFMT: u16 = 0o170_000;
/// A socket.
pub const S_IFSOCK: u16 = 0o140_000;
/// A symbolic link.
pub const S_IFLNK: u16 = 0o120_000;
/// A regular file.
pub const S_IFREG: u16 = 0o100_000;
/// A block device.
pub const S_IFBLK: u16 = 0o060_000;
/// A directory.
pub const S_IFDIR: u16 = 0o040_000;
/// A character device.
pub const S_IFCHR: u16 = 0o020_000;
/// A fifo.
pub const S_IFIFO: u16 = 0o010_000;
/// The set-user-ID bit.
pub const S_ISUID: u16 = 0o4000;
/// The set-group-ID bit; new files of a directory with it take over its group.
pub const S_ISGID: u16 = 0o2000;
/// The sticky bit.
pub const S_ISVTX: u16 = 0o1000;
/// All bits that chmod(2) changes.
pub const S_IALLUGO: u16 = 0o7777;

/// The type bits of `mode`.
pub const fn kind(mode: u16) -> u16 {
    mode & S_IFMT
}

/// `mode` is that of a directory.
pub const fn is_dir(mode: u16) -> bool {
    kind(mode) == S_IFDIR
}

/// `mode` is that of a regular file.
pub const fn is_regular(mode: u16) -> bool {
    kind(mode) == S_IFREG
}

/// `mode` is that of a symbolic link.
pub const fn is_symlink(mode: u16) -> bool {
    kind(mode) == S_IFLNK
}

/// `mode` is that of a character or block device, which has a number.
pub const fn is_device(mode: u16) -> bool {
    matches!(kind(mode), S_IFCHR | S_IFBLK)
}
