//! The same work as Linux 6.12 on a 32 GiB disk with a volatile cache: what it wrote, block layer
//! and all, is the measure.
//!
//! The kernel's figures: Linux 6.12 (Debian's source, user-mode build), f2fs-tools 1.15, fio 3.33,
//! a `null_blk` disk; `/sys/block/*/stat`, flushes taken out. A file of the size is written once
//! with 1 MiB blocks and synced; then, measured,
//! `rw=randwrite bs=4k size=SIZE fsync=10 ioengine=psync` (every block once), then sync.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test ends where something fails")]

use dovetail_block::{MemoryDevice, Scheduler};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{AllocMode, Events, F2fs, IpuPolicy, Mode, Options};
use dovetail_testkit::{CountingDevice, Requests, assert_near, shuffled};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Timestamp};

const MIB: u64 = 1 << 20;

struct Run {
    fs: F2fs<CountingDevice>,
    file: Ino,
    blocks: u64,
}

/// A new volume on a disk of so many GiB.
fn volume(gib: u64, options: Options) -> F2fs<CountingDevice> {
    let mut device = CountingDevice::new(MemoryDevice::new((gib << 30) / 4096));
    mkfs(&mut device, &MkfsOptions::default()).unwrap();
    F2fs::mount(device, options, SimTime::ZERO).unwrap()
}

/// A new file of so many bytes, written in order and synced.
pub(crate) fn written<D: Scheduler>(fs: &mut F2fs<D>, name: &[u8], bytes: u64) -> Ino {
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let file = fs.create(&Caller::default(), root, name, &node).unwrap().ino;
    let page = vec![1; MIB as usize];
    (0..bytes / MIB).for_each(|mib| fs.write(&Caller::default(), file, mib * MIB, &page).unwrap());
    fs.fsync(file, false).unwrap();
    file
}

/// A volume of 32 GiB with a file of so many bytes.
fn prepared(options: &str, bytes: u64) -> Run {
    let mut fs = volume(32, Options::parse(options).unwrap());
    let file = written(&mut fs, b"file", bytes);
    fs.sync().unwrap();
    fs.device_mut().counts = Requests::default();
    Run { fs, file, blocks: bytes / 4096 }
}

impl Run {
    /// Writes `count` blocks at random, none twice, with an fsync after every tenth; then a sync.
    fn overwrite(&mut self, count: u64) -> Requests {
        for (n, block) in shuffled(self.blocks, 1).into_iter().take(count as usize).enumerate() {
            self.fs.write(&Caller::default(), self.file, block * 4096, &[n as u8; 4096]).unwrap();
            if (n + 1) % 10 == 0 {
                self.fs.fsync(self.file, false).unwrap();
            }
        }
        self.fs.sync().unwrap();
        self.fs.device().counts
    }
}

#[test]
fn a_small_file_overwritten_with_fsyncs() {
    for options in ["", "mode=lfs"] {
        let counts = prepared(options, 4 * MIB).overwrite(1024);
        println!("{options:?}: {counts:?}");
        assert_near("bytes", counts.bytes, 4_972_544, 1.0);
        assert_near("flushes", counts.flushes, 103, 1.0);
        assert_near("bytes a request", counts.bytes / counts.writes, 4_972_544 / 209, 5.0);
    }
}

#[test]
fn a_large_file_overwritten_with_fsyncs() {
    for (options, bytes, requests) in
        [("", 2_130_247_680, 53_308), ("mode=lfs", 2_130_432_000, 53_297)]
    {
        let counts = prepared(options, 1024 * MIB).overwrite(1 << 18);
        println!("{options:?}: {counts:?}");
        assert_near("bytes", counts.bytes, bytes, 1.0);
        assert_near("flushes", counts.flushes, 26_215, 1.0);
        assert_near("bytes a request", counts.bytes / counts.writes, bytes / requests, 5.0);
    }
}

