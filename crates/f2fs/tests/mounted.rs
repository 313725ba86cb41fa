//! A mounted volume: what is written is read back, and fsck.f2fs finds nothing to say.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common;
use crate::common::{mkfs, strict_fsck};
use dovetail_block::MemoryDevice;
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::SimTime;
use dovetail_vfs::{
    Caller, Error, Fallocate, FileSystem, Ino, NewNode, RenameFlags, SetAttr, Timestamp, XattrFlags,
};

const MIB: u64 = 1 << 20;

fn caller() -> Caller {
    Caller { uid: 7, gid: 8, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 123_456_789 } }
}

fn mount(device: MemoryDevice) -> F2fs<MemoryDevice> {
    F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

fn file(fs: &mut F2fs<MemoryDevice>, dir: Ino, name: &str) -> Ino {
    fs.create(&caller(), dir, name.as_bytes(), &NewNode { mode: 0o100_644, rdev: (0, 0) })
        .unwrap()
        .ino
}

fn dir(fs: &mut F2fs<MemoryDevice>, parent: Ino, name: &str) -> Ino {
    fs.create(&caller(), parent, name.as_bytes(), &NewNode { mode: 0o040_755, rdev: (0, 0) })
        .unwrap()
        .ino
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8 ^ seed).collect()
}

