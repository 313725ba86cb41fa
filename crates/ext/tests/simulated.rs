//! Calls of a simulation: named content comes back, through the cache and past it, after a power
//! cut and a mount.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::common::TempImage;

use dovetail_block::{
    BlockDevice, Command, Completion, Content, DeviceError, DeviceInfo, EventId, MemoryDevice,
    Pattern, Scheduler, SchedulingHint,
};
use dovetail_ext::{Ext, Options};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, Error, FileSystem, Ino, NewNode, Simulated, Timestamp};

fn volume(mke2fs: &str, options: &str) -> (Ext<MemoryDevice>, Ino) {
    let device = TempImage::mke2fs(64 << 20, &mke2fs.split(' ').collect::<Vec<_>>()).load();
    let mut fs = Ext::mount(device, Options::parse(options).unwrap(), SimTime::ZERO).unwrap();
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let file = fs.create(&Caller::default(), root, b"file", &node).unwrap().ino;
    (fs, file)
}

fn run(mke2fs: &str, options: &str) {
    let (mut fs, file) = volume(mke2fs, options);
    let mut rng = Rng::new(7);
    let mut expected = vec![Content::Empty; 3000];
    for n in 0..600 {
        let (first, len) = (rng.below(2900), 1 + rng.below(60));
        let contents: Vec<Content> =
            (0..len).map(|i| Content::Pattern(Pattern::named(n, first + i, 1))).collect();
        expected[first as usize..(first + len) as usize].clone_from_slice(&contents);
        let range = (first * 4096, len * 4096);
        fs.write_pages(&Caller::default(), file, range, &contents, rng.chance(0.4)).unwrap();
        match rng.below(10) {
            0 => fs.fsync(file, false).unwrap(),
            1 => fs.drop_cache(file),
            _ => {}
        }
        let mut found = vec![Content::default(); 100];
        let at = rng.below(2900);
        fs.read_pages(file, at, &mut found, rng.chance(0.5)).unwrap();
        assert_eq!(found, expected[at as usize..at as usize + 100], "step {n}");
    }
    fs.sync().unwrap();
    let pieces = fs.pieces(file).unwrap();
    assert!((1..400).contains(&pieces), "{pieces}");
    let cells = fs.occupancy(10);
    assert!(
        cells.iter().any(|&share| share > 0.1)
            && cells.iter().all(|share| (0.0..=1.0).contains(share))
    );
    let mut again = Ext::mount(fs.device().clone(), Options::default(), SimTime::ZERO).unwrap();
    let mut found = vec![Content::default(); 3000];
    again.read_pages(file, 0, &mut found, true).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn named_content_comes_back() {
    run("-t ext4 -b 4096", "");
    run("-t ext4 -b 4096", "nodelalloc");
    run("-t ext3 -b 4096", "");
}

/// A file that is written in order, a megabyte at a time, lies in as few pieces as its extents
/// allow.
#[test]
fn a_file_written_in_order_lies_in_order() {
    for (mke2fs, most) in [("-t ext4 -b 4096", 2), ("-t ext3 -b 4096", 16)] {
        let (mut fs, file) = volume(mke2fs, "");
        for mib in 0..32 {
            let contents: Vec<Content> =
                (0..256).map(|i| Content::Pattern(Pattern::named(1, mib * 256 + i, 1))).collect();
            fs.write_pages(&Caller::default(), file, (mib << 20, 1 << 20), &contents, false)
                .unwrap();
        }
        fs.sync().unwrap();
        let pieces = fs.pieces(file).unwrap();
        assert!(pieces <= most, "{mke2fs}: {pieces}");
    }
}

/// Two files that grow side by side take turns on the device only while they are small: up to 64
/// KiB, files of ext4 share a window.
#[test]
fn files_that_grow_side_by_side_stay_apart() {
    for (mke2fs, most) in [("-t ext4 -b 4096", 16 + 6), ("-t ext3 -b 4096", 12)] {
        let (mut fs, file) = volume(mke2fs, "");
        let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
        let other = fs.create(&Caller::default(), root, b"other", &node).unwrap().ino;
        for n in 0..1000 {
            for ino in [file, other] {
                let contents = [Content::Pattern(Pattern::named(ino.0, n, 1))];
                fs.write_pages(&Caller::default(), ino, (n * 4096, 4096), &contents, false)
                    .unwrap();
                fs.fsync(ino, false).unwrap();
            }
        }
        let pieces = [file, other].map(|ino| fs.pieces(ino).unwrap());
        assert!(pieces.iter().all(|&pieces| pieces <= most), "{mke2fs}: {pieces:?}");
    }
}

/// A device on which what is signalled comes when the test says so, and which notes what is
/// awaited.
struct Slow {
    device: MemoryDevice,
    signalled: Rc<Cell<bool>>,
    awaited: Rc<RefCell<Vec<EventId>>>,
}

impl BlockDevice for Slow {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.device.submit(at, command)
    }
}

impl Scheduler for Slow {
    fn hint(&mut self, hint: SchedulingHint) {
        if let SchedulingHint::Await(event) = hint {
            self.awaited.borrow_mut().push(event);
        }
    }

    fn is_signalled(&self, _event: EventId) -> bool {
        self.signalled.get()
    }

