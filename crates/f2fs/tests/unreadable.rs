//! Blocks that cannot be read: what does not need them goes on, and what is on the device is a
//! sound volume.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::common::lab::Lab;
use crate::common::strict_fsck;
use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, MemoryDevice, performs_at_once,
};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, IpuPolicy, Options};
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::{Caller, Error, Fallocate, FileSystem, Ino, NewNode};

const PAGE: u64 = 4096;
const MIB: u64 = 256;

/// A device that outlives its mount, with blocks that cannot be read.
#[derive(Clone, Debug)]
struct Unreadable {
    lower: Arc<Mutex<MemoryDevice>>,
    bad: Arc<Mutex<BTreeSet<u64>>>,
}

impl Unreadable {
    /// An empty volume of so many MiB.
    fn new(mib: u64) -> Self {
        let mut device = MemoryDevice::new(mib * MIB);
        mkfs(&mut device, &MkfsOptions::default()).unwrap();
        Self { lower: Arc::new(Mutex::new(device)), bad: Arc::default() }
    }

    fn image(&self) -> MemoryDevice {
        self.lower.lock().unwrap().clone()
    }

    fn lab(&self) -> Lab {
        Lab::new(self.image())
    }

    fn spoil(&self, blocks: Range<u64>) {
        self.bad.lock().unwrap().extend(blocks);
    }

    fn heal(&self) {
        self.bad.lock().unwrap().clear();
    }
}

impl BlockDevice for Unreadable {
    fn info(&self) -> DeviceInfo {
        self.lower.lock().unwrap().info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if let Command::Read { range, .. } = &command {
            let blocks = range.start.0..range.end().0;
            if self.bad.lock().unwrap().range(blocks).next().is_some() {
                return Err(DeviceError::Internal("the block cannot be read".into()));
            }
        }
        self.lower.lock().unwrap().submit(at, command)
    }
}

performs_at_once!(Unreadable);

type Volume = F2fs<Unreadable>;

/// With room for few nodes in memory.
fn mounted(device: &Unreadable, options: &str) -> Volume {
    let options = Options { node_cache_bytes: 1 << 16, ..Options::parse(options).unwrap() };
    F2fs::mount(device.clone(), options, SimTime::ZERO).unwrap()
}

fn file<F: FileSystem>(fs: &mut F, name: &str) -> Ino {
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    fs.create(&Caller::default(), root, name.as_bytes(), &node).unwrap().ino
}

fn write<F: FileSystem>(
    fs: &mut F,
    ino: Ino,
    page: u64,
    pages: u64,
    byte: u8,
) -> Result<(), Error> {
    fs.write(&Caller::default(), ino, page * PAGE, &vec![byte; (pages * PAGE) as usize])
}

/// The first byte of a page after a mount of what is on the device.
fn byte_on(device: &Unreadable, name: &str, page: u64) -> u8 {
    let mut fs = F2fs::mount(device.image(), Options::default(), SimTime::ZERO).unwrap();
    let ino = fs.lookup(fs.root(), name.as_bytes()).unwrap().ino;
    let mut byte = [0];
    fs.read(ino, page * PAGE, &mut byte).unwrap();
    byte[0]
}

/// Lets all nodes go from memory that are not dirty.
fn crowd_out(fs: &mut Volume) {
    file(fs, "one more");
    for _ in 0..3 {
        for n in 0..60 {
            fs.lookup(fs.root(), format!("small{n}").as_bytes()).unwrap();
        }
    }
}

/// A volume with a page of 1s in "far" below a direct node, which is not in memory and cannot be
/// read, and a page of 1s in "near". Both were synced.
fn with_lost_node() -> (Volume, Unreadable, Ino, Ino) {
    let device = Unreadable::new(64);
    let mut fs = mounted(&device, "");
    for n in 0..60 {
        file(&mut fs, &format!("small{n}"));
    }
    let (far, near) = (file(&mut fs, "far"), file(&mut fs, "near"));
    write(&mut fs, far, 1000, 1, 1).unwrap();
    write(&mut fs, near, 0, 1, 1).unwrap();
    fs.sync().unwrap();
    (fs, device, far, near)
}

/// Has the direct node of "far" fail.
fn lose_node(fs: &mut Volume, device: &Unreadable) {
    crowd_out(fs);
    let mut lab = device.lab();
    let direct = lab.in_inode("far", 4052);
    let node = lab.u32(direct);
    let block = lab.node(node).block;
    device.spoil(block..block + 1);
}

#[test]
fn a_sync_writes_what_does_not_need_an_unreadable_node() {
    let (mut fs, device, far, near) = with_lost_node();
    write(&mut fs, far, 1000, 1, 2).unwrap();
    write(&mut fs, near, 0, 1, 2).unwrap();
    lose_node(&mut fs, &device);
    assert!(matches!(fs.sync(), Err(Error::Io(_))));
    assert_eq!(byte_on(&device, "near", 0), 2, "a sync that failed for another file");
    device.heal();
    fs.sync().unwrap();
    assert_eq!(byte_on(&device, "far", 1000), 2);
    assert_eq!(strict_fsck(&fs.unmount().unwrap().image()), "");
}

#[test]
fn an_unmount_writes_what_does_not_need_an_unreadable_node() {
    let (mut fs, device, far, near) = with_lost_node();
    write(&mut fs, far, 1000, 1, 2).unwrap();
    write(&mut fs, near, 0, 1, 2).unwrap();
    lose_node(&mut fs, &device);
    assert!(matches!(fs.unmount(), Err(dovetail_f2fs::Error::Io(_))));
    assert_eq!(byte_on(&device, "near", 0), 2, "an unmount that failed for another file");
    assert_eq!(strict_fsck(&device.image()), "");
}

