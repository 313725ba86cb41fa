//! Mount options that change what is written: where they show on the device, and fsck.f2fs.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use dovetail_block::MemoryDevice;
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Timestamp, XattrFlags};

use crate::common::{mkfs, strict_fsck};

const MIB: u64 = 1 << 20;

fn caller() -> Caller {
    Caller { uid: 0, gid: 0, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 0 } }
}

fn mount(device: MemoryDevice, options: &str) -> Result<F2fs<MemoryDevice>, dovetail_f2fs::Error> {
    F2fs::mount(device, Options::parse(options).unwrap(), SimTime::ZERO)
}

fn file(fs: &mut F2fs<MemoryDevice>, name: &str) -> Ino {
    let root = fs.root();
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    fs.create(&caller(), root, name.as_bytes(), &node).unwrap().ino
}

/// Blocks of the device that have content after files of 4 KiB to 4 MiB took turns and every second
/// one was removed.
fn blocks_left(options: &str) -> usize {
    let mut fs = mount(mkfs(512 * MIB, &["-s", "4"]), options).unwrap();
    for n in 0..200_u64 {
        let ino = file(&mut fs, &format!("{n}"));
        let blocks = if n % 8 == 1 { 1024 } else { 1 + n % 7 };
        fs.write(&caller(), ino, 0, &vec![n as u8 + 1; (blocks * 4096) as usize]).unwrap();
        fs.fsync(ino, false).unwrap();
    }
    fs.sync().unwrap();
    let root = fs.root();
    for n in (1..200).step_by(2) {
        fs.unlink(&caller(), root, format!("{n}").as_bytes()).unwrap();
    }
    let device = fs.unmount().unwrap();
    assert_eq!(strict_fsck(&device), "", "{options}");
    device.used().count()
}

/// With the unit `segment`, a segment keeps its dead blocks until all of it is free; `section` asks
/// for all of its segments.
#[test]
fn the_unit_of_discards_is_kept() {
    let [by_block, by_segment, by_section, nothing] =
        ["discard_unit=block", "discard_unit=segment", "discard_unit=section", "nodiscard"]
            .map(blocks_left);
    assert!(by_block < by_segment, "{by_block} blocks, {by_segment}");
    assert!(by_segment < by_section, "{by_segment} blocks, {by_section}");
    assert!(by_section < nothing, "{by_section} blocks, {nothing}");
}

#[test]
fn inodes_keep_the_room_that_the_mount_asks_for() {
    let flexible = ["-O", "extra_attr,flexible_inline_xattr"];
    let value = [7; 700];
    let blocks_of = |options: &str| {
        let mut fs = mount(mkfs(64 * MIB, &flexible), options).unwrap();
        let ino = file(&mut fs, "a");
        fs.setxattr(&caller(), ino, b"user.a", &value, XattrFlags::default()).unwrap();
        fs.write(&caller(), ino, 0, &[1; 9000]).unwrap();
        let device = fs.unmount().unwrap();
        assert_eq!(strict_fsck(&device), "", "{options}");
        let mut fs = mount(device, "").unwrap();
        let found = fs.getxattr(ino, b"user.a").unwrap();
        assert_eq!(found, value, "{options}");
        let mut bytes = [0; 9000];
        fs.read(ino, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [1; 9000], "{options}");
        fs.getattr(ino).unwrap().blocks
    };
    // 700 bytes do not fit into 200: a node of their own has them
    assert_eq!(blocks_of("inline_xattr_size=200") + 8, blocks_of(""));
}

#[test]
fn a_size_of_inline_xattrs_needs_the_feature() {
    let refused = |features: &[&str], options| {
        mount(mkfs(64 * MIB, features), options).unwrap_err().to_string()
    };
    let message = refused(&[], "inline_xattr_size=60");
    assert!(message.contains("does not have the feature flexible_inline_xattr"), "{message}");
    let flexible = ["-O", "extra_attr,flexible_inline_xattr"];
    let message = refused(&flexible, "inline_xattr_size=60,noinline_xattr");
    assert!(message.contains("noinline_xattr leaves no such room"), "{message}");
}
