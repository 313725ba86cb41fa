//! IPLFS where room is short: single calls that promise, give up or log very much, and power cuts
//! right after them.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::iplfs::{iplfs_device, iplfs_options, leaks_after_mount};
use dovetail_block::{
    AREA_BLOCKS, Answer, BlockDevice, Command, Completion, DeviceError, DeviceInfo, Lba,
    MemoryDevice, Query, Scheduler, free_blocks,
};
use dovetail_f2fs::{F2fs, Options, Volume};
use dovetail_testkit::{Recording, RecordingDevice, Survivors};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, Error, Fallocate, FileSystem, Ino, NewNode, SetAttr};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
const RESERVE: Fallocate = Fallocate::Reserve { keep_size: false };

fn mount<D: Scheduler>(device: D) -> F2fs<D> {
    F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

fn fresh(bytes: u64) -> F2fs<MemoryDevice> {
    mount(iplfs_device(bytes, &iplfs_options()))
}

fn file<D: Scheduler>(fs: &mut F2fs<D>, name: &str) -> Ino {
    let root = fs.root();
    fs.create(&Caller::default(), root, name.as_bytes(), &NewNode { mode: 0o100_644, rdev: (0, 0) })
        .unwrap()
        .ino
}

fn unlink<D: Scheduler>(fs: &mut F2fs<D>, name: &str) {
    let root = fs.root();
    fs.unlink(&Caller::default(), root, name.as_bytes()).unwrap();
}

fn write<D: Scheduler>(fs: &mut F2fs<D>, ino: Ino, block: u64, blocks: u64, byte: u8) {
    let chunk = vec![byte; (256 * PAGE) as usize];
    for first in (block..block + blocks).step_by(256) {
        let bytes = ((block + blocks - first).min(256) * PAGE) as usize;
        fs.write(&Caller::default(), ino, first * PAGE, &chunk[..bytes]).unwrap();
    }
}

/// Fills the volume up to so many blocks.
fn fill<D: Scheduler>(fs: &mut F2fs<D>, left: u64) {
    let ino = file(fs, "filler");
    let mut at = 0;
    while fs.statfs().unwrap().free > left {
        let blocks = (fs.statfs().unwrap().free - left).saturating_sub(4).clamp(1, 256);
        if fs.write(&Caller::default(), ino, at * PAGE, &vec![7; (blocks * PAGE) as usize]).is_err()
        {
            break;
        }
        at += blocks;
    }
    fs.sync().unwrap();
}

/// Blocks between what is valid or dead after a sync and what the device has for files.
fn distance<D: Scheduler>(fs: &F2fs<D>) -> u64 {
    let dead: u64 = fs.awaiting_discard().iter().map(|extent| extent.blocks).sum();
    fs.superblock().room_for_files().saturating_sub(fs.checkpoint_state().valid_block_count + dead)
}

/// Overwrites a file until what it left behind takes nearly all the room: only so many blocks more
/// than the margin are free.
fn to_the_edge<D: Scheduler>(fs: &mut F2fs<D>, ino: Ino, left: u64) {
    let mut rounds = 0;
    while distance(fs) > left + 80 {
        rounds += 1;
        assert!(rounds < 1000, "{} blocks are left", distance(fs));
        let pages = (distance(fs) - left - 70).min(100);
        write(fs, ino, 0, pages, 9);
        fs.sync().unwrap();
    }
}

fn assert_sound(fs: F2fs<MemoryDevice>) {
    let device = fs.unmount().unwrap();
    assert_eq!(leaks_after_mount(&device), [""; 0]);
}

#[test]
fn zeroing_most_of_the_volume_leaves_room_for_a_checkpoint() {
    let mut fs = fresh(64 * MIB);
    let blocks = fs.statfs().unwrap().free * 6 / 10;
    let ino = file(&mut fs, "large");
    write(&mut fs, ino, 0, blocks, 1);
    fs.sync().unwrap();
    let zero = Fallocate::ZeroRange { keep_size: false };
    fs.fallocate(&Caller::default(), ino, zero, 0, blocks * PAGE).unwrap();
    fs.sync().unwrap();
    write(&mut fs, ino, 0, blocks, 2);
    fs.fsync(ino, false).unwrap();
    fs.sync().unwrap();
    assert_sound(fs);
}

#[test]
fn what_was_deleted_makes_room_for_what_is_promised() {
    let mut fs = fresh(64 * MIB);
    let blocks = fs.statfs().unwrap().free * 6 / 10;
    for round in 0..3 {
        let ino = file(&mut fs, "large");
        fs.fallocate(&Caller::default(), ino, RESERVE, 0, blocks * PAGE).unwrap();
        write(&mut fs, ino, 0, blocks, round);
        fs.sync().unwrap();
        unlink(&mut fs, "large");
    }
    let ino = file(&mut fs, "new");
    fs.fallocate(&Caller::default(), ino, RESERVE, 0, blocks * PAGE).unwrap();
    fs.sync().unwrap();
    assert_sound(fs);
}

#[test]
fn what_the_device_was_told_takes_no_room_after_the_next_mount() {
    let mut fs = fresh(64 * MIB);
    let all = fs.statfs().unwrap().free;
    let (kept, gone) = (file(&mut fs, "kept"), file(&mut fs, "gone"));
    write(&mut fs, kept, 0, all * 3 / 10, 1);
    write(&mut fs, gone, 0, all * 6 / 10, 2);
    fs.sync().unwrap();
    unlink(&mut fs, "gone");
    let mut fs = mount(fs.unmount().unwrap());
    let ino = file(&mut fs, "new");
    fs.fallocate(&Caller::default(), ino, RESERVE, 0, all * 6 / 10 * PAGE).unwrap();
    fs.sync().unwrap();
    assert_sound(fs);
}

/// Direct nodes with one block each, so that a range dirties as many nodes as it has blocks.
fn sparse<D: Scheduler>(fs: &mut F2fs<D>, nodes: u64) -> Ino {
    let ino = file(fs, "sparse");
    (0..nodes).for_each(|node| write(fs, ino, 461 + 509 * node, 1, 3));
    fs.sync().unwrap();
    ino
}

#[test]
fn a_hole_below_many_nodes_is_punched_where_hardly_a_block_is_free() {
    let mut fs = fresh(64 * MIB);
    let sparse = sparse(&mut fs, 1500);
    let rewritten = file(&mut fs, "rewritten");
    to_the_edge(&mut fs, rewritten, 0);
    fs.fallocate(&Caller::default(), sparse, Fallocate::PunchHole, 0, 1500 * 509 * PAGE).unwrap();
    fs.sync().unwrap();
    assert_sound(fs);
}

fn image(recording: &Recording, cut: usize) -> MemoryDevice {
    recording.image_at(cut, Survivors::All, &mut Rng::new(1))
}

#[test]
fn what_an_fsync_logs_can_be_recovered_on_a_full_volume() {
    let mut fs = fresh(24 * MIB);
    let sparse = sparse(&mut fs, 100);
    fill(&mut fs, 0);
    let device = RecordingDevice::new(fs.unmount().unwrap());
    let recording = device.recording();
    for nodes in [60, 80, 92] {
        let mut fs = mount(RecordingDevice::new(image(&recording, 0)));
        let recording = fs.device().recording();
        write(&mut fs, sparse, 461, 1, 1); // the first fsync after a mount is a checkpoint
        drop(fs.fsync(sparse, false));
        fs.trim().unwrap();
        let from = recording.position();
        (0..nodes).for_each(|node| write(&mut fs, sparse, 461 + 509 * node, 1, 4));
        fs.fsync(sparse, false).unwrap();
        for cut in (from..=recording.position()).rev().step_by(3) {
            let found = F2fs::mount(image(&recording, cut), Options::default(), SimTime::ZERO);
            assert!(found.is_ok(), "{nodes} nodes, cut {cut} after {from}: {:?}", found.err());
        }
    }
}

/// The newest state in which the checkpoint that ends recovery is not complete.
fn cut_before_the_checkpoint(recording: &Recording, version: u64) -> MemoryDevice {
    let cuts = (0..=recording.position()).rev();
    let images = cuts.map(|cut| image(recording, cut));
    images
        .into_iter()
        .find(|image| Volume::open(image.clone()).unwrap().checkpoint().version == version)
        .unwrap()
}

#[test]
fn recovery_that_is_cut_again_and_again_takes_no_more_room_each_time() {
    let mut fs = fresh(24 * MIB);
    let sparse = sparse(&mut fs, 40);
    fill(&mut fs, 0);
    fs.trim().unwrap();
    (0..40).for_each(|node| write(&mut fs, sparse, 461 + 509 * node, 1, 4));
    fs.fsync(sparse, false).unwrap();
    let version = fs.checkpoint_state().version;
    let mut device = fs.into_device();
    for _ in 0..8 {
        let recorded = RecordingDevice::new(device);
        let recording = recorded.recording();
        let fs = mount(recorded);
        assert_eq!(fs.checkpoint_state().version, version + 1, "something was recovered");
        drop(fs);
        device = cut_before_the_checkpoint(&recording, version);
    }
    let mut fs = mount(device);
    let mut bytes = [0; 4096];
    fs.read(sparse, (461 + 509 * 39) * PAGE, &mut bytes).unwrap();
    assert_eq!(bytes, [4; 4096]);
    assert_sound(fs);
}

/// A device that says that it has less room than it has.
#[derive(Debug)]
struct Short {
    device: MemoryDevice,
    less: Arc<AtomicU64>,
}

impl BlockDevice for Short {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match command {
            Command::Query(Query::FreeBlocks) => {
                Ok(Completion::with(at, Answer::Blocks(self.left()?)))
            }
            Command::Write { .. } if self.left()? == 0 => Err(DeviceError::NoRoom),
            command => self.device.submit(at, command),
        }
    }
}

