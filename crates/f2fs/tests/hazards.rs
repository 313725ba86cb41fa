//! Cases in which what was promised could get lost: cleaning between a write and its fsync, names
//! given anew, a mount after a crash that left half a record.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::{kernel_image, manifest, mkfs, strict_fsck};
use dovetail_block::{Lba, MemoryDevice};
use dovetail_f2fs::{F2fs, Options, Volume};
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode};

const MIB: u64 = 1 << 20;

fn mount(device: MemoryDevice) -> F2fs<MemoryDevice> {
    F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

fn make(fs: &mut F2fs<MemoryDevice>, dir: Ino, name: &str, mode: u16, rdev: (u32, u32)) -> Ino {
    fs.create(&Caller::default(), dir, name.as_bytes(), &NewNode { mode, rdev }).unwrap().ino
}

fn file(fs: &mut F2fs<MemoryDevice>, dir: Ino, name: &str) -> Ino {
    make(fs, dir, name, 0o100_644, (0, 0))
}

fn content(fs: &mut F2fs<MemoryDevice>, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0; fs.getattr(ino).unwrap().size as usize];
    fs.read(ino, 0, &mut bytes).unwrap();
    bytes
}

/// Lets time pass, cleaning all the while, until there is nothing left to clean (or `rounds` are
/// over).
fn clean(fs: &mut F2fs<MemoryDevice>, rounds: u32) {
    for _ in 0..rounds {
        let now = fs.now() + SimSpan::from_ms(5_001);
        fs.set_now(now);
        fs.wake().unwrap();
    }
}

/// Nothing but time and need makes checkpoints; every wake cleans.
fn urgent() -> Options {
    Options { gc_urgent: true, checkpoint_interval_s: 1 << 30, ..Options::default() }
}

#[test]
fn cleaning_before_an_fsync_does_not_undo_it() {
    let mut fs = F2fs::mount(mkfs(128 * MIB, &[]), urgent(), SimTime::ZERO).unwrap();
    let root = fs.root();
    let kept = file(&mut fs, root, "kept");
    for n in 0..1200 {
        file(&mut fs, root, &format!("{n}"));
    }
    fs.sync().unwrap();
    for n in 0..200 {
        fs.unlink(&Caller::default(), root, format!("{n}").as_bytes()).unwrap();
    }
    fs.sync().unwrap();
    let checkpoints = fs.events().checkpoints;
    fs.write(&Caller::default(), kept, 0, &[5; 40_000]).unwrap();
    clean(&mut fs, 30);
    fs.fsync(kept, false).unwrap();
    assert!(fs.events().background_cleanings > 0);
    assert_eq!(fs.events().checkpoints, checkpoints, "it was a record that the fsync wrote");
    let mut fs = mount(fs.into_device());
    assert!(content(&mut fs, kept) == [5; 40_000]);
}

#[test]
fn cleaning_moves_compressed_blocks_as_they_are() {
    let image = kernel_image("f2fs-compressed");
    let before = manifest::of_volume(&mut Volume::open(image.clone()).unwrap());
    let mut fs = F2fs::mount(image, urgent(), SimTime::ZERO).unwrap();
    let root = fs.root();
    read_all(&mut fs, root);
    clean(&mut fs, 200);
    assert!(fs.events().moved_blocks > 100, "{:?}", fs.events());
    let device = fs.unmount().unwrap();
    assert_eq!(strict_fsck(&device), "");
    let after = manifest::of_volume(&mut Volume::open(device).unwrap());
    assert_eq!(manifest::differences(&before, &after), "");
}

/// Brings all content into memory.
fn read_all(fs: &mut F2fs<MemoryDevice>, dir: Ino) {
    let mut entries = Vec::new();
    fs.readdir(dir, 0, &mut |entry| {
        entries.push(entry);
        true
    })
    .unwrap();
    for entry in entries.iter().filter(|entry| entry.name != b"." && entry.name != b"..") {
        match entry.kind {
            0o040_000 => read_all(fs, entry.ino),
            0o100_000 => drop(content(fs, entry.ino)),
            _ => {}
        }
    }
}

#[test]
fn a_file_with_the_name_of_a_removed_directory_is_recovered() {
    let mut fs = mount(mkfs(64 * MIB, &[]));
    let (root, caller) = (fs.root(), Caller::default());
    let dir = make(&mut fs, root, "name", 0o040_755, (0, 0));
    file(&mut fs, dir, "below");
    fs.sync().unwrap();
    fs.unlink(&caller, dir, b"below").unwrap();
    fs.rmdir(&caller, root, b"name").unwrap();
    let new = file(&mut fs, root, "name");
    fs.write(&caller, new, 0, b"content").unwrap();
    fs.fsync(new, false).unwrap();
    let mut fs = mount(fs.into_device());
    assert_eq!(strict_fsck(fs.device()), "");
    let found = fs.lookup(root, b"name").unwrap().ino;
    assert_eq!(content(&mut fs, found), b"content");
    assert_eq!(fs.getattr(root).unwrap().links, 2);
}

#[test]
fn half_a_record_of_an_earlier_mount_is_not_taken_for_a_new_one() {
    let mut fs = mount(mkfs(64 * MIB, &[]));
    let (root, caller) = (fs.root(), Caller::default());
    file(&mut fs, root, "old");
    fs.sync().unwrap();
    let log = fs.checkpoint_state().logs[4];
    let start =
        fs.superblock().main_start.0 + 512 * u64::from(log.segment.0) + u64::from(log.offset);
    let new = file(&mut fs, root, "new");
    for block in [873_u64, 873 + 1018] {
        fs.write(&caller, new, block * 4096, &[1; 4096]).unwrap();
    }
    fs.fsync(new, false).unwrap();
    let mut device = fs.into_device();
    // two direct nodes got to the medium, the inode after them did not
    device.bytes_mut(Lba(start + 2)).unwrap().fill(0);
    let mut fs = mount(device);
    assert!(fs.lookup(root, b"new").is_err());
    let again = file(&mut fs, root, "new");
    fs.write(&caller, again, 0, b"small").unwrap();
    fs.fsync(again, false).unwrap();
    let mut fs = mount(fs.into_device());
    let found = fs.lookup(root, b"new").unwrap();
    assert_eq!((found.size, content(&mut fs, found.ino)), (5, b"small".to_vec()));
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}

#[test]
fn a_device_without_a_name_that_is_in_use_keeps_its_number() {
    let mut fs = mount(mkfs(64 * MIB, &[]));
    let (root, caller) = (fs.root(), Caller::default());
    for (name, mode, rdev) in [("narrow", 0o020_666, (8, 3)), ("wide", 0o060_660, (259, 70_000))] {
        let ino = make(&mut fs, root, name, mode, rdev);
        fs.hold(ino);
        fs.unlink(&caller, root, name.as_bytes()).unwrap();
        fs.sync().unwrap();
        assert_eq!(strict_fsck(fs.device()), "", "{name}");
        assert_eq!(fs.getattr(ino).unwrap().rdev, rdev);
        fs.forget(ino, 1).unwrap();
    }
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}