/// `rw=randwrite bs=4k size=2g io_size=512m fsync=10`, then the file read in order with its cache
/// dropped.
#[test]
fn a_file_of_which_a_quarter_is_overwritten_lies_in_pieces() {
    let mut run = prepared("", 2048 * MIB);
    let counts = run.overwrite((512 * MIB) / 4096);
    assert_near("bytes", counts.bytes, 1_073_086_464, 1.0);
    assert_near("bytes a request", counts.bytes / counts.writes, 1_073_086_464 / 26_651, 5.0);
    let device = run.fs.unmount().unwrap();
    let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
    fs.device_mut().counts = Requests::default();
    let mut into = vec![0; MIB as usize];
    (0..2048)
        .for_each(|mib| assert_eq!(fs.read(run.file, mib * MIB, &mut into).unwrap(), into.len()));
    let counts = fs.device().counts;
    assert_near("bytes read", counts.read_bytes, 2_149_617_664, 1.0);
    assert_near("bytes a read", counts.read_bytes / counts.reads, 2_149_617_664 / 219_825, 5.0);
}

/// A disk of 4 GiB, a file of 2 GiB that stays, and eight times four jobs that overwrite their 256
/// MiB at random, fsync after every tenth write.
fn cleaned(mode: Mode) -> (Requests, Events) {
    let (alloc, ipu_policy) = (Some(AllocMode::Default), Some(IpuPolicy::FSYNC));
    let mut fs = volume(4, Options { mode, alloc, ipu_policy, ..Options::default() });
    written(&mut fs, b"dummy", 2048 * MIB);
    let files: Vec<Ino> = (0..4).map(|job| written(&mut fs, &[b'a' + job], 256 * MIB)).collect();
    fs.sync().unwrap();
    fs.device_mut().counts = Requests::default();
    let before = fs.events();
    (1..=8).for_each(|pass| overwrite_side_by_side(&mut fs, &files, 256 * MIB, pass));
    fs.sync().unwrap();
    let (counts, after) = (fs.device().counts, fs.events());
    let events = Events {
        checkpoints: after.checkpoints - before.checkpoints,
        foreground_cleanings: after.foreground_cleanings - before.foreground_cleanings,
        moved_blocks: after.moved_blocks - before.moved_blocks,
        ssr_blocks: after.ssr_blocks - before.ssr_blocks,
        ..after
    };
    (counts, events)
}

/// Turns of four jobs in a tick of the kernel that was measured: user-mode Linux with ticks of 10 ms,
/// which did about 10,000 requests a second on its disk in memory. Assumed.
const TURNS_A_TICK: u64 = 25;

/// Each file of so many bytes is overwritten by a job of its own, every block once in an order of
/// its own, with an fsync after every tenth; the jobs take turns. The clock ticks now and then: an
/// fsync writes times that a tick has changed.
pub(crate) fn overwrite_side_by_side<D: Scheduler>(
    fs: &mut F2fs<D>,
    files: &[Ino],
    bytes: u64,
    pass: u64,
) {
    let orders: Vec<_> =
        (0..files.len() as u64).map(|job| shuffled(bytes / 4096, 10 * pass + job)).collect();
    for n in 0..orders[0].len() {
        let ticks = (pass * orders[0].len() as u64 + n as u64) / TURNS_A_TICK;
        let now = Timestamp { seconds: ticks as i64, nanoseconds: 0 };
        let caller = Caller { now, ..Caller::default() };
        for (file, order) in files.iter().zip(&orders) {
            fs.write(&caller, *file, order[n] * 4096, &[n as u8; 4096]).unwrap();
            if (n + 1) % 10 == 0 {
                fs.fsync(*file, false).unwrap();
            }
        }
    }
}

#[test]
fn a_full_volume_is_written_as_the_kernel_writes_it() {
    let (counts, events) = cleaned(Mode::Adaptive);
    println!("{counts:?} {events:?}");
    assert_near("bytes", counts.bytes, 16_626_212_864, 5.0);
    assert_near("bytes a request", counts.bytes / counts.writes, 16_626_212_864 / 736_974, 25.0);
    assert_near("blocks in holes", events.ssr_blocks, 1_364_626, 25.0);
    assert_near("checkpoints", events.checkpoints, 37, 100.0);
}

#[test]
fn a_full_volume_is_cleaned_as_the_kernel_cleans_it() {
    let (counts, events) = cleaned(Mode::Lfs);
    println!("{counts:?} {events:?}");
    assert_near("bytes", counts.bytes, 16_794_169_344, 5.0);
    assert_near("bytes a request", counts.bytes / counts.writes, 16_794_169_344 / 445_859, 15.0);
    assert_near("sections cleaned", events.foreground_cleanings, 1794, 50.0);
    assert_near("checkpoints", events.checkpoints, 1429, 50.0);
}
