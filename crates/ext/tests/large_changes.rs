//! Calls that touch more blocks than the smallest journal holds: small groups make for many
//! bitmaps.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common;
use crate::common::TempImage;
use dovetail_block::{Content, MemoryDevice, Pattern};
use dovetail_ext::fsck::{self, Severity};
use dovetail_ext::{Ext, Options};
use dovetail_testkit::RecordingDevice;
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, Fallocate, FileSystem, Ino, NewNode, SetAttr, Simulated};

const NODE: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };

fn new(mke2fs: &str, mib: u64) -> MemoryDevice {
    TempImage::mke2fs(mib << 20, &mke2fs.split(' ').collect::<Vec<_>>()).load()
}

fn create<D: dovetail_block::Scheduler>(fs: &mut Ext<D>, name: &[u8]) -> Ino {
    let root = fs.root();
    fs.create(&Caller::default(), root, name, &NODE).unwrap().ino
}

fn truncate<D: dovetail_block::Scheduler>(fs: &mut Ext<D>, file: Ino, size: u64) {
    let changes = SetAttr { size: Some(size), ..SetAttr::default() };
    fs.setattr(&Caller::default(), file, &changes).unwrap();
}

fn assert_clean(device: &MemoryDevice) {
    let report = fsck::check(device.clone(), fsck::Options::default()).unwrap();
    assert_eq!(report.count(Severity::Error), 0, "{:?}", report.findings);
}

/// A file of `blocks` blocks of 4 KiB, named content.
fn fill(fs: &mut Ext<MemoryDevice>, name: &[u8], blocks: u64) -> Ino {
    let file = create(fs, name);
    for first in (0..blocks).step_by(256) {
        let contents: Vec<_> =
            (0..256).map(|n| Content::Pattern(Pattern::new(first + n))).collect();
        fs.write_pages(&Caller::default(), file, (first * 4096, 256 * 4096), &contents, true)
            .unwrap();
    }
    fs.sync().unwrap();
    file
}

#[test]
fn a_file_in_more_groups_than_the_journal_has_blocks_goes() {
    let mut fs = Ext::mount(
        new("-t ext3 -b 4096 -g 256 -O ^resize_inode -J size=4 -N 4000", 1300),
        Options::default(),
        SimTime::ZERO,
    )
    .unwrap();
    let (root, free) = (fs.root(), fs.superblock().free_blocks);
    for way in 0..3 {
        let file = fill(&mut fs, b"file", 280_000);
        match way {
            0 => truncate(&mut fs, file, 5000),
            1 => {
                fs.fallocate(&Caller::default(), file, Fallocate::PunchHole, 5000, 279_990 * 4096)
                    .unwrap();
            }
            _ => {}
        }
        fs.unlink(&Caller::default(), root, b"file").unwrap();
        fs.sync().unwrap();
        assert_eq!(fs.superblock().free_blocks, free, "{way}");
    }
    assert_clean(&fs.unmount().unwrap());
}

/// An unnamed file of that size, which someone keeps until the end of the mount, or until the power
/// is cut.
#[test]
fn an_orphan_in_more_groups_than_the_journal_has_blocks_goes() {
    for cut in [false, true] {
        let device = new("-t ext4 -b 1024 -g 256 -O ^resize_inode -J size=1 -N 4000", 400);
        let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
        let (root, free) = (fs.root(), fs.superblock().free_blocks);
        let file = create(&mut fs, b"file");
        let how = Fallocate::Reserve { keep_size: false };
        fs.fallocate(&Caller::default(), file, how, 0, 300 << 20).unwrap();
        fs.hold(file);
        fs.unlink(&Caller::default(), root, b"file").unwrap();
        fs.sync().unwrap();
        let device = if cut { fs.into_device() } else { fs.unmount().unwrap() };
        let fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
        assert_eq!(fs.superblock().free_blocks, free, "{cut}");
        assert_clean(&fs.unmount().unwrap());
    }
}

/// Content that went through the journal is revoked block by block.
#[test]
fn a_journaled_file_with_more_revokes_than_the_journal_has_blocks_goes() {
    let options = Options::parse("data=journal").unwrap();
    let mut fs =
        Ext::mount(new("-t ext4 -b 1024 -J size=1 -N 400", 400), options, SimTime::ZERO).unwrap();
    let file = create(&mut fs, b"file");
    fs.fallocate(&Caller::default(), file, Fallocate::Reserve { keep_size: false }, 0, 300 << 20)
        .unwrap();
    truncate(&mut fs, file, 7);
    fs.sync().unwrap();
    assert_clean(&fs.unmount().unwrap());
}

#[test]
fn one_write_of_more_pointers_than_the_journal_has_blocks() {
    let mut fs = Ext::mount(
        new("-t ext3 -b 1024 -g 256 -O ^resize_inode -J size=1", 400),
        Options::default(),
        SimTime::ZERO,
    )
    .unwrap();
    let file = create(&mut fs, b"file");
    fs.write(&Caller::default(), file, 3, &vec![7; 270 << 20]).unwrap();
    fs.sync().unwrap();
    assert_clean(&fs.unmount().unwrap());
}

const SIZE: u64 = 80 << 20;
/// Whole pages: the rest of one would become zeros on the device before the size changes.
const KEPT: u64 = 245 * 4096;

fn content() -> Vec<u8> {
    (0..SIZE / 4).flat_map(|n| (n as u32).to_le_bytes()).collect()
}

