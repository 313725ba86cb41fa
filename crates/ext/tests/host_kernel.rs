//! The kernel of this machine and we mount each other's volumes, and see the same.
//!
//! Needs root and a kernel with ext4 and loop devices; without them there is nothing to test.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test ends where something fails")]

use crate::common;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::TempImage;
use crate::common::manifest::{Manifest, of_folder, of_volume};
use dovetail_block::{ImageDevice, Lba, MemoryDevice};
use dovetail_ext::fsck::check;
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Options, Volume};
use dovetail_testkit::exercise::{Generator, Profile, Subject};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem};

/// A mounted image, unmounted when it goes.
struct LoopMount {
    folder: tempfile::TempDir,
}

impl LoopMount {
    fn new(image: &TempImage) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image.path)
            .arg(folder.path())
            .output()
            .unwrap();
        assert!(mount.status.success(), "{}", String::from_utf8_lossy(&mount.stderr));
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn unmount(self) {
        drop(self);
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        // a program that another test is just starting has our open files until it runs
        let unmount = || Command::new("umount").arg(self.folder.path()).status();
        let done = (0..50).any(|_| {
            let done = unmount().is_ok_and(|status| status.success());
            if !done {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            done
        });
        assert!(done || std::thread::panicking());
    }
}

fn can_mount() -> bool {
    let known =
        std::fs::read_to_string("/proc/filesystems").is_ok_and(|list| list.contains("ext4"));
    let can = known
        && rustix::process::geteuid().is_root()
        && PathBuf::from("/dev/loop-control").exists();
    if !can {
        println!("not root, or no ext4 or loop devices here: nothing is tested");
    }
    can
}

const KINDS: [&str; 5] = [
    "-t ext4 -b 4096",
    "-t ext4 -b 1024",
    "-t ext4 -b 2048 -O ^metadata_csum,uninit_bg,^64bit",
    "-t ext3 -b 4096 -I 256",
    "-t ext3 -b 1024 -I 256",
];

fn empty(kind: &str) -> MemoryDevice {
    TempImage::mke2fs(96 << 20, &kind.split(' ').collect::<Vec<_>>()).load()
}