dovetail_block::performs_at_once!(Short);

impl Short {
    fn left(&mut self) -> Result<u64, DeviceError> {
        let free = free_blocks(&mut self.device)?.unwrap();
        Ok(free.saturating_sub(self.less.load(Ordering::Relaxed)))
    }
}

fn short() -> (F2fs<Short>, Arc<AtomicU64>) {
    let less = Arc::new(AtomicU64::new(0));
    let device =
        Short { device: iplfs_device(64 * MIB, &iplfs_options()), less: Arc::clone(&less) };
    (mount(device), less)
}

#[test]
fn a_device_that_has_room_again_can_be_written_again() {
    let (mut fs, less) = short();
    let ino = file(&mut fs, "file");
    write(&mut fs, ino, 0, 10, 1);
    less.store(u64::MAX - 1, Ordering::Relaxed);
    // the call finds room, what it ends with does not
    drop(fs.setattr(&Caller::default(), ino, &SetAttr { mode: Some(0o600), ..SetAttr::default() }));
    less.store(0, Ordering::Relaxed);
    fs.setattr(&Caller::default(), ino, &SetAttr { mode: Some(0o644), ..SetAttr::default() })
        .unwrap();
    fs.write(&Caller::default(), ino, 100 * PAGE, &[1; 4096]).unwrap();
}