/// Cuts the power everywhere: of the file may be left only what `allowed` says of its size and
/// content.
fn cut_everywhere(
    change: impl Fn(&mut Ext<RecordingDevice<MemoryDevice>>, Ino),
    allowed: impl Fn(Option<&[u8]>) -> bool,
) {
    let mut fs = Ext::mount(
        new("-t ext3 -b 1024 -g 256 -O ^resize_inode -J size=1", 112),
        Options::default(),
        SimTime::ZERO,
    )
    .unwrap();
    let file = create(&mut fs, b"file");
    fs.write(&Caller::default(), file, 0, &content()).unwrap();
    let device = RecordingDevice::new(fs.unmount().unwrap());
    let recording = device.recording();
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let commits = fs.journal_events().commits;
    change(&mut fs, file);
    assert!(
        fs.journal_events().commits > commits + 1,
        "the change was to take several transactions"
    );
    fs.sync().unwrap();
    drop(fs);
    let mut buffer = vec![0; SIZE as usize];
    for (n, crash) in recording.crashes(7).enumerate() {
        let mut fs = Ext::mount(crash.device.clone(), Options::default(), SimTime::ZERO).unwrap();
        let root = fs.root();
        let found = fs.lookup(root, b"file").ok().map(|attr| attr.ino);
        let found = found.map(|ino| fs.read(ino, 0, &mut buffer).unwrap());
        assert!(allowed(found.map(|len| &buffer[..len])), "cut {n}: {found:?}");
        let recovered = fs.unmount().unwrap();
        assert_clean(&recovered);
        if n % 8 == 0 {
            TempImage::of(&recovered).check_clean();
            let image = TempImage::of(&crash.device);
            let output = common::run("e2fsck", &["-f", "-p", image.text()]);
            assert!(output.status.code().is_some_and(|code| code < 2), "cut {n}: {output:?}");
        }
    }
}

#[test]
fn a_large_truncate_that_is_cut_short_is_done_or_not() {
    let content = content();
    cut_everywhere(
        |fs, file| truncate(fs, file, KEPT),
        |found| found == Some(&content) || found == Some(&content[..KEPT as usize]),
    );
}

#[test]
fn a_large_file_that_is_removed_when_the_power_is_cut_is_there_or_not() {
    let content = content();
    let remove = |fs: &mut Ext<RecordingDevice<MemoryDevice>>, _| {
        let root = fs.root();
        fs.unlink(&Caller::default(), root, b"file").unwrap();
    };
    cut_everywhere(remove, |found| found.is_none() || found == Some(&content));
}

#[test]
fn a_large_hole_that_is_cut_short_is_a_part_of_it() {
    let content = content();
    let punch = |fs: &mut Ext<RecordingDevice<MemoryDevice>>, file| {
        fs.fallocate(&Caller::default(), file, Fallocate::PunchHole, KEPT, SIZE - 2 * KEPT)
            .unwrap();
    };
    let hole = KEPT as usize..(SIZE - KEPT) as usize;
    cut_everywhere(punch, |found| {
        let Some(found) = found.filter(|found| found.len() == content.len()) else { return false };
        found[..hole.start] == content[..hole.start]
            && found[hole.end..] == content[hole.end..]
            && hole.clone().all(|at| found[at] == 0 || found[at] == content[at])
    });
}

/// Each inode lies in a block of its own, and the journal has fewer blocks than there are inodes.
#[test]
fn attributes_of_more_inodes_than_the_journal_has_blocks() {
    let device = new("-t ext4 -b 1024 -I 1024 -N 3000", 24);
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let files: Vec<Ino> = (0..1100).map(|n| create(&mut fs, format!("{n}").as_bytes())).collect();
    fs.sync().unwrap();
    for &file in &files {
        let changes = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        fs.setattr(&Caller::default(), file, &changes).unwrap();
    }
    let device = fs.unmount().unwrap();
    assert_clean(&device);
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    assert!(files.iter().all(|&file| fs.getattr(file).unwrap().mode == 0o100_600));
}

/// Each of its pages splits an extent of the file, and the nodes are more than one transaction
/// takes.
#[test]
fn one_file_whose_write_back_edits_more_nodes_than_the_journal_has_blocks() {
    let mut options = Options::parse("noauto_da_alloc").unwrap();
    options.page_cache_bytes = 1 << 30;
    let device = new("-t ext4 -b 1024 -J size=1 -N 400", 500);
    let mut fs = Ext::mount(device, options, SimTime::ZERO).unwrap();
    let file = create(&mut fs, b"file");
    let how = Fallocate::Reserve { keep_size: false };
    fs.fallocate(&Caller::default(), file, how, 0, 400 << 20).unwrap();
    let content = [Content::Pattern(Pattern::new(7))];
    for page in (0..100_000).step_by(2) {
        fs.write_pages(&Caller::default(), file, (page * 4096, 4096), &content, false).unwrap();
    }
    fs.fsync(file, false).unwrap();
    // a page of each node, by the commit of another file
    for page in (1..100_000).step_by(84) {
        fs.write_pages(&Caller::default(), file, (page * 4096, 4096), &content, false).unwrap();
    }
    fs.write(&Caller::default(), file, 400 << 20, &[1; 100]).unwrap();
    truncate(&mut fs, file, (400 << 20) + 50);
    let other = create(&mut fs, b"other");
    fs.fsync(other, false).unwrap();
    fs.fsync(file, false).unwrap();
    assert_clean(&fs.unmount().unwrap());
}