#[test]
fn an_unmount_leaves_an_orphan_with_an_unreadable_node_listed() {
    let (mut fs, device, far, near) = with_lost_node();
    fs.hold(far);
    lose_node(&mut fs, &device);
    fs.unlink(&Caller::default(), fs.root(), b"far").unwrap();
    write(&mut fs, near, 0, 1, 2).unwrap();
    assert!(matches!(fs.unmount(), Err(dovetail_f2fs::Error::Io(_))));
    assert_eq!(device.lab().checkpoint.flags.0 & 2, 2, "an orphan is listed");
    assert_eq!(byte_on(&device, "near", 0), 2);
    let fs = F2fs::mount(device.image(), Options::default(), SimTime::ZERO).unwrap();
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "", "the next mount drops it");
}

#[test]
fn the_background_writes_back_what_does_not_need_an_unreadable_node() {
    let (mut fs, device, far, near) = with_lost_node();
    write(&mut fs, far, 1000, 1, 2).unwrap();
    write(&mut fs, near, 0, 1, 2).unwrap();
    lose_node(&mut fs, &device);
    let before = fs.written().data;
    fs.set_now(SimTime::ZERO + SimSpan::from_ms(40_000));
    assert!(fs.wake().is_err());
    assert_eq!(fs.written().data - before, 1, "the other file");
    assert!(fs.next_wake().unwrap() > fs.now(), "it does not try again at once");
}

/// Files "kept" and "other", written by turns, so that each segment has some of both.
fn interleaved(fs: &mut Volume, rounds: u64) -> (Ino, Ino) {
    let (kept, other) = (file(fs, "kept"), file(fs, "other"));
    for round in 0..rounds {
        for ino in [kept, other] {
            write(fs, ino, round * 32, 32, 1).unwrap();
            fs.fsync(ino, false).unwrap();
        }
    }
    fs.sync().unwrap();
    (kept, other)
}

#[test]
fn a_log_that_cannot_read_the_summary_of_its_next_segment_loses_no_block() {
    let device = Unreadable::new(128);
    let out_of_place = Options { ipu_policy: Some(IpuPolicy(0)), ..Options::default() };
    let mut fs = F2fs::mount(device.clone(), out_of_place, SimTime::ZERO).unwrap();
    let (kept, _) = interleaved(&mut fs, 150);
    fs.unlink(&Caller::default(), fs.root(), b"other").unwrap();
    fs.sync().unwrap();
    let rewrite = |fs: &mut Volume, n: u64| {
        write(fs, kept, n % 150 * 32, 29, n as u8).unwrap();
        fs.fsync(kept, false)
    };
    let mut rounds = 0..1000;
    while fs.events().ssr_blocks == 0 {
        rewrite(&mut fs, rounds.next().unwrap()).unwrap();
    }
    let superblock = fs.superblock();
    let summaries = superblock.ssa_start.0..superblock.main_start.0;
    let mut refused = 0;
    for n in 0..300 {
        device.spoil(summaries.clone());
        refused += u32::from(rewrite(&mut fs, n).is_err());
        device.heal();
        rewrite(&mut fs, n).unwrap();
    }
    assert!(refused > 0, "{:?}", fs.events());
    fs.sync().unwrap();
    assert_eq!(strict_fsck(&device.image()), "");
}

/// A volume in which the section that is cleaned first holds one block, which cannot be read.
fn with_lost_victim(options: &str) -> (Volume, Unreadable, Ino) {
    let device = Unreadable::new(128);
    let mut fs = mounted(&device, options);
    let (kept, _) = interleaved(&mut fs, 150);
    let victim = device.lab().data("kept", 2000).block;
    let segment = device.lab().segment_of(device.lab().data("kept", 2000)).0;
    let lab = device.lab();
    let inode = lab.inode("kept");
    let mut volume = dovetail_f2fs::Volume::open(device.image()).unwrap();
    for page in 0..150 * 32 {
        let address = volume.block_of(&inode, page).unwrap();
        let there = lab.segment_of(crate::common::lab::At { block: address.0, byte: 0 }).0;
        if there == segment && page != 2000 {
            let punch = Fallocate::PunchHole;
            fs.fallocate(&Caller::default(), kept, punch, page * PAGE, PAGE).unwrap();
        }
    }
    fs.unlink(&Caller::default(), fs.root(), b"other").unwrap();
    fs.sync().unwrap();
    device.spoil(victim..victim + 1);
    let busy = file(&mut fs, "busy");
    (fs, device, busy)
}

#[test]
fn a_section_with_an_unreadable_block_does_not_keep_others_from_being_cleaned() {
    let (mut fs, device, busy) = with_lost_victim("mode=lfs,background_gc=off");
    for n in 0..400 {
        write(&mut fs, busy, n % 30 * 32, 32, n as u8).unwrap();
        fs.fsync(busy, false).unwrap();
        file(&mut fs, &format!("new{n}"));
    }
    assert!(fs.events().foreground_cleanings > 0, "{:?}", fs.events());
    fs.sync().unwrap();
    assert_eq!(strict_fsck(&device.image()), "");
}

#[test]
fn background_cleaning_goes_on_with_another_section() {
    let (mut fs, device, _) = with_lost_victim("background_gc=on");
    for n in 1..2000 {
        fs.set_now(SimTime::ZERO + SimSpan::from_ms(n * 60_000));
        fs.wake().unwrap();
    }
    assert!(fs.events().background_cleanings > 2, "{:?}", fs.events());
    fs.sync().unwrap();
    assert_eq!(strict_fsck(&device.image()), "");
}
