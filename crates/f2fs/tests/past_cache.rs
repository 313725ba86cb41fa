//! Large writes of a mount go from the caller's bytes to their blocks: nothing of them stays in the
//! page cache, and a power cut shows no content that a block held before.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::{mkfs, strict_fsck};
use dovetail_block::{MemoryDevice, Scheduler};
use dovetail_f2fs::{F2fs, Options};
use dovetail_testkit::RecordingDevice;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, Fallocate, FileSystem, Ino, NewNode, SetAttr, Simulated};

fn new() -> MemoryDevice {
    mkfs(256 << 20, &[])
}

fn mount<D: Scheduler>(device: D) -> F2fs<D> {
    // a small volume would be written in place
    let options =
        Options { small_volume: Some(false), writes_past_cache: true, ..Options::default() };
    F2fs::mount(device, options, SimTime::ZERO).unwrap()
}

fn check(device: &MemoryDevice) {
    assert_eq!(strict_fsck(device), "");
}

const NODE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };
const SIZE: usize = 3 << 20;

fn create<D: Scheduler>(fs: &mut F2fs<D>, name: &[u8]) -> Ino {
    let root = fs.root();
    fs.create(&Caller::default(), root, name, &NODE).unwrap().ino
}

fn content_of<D: Scheduler>(fs: &mut F2fs<D>, name: &[u8]) -> Vec<u8> {
    let root = fs.root();
    let attr = fs.lookup(root, name).unwrap();
    let mut content = vec![0xEE; attr.size as usize];
    assert_eq!(fs.read(attr.ino, 0, &mut content).unwrap(), content.len());
    content
}

#[test]
fn whole_pages_of_a_large_write_are_not_kept() {
    let mut fs = mount(new());
    let file = create(&mut fs, b"file");
    let bytes: Vec<u8> = (0..1 << 20).map(|n: u32| (n / 1000) as u8).collect();
    fs.write(&Caller::default(), file, 0, &[9; 20_000]).unwrap();
    assert!(fs.is_cached(file, 3));
    fs.write(&Caller::default(), file, 100, &bytes).unwrap();
    let cached = |page| fs.is_cached(file, page);
    assert!(cached(0) && cached(256), "parts of pages");
    assert!(!(1..256).any(cached), "whole pages");
    let expected = [&[9; 100], &bytes[..]].concat();
    assert!(content_of(&mut fs, b"file") == expected);
    fs.fsync(file, false).unwrap();
    assert!(content_of(&mut mount(fs.device().clone()), b"file") == expected);
}

#[test]
fn small_and_large_writes_of_one_file_come_back() {
    let (mut fs, mut rng) = (mount(new()), Rng::new(3));
    let (file, mut expected) = (create(&mut fs, b"file"), Vec::<u8>::new());
    for n in 0..400 {
        let from = rng.below(SIZE as u64) as usize;
        let most = if rng.chance(0.5) { 400_000 } else { 9_000 };
        let end = (from + 1 + rng.below(most) as usize).min(SIZE);
        if rng.chance(0.1) {
            let size = SetAttr { size: Some(from as u64), ..SetAttr::default() };
            fs.setattr(&Caller::default(), file, &size).unwrap();
            expected.resize(from, 0);
        } else if rng.chance(0.1) {
            let how = Fallocate::PunchHole;
            fs.fallocate(&Caller::default(), file, how, from as u64, (end - from) as u64).unwrap();
            let end = end.min(expected.len());
            expected[from.min(end)..end].fill(0);
        } else {
            let bytes: Vec<u8> = (from..end).map(|at| (at / 7 + n) as u8).collect();
            fs.write(&Caller::default(), file, from as u64, &bytes).unwrap();
            expected.resize(expected.len().max(end), 0);
            expected[from..end].copy_from_slice(&bytes);
        }
        assert!(content_of(&mut fs, b"file") == expected, "step {n}");
        if n % 20 == 0 {
            fs.fsync(file, n % 40 == 0).unwrap();
            assert!(content_of(&mut mount(fs.device().clone()), b"file") == expected, "cut {n}");
        }
    }
    check(&fs.unmount().unwrap());
}

/// Blocks with content of a file that is gone are taken by another one, whose writes are cut at any
/// point: each of its pages is as it was fsynced, as it was written since, or a hole.
#[test]
fn a_power_cut_shows_nothing_of_what_blocks_held_before() {
    let mut fs = mount(new());
    let gone = create(&mut fs, b"gone");
    fs.write(&Caller::default(), gone, 0, &vec![0xAA; 4 * SIZE]).unwrap();
    fs.sync().unwrap();
    let root = fs.root();
    fs.unlink(&Caller::default(), root, b"gone").unwrap();
    let file = create(&mut fs, b"file");
    fs.write(&Caller::default(), file, 0, &vec![1; SIZE]).unwrap();
    let device = RecordingDevice::new(fs.unmount().unwrap());
    let recording = device.recording();
    let mut fs = mount(device);
    let caller = Caller::default();
    fs.write(&caller, file, 0, &vec![2; SIZE / 2]).unwrap();
    fs.write(&caller, file, SIZE as u64, &vec![3; SIZE / 2]).unwrap();
    fs.fsync(file, false).unwrap();
    let fsynced = recording.position();
    fs.write(&caller, file, SIZE as u64 / 4, &vec![4; SIZE]).unwrap();
    fs.sync().unwrap();
    drop(fs);
    let mut cuts = 0;
    for crash in recording.crashes(11) {
        let content = content_of(&mut mount(crash.device), b"file");
        for (n, page) in content.chunks(4096).enumerate() {
            let uniform = page.iter().all(|byte| *byte == page[0]);
            assert!(uniform && page[0] <= 4, "cut {}, page {n}: {:?}", crash.cut, &page[..8]);
            assert!(crash.cut < fsynced || n >= SIZE / 8192 || [2, 4].contains(&page[0]));
        }
        cuts += 1;
    }
    assert!(cuts > 5, "{cuts}");
}