fn content(fs: &mut F2fs<MemoryDevice>, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0; fs.getattr(ino).unwrap().size as usize + 10];
    let len = fs.read(ino, 0, &mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

fn populate(fs: &mut F2fs<MemoryDevice>) -> Vec<(String, Vec<u8>)> {
    let root = fs.root();
    let mut made = Vec::new();
    let folder = dir(fs, root, "folder");
    for (n, len) in
        [0, 1, 100, 3488, 3489, 4096, 5000, 70_000, 873 * 4096 + 5, 9 << 20].into_iter().enumerate()
    {
        let name = format!("file-{n}");
        let ino = file(fs, folder, &name);
        let bytes = pattern(len, n as u8);
        fs.write(&caller(), ino, 0, &bytes).unwrap();
        made.push((name, bytes));
    }
    for n in 0..600 {
        file(fs, root, &format!("a name that takes several slots, number {n}"));
    }
    for n in (0..600).step_by(3) {
        fs.unlink(
            &caller(),
            root,
            format!("a name that takes several slots, number {n}").as_bytes(),
        )
        .unwrap();
    }
    fs.symlink(&caller(), root, b"link", b"folder/file-3").unwrap();
    fs.symlink(&caller(), root, b"long link", &[b'x'; 4000]).unwrap();
    fs.create(&caller(), root, b"null", &NewNode { mode: 0o020_666, rdev: (1, 3) }).unwrap();
    fs.create(&caller(), root, b"wide", &NewNode { mode: 0o060_660, rdev: (259, 70_000) }).unwrap();
    fs.create(&caller(), root, b"fifo", &NewNode { mode: 0o010_600, rdev: (0, 0) }).unwrap();
    let other = dir(fs, root, "other");
    let below = dir(fs, other, "below");
    fs.rename(&caller(), (other, b"below"), (folder, b"moved"), RenameFlags::default()).unwrap();
    fs.setxattr(&caller(), below, b"user.small", b"1", XattrFlags::default()).unwrap();
    fs.setxattr(&caller(), folder, b"user.large", &[9; 3000], XattrFlags::default()).unwrap();
    made
}

#[test]
fn what_is_written_is_there_after_the_next_mount() {
    let mut fs = mount(mkfs(128 * MIB, &[]));
    let made = populate(&mut fs);
    fs.sync().unwrap();
    assert_eq!(strict_fsck(fs.device()), "", "while mounted");
    let device = fs.unmount().unwrap();
    assert_eq!(strict_fsck(&device), "", "after the unmount");
    let mut fs = mount(device);
    let root = fs.root();
    let folder = fs.lookup(root, b"folder").unwrap().ino;
    for (name, bytes) in made {
        let ino = fs.lookup(folder, name.as_bytes()).unwrap().ino;
        assert!(content(&mut fs, ino) == bytes, "{name}");
    }
    let mut names = 0;
    fs.readdir(root, 0, &mut |_| {
        names += 1;
        true
    })
    .unwrap();
    assert_eq!(names, 2 + 1 + 400 + 5 + 1);
    assert_eq!(fs.lookup(root, b"wide").unwrap().rdev, (259, 70_000));
    assert_eq!(fs.getxattr(folder, b"user.large").unwrap(), [9; 3000]);
}

#[test]
fn several_callers_read_what_one_does() {
    let mut fs = mount(mkfs(64 << 20, &[]));
    let root = fs.root();
    let (small, large) = (file(&mut fs, root, "small"), file(&mut fs, root, "large"));
    let expected = pattern(6 << 20, 3);
    fs.write(&caller(), small, 0, &expected[..1000]).unwrap();
    // holes of a part of a node, and of whole nodes; the last pages are in memory only
    fs.write(&caller(), large, 0, &expected[..5 << 20]).unwrap();
    fs.fallocate(&caller(), large, Fallocate::PunchHole, 9000, 20_000).unwrap();
    fs.sync().unwrap();
    let mut fs = mount(fs.unmount().unwrap());
    fs.write(&caller(), large, (12 << 20) + 5, &expected[..30_000]).unwrap();
    let mut alone = vec![1; 13 << 20];
    let mut shared = vec![2; 13 << 20];
    assert_eq!(fs.shared().unwrap().read(small, 0, &mut shared), None, "its inode is not there");
    for (ino, from, len) in [
        (small, 0, 5000),
        (small, 999, 1),
        (small, 1000, 5),
        (small, 1 << 40, 5),
        (large, 0, 13 << 20),
        (large, 4095, 2),
        (large, 8000, 30_000),
        (large, 3_850_000, 1 << 20),
        (large, 6 << 20, 5 << 20),
        (large, 12 << 20, 30_000),
        (large, 14 << 20, 1),
    ] {
        let before = fs.shared().unwrap().read(ino, from, &mut shared[..len]);
        let read = fs.read(ino, from, &mut alone[..len]).unwrap();
        let after = before.map_or_else(|| fs.shared()?.read(ino, from, &mut shared[..len]), Some);
        assert_eq!(after, Some(read), "{from} {len}");
        assert!(alone[..read] == shared[..read], "{from} {len}");
        let attr = fs.getattr(ino).unwrap();
        assert_eq!(fs.shared().unwrap().getattr(ino), Some(attr));
    }
    assert_eq!(fs.shared().unwrap().read(root, 0, &mut shared), None, "an error is for one alone");
}

#[test]
fn after_its_nodes_are_loaded_a_file_is_read_by_several() {
    let mut fs = mount(mkfs(128 * MIB, &[]));
    let root = fs.root();
    let (small, large) = (file(&mut fs, root, "small"), file(&mut fs, root, "large"));
    let expected = pattern(20 << 20, 3);
    fs.write(&caller(), small, 0, &expected[..1000]).unwrap();
    fs.write(&caller(), large, 0, &expected).unwrap();
    let mut fs = mount(fs.unmount().unwrap());
    let mut found = vec![0; 20 << 20];
    for (from, len) in [(9 << 20, 4096), (3_500_000, 1 << 20), (0, 20 << 20), (21 << 20, 4096)] {
        let (bytes, end) = (from as u64..(from + len) as u64, (from + len).min(20 << 20));
        assert!(fs.prepare_shared_read(large, bytes).unwrap());
        let read = fs.shared().unwrap().read(large, from as u64, &mut found[..len]);
        assert_eq!(read, Some(end.saturating_sub(from)), "{from}");
        assert!(from > end || found[..end - from] == expected[from..end], "{from}");
        fs = mount(fs.unmount().unwrap());
    }
    assert!(fs.prepare_shared_read(small, 0..4096).unwrap(), "its inode was not there");
    assert!(!fs.prepare_shared_read(small, 0..u64::MAX).unwrap(), "its content is in the inode");
    assert_eq!(fs.shared().unwrap().read(small, 0, &mut found), Some(1000));
}

#[test]
fn files_become_shorter_and_go() {
    let mut fs = mount(mkfs(128 * MIB, &[]));
    let free = fs.statfs().unwrap().free;
    populate(&mut fs);
    let root = fs.root();
    let folder = fs.lookup(root, b"folder").unwrap().ino;
    for (name, size) in [
        ("file-9", 5 << 20),
        ("file-8", 100),
        ("file-7", 4097),
        ("file-3", 50),
        ("file-2", 1 << 30),
    ] {
        let ino = fs.lookup(folder, name.as_bytes()).unwrap().ino;
        fs.setattr(&caller(), ino, &SetAttr { size: Some(size), ..SetAttr::default() }).unwrap();
    }
    fs.sync().unwrap();
    assert_eq!(strict_fsck(fs.device()), "");
    remove_all(&mut fs, root);
    fs.sync().unwrap();
    assert_eq!(strict_fsck(fs.device()), "");
    assert!(free - fs.statfs().unwrap().free < 20, "all but some blocks of the root are free");
}

fn remove_all(fs: &mut F2fs<MemoryDevice>, dir: Ino) {
    let mut names = Vec::new();
    fs.readdir(dir, 0, &mut |entry| {
        names.push((entry.name, entry.kind, entry.ino));
        true
    })
    .unwrap();
    for (name, kind, ino) in names.into_iter().filter(|(name, ..)| name != b"." && name != b"..") {
        if kind == 0o040_000 {
            remove_all(fs, ino);
            fs.rmdir(&caller(), dir, &name).unwrap();
        } else {
            fs.unlink(&caller(), dir, &name).unwrap();
        }
    }
}

#[test]
fn what_was_fsynced_is_rolled_forward() {
    let mut fs = mount(mkfs(128 * MIB, &[]));
    populate(&mut fs);
    fs.sync().unwrap();
    let root = fs.root();
    let new = file(&mut fs, root, "new");
    let bytes = pattern(4 << 20, 3);
    fs.write(&caller(), new, 0, &bytes).unwrap();
    fs.setxattr(&caller(), new, b"user.large", &[5; 2000], XattrFlags::default()).unwrap();
    fs.fsync(new, false).unwrap();
    let unsynced = file(&mut fs, root, "unsynced");
    fs.write(&caller(), unsynced, 0, b"lost").unwrap();
    let checkpoints = fs.events().checkpoints;
    let small = file(&mut fs, root, "small");
    fs.write(&caller(), small, 0, b"in the inode").unwrap();
    fs.fsync(small, false).unwrap();
    assert_eq!(fs.events().checkpoints, checkpoints, "no checkpoint was needed");
    let crashed = fs.into_device();
    assert_eq!(strict_fsck(&crashed), "", "the chain is known to fsck.f2fs");
    let mut fs = mount(crashed);
    let found = fs.lookup(root, b"new").unwrap().ino;
    assert!(content(&mut fs, found) == bytes);
    assert_eq!(fs.getxattr(found, b"user.large").unwrap(), [5; 2000]);
    let found = fs.lookup(root, b"small").unwrap().ino;
    assert_eq!(content(&mut fs, found), b"in the inode");
    assert!(fs.lookup(root, b"unsynced").is_err());
    assert_eq!(strict_fsck(fs.device()), "", "after recovery");
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}

/// Overwrites a nearly full volume at random, so that segments must be cleaned.
fn overwrite_full(options: Options, place: &str) {
    let mut fs = F2fs::mount(mkfs(128 * MIB, &[]), options, SimTime::ZERO).unwrap();
    let root = fs.root();
    let big = file(&mut fs, root, "big");
    let blocks = fs.statfs().unwrap().free * 95 / 100;
    let mut versions = vec![0_u32; blocks as usize];
    let page = |block: u64, version: u32| {
        let mut bytes = pattern(4096, version as u8);
        bytes[..8].copy_from_slice(&block.to_le_bytes());
        bytes
    };
    for block in 0..blocks {
        fs.write(&caller(), big, block * 4096, &page(block, 0)).unwrap();
    }
    fs.sync().unwrap();
    let mut rng = dovetail_time::Rng::new(1);
    for n in 1..60_000 {
        let block = rng.below(blocks);
        versions[block as usize] = n;
        fs.write(&caller(), big, block * 4096, &page(block, n)).unwrap();
        if n % 10 == 0 {
            fs.fsync(big, false).unwrap();
        }
        if n % 20_000 == 0 {
            assert_eq!(strict_fsck(fs.device()), "", "{place}: after {n} writes");
        }
    }
    let events = fs.events();
    assert!(
        if place == "lfs" { events.moved_blocks } else { events.ssr_blocks } > 10_000,
        "{place}: {events:?}"
    );
    let device = fs.unmount().unwrap();
    assert_eq!(strict_fsck(&device), "", "{place}");
    let mut fs = mount(device);
    let mut bytes = [0; 4096];
    for block in 0..blocks {
        fs.read(big, block * 4096, &mut bytes).unwrap();
        assert!(bytes[..] == page(block, versions[block as usize])[..], "{place}: block {block}");
    }
}

#[test]
fn a_full_volume_is_cleaned_as_it_is_overwritten() {
    let out_of_place =
        Options { ipu_policy: Some(dovetail_f2fs::IpuPolicy(0)), ..Options::default() };
    overwrite_full(out_of_place.clone(), "adaptive");
    overwrite_full(Options { mode: dovetail_f2fs::Mode::Lfs, ..out_of_place }, "lfs");
}

/// The regular files in the folders of the root.
fn files_of_folders(fs: &mut F2fs<MemoryDevice>) -> Vec<Ino> {
    let mut list = |dir: Ino, wanted: u16| {
        let mut found = Vec::new();
        fs.readdir(dir, 0, &mut |entry| {
            found.extend(
                (entry.kind == wanted && !entry.name.starts_with(b".")).then_some(entry.ino),
            );
            true
        })
        .unwrap();
        found
    };
    let folders = list(Ino(3), 0o040_000);
    folders.into_iter().flat_map(|folder| list(folder, 0o100_000)).collect()
}

#[test]
fn compressed_files_go_with_what_they_count() {
    let mut fs = mount(common::kernel_image("f2fs-compressed"));
    let root = fs.root();
    remove_all(&mut fs, root);
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}

#[test]
fn a_compressed_file_is_read_while_its_inode_is_dirty() {
    let image = common::kernel_image("f2fs-compressed");
    let (mut fs, mut changed) = (mount(image.clone()), mount(image));
    for ino in files_of_folders(&mut fs) {
        let mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        changed.setattr(&caller(), ino, &mode).unwrap();
        assert!(content(&mut changed, ino) == content(&mut fs, ino), "inode {ino:?}");
    }
}

/// Holes that seek finds read as zeros, and data that it finds goes on to the next hole.
#[test]
fn a_compressed_cluster_is_no_hole() {
    let mut fs = mount(common::kernel_image("f2fs-compressed"));
    let mut zeros = 0;
    for ino in files_of_folders(&mut fs) {
        let bytes = content(&mut fs, ino);
        let mut at = 0;
        while at < bytes.len() as u64 {
            let data = fs.seek_data(ino, at).unwrap_or(bytes.len() as u64);
            let hole = &bytes[at as usize..data as usize];
            assert!(hole.iter().all(|&byte| byte == 0), "inode {ino:?}: the hole at {at}");
            zeros += hole.len();
            at = fs.seek_hole(ino, data).unwrap_or(bytes.len() as u64);
            assert!(at > data || data == bytes.len() as u64, "inode {ino:?}: data at {data}");
        }
    }
    assert!(zeros > 0, "some files have holes");
}

/// A file handle holds any number: only those that names lead to are found, and nothing is called
/// damaged.
#[test]
fn numbers_of_old_handles_find_what_has_a_name() {
    let mut fs = mount(mkfs(128 * MIB, &[]));
    let root = fs.root();
    let (kept, gone) = (file(&mut fs, root, "kept"), file(&mut fs, root, "gone"));
    let folder = dir(&mut fs, root, "folder");
    fs.write(&caller(), kept, 0, &pattern(8 << 20, 1)).unwrap(); // with nodes that are no inodes
    fs.write(&caller(), gone, 0, &pattern(8 << 20, 2)).unwrap();
    fs.unlink(&caller(), root, b"gone").unwrap();
    let found: Vec<Ino> = (0..5000)
        .map(Ino)
        .filter(|&ino| match fs.attr_of_handle(ino) {
            Ok(attr) => attr.ino == ino,
            Err(error) => {
                assert_eq!(error, Error::NotFound, "{ino:?}");
                false
            }
        })
        .collect();
    assert_eq!(found, [root, kept, folder]);
    assert_eq!(fs.attr_of_handle(Ino(u64::MAX)), Err(Error::NotFound));
}

/// The inode's area and the xattr node hold one value together.
#[test]
fn the_longest_extended_attribute() {
    for (options, inline) in [("", 200), ("noinline_xattr", 0)] {
        let options = Options::parse(options).unwrap();
        let mut fs = F2fs::mount(mkfs(64 * MIB, &[]), options, SimTime::ZERO).unwrap();
        let root = fs.root();
        let ino = file(&mut fs, root, "file");
        let set = |fs: &mut F2fs<MemoryDevice>, len| {
            let value = pattern(len, 1);
            fs.setxattr(&caller(), ino, b"user.x", &value, XattrFlags::default())
        };
        let longest = inline + 4072 - 24 - 4;
        assert_eq!(set(&mut fs, longest + 1), Err(Error::TooBig));
        assert_eq!(set(&mut fs, longest), Err(Error::TooBig), "with its name");
        set(&mut fs, longest - 1).unwrap();
        let mut fs = mount(fs.unmount().unwrap());
        assert_eq!(fs.getxattr(ino, b"user.x").unwrap(), pattern(longest - 1, 1));
        assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
    }
}
