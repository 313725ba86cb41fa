//! A volume that is full: random operations beside the reference model, which never is. What fails
//! for want of space leaves things as they were, a write and an allocation excepted: they may be
//! done in part.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common;
use crate::common::iplfs::{iplfs_device, iplfs_limits, iplfs_options, leaks_after_mount};
use crate::common::strict_fsck;
use dovetail_block::{BlockDevice, MemoryDevice};
use dovetail_f2fs::{F2fs, IpuPolicy, Options};
use dovetail_testkit::Model;
use dovetail_testkit::exercise::{
    Answer, Failed, Generator, Op, Profile, Step, Subject, Target, first_difference,
};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{
    Caller, Error, Fallocate, FileSystem, Limits, NewNode, RenameFlags, SetAttr, Timestamp,
};

const STEPS: usize = 1500;

type Volume = Subject<F2fs<MemoryDevice>>;

/// Fills the volume up to `left` blocks with a file that has no name, so that trees do not show it.
fn fill(fs: &mut F2fs<MemoryDevice>, left: u64) {
    let (caller, root) = (Caller::default(), fs.root());
    let ino = fs
        .create(&caller, root, b"filler", &NewNode { mode: 0o100_644, rdev: (0, 0) })
        .unwrap()
        .ino;
    fs.hold(ino);
    fs.unlink(&caller, root, b"filler").unwrap();
    let chunk = vec![7; 16 * 4096];
    let mut at = 0;
    while fs.statfs().unwrap().free > left + 32 {
        fs.write(&caller, ino, at, &chunk).unwrap();
        at += chunk.len() as u64;
    }
}

fn same_root<F: FileSystem>(subject: &mut Subject<F>) {
    let time = Some(Timestamp { seconds: 1_600_000_000, nanoseconds: 0 });
    let changes =
        SetAttr { mode: Some(0o755), atime: time, mtime: time, ctime: time, ..SetAttr::default() };
    let root = subject.fs.root();
    subject.fs.setattr(&Caller::default(), root, &changes).unwrap();
}

/// Cuts the file off, on both sides, where an operation began that may be done in part.
fn cut_off(
    step: &Step,
    target: &Target,
    offset: u64,
    expected: &mut Subject<Model>,
    found: &mut Volume,
) {
    let stat = Step { caller: step.caller, op: Op::Stat { target: target.clone() } };
    let old = match expected.apply(&stat) {
        Ok(Answer::Attr(attr)) => attr.size,
        other => panic!("{other:?}"),
    };
    expected.apply(step).unwrap();
    let changes = SetAttr { size: Some(old.min(offset)), ..SetAttr::default() };
    let cut = Step { caller: step.caller, op: Op::SetAttr { target: target.clone(), changes } };
    assert_eq!(expected.apply(&cut), found.apply(&cut), "{:?}", cut.op);
}

/// `true` if there was no space.
fn step_both(step: &Step, expected: &mut Subject<Model>, found: &mut Volume, place: &str) -> bool {
    let outcome = found.apply(step);
    if !matches!(outcome, Err(Failed(Error::NoSpace))) {
        assert_eq!(expected.apply(step), outcome, "{place}: {:?}", step.op);
        return false;
    }
    if let Op::Write { target, offset, .. } | Op::Fallocate { target, offset, .. } = &step.op {
        cut_off(step, target, *offset, expected, found);
    }
    true
}

/// Faults of a volume, as text.
fn faults(device: &MemoryDevice) -> String {
    match device.info().capabilities.thin {
        Some(_) => leaks_after_mount(device).join("\n"),
        None => strict_fsck(device),
    }
}

fn run(name: &str, options: &Options, left: u64, seeds: u64) {
    run_on(name, &common::mkfs(64 << 20, &[]), options, left, seeds);
}

