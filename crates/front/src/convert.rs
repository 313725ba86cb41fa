//! Numbers, times and attributes as FUSE has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dovetail_vfs::mode::{
    S_IALLUGO, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK,
};
use dovetail_vfs::{Attr, Error, Ino, Timestamp};
use fuser::{Errno, FileAttr, FileType, INodeNo, TimeOrNow};

use crate::clock;

/// FUSE calls the root 1; whatever the file system calls 1 takes the root's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    root: u64,
}

impl Numbers {
    pub(crate) fn new(root: Ino) -> Self {
        Self { root: root.0 }
    }

    const fn swap(self, number: u64) -> u64 {
        if number == 1 {
            self.root
        } else if number == self.root {
            1
        } else {
            number
        }
    }

    pub(crate) fn ino(self, node: INodeNo) -> Ino {
        Ino(self.swap(node.0))
    }

    pub(crate) fn node(self, ino: Ino) -> INodeNo {
        INodeNo(self.swap(ino.0))
    }

    pub(crate) fn attr(self, attr: &Attr) -> FileAttr {
        FileAttr {
            ino: self.node(attr.ino),
            size: attr.size,
            blocks: attr.blocks.max(least_blocks(attr)),
            atime: system_time(attr.atime),
            mtime: system_time(attr.mtime),
            ctime: system_time(attr.ctime),
            crtime: UNIX_EPOCH,
            kind: file_type(attr.kind()),
            perm: attr.mode & S_IALLUGO,
            nlink: attr.links,
            uid: attr.uid,
            gid: attr.gid,
            rdev: encode_device(attr.rdev),
            blksize: 4096,
            flags: 0,
        }
    }
}

/// A file of no blocks is taken for one hole by some programs (tar -S), but what was stored into
/// its mapped pages may wait in the kernel's cache.
const fn least_blocks(attr: &Attr) -> u64 {
    if attr.kind() == S_IFREG { 1 } else { 0 }
}

/// Attributes that FUSE understands as "there is no such name, and that stays so": node 0.
pub(crate) fn no_entry() -> FileAttr {
    Numbers { root: 1 }.attr(&Attr { ino: Ino(0), mode: S_IFREG, ..Attr::default() })
}

pub(crate) fn errno(error: &Error) -> Errno {
    Errno::from_i32(error.errno())
}

pub(crate) const fn file_type(kind: u16) -> FileType {
    match kind {
        S_IFIFO => FileType::NamedPipe,
        S_IFCHR => FileType::CharDevice,
        S_IFDIR => FileType::Directory,
        S_IFBLK => FileType::BlockDevice,
        S_IFLNK => FileType::Symlink,
        S_IFSOCK => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

/// The kernel's `new_encode_dev`: 12 bits of major number between the parts of a minor number of 20
/// bits.
pub(crate) const fn encode_device((major, minor): (u32, u32)) -> u32 {
    (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xfff00) << 12)
}

pub(crate) const fn decode_device(device: u32) -> (u32, u32) {
    ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00))
}

fn system_time(time: Timestamp) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let second = if time.seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    second
        .and_then(|second| second.checked_add(Duration::from_nanos(time.nanoseconds.into())))
        .unwrap_or(UNIX_EPOCH)
}

/// Undoes what fuser 0.18 makes of a time: before 1970 it subtracts the nanoseconds that it should
/// add.
pub(crate) fn timestamp(time: SystemTime) -> Timestamp {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => {
            Timestamp { seconds: after.as_secs().cast_signed(), nanoseconds: after.subsec_nanos() }
        }
        Err(before) => {
            let before = before.duration();
            Timestamp {
                seconds: before.as_secs().cast_signed().wrapping_neg(),
                nanoseconds: before.subsec_nanos(),
            }
        }
    }
}

pub(crate) fn time_or_now(time: TimeOrNow) -> Timestamp {
    match time {
        TimeOrNow::SpecificTime(time) => timestamp(time),
        TimeOrNow::Now => clock::now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_survive() {
        for device in [(0, 0), (8, 1), (259, 0x1_2345), (0xfff, 0xf_ffff)] {
            assert_eq!(decode_device(encode_device(device)), device);
        }
        assert_eq!(encode_device((8, 1)), 0x801);
    }

    #[test]
    fn the_root_and_one_change_places() {
        let numbers = Numbers::new(Ino(3));
        assert_eq!(numbers.node(Ino(3)), INodeNo(1));
        assert_eq!(numbers.ino(INodeNo(1)), Ino(3));
        assert_eq!(numbers.ino(INodeNo(3)), Ino(1));
        assert_eq!(numbers.ino(INodeNo(7)), Ino(7));
    }

    #[test]
    fn times_before_1970_keep_their_nanoseconds() {
        let time = Timestamp { seconds: -2, nanoseconds: 750_000_000 };
        assert_eq!(system_time(time), UNIX_EPOCH - Duration::from_millis(1250));
        // fuser hands over the kernel's (-2, 750,000,000) as 1970 - 2 s - 750 ms.
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_millis(2750)), time);
    }
}