#[test]
fn overwrites_find_no_space_before_the_device_has_none() {
    let (mut fs, less) = short();
    let ino = file(&mut fs, "file");
    write(&mut fs, ino, 0, 1000, 1);
    fs.sync().unwrap();
    fs.trim().unwrap();
    let room = free_blocks(fs.device_mut()).unwrap().unwrap();
    less.store(room - 200, Ordering::Relaxed);
    let mut found = Ok(());
    for round in 0..20 {
        let bytes = vec![round; 200 * 4096];
        found = fs.write(&Caller::default(), ino, u64::from(round) * 50 * PAGE, &bytes);
        // each block that is given up takes as much as before: the drive's pages are larger than a
        // block
        found = found.and_then(|()| fs.sync());
        less.fetch_add(40, Ordering::Relaxed);
        if found.is_err() {
            break;
        }
    }
    assert_eq!(found, Err(Error::NoSpace));
    less.store(0, Ordering::Relaxed);
    fs.sync().unwrap();
    assert!(!fs.is_read_only());
}

/// Files that grow out of their inodes while room runs out: no checkpoint in between loses what was
/// synced.
#[test]
fn content_that_leaves_its_inode_is_never_nowhere() {
    let device = RecordingDevice::new(iplfs_device(16 * MIB, &iplfs_options()));
    let options = Options { checkpoint_interval_s: 1_000_000, ..Options::default() };
    let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
    let recording = fs.device().recording();
    let files: Vec<Ino> = (0..300).map(|n| file(&mut fs, &format!("file {n}"))).collect();
    for &ino in &files {
        fs.write(&Caller::default(), ino, 0, &[5; 1000]).unwrap();
    }
    let rewritten = file(&mut fs, "rewritten");
    write(&mut fs, rewritten, 0, 60, 9);
    fill(&mut fs, 1200); // or the log would be due first
    let mut looked = 0;
    for (n, &ino) in files.iter().enumerate() {
        if n % 20 == 0 {
            fs.sync().unwrap();
            fs.trim().unwrap();
            // written back, and no checkpoint since: only one can make room
            for _ in 0..distance(&fs) / 60 {
                let pages = distance(&fs).saturating_sub(72 + n as u64 / 20 % 2).min(60);
                write(&mut fs, rewritten, 0, pages, 9);
                fs.set_now(SimTime::from_ns(fs.now().as_ns() + 36_000_000_000));
                fs.wake().unwrap();
            }
        }
        let before = fs.events().checkpoints;
        fs.write(&Caller::default(), ino, 1000, &[6; 5000]).unwrap();
        if fs.events().checkpoints == before {
            continue;
        }
        looked += 1;
        let mut after = mount(image(&recording, recording.position()));
        let mut bytes = [0; 1000];
        after.read(ino, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [5; 1000], "file {n}");
    }
    assert!(looked > 3, "{looked}");
}

