//! IPLFS: an endless volume on a thin device, from mkfs to the next mount; what the device holds is what the volume has.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use common::endless::{endless, endless_options, leaks, thin};
use dovetail_block::{AREA_BLOCKS, AREAS, MemoryDevice};
use dovetail_f2fs::mkfs::mkfs;
use dovetail_f2fs::{Error, F2fs, Options, Volume};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode};

const MIB: u64 = 1 << 20;

fn fresh(bytes: u64) -> MemoryDevice {
    endless(bytes, &endless_options())
}

fn mount(device: MemoryDevice) -> F2fs<MemoryDevice> {
    F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

fn file(fs: &mut F2fs<MemoryDevice>, name: &str) -> Ino {
    let root = fs.root();
    fs.create(&Caller::default(), root, name.as_bytes(), &NewNode { mode: 0o100_644, rdev: (0, 0) })
        .unwrap()
        .ino
}

fn content(fs: &mut F2fs<MemoryDevice>, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0; fs.getattr(ino).unwrap().size as usize];
    fs.read(ino, 0, &mut bytes).unwrap();
    bytes
}

/// After all is written and discarded, the device holds what the volume has, and nothing else.
fn assert_no_leak(fs: &mut F2fs<MemoryDevice>) {
    assert_eq!(leaks(fs, |fs| fs.device().clone()), [""; 0]);
}

#[test]
fn what_is_written_is_read_after_the_next_mount() {
    let mut fs = mount(fresh(64 * MIB));
    assert_no_leak(&mut fs);
    let (small, large) = (file(&mut fs, "small"), file(&mut fs, "large"));
    fs.write(&Caller::default(), small, 0, b"few bytes").unwrap();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|n| (n / 1000) as u8).collect();
    fs.write(&Caller::default(), large, 0, &bytes).unwrap();
    fs.sync().unwrap();
    fs.write(&Caller::default(), large, 4096 * 600, &[7; 8192]).unwrap();
    assert_no_leak(&mut fs);
    let mut fs = mount(fs.unmount().unwrap());
    let root = fs.root();
    let (small, large) = (fs.lookup(root, b"small").unwrap().ino, fs.lookup(root, b"large").unwrap().ino);
    assert_eq!(content(&mut fs, small), b"few bytes");
    let found = content(&mut fs, large);
    assert!(found[..4096 * 600] == bytes[..4096 * 600] && found[4096 * 600..4096 * 602] == [7; 8192]);
    fs.unlink(&Caller::default(), root, b"large").unwrap();
    assert_no_leak(&mut fs);
    let mut volume = Volume::open(fs.unmount().unwrap()).unwrap();
    let inode = volume.resolve(b"/small").unwrap();
    let mut bytes = [0; 9];
    assert_eq!(volume.read(&inode, 0, &mut bytes).unwrap(), 9);
    assert_eq!(&bytes, b"few bytes");
}

#[test]
fn what_was_fsynced_is_recovered_and_the_rest_does_not_leak() {
    let mut fs = mount(fresh(64 * MIB));
    let old = file(&mut fs, "old");
    fs.write(&Caller::default(), old, 0, &[1; 100 * 4096]).unwrap();
    fs.sync().unwrap();
    let new = file(&mut fs, "new");
    fs.write(&Caller::default(), new, 0, &[2; 50 * 4096]).unwrap();
    fs.write(&Caller::default(), old, 10 * 4096, &[3; 20 * 4096]).unwrap();
    fs.fsync(new, false).unwrap();
    fs.fsync(old, false).unwrap();
    let lost = file(&mut fs, "lost");
    fs.write(&Caller::default(), lost, 0, &[4; 300 * 4096]).unwrap();
    assert_eq!(fs.events().checkpoints, 1, "both fsyncs were records");
    let mut fs = mount(fs.into_device());
    let root = fs.root();
    assert!(fs.lookup(root, b"lost").is_err());
    let (new, old) = (fs.lookup(root, b"new").unwrap().ino, fs.lookup(root, b"old").unwrap().ino);
    assert!(content(&mut fs, new) == [2; 50 * 4096]);
    assert!(content(&mut fs, old)[10 * 4096..30 * 4096] == [3; 20 * 4096]);
    assert_no_leak(&mut fs);
}

#[test]
fn a_device_that_is_not_thin_is_refused() {
    let mut dense = MemoryDevice::new(1 << 20);
    let error = mkfs(&mut dense, &endless_options()).unwrap_err();
    assert!(error.to_string().contains("more addresses than room"), "{error}");
    assert!(mkfs(&mut thin(1 << 20), &endless_options()).is_err(), "too little room");
    let mut short = MemoryDevice::thin(1 << 40, 1 << 20);
    assert!(mkfs(&mut short, &endless_options()).unwrap_err().to_string().contains("too few"));
    let device = fresh(64 * MIB);
    let mut copy = MemoryDevice::new(AREAS * AREA_BLOCKS);
    for (lba, content) in device.used() {
        let range = dovetail_block::BlockRange::new(lba, 1);
        let data = dovetail_block::Data::Blocks(std::slice::from_ref(content));
        let hints = dovetail_block::Hints::default();
        let write = dovetail_block::Command::Write { range, data, hints, fua: false };
        dovetail_block::BlockDevice::submit(&mut copy, SimTime::ZERO, write).unwrap();
    }
    let error = F2fs::mount(copy, Options::default(), SimTime::ZERO).unwrap_err();
    assert!(matches!(error, Error::Incompatible(dovetail_f2fs::Incompatible::NotThin)), "{error}");
}

#[test]
fn options_that_make_no_sense_are_refused_in_a_sentence() {
    for list in ["mode=rm-ipu", "mode=rm-ipu-adaptive,remap=fsync", "nodiscard"] {
        let options = Options::parse(list).unwrap();
        let error = F2fs::mount(fresh(64 * MIB), options, SimTime::ZERO).unwrap_err();
        assert!(error.to_string().starts_with("an IPLFS volume cannot be mounted with"), "{list}: {error}");
    }
    for list in ["mode=lfs", "mode=adaptive", "alloc_mode=reuse", "background_gc=on", "active_logs=2", "ro"] {
        F2fs::mount(fresh(64 * MIB), Options::parse(list).unwrap(), SimTime::ZERO).unwrap();
    }
}
