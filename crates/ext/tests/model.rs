//! Random operations on a mounted volume and on the reference model: the same answers, the same
//! trees, and a volume that e2fsck finds nothing wrong with, also before it was unmounted.
//!
//! `DOVETAIL_SEED=n` runs one sequence alone, `DOVETAIL_SEEDS=n` that many.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common;
use crate::common::TempImage;
use dovetail_block::MemoryDevice;
use dovetail_ext::{Ext, Options};
use dovetail_testkit::Model;
use dovetail_testkit::exercise::{Generator, Profile, Subject, compare_run};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Limits, SetAttr, Timestamp, XattrLayout};

/// Operations of one run, and after how many the trees are compared.
const STEPS: u64 = 1200;
const EVERY: u64 = 20;

fn seeds(count: u64) -> std::ops::Range<u64> {
    match std::env::var("DOVETAIL_SEED") {
        Ok(seed) => seed.parse().unwrap()..seed.parse::<u64>().unwrap() + 1,
        Err(_) => 0..std::env::var("DOVETAIL_SEEDS").map_or(count, |count| count.parse().unwrap()),
    }
}

/// Both roots look the same.
fn same_root<F: FileSystem>(subject: &mut Subject<F>) {
    let time = Some(Timestamp { seconds: 1_600_000_000, nanoseconds: 0 });
    let changes = SetAttr {
        mode: Some(0o755),
        uid: Some(0),
        gid: Some(0),
        atime: time,
        mtime: time,
        ctime: time,
        size: None,
    };
    let root = subject.fs.root();
    subject.fs.setattr(&Caller::default(), root, &changes).unwrap();
    subject.fs.rmdir(&Caller::default(), root, b"lost+found").ok();
    subject.fs.setattr(&Caller::default(), root, &changes).unwrap();
}

/// e2fsck finds no fault. It takes times after 2310, which are among the random ones, for what old
/// kernels made of times before 1970, and asks; that is no fault.
fn assert_clean(device: &MemoryDevice, place: &str) {
    let image = TempImage::of(device);
    let output = common::run("e2fsck", &["-f", "-n", image.text()]);
    let text = String::from_utf8_lossy(&output.stdout);
    let known = |line: &str| {
        line.starts_with("Pass ")
            || line.contains(" files (")
            || line.starts_with("Timestamp(s) on inode")
            || line == "Fix? no"
            || line.trim().is_empty()
    };
    let strange: Vec<_> = text.lines().filter(|line| !known(line)).collect();
    assert!(
        output.status.code() == Some(0) && strange.is_empty(),
        "{place}: {:?}: {text}",
        output.status
    );
}

/// A volume of a kind that mke2fs knows.
struct Kind {
    mke2fs: Vec<&'static str>,
    block: usize,
    ext3: bool,
}

impl Kind {
    fn new(mke2fs: &str, block: usize, ext3: bool) -> Self {
        let mke2fs = mke2fs.to_string().leak().split(' ').collect();
        Self { mke2fs, block, ext3 }
    }

    fn limits(&self) -> Limits {
        let per = (self.block / 4) as u64;
        let pointers = (12 + per + per * per + per * per * per) * self.block as u64;
        let sectors = (u64::from(u32::MAX) * 512) / self.block as u64;
        let counted = (sectors - sectors / 256) * self.block as u64;
        Limits {
            file_size: if self.ext3 {
                pointers.min(counted)
            } else {
                u64::from(u32::MAX) * self.block as u64
            },
            links: 65_000,
            xattr_value: usize::MAX,
            xattr_total: self.block - 36,
            xattr_layout: XattrLayout::Apart,
            symlink: self.block - 1,
            reserves: !self.ext3,
            ..Limits::default()
        }
    }
}

/// Runs `count` seeds on volumes that mke2fs makes.
fn compare(name: &str, kind: &Kind, options: &str, count: u64) {
    let options = Options::parse(options).unwrap();
    compare_with(name, kind, &options, count);
}

fn compare_with(name: &str, kind: &Kind, options: &Options, count: u64) {
    let empty = TempImage::mke2fs(128 << 20, &kind.mke2fs).load();
    for seed in seeds(count) {
        let place = format!("{name}, DOVETAIL_SEED={seed}");
        let mounted = Ext::mount(empty.clone(), options.clone(), SimTime::ZERO).unwrap();
        let mut found = Subject::new(mounted);
        let mut expected = Subject::new(Model::new(kind.limits(), &Caller::default()));
        same_root(&mut found);
        same_root(&mut expected);
        let mut operations = Generator::new(seed, Profile::default());
        compare_run(&mut expected, &mut found, &mut operations, STEPS, EVERY)
            .unwrap_or_else(|difference| panic!("{place}: {difference}"));
        found.fs.sync().unwrap();
        let left = Ext::mount(found.fs.device().clone(), options.clone(), SimTime::ZERO).unwrap();
        assert_clean(&left.unmount().unwrap(), &format!("{place}, mounted"));
        found.release_all().unwrap();
        expected.release_all().unwrap();
        let device = found.fs.unmount().unwrap();
        assert_clean(&device, &format!("{place}, unmounted"));
        let again = Ext::mount(device, options.clone(), SimTime::ZERO).unwrap();
        let difference = dovetail_testkit::exercise::first_difference(
            &expected.tree().unwrap(),
            &Subject::new(again).tree().unwrap(),
        );
        assert_eq!(difference, None, "{place}, mounted again");
    }
}

#[test]
fn on_ext4() {
    compare("ext4", &Kind::new("-t ext4 -b 4096", 4096, false), "", 12);
}

#[test]
fn on_ext4_with_small_blocks() {
    compare("small", &Kind::new("-t ext4 -b 1024", 1024, false), "", 6);
    compare("2048", &Kind::new("-t ext4 -b 2048 -O ^metadata_csum,uninit_bg", 2048, false), "", 3);
}

#[test]
fn on_ext3() {
    compare("ext3", &Kind::new("-t ext3 -I 256 -b 4096", 4096, true), "", 6);
    compare("ext3, small blocks", &Kind::new("-t ext3 -I 256 -b 1024", 1024, true), "", 6);
    compare("without index", &Kind::new("-t ext3 -I 256 -b 4096 -O ^dir_index", 4096, true), "", 3);
}

#[test]
fn with_other_options() {
    let ext4 = Kind::new("-t ext4 -b 4096", 4096, false);
    for options in ["nodelalloc", "data=journal", "data=writeback", "nobarrier,discard,commit=1"] {
        compare(options, &ext4, options, 3);
    }
    compare("journal, small", &Kind::new("-t ext4 -b 1024", 1024, false), "data=journal", 2);
}

#[test]
fn with_little_memory() {
    let little =
        Options { page_cache_bytes: 1 << 18, meta_cache_bytes: 1 << 16, ..Options::default() };
    compare_with("little memory", &Kind::new("-t ext4 -b 4096", 4096, false), &little, 6);
    compare_with(
        "little memory, ext3",
        &Kind::new("-t ext3 -I 256 -b 1024", 1024, true),
        &little,
        3,
    );
}