fn run_on(name: &str, empty: &MemoryDevice, options: &Options, left: u64, seeds: u64) {
    let mut refused = 0;
    for seed in 0..seeds {
        let place = format!("{name}, seed {seed}");
        let mut fs = F2fs::mount(empty.clone(), options.clone(), SimTime::ZERO).unwrap();
        fill(&mut fs, left);
        let mut found = Subject::new(fs);
        let thin = empty.info().capabilities.thin;
        let limits = thin.map_or(Limits::default(), |_| iplfs_limits(empty.clone(), options));
        let mut expected = Subject::new(Model::new(limits, &Caller::default()));
        same_root(&mut found);
        same_root(&mut expected);
        let mut operations =
            Generator::new(seed, Profile { file_end: 6 << 20, ..Profile::default() });
        let mut rng = Rng::new(seed);
        for n in 0..STEPS {
            let step = operations.next_step();
            let place = format!("{place}, step {n}");
            // the listing with a call in between hides which of the two failed
            if matches!(step.op, Op::ListDuring { .. }) {
                continue;
            }
            let full = step_both(&step, &mut expected, &mut found, &place);
            refused += u64::from(full);
            if full && rng.chance(0.1) || n % 50 == 0 {
                let trees = (expected.tree().unwrap(), found.tree().unwrap());
                assert_eq!(first_difference(&trees.0, &trees.1), None, "{place}: {:?}", step.op);
            }
            if full && rng.chance(0.02) {
                found.fs.sync().unwrap();
                assert_eq!(faults(found.fs.device()), "", "{place}: {:?}", step.op);
            }
        }
        found.release_all().unwrap();
        let device = found.fs.unmount().unwrap();
        assert_eq!(faults(&device), "", "{place}, unmounted");
    }
    assert!(refused > 20 * seeds, "{name}: only {refused} operations found no space");
}

#[test]
fn with_some_blocks_left() {
    run("some", &Options::default(), 150, 4);
}

#[test]
fn with_hardly_a_block_left() {
    run("hardly", &Options::default(), 0, 4);
}

#[test]
fn out_of_place() {
    let options = Options { ipu_policy: Some(IpuPolicy(0)), ..Options::default() };
    run("out of place", &options, 150, 3);
    run("lfs", &Options::parse("mode=lfs").unwrap(), 150, 3);
}

#[test]
fn with_entries_in_blocks_from_the_start() {
    run("blocks", &Options::parse("noinline_dentry,noinline_data").unwrap(), 100, 3);
}

/// Linux gives the file what was reserved until the space ended.
#[test]
fn blocks_of_a_failed_allocation_belong_to_the_file() {
    for keep_size in [false, true] {
        let device = common::mkfs(64 << 20, &[]);
        let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
        fill(&mut fs, 1000);
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let ino = fs.create(&Caller::default(), fs.root(), b"file", &node).unwrap().ino;
        let how = Fallocate::Reserve { keep_size };
        let failed = fs.fallocate(&Caller::default(), ino, how, 0, 1 << 30);
        assert_eq!(failed, Err(Error::NoSpace));
        let attr = fs.getattr(ino).unwrap();
        let reserved = attr.blocks / 8;
        assert!(reserved > 500, "{attr:?}");
        // an inline inode has become one block of content; nodes count, too
        let expected = if keep_size { 0 } else { attr.size / 4096 };
        assert_eq!(attr.size, expected * 4096);
        assert!(keep_size || reserved.abs_diff(expected) < 4, "{attr:?}");
        assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
    }
}

/// The volume says that there is no space before its device has to, whatever waits to be discarded.
#[test]
fn an_iplfs_volume_that_is_full() {
    let empty = iplfs_device(64 << 20, &iplfs_options());
    run_on("iplfs, some", &empty, &Options::default(), 150, 4);
    run_on("iplfs, hardly", &empty, &Options::default(), 0, 4);
    let blocks = Options::parse("noinline_dentry,noinline_data").unwrap();
    run_on("iplfs, blocks", &empty, &blocks, 100, 3);
    let little =
        Options { page_cache_bytes: 1 << 18, node_cache_bytes: 1 << 16, ..Options::default() };
    run_on("iplfs, little memory", &iplfs_device(32 << 20, &iplfs_options()), &little, 20, 4);
}

/// A name that fits where others are takes no block.
#[test]
fn a_file_is_renamed_on_a_full_volume() {
    let device = common::mkfs(64 << 20, &[]);
    let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let (caller, root) = (Caller::default(), fs.root());
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&caller, root, b"old", &node).unwrap().ino;
    fill(&mut fs, 0);
    let mut at = 0;
    while fs.write(&caller, ino, at, &[7; 4096]).is_ok() {
        at += 4096;
    }
    assert_eq!(fs.statfs().unwrap().free, 0);
    fs.rename(&caller, (root, b"old"), (root, b"new"), RenameFlags::default()).unwrap();
    assert_eq!(fs.lookup(root, b"new").unwrap().ino, ino);
    assert_eq!(fs.lookup(root, b"old"), Err(Error::NotFound));
    assert_eq!(strict_fsck(&fs.unmount().unwrap()), "");
}
