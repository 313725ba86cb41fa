//! One file, thousands of operations on its content, each followed by a comparison of what was
//! touched; in between the volume is synced and mounted again, with its journal to be replayed or
//! after an unmount.
//!
//! `DOVETAIL_STEPS=n` runs that many operations; `cargo xtask fsx` a million of each kind.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::TempImage;
use dovetail_block::MemoryDevice;
use dovetail_ext::{Ext, Options};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, Fallocate, FileSystem, Ino, NewNode, SetAttr};

const MAX: u64 = 600_000;

/// The file as it should be.
struct Fsx {
    fs: Ext<MemoryDevice>,
    options: Options,
    file: Ino,
    expected: Vec<u8>,
    rng: Rng,
    reserves: bool,
    /// Reads that were answered as those of one of several callers.
    shared_reads: u64,
}

impl Fsx {
    fn new(mke2fs: &str, options: Options, seed: u64) -> Self {
        let device = TempImage::mke2fs(32 << 20, &mke2fs.split(' ').collect::<Vec<_>>()).load();
        let mut fs = Ext::mount(device, options.clone(), SimTime::ZERO).unwrap();
        let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
        let file = fs.create(&Caller::default(), root, b"file", &node).unwrap().ino;
        let reserves = mke2fs.contains("ext4");
        Self {
            fs,
            options,
            file,
            expected: Vec::new(),
            rng: Rng::new(seed),
            reserves,
            shared_reads: 0,
        }
    }

    fn range(&mut self) -> (u64, u64) {
        let from = self.rng.below(MAX);
        let most = if self.rng.chance(0.2) { 100_000 } else { 6000 };
        let len = 1 + self.rng.below(most);
        (from, len.min(MAX - from))
    }

    fn step(&mut self) {
        let (from, len) = self.range();
        match self.rng.below(16) {
            0..6 => self.write(from, len),
            6..8 => self.read(from, len),
            8 => self.truncate(from),
            9 => self.allocate(Fallocate::PunchHole, from, len),
            10 => self.allocate(Fallocate::ZeroRange { keep_size: false }, from, len),
            11 => self.allocate(Fallocate::ZeroRange { keep_size: true }, from, len),
            12 => self.allocate(Fallocate::Reserve { keep_size: true }, from, len),
            13 => self.allocate(Fallocate::Reserve { keep_size: false }, from, len),
            14 => self.fs.fsync(self.file, self.rng.chance(0.5)).unwrap(),
            _ => self.read(0, self.expected.len() as u64),
        }
    }

    fn write(&mut self, from: u64, len: u64) {
        let fill = self.rng.below(255) as u8 + 1;
        let bytes: Vec<u8> = (0..len).map(|i| fill.wrapping_add(i as u8)).collect();
        self.fs.write(&Caller::default(), self.file, from, &bytes).unwrap();
        let end = (from + len) as usize;
        self.expected.resize(self.expected.len().max(end), 0);
        self.expected[from as usize..end].copy_from_slice(&bytes);
    }

    fn read(&mut self, from: u64, len: u64) {
        let mut bytes = vec![0xEE; len as usize];
        // as one of several callers if possible, which leaves pages where they are
        let shared = self.rng.chance(0.5).then(|| self.fs.shared().unwrap());
        let read = shared.and_then(|fs| fs.read(self.file, from, &mut bytes));
        self.shared_reads += u64::from(read.is_some());
        let read = read.unwrap_or_else(|| self.fs.read(self.file, from, &mut bytes).unwrap());
        let end = self.expected.len().min((from + len) as usize);
        let expected = self.expected.get(from as usize..end).unwrap_or_default();
        assert!(bytes[..read] == *expected, "{from} {len}");
    }

    fn truncate(&mut self, size: u64) {
        let changes = SetAttr { size: Some(size), ..SetAttr::default() };
        self.fs.setattr(&Caller::default(), self.file, &changes).unwrap();
        self.expected.resize(size as usize, 0);
    }

    fn allocate(&mut self, how: Fallocate, from: u64, len: u64) {
        if how != Fallocate::PunchHole && !self.reserves {
            return;
        }
        self.fs.fallocate(&Caller::default(), self.file, how, from, len).unwrap();
        let keeps = matches!(
            how,
            Fallocate::PunchHole
                | Fallocate::ZeroRange { keep_size: true }
                | Fallocate::Reserve { keep_size: true }
        );
        let end = (from + len) as usize;
        if !keeps {
            self.expected.resize(self.expected.len().max(end), 0);
        }
        let end = end.min(self.expected.len());
        if !matches!(how, Fallocate::Reserve { .. }) && (from as usize) < end {
            self.expected[from as usize..end].fill(0);
        }
    }

    /// Syncs and mounts again, sometimes after a check by e2fsck, and compares the content.
    fn mount_again(&mut self) {
        self.fs.sync().unwrap();
        let left = self.fs.device().clone();
        let device = if self.rng.chance(0.5) {
            left
        } else {
            let fs = Ext::mount(left, self.options.clone(), SimTime::ZERO).unwrap();
            let device = fs.unmount().unwrap();
            // a tree that could be narrower is no fault
            TempImage::of(&device).check_errors();
            device
        };
        self.fs = Ext::mount(device, self.options.clone(), SimTime::ZERO).unwrap();
        let root = self.fs.root();
        self.file = self.fs.lookup(root, b"file").unwrap().ino;
        self.read(0, MAX);
    }
}

/// Number of reads that were answered as those of one of several callers.
fn run(mke2fs: &str, options: &str, seed: u64) -> u64 {
    let steps = std::env::var("DOVETAIL_STEPS").map_or(6000, |steps| steps.parse().unwrap());
    let options = Options::parse(options).unwrap();
    let options = Options { page_cache_bytes: 1 << 19, writes_past_cache: true, ..options };
    let mut fsx = Fsx::new(mke2fs, options, seed);
    let every = (steps / 500).max(300);
    for n in 1..=steps {
        fsx.step();
        if n % every == 0 {
            fsx.mount_again();
        }
    }
    fsx.shared_reads
}

#[test]
fn ext4() {
    assert!(run("-t ext4 -b 4096", "", 1) > 500);
    assert!(run("-t ext4 -b 1024", "", 2) > 500);
}

#[test]
fn ext3() {
    run("-t ext3 -b 1024 -I 256", "", 3);
    run("-t ext3 -b 4096 -I 128", "data=writeback", 4);
}

#[test]
fn with_other_options() {
    assert_eq!(run("-t ext4 -b 4096", "data=journal", 5), 0, "content may be in the journal");
    run("-t ext4 -b 2048", "nodelalloc", 6);
    run("-t ext4 -b 1024", "data=journal", 7);
}
