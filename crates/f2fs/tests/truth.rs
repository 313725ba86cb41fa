//! The same work as Linux 6.12 on a 32 GiB disk with a volatile cache: what it wrote, block layer and all, is the measure.
//!
//! The kernel's figures: Linux 6.12 (Debian's source, user-mode build), f2fs-tools 1.15, fio 3.33, a `null_blk` disk;
//! `/sys/block/*/stat`, flushes taken out. A file of the size is written once with 1 MiB blocks and synced; then, measured,
//! `rw=randwrite bs=4k size=SIZE fsync=10 ioengine=psync` (every block once), then sync.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test ends where something fails")]

use dovetail_block::{BlockDevice, Command, Completion, DeviceError, DeviceInfo, MemoryDevice};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, NewNode};

/// What a disk was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    writes: u64,
    bytes: u64,
    flushes: u64,
    reads: u64,
    read_bytes: u64,
}

struct Counting {
    device: MemoryDevice,
    counts: Counts,
}

impl BlockDevice for Counting {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match &command {
            Command::Write { range, .. } => {
                self.counts.writes += 1;
                self.counts.bytes += range.blocks * 4096;
            }
            Command::Read { range, .. } => {
                self.counts.reads += 1;
                self.counts.read_bytes += range.blocks * 4096;
            }
            Command::Flush => self.counts.flushes += 1,
            Command::Discard { .. } => {}
        }
        self.device.submit(at, command)
    }
}

struct Run {
    fs: F2fs<Counting>,
    file: dovetail_vfs::Ino,
    blocks: u64,
}

/// A volume of 32 GiB with a file of so many bytes, written in order.
fn prepared(options: &str, bytes: u64) -> Run {
    let mut device = Counting { device: MemoryDevice::new((32 << 30) / 4096), counts: Counts::default() };
    mkfs(&mut device, &MkfsOptions::default()).unwrap();
    let mut fs = F2fs::mount(device, Options::parse(options).unwrap(), SimTime::ZERO).unwrap();
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let file = fs.create(&Caller::default(), root, b"file", &node).unwrap().ino;
    let page = vec![1; 1 << 20];
    (0..bytes >> 20).for_each(|mib| fs.write(&Caller::default(), file, mib << 20, &page).unwrap());
    fs.fsync(file, false).unwrap();
    fs.sync().unwrap();
    fs.device_mut().counts = Counts::default();
    Run { fs, file, blocks: bytes / 4096 }
}

impl Run {
    /// Writes `count` blocks at random, none twice, with an fsync after every tenth; then a sync.
    fn overwrite(&mut self, count: u64) -> Counts {
        let mut order: Vec<u64> = (0..self.blocks).collect();
        let mut rng = Rng::new(1);
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        for (n, block) in order.into_iter().take(count as usize).enumerate() {
            self.fs.write(&Caller::default(), self.file, block * 4096, &[n as u8; 4096]).unwrap();
            if (n + 1) % 10 == 0 {
                self.fs.fsync(self.file, false).unwrap();
            }
        }
        self.fs.sync().unwrap();
        self.fs.device().counts
    }
}

#[track_caller]
fn assert_near(what: &str, ours: u64, kernel: u64, percent: f64) {
    let off = (ours as f64 / kernel as f64 - 1.0) * 100.0;
    println!("{what}: {ours}, the kernel {kernel}: {off:+.1} %");
    assert!(
        off.abs() <= percent,
        "{what}: {ours}, the kernel {kernel}: {off:+.1} % is more than {percent} %"
    );
}

#[test]
fn a_small_file_overwritten_with_fsyncs() {
    for options in ["", "mode=lfs"] {
        let counts = prepared(options, 4 << 20).overwrite(1024);
        println!("{options:?}: {counts:?}");
        assert_near("bytes", counts.bytes, 4_972_544, 5.0);
        assert_near("flushes", counts.flushes, 103, 5.0);
        assert_near("bytes a request", counts.bytes / counts.writes, 4_972_544 / 209, 15.0);
    }
}

#[test]
fn a_large_file_overwritten_with_fsyncs() {
    for (options, bytes, requests) in [("", 2_130_247_680, 53_308), ("mode=lfs", 2_130_432_000, 53_297)] {
        let counts = prepared(options, 1 << 30).overwrite(1 << 18);
        println!("{options:?}: {counts:?}");
        assert_near("bytes", counts.bytes, bytes, 5.0);
        assert_near("flushes", counts.flushes, 26_215, 5.0);
        assert_near("bytes a request", counts.bytes / counts.writes, bytes / requests, 15.0);
    }
}
