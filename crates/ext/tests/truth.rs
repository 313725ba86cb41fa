//! The same work as Linux 6.12 on a disk with a volatile cache: what it wrote, block layer and all,
//! is the measure.
//!
//! The kernel's figures: Linux 6.12 (Debian's source, user-mode build), e2fsprogs 1.47, fio 3.33, a
//! `null_blk` disk of 32 GiB; `/sys/block/*/stat`, flushes taken out. A file of the size is written
//! once with 1 MiB blocks and synced; then, measured,
//! `rw=randwrite bs=4k size=SIZE fsync=10 ioengine=psync` (every block once), then sync.
//!
//! An overwrite changes nothing but the file's times, which go on in ticks of the kernel's clock:
//! an fsync commits only if the clock has ticked since the last one, and how often it did in a run
//! hangs on how fast that was (one run of the same job wrote a fifth more). So the clock here ticks
//! as often as the kernel's bytes say it did: what is compared is what an fsync with and without a
//! commit costs.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test ends where something fails")]

use crate::common::TempImage;
use dovetail_ext::{Ext, Options};
use dovetail_testkit::{CountingDevice, Requests, assert_near, shuffled};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Timestamp};

const MIB: u64 = 1 << 20;

struct Run {
    fs: Ext<CountingDevice>,
    files: Vec<Ino>,
    blocks: u64,
    fsyncs: u64,
}

fn at(tick: u64) -> Caller {
    let now = Timestamp {
        seconds: 1_700_000_000 + (tick / 100) as i64,
        nanoseconds: (tick % 100) as u32 * 10_000_000,
    };
    Caller { now, ..Caller::default() }
}

/// A new file of so many bytes, written in order and synced.
fn written(fs: &mut Ext<CountingDevice>, name: &[u8], bytes: u64) -> Ino {
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let file = fs.create(&at(0), root, name, &node).unwrap().ino;
    let page = vec![1; MIB as usize];
    (0..bytes / MIB).for_each(|mib| fs.write(&at(0), file, mib * MIB, &page).unwrap());
    fs.fsync(file, false).unwrap();
    file
}

/// A volume with files of so many bytes.
fn prepared(count: u8, bytes: u64) -> Run {
    let device = TempImage::mke2fs(4 << 30, &["-t", "ext4", "-b", "4096"]).load();
    let device = CountingDevice::new(device);
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let files = (0..count).map(|n| written(&mut fs, &[b'a' + n], bytes)).collect();
    fs.sync().unwrap();
    fs.device_mut().counts = Requests::default();
    Run { fs, files, blocks: bytes / 4096, fsyncs: 0 }
}

impl Run {
    /// Writes `count` blocks of each file at random, none twice, with an fsync after every tenth;
    /// then a sync. The clock ticks `ticks` times in 1000 fsyncs.
    fn overwrite(&mut self, count: u64, ticks: u64) -> Requests {
        let orders: Vec<_> =
            (0..self.files.len()).map(|job| shuffled(self.blocks, 1 + job as u64)).collect();
        for n in 0..count as usize {
            for (file, order) in self.files.iter().zip(&orders) {
                let caller = at(1 + self.fsyncs * ticks / 1000);
                self.fs.write(&caller, *file, order[n] * 4096, &[n as u8; 4096]).unwrap();
                if (n + 1) % 10 == 0 {
                    self.fs.fsync(*file, false).unwrap();
                    self.fsyncs += 1;
                }
            }
        }
        self.fs.sync().unwrap();
        self.fs.device().counts
    }
}

#[test]
fn a_small_file_overwritten_with_fsyncs() {
    let counts = prepared(1, 4 * MIB).overwrite(1024, 49);
    println!("{counts:?}");
    assert_near("bytes", counts.bytes, 4_259_840, 2.0);
    assert_near("flushes", counts.flushes, 103, 2.0);
    assert_near("bytes a request", counts.bytes / counts.writes, 4_259_840 / 981, 15.0);
}

#[test]
fn the_kernel_lies_between_no_commit_and_one_for_each_fsync() {
    let (few, many) =
        (prepared(1, 4 * MIB).overwrite(1024, 0), prepared(1, 4 * MIB).overwrite(1024, 1000));
    println!("{few:?} {many:?}");
    assert!(few.bytes < 4_259_840 && 4_259_840 < many.bytes);
    assert_eq!(few.bytes, 1024 * 4096 + 3 * 4096, "one commit for the first tick");
    assert_eq!(many.bytes, 1024 * 4096 + 103 * 3 * 4096, "descriptor, inode, commit block");
}

#[test]
fn a_large_file_overwritten_with_fsyncs() {
    let counts = prepared(1, 1024 * MIB).overwrite(1 << 18, 222);
    println!("{counts:?}");
    assert_near("bytes", counts.bytes, 1_145_184_256, 2.0);
    assert_near("flushes", counts.flushes, 26_215, 2.0);
    assert_near("bytes a request", counts.bytes / counts.writes, 1_145_184_256 / 262_368, 15.0);
}

/// `rw=randwrite bs=4k size=2g io_size=512m fsync=10`, then the file read in order with its cache
/// dropped.
#[test]
fn a_file_of_which_a_quarter_is_overwritten_stays_in_order() {
    let mut run = prepared(1, 2048 * MIB);
    let counts = run.overwrite((512 * MIB) / 4096, 466);
    println!("{counts:?}");
    assert_near("bytes", counts.bytes, 611_975_168, 2.0);
    assert_near("flushes", counts.flushes, 13_108, 2.0);
    assert_near("bytes a request", counts.bytes / counts.writes, 611_975_168 / 131_508, 15.0);
    let file = run.files[0];
    let device = run.fs.unmount().unwrap();
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    fs.device_mut().counts = Requests::default();
    let mut into = vec![0; MIB as usize];
    (0..2048).for_each(|mib| assert_eq!(fs.read(file, mib * MIB, &mut into).unwrap(), into.len()));
    let counts = fs.device().counts;
    assert_near("bytes read", counts.read_bytes, 2_147_483_648, 1.0);
    assert_near("bytes a read", counts.read_bytes / counts.reads, 1 << 20, 5.0);
}

/// Four jobs that overwrite their 256 MiB at random, fsync after every tenth write: the first of
/// eight passes.
#[test]
fn four_files_overwritten_side_by_side() {
    let counts = prepared(4, 256 * MIB).overwrite((256 * MIB) / 4096, 30);
    println!("{counts:?}");
    assert_near("bytes", counts.bytes, 1_099_636_736, 2.0);
    assert_near("flushes", counts.flushes, 25_967, 2.0);
    assert_near("bytes a request", counts.bytes / counts.writes, 1_099_636_736 / 262_585, 15.0);
}