    fn pages_on_their_way(&self) -> usize {
        0
    }
}

#[test]
fn an_fsync_waits_only_for_a_commit_that_has_its_file() {
    let device = TempImage::mke2fs(64 << 20, &["-t", "ext4", "-b", "4096"]).load();
    let (signalled, awaited) = (Rc::new(Cell::new(true)), Rc::new(RefCell::new(Vec::new())));
    let slow = Slow { device, signalled: Rc::clone(&signalled), awaited: Rc::clone(&awaited) };
    let mut fs = Ext::mount(slow, Options::parse("").unwrap(), SimTime::ZERO).unwrap();
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let mut make = |name: &[u8]| fs.create(&Caller::default(), root, name, &node).unwrap().ino;
    let (a, b) = (make(b"a"), make(b"b"));
    let mut write = |ino: Ino, version| {
        let contents = [Content::Pattern(Pattern::named(ino.0, 0, version))];
        fs.write_pages(&Caller::default(), ino, (0, 4096), &contents, false).unwrap();
        fs.fsync(ino, false)
    };
    write(a, 1).unwrap();
    signalled.set(false);
    write(b, 1).unwrap_err();
    signalled.set(true);
    write(b, 1).unwrap();
    signalled.set(false);
    awaited.borrow_mut().clear();
    write(a, 2).unwrap();
    assert_eq!(*awaited.borrow(), [], "b's commit has nothing of it");
}

/// Space of a removed file waits for a commit. A write that needs it commits and goes on.
#[test]
fn a_write_finds_the_room_of_a_file_that_was_just_removed() {
    for (mke2fs, options) in [
        ("-t ext4 -b 4096", ""),
        ("-t ext4 -b 4096", "nodelalloc"),
        ("-t ext3 -b 4096", "data=journal"),
    ] {
        let (mut fs, first) = volume(mke2fs, options);
        let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
        let mebibytes = fs.statfs().unwrap().free * 6 / 10 / 256;
        let mut second = 0;
        // each call at a time of its own, which the inode keeps
        let mut caller = || {
            second += 1;
            Caller { now: Timestamp { seconds: second, nanoseconds: 0 }, ..Caller::default() }
        };
        let contents: Vec<Content> =
            (0..256).map(|i| Content::Pattern(Pattern::named(1, i, 1))).collect();
        for mib in 0..mebibytes {
            fs.write_pages(&caller(), first, (mib << 20, 1 << 20), &contents, false).unwrap();
        }
        fs.sync().unwrap();
        fs.unlink(&caller(), root, b"file").unwrap();
        let second = fs.create(&caller(), root, b"next", &node).unwrap().ino;
        for mib in 0..mebibytes {
            let written = fs.write_pages(&caller(), second, (mib << 20, 1 << 20), &contents, false);
            written.unwrap_or_else(|error| {
                panic!("{mke2fs} {options}: MiB {mib} of {mebibytes}: {error}")
            });
        }
        let third = fs.create(&caller(), root, b"too much", &node).unwrap().ino;
        let last = (0..mebibytes).find_map(|mib| {
            fs.write_pages(&caller(), third, (mib << 20, 1 << 20), &contents, false).err()
        });
        assert_eq!(last, Some(Error::NoSpace), "{mke2fs} {options}");
        fs.sync().unwrap();
    }
}

/// The background stops near its limit, goes on where its last turn ended, and a commit of another
/// file's changes leaves pages alone that are dirty again. (A file that was written back in part was
/// written by each commit.)
#[test]
fn a_file_is_written_back_by_turns() {
    let device = TempImage::mke2fs(64 << 20, &["-t", "ext4", "-b", "4096"]).load();
    let options = Options { dirty_background_bytes: Some(4 << 20), ..Options::parse("").unwrap() };
    let mut fs = Ext::mount(device, options, SimTime::ZERO).unwrap();
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let files = [b"a", b"b"].map(|name| fs.create(&Caller::default(), root, name, &node).unwrap());
    let write = |fs: &mut Ext<MemoryDevice>, file: usize, pages: u64, version| {
        let ino = files[file].ino;
        let contents: Vec<Content> =
            (0..pages).map(|n| Content::Pattern(Pattern::named(ino.0, n, version))).collect();
        fs.write_pages(&Caller::default(), ino, (0, pages * 4096), &contents, false).unwrap();
    };
    write(&mut fs, 0, 3000, 1);
    for written in [1024, 2048] {
        assert_eq!(fs.next_wake(), Some(fs.now()), "more than 1024 pages are dirty");
        fs.wake().unwrap();
        assert_eq!(fs.written().data, written);
    }
    assert!(fs.next_wake().unwrap() > fs.now(), "952 are");
    write(&mut fs, 0, 70, 2);
    write(&mut fs, 1, 1, 1);
    fs.fsync(files[1].ino, false).unwrap();
    assert_eq!(fs.written().data, 2049);
    write(&mut fs, 0, 200, 3);
    fs.wake().unwrap();
    assert_eq!(fs.written().data, 2049 + 952, "to the end of the file first");
    fs.wake().unwrap();
    fs.sync().unwrap();
    assert_eq!(fs.written().data, 2049 + 952 + 200);
}
