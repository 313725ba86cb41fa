//! Marks of chattr(1), which other programs set: they keep more from changing than content.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::MemoryDevice;
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, Error, FileSystem, NewNode, RenameFlags, SetAttr, XattrFlags};

use crate::common::{mkfs, strict_fsck};

const FILE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };
const DIR: NewNode = NewNode { mode: 0o040_755, rdev: (0, 0) };

fn mount(device: MemoryDevice) -> F2fs<MemoryDevice> {
    F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

/// Sets `i_flags` of the inodes of a name, in every copy of them.
fn mark(device: &mut MemoryDevice, name: &[u8], flags: u32) {
    let used: Vec<_> = device.used().map(|(lba, _)| lba).collect();
    let mut found = 0;
    for lba in used {
        let block = device.bytes_mut(lba).unwrap();
        let is_named = block[88..92] == (name.len() as u32).to_le_bytes()
            && block[92..].starts_with(name)
            && [0x4, 0x8].contains(&(block[1] >> 4));
        if is_named {
            block[80..84].copy_from_slice(&flags.to_le_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "{name:?}");
}

#[test]
fn marks_of_chattr_keep_names_and_attributes() {
    let caller = Caller::default();
    let mut fs = mount(mkfs(64 << 20, &[]));
    let root = fs.root();
    for name in [&b"dir-i"[..], b"dir-a"] {
        let dir = fs.create(&caller, root, name, &DIR).unwrap().ino;
        fs.create(&caller, dir, b"inside", &FILE).unwrap();
    }
    fs.create(&caller, root, b"file-i", &FILE).unwrap();
    fs.create(&caller, root, b"file-a", &FILE).unwrap();
    let mut device = fs.unmount().unwrap();
    for (name, flags) in [("dir-i", 0x10), ("dir-a", 0x20), ("file-i", 0x10), ("file-a", 0x20)] {
        mark(&mut device, name.as_bytes(), flags);
    }
    let mut fs = mount(device);
    let refused = |done: Result<(), Error>| assert!(matches!(done, Err(Error::NotPermitted(_))));
    let free = RenameFlags::default();
    let dirs = [&b"dir-i"[..], b"dir-a"].map(|name| fs.lookup(root, name).unwrap().ino);
    for dir in dirs {
        refused(fs.unlink(&caller, dir, b"inside"));
        refused(fs.rename(&caller, (dir, b"inside"), (root, b"outside"), free));
    }
    refused(fs.create(&caller, dirs[0], b"new", &FILE).map(drop));
    fs.create(&caller, dirs[1], b"new", &FILE).unwrap();
    for name in [&b"file-i"[..], b"file-a"] {
        let ino = fs.lookup(root, name).unwrap().ino;
        refused(fs.unlink(&caller, root, name));
        refused(fs.link(&caller, ino, root, b"link").map(drop));
        refused(fs.rename(&caller, (root, name), (root, b"other"), free));
        let changes = SetAttr { uid: Some(7), ..SetAttr::default() };
        refused(fs.setattr(&caller, ino, &changes).map(drop));
        refused(fs.setxattr(&caller, ino, b"user.x", b"x", XattrFlags::default()));
    }
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}
