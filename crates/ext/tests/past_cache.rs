//! Large writes of a mount go from the caller's bytes to their blocks: nothing of them stays in the
//! page cache, and a power cut shows no content that a block held before.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::TempImage;
use dovetail_block::{ImageDevice, MemoryDevice, OverlayDevice, Scheduler};
use dovetail_ext::{Ext, Options};
use dovetail_testkit::RecordingDevice;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, Fallocate, FileSystem, Ino, NewNode, SetAttr, Simulated, Timestamp};

fn new() -> MemoryDevice {
    TempImage::mke2fs(64 << 20, &["-t", "ext4", "-b", "4096", "-J", "size=16"]).load()
}

fn mount<D: Scheduler>(device: D) -> Ext<D> {
    let options = Options { writes_past_cache: true, ..Options::default() };
    Ext::mount(device, options, SimTime::ZERO).unwrap()
}

fn check(device: &MemoryDevice) {
    TempImage::of(device).check_errors();
}

const NODE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };
const SIZE: usize = 3 << 20;

fn create<D: Scheduler>(fs: &mut Ext<D>, name: &[u8]) -> Ino {
    let root = fs.root();
    fs.create(&Caller::default(), root, name, &NODE).unwrap().ino
}

fn content_of<D: Scheduler>(fs: &mut Ext<D>, name: &[u8]) -> Vec<u8> {
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
    // all but a little of the volume, so that the other file finds no block that was never used
    let mut at = 0;
    while fs.statfs().unwrap().available > 20 {
        fs.write(&Caller::default(), gone, at, &[0xAA; 65536]).unwrap();
        at += 65536;
    }
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

/// Blocks that are reserved or hold something get small writes at once, too.
#[test]
fn a_small_write_into_a_hole_waits_and_one_to_a_block_does_not() {
    let mut fs = mount(new());
    let (file, caller) = (create(&mut fs, b"file"), Caller::default());
    let reserve = Fallocate::Reserve { keep_size: false };
    fs.fallocate(&caller, file, reserve, 0, 100 * 4096).unwrap();
    for page in (1..100).step_by(2) {
        fs.write(&caller, file, page * 4096, &[page as u8; 4096]).unwrap();
    }
    fs.write(&caller, file, 200 * 4096, &[200; 4096]).unwrap();
    assert!(fs.is_cached(file, 200) && !(0..100).any(|page| fs.is_cached(file, page)));
    fs.fsync(file, true).unwrap();
    let content = content_of(&mut mount(fs.device().clone()), b"file");
    let expected = |page: usize| if page % 2 == 1 || page == 200 { page as u8 } else { 0 };
    for (n, page) in content.chunks(4096).enumerate() {
        assert!(page.iter().all(|byte| *byte == expected(n) || n > 100 && n < 200), "page {n}");
    }
    TempImage::of(&fs.unmount().unwrap()).check_errors();
}

fn caller_at(tick: i64) -> Caller {
    Caller { now: Timestamp { seconds: tick, nanoseconds: 0 }, ..Caller::default() }
}

/// Those that change nothing but bytes of blocks need not be alone; all others do.
#[test]
fn overwrites_of_whole_pages_within_a_tick_are_shared() {
    let image = TempImage::mke2fs(64 << 20, &["-t", "ext4", "-b", "4096"]);
    let mut fs = mount(ImageDevice::open_read_write(image.text().as_ref()).unwrap());
    let (file, now) = (create(&mut fs, b"file"), caller_at(1));
    let overwrite = |fs: &Ext<ImageDevice>, caller: &Caller, page: u64, len: usize| {
        fs.shared().unwrap().write(caller, file, page * 4096, &vec![7; len]).is_some()
    };
    fs.write(&now, file, 0, &vec![1; 64 * 4096]).unwrap();
    let reserve = Fallocate::Reserve { keep_size: false };
    fs.fallocate(&now, file, reserve, 64 * 4096, 4096).unwrap();
    fs.write(&now, file, 70 * 4096, &[1; 4096]).unwrap();
    fs.write(&now, file, 3 * 4096, &[2; 100]).unwrap();
    assert!(overwrite(&fs, &now, 5, 8192));
    let refused = [(2, 8192), (3, 4096), (5, 100), (63, 8192), (64, 4096), (66, 4096), (71, 4096)];
    for (page, len) in refused {
        assert!(!overwrite(&fs, &now, page, len), "page {page}, {len} bytes");
    }
    assert!(!overwrite(&fs, &caller_at(2), 5, 4096), "times change");
    fs.write(&caller_at(2), file, 8 * 4096, &[8; 4096]).unwrap();
    assert!(overwrite(&fs, &caller_at(2), 5, 4096), "and have changed");
    fs.fsync(file, false).unwrap();
    let copy = ImageDevice::open_read_only(image.text().as_ref()).unwrap();
    let content = content_of(&mut mount(OverlayDevice::new(copy)), b"file");
    let first = |page: usize| content[page * 4096];
    assert_eq!([3, 4, 5, 6, 7, 8, 64].map(first), [2, 1, 7, 7, 1, 8, 0]);
}

#[test]
fn shared_and_other_writes_of_one_file_come_back() {
    let image = TempImage::mke2fs(64 << 20, &["-t", "ext4", "-b", "4096"]);
    let mut fs = mount(ImageDevice::open_read_write(image.text().as_ref()).unwrap());
    let (file, mut rng) = (create(&mut fs, b"file"), Rng::new(5));
    let (mut expected, mut shared) = (vec![0; 1 << 20], 0);
    fs.write(&caller_at(0), file, 0, &expected).unwrap();
    for n in 0..3000_usize {
        let (page, pages) = (rng.below(240) as usize, 1 + rng.below(10) as usize);
        let (mut from, mut end) = (page * 4096, (page + pages) * 4096);
        if rng.chance(0.1) {
            (from, end) = (from + 5, end - 7);
        }
        if rng.chance(0.02) {
            let (at, len) = (from as u64, (end - from) as u64);
            fs.fallocate(&caller_at(0), file, Fallocate::PunchHole, at, len).unwrap();
            expected[from..end].fill(0);
            continue;
        }
        let (caller, bytes) = (caller_at(n as i64 / 20), vec![n as u8; end - from]);
        let done = fs.shared().unwrap().write(&caller, file, from as u64, &bytes);
        shared += u64::from(done.is_some());
        done.unwrap_or_else(|| fs.write(&caller, file, from as u64, &bytes).unwrap());
        expected[from..end].copy_from_slice(&bytes);
        if n % 50 == 0 {
            fs.fsync(file, true).unwrap();
            let copy = ImageDevice::open_read_only(image.text().as_ref()).unwrap();
            let mut overlay = mount(OverlayDevice::new(copy));
            assert!(content_of(&mut overlay, b"file") == expected, "cut {n}");
        }
        // a read that is alone would bring pages into memory, which then are in the way
        let mut found = vec![0xEE; expected.len()];
        let read = fs.shared().unwrap().read(file, 0, &mut found);
        read.unwrap_or_else(|| fs.read(file, 0, &mut found).unwrap());
        assert!(found == expected, "step {n}");
    }
    assert!(shared > 300, "{shared}");
    fs.unmount().unwrap();
    image.check_errors();
}

/// Blocks that wait for their place have their room already, also when nothing else has any.
#[test]
fn a_large_write_over_waiting_blocks_needs_no_room() {
    let (mut fs, caller) = (mount(new()), Caller::default());
    let file = create(&mut fs, b"file");
    let mut page = 0;
    while fs.write(&caller, file, page * 4096, &[1; 4096]).is_ok() {
        page += 1;
    }
    let last = (page - 16) * 4096;
    assert!((page - 16..page).all(|page| fs.is_cached(file, page)), "they wait");
    fs.write(&caller, file, last, &[2; 16 * 4096]).unwrap();
    fs.fsync(file, false).unwrap();
    let content = content_of(&mut mount(fs.device().clone()), b"file");
    assert_eq!((content[last as usize - 1], content[last as usize]), (1, 2));
    check(&fs.unmount().unwrap());
}