fn mount(device: MemoryDevice) -> Ext<MemoryDevice> {
    Ext::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

/// A volume after random operations, all synced, not unmounted.
fn exercised(device: MemoryDevice, seed: u64) -> MemoryDevice {
    let mut subject = Subject::new(mount(device));
    let mut operations = Generator::new(seed, Profile { holds: false, ..Profile::default() });
    for _ in 0..1500 {
        let _ = subject.apply(&operations.next_step());
    }
    subject.fs.sync().unwrap();
    subject.fs.device().clone()
}

#[track_caller]
fn assert_same(ours: &Manifest, kernels: &Manifest) {
    for (path, line) in kernels {
        assert_eq!(ours.get(path), Some(line), "{path}");
    }
    assert_eq!(ours.len(), kernels.len());
}

#[test]
fn the_kernel_sees_what_we_wrote() {
    for (seed, kind) in KINDS.into_iter().enumerate().filter(|_| can_mount()) {
        let left = exercised(empty(kind), seed as u64);
        let ours = of_volume(&mut Volume::open(left.clone()).unwrap());
        assert!(ours.len() > 40, "{}", ours.len());
        // the kernel replays our journal, then it finds an unmounted volume
        let image = TempImage::of(&left);
        let mounted = LoopMount::new(&image);
        assert_same(&ours, &of_folder(mounted.path()));
        mounted.unmount();
        let image = TempImage::of(&mount(left).unmount().unwrap());
        let mounted = LoopMount::new(&image);
        assert_same(&ours, &of_folder(mounted.path()));
        // and can go on where we stopped
        common::tree::populate(mounted.path());
        mounted.unmount();
        image.check_errors();
    }
}

#[test]
fn we_see_what_the_kernel_wrote_and_go_on() {
    for (seed, kind) in KINDS.into_iter().enumerate().filter(|_| can_mount()) {
        let image = TempImage::of(&empty(kind));
        let mounted = LoopMount::new(&image);
        common::tree::populate(mounted.path());
        assert!(Command::new("sync").arg("-f").arg(mounted.path()).status().unwrap().success());
        let kernels = of_folder(mounted.path());
        // in the midst of the mount: there is a journal to replay
        let left = image.load();
        mounted.unmount();
        for device in [left, image.load()] {
            let replayed = mount(device).unmount().unwrap();
            assert_same(&of_volume(&mut Volume::open(replayed.clone()).unwrap()), &kernels);
            let mut removed = mount(exercised(replayed, 100 + seed as u64));
            let root = removed.root();
            remove_below(&mut removed, root);
            let device = removed.unmount().unwrap();
            TempImage::of(&device).check_errors();
            let left = of_volume(&mut Volume::open(device).unwrap());
            assert_eq!(left.len(), 1, "{:?}", left.keys());
        }
    }
}

/// A checksum in the log is wrong: neither the kernel nor we write to the volume, and e2fsck has
/// something to say. The first block of a log tells of a transaction, by its own checksum.
#[test]
fn a_damaged_journal_is_mounted_by_neither() {
    if !can_mount() {
        return;
    }
    let mut device = exercised(empty("-t ext4 -b 4096"), 3);
    let mut volume = Volume::open(device.clone()).unwrap();
    let map = volume.journal_map().unwrap();
    let start = volume.journal_superblock(&map).unwrap().start;
    let place = map.physical(start).unwrap();
    device.bytes_mut(Lba(place)).unwrap()[700] ^= 1;

    let image = TempImage::of(&device);
    let folder = tempfile::tempdir().unwrap();
    let mount = ["-o", "loop", image.text(), folder.path().to_str().unwrap()];
    let mounted = Command::new("mount").args(mount).output().unwrap();
    assert!(!mounted.status.success(), "the kernel mounted it");
    let repaired = common::run("e2fsck", &["-fy", image.text()]);
    let said = String::from_utf8_lossy(&repaired.stdout);
    assert!(!repaired.status.success() && said.contains("ournal"), "{said}");

    let error = Ext::mount(device.clone(), Options::default(), SimTime::ZERO).unwrap_err();
    assert!(error.to_string().contains(&format!("block {start} of the journal")), "{error}");
    let report = check(device.clone(), dovetail_ext::fsck::Options::default()).unwrap();
    assert!(report.findings.iter().any(|f| f.to_string().contains("journal is damaged")));
    let volume = Volume::open(device.clone()).unwrap();
    assert!(volume.journal_damage().is_some());
    let read_only = Options::parse("ro,noload").unwrap();
    assert!(Ext::mount(device, read_only, SimTime::ZERO).is_ok());
}

fn remove_below(fs: &mut Ext<MemoryDevice>, dir: dovetail_vfs::Ino) {
    let mut entries = Vec::new();
    fs.readdir(dir, 0, &mut |entry| {
        entries.push((entry.name, entry.ino, entry.kind));
        true
    })
    .unwrap();
    for (name, ino, kind) in entries.into_iter().filter(|(name, ..)| name != b"." && name != b"..")
    {
        if kind == 0o040_000 {
            remove_below(fs, ino);
            fs.rmdir(&Caller::default(), dir, &name).unwrap();
        } else {
            fs.unlink(&Caller::default(), dir, &name).unwrap();
        }
    }
}

/// It was written to beside the kernel, and both lost what the other one had written.
#[test]
fn an_image_that_the_kernel_has_mounted_is_not_written_to() {
    if !can_mount() {
        return;
    }
    let mut device = MemoryDevice::new(16 << 10);
    mkfs(&mut device, &MkfsOptions::new(Kind::Ext4)).unwrap();
    let image = TempImage::of(&device);
    let mounted = LoopMount::new(&image);
    let refused = ImageDevice::open_read_write(&image.path).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ResourceBusy);
    assert!(refused.to_string().contains("by way of /dev/loop"), "{refused}");
    ImageDevice::open_read_only(&image.path).unwrap();
    mounted.unmount();
    ImageDevice::open_read_write(&image.path).unwrap();
}