/// The blocks in the logs whose second half is all the same byte.
fn blocks_of(device: &MemoryDevice, byte: u8) -> Vec<Lba> {
    let is_it = |lba: Lba| {
        device.bytes(lba).is_some_and(|bytes| bytes[2000..].iter().all(|&found| found == byte))
    };
    device.used().map(|(lba, _)| lba).filter(|&lba| lba.0 >= AREA_BLOCKS && is_it(lba)).collect()
}

fn discard(device: &mut MemoryDevice, lba: Lba) {
    let range = dovetail_block::BlockRange::new(lba, 1).into();
    device.submit(SimTime::ZERO, Command::Discard { ranges: &[range] }).unwrap();
}

fn first_bytes(device: MemoryDevice, ino: Ino) -> Vec<u8> {
    let mut fs = mount(device);
    let mut bytes = vec![0; 1000];
    let found = fs.read(ino, 0, &mut bytes).unwrap();
    bytes.truncate(found);
    bytes
}

/// An fsync was cut: its inode is there, the block that the inode's content moved to is not.
#[test]
fn content_in_a_durable_inode_outlives_an_fsync_that_was_cut() {
    for pages in [1, 600] {
        let mut fs = fresh(64 * MIB);
        let ino = file(&mut fs, "file");
        fs.write(&Caller::default(), ino, 0, &[5; 1000]).unwrap();
        fs.sync().unwrap();
        write(&mut fs, ino, 0, pages, 6);
        fs.fsync(ino, false).unwrap();
        let device = fs.into_device();
        assert_eq!(first_bytes(device.clone(), ino), [6; 1000]);
        let mut torn = device.clone();
        for lba in blocks_of(&device, 6) {
            discard(&mut torn, lba);
        }
        assert_eq!(first_bytes(torn, ino), [5; 1000], "{pages} pages, the content is lost");
        let mut torn = device.clone();
        let last =
            device.used().map(|(lba, _)| lba).filter(|lba| lba.0 / AREA_BLOCKS == 5).max().unwrap();
        discard(&mut torn, last);
        assert_eq!(first_bytes(torn, ino), [5; 1000], "{pages} pages, the inode is lost");
    }
}
