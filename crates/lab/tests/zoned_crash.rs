//! Power cuts under F2FS on a zoned drive: the drive finds its zones, the file system mends its
//! logs, and what was fsynced is there.
//!
//! One volume lives through all cuts of a seed. Its files are written once and fsynced, or deleted;
//! one more is overwritten all the time, so that sections are cleaned and zones reset.
//!
//! `DOVETAIL_SEED=n` runs one volume alone, `DOVETAIL_SEEDS=n` that many.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop where it fails")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use dovetail_block::{BlockDevice, Command, Completion, DeviceError, DeviceInfo, performs_at_once};
use dovetail_f2fs::format::Features;
use dovetail_f2fs::fsck::{self, Severity};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Options};
use dovetail_ftl::{DriveConfig, ZoneConfig, ZoneTimes, ZonedDrive};
use dovetail_nand::{Cells, Geometry, NandConfig, Timing};
use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::{Caller, FileSystem, NewNode};

use crate::cut::seeds;

/// A seed that found a fault: a full zone with blocks that a recovery had found was reset.
const ONCE_FAILED: u64 = 26;
const CUTS: u64 = 12;
const MIB: u64 = 256;
const FILES: u64 = 24;
/// Blocks of the file that is overwritten.
const CHURN: u64 = 20 * MIB;

/// A drive whose power goes after some commands. Each begins when the one before is done.
struct Wire {
    drive: Option<ZonedDrive>,
    now: SimTime,
    left: u64,
    resets: u64,
}

#[derive(Clone)]
struct Handle(Rc<RefCell<Wire>>);

impl BlockDevice for Handle {
    fn info(&self) -> DeviceInfo {
        self.0.borrow().drive.as_ref().unwrap().info()
    }

    fn submit(&mut self, _: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let mut wire = self.0.borrow_mut();
        let Wire { drive, now, left, resets } = &mut *wire;
        if *left == 0 {
            return Err(DeviceError::PowerLost);
        }
        *resets += u64::from(matches!(command, Command::Zone { .. }));
        let done = drive.as_mut().unwrap().submit(*now, command)?;
        *left -= 1;
        *now = done.done;
        Ok(done)
    }
}

performs_at_once!(Handle);

/// 128 MiB of zones of 2 MiB behind 24 MiB of conventional ones, on two dies.
fn config(rng: &mut Rng) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 130,
        pages_per_block: 66,
        page_bytes: 16384,
    };
    let plain = DriveConfig::plain(geometry, 152 * MIB);
    let us = |us| [SimSpan::from_us(us); 4];
    let bits = 1 + rng.below(3) as u32;
    let cells = Cells { bits, one_shot: true, parts: 1, read: us(60), program: us(900) };
    let timing = Timing { cells: rng.chance(0.7).then_some(cells), ..plain.nand.timing };
    let zones = ZoneConfig {
        size: 2 * MIB,
        capacity: if rng.chance(0.5) { 2 * MIB } else { 2 * MIB - 40 },
        conventional: 24 * MIB,
        dies: 1 + rng.below(2) as u32,
        max_open: 6,
        max_active: 8,
        max_append: 0,
        window: None,
        spare: 2,
        finish_fills: rng.chance(0.5),
        times: ZoneTimes::default(),
    };
    DriveConfig {
        nand: NandConfig { timing, ..plain.nand },
        buffer_pages: 64,
        power_loss_protection: rng.chance(0.2),
        zones: Some(zones),
        ..plain
    }
}

struct Rig {
    wire: Handle,
    rng: Rng,
    /// The files that were fsynced, by number, and the bytes of all of them.
    synced: BTreeMap<u64, u8>,
    next: u64,
}

impl Rig {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut drive = ZonedDrive::new(config(&mut rng)).unwrap();
        drive.remember_operations();
        let wire = Wire { drive: Some(drive), now: SimTime::ZERO, left: u64::MAX, resets: 0 };
        let mut wire = Handle(Rc::new(RefCell::new(wire)));
        let mut options = MkfsOptions::default();
        options.features = options.features.with(Features::BLKZONED);
        mkfs(&mut wire, &options).unwrap();
        Self { wire, rng, synced: BTreeMap::new(), next: 0 }
    }

    fn mount(&self) -> F2fs<Handle> {
        F2fs::mount(self.wire.clone(), Options::parse("").unwrap(), SimTime::ZERO).unwrap()
    }

    /// Works until the power goes.
    fn work(&mut self, fs: &mut F2fs<Handle>) {
        while self.step(fs).is_ok() {}
    }

    fn step(&mut self, fs: &mut F2fs<Handle>) -> Result<(), dovetail_vfs::Error> {
        let (root, caller) = (fs.root(), Caller::default());
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        if self.rng.chance(0.8) {
            let churn = match fs.lookup(root, b"churn") {
                Ok(found) => found.ino,
                Err(_) => fs.create(&caller, root, b"churn", &node)?.ino,
            };
            for _ in 0..10 {
                let at = self.rng.below(CHURN) * 4096;
                fs.write(&caller, churn, at, &[1; 4096])?;
            }
            return fs.fsync(churn, false);
        }
        if self.synced.len() as u64 >= FILES {
            let oldest = *self.synced.keys().next().unwrap();
            // it may come back after a cut, and nothing is said of it any more
            self.synced.remove(&oldest);
            return fs.unlink(&caller, root, name(oldest).as_bytes());
        }
        let (number, byte) = (self.next, self.rng.below(255) as u8 + 1);
        self.next += 1;
        let ino = fs.create(&caller, root, name(number).as_bytes(), &node)?.ino;
        fs.write(&caller, ino, 0, &vec![byte; size(number)])?;
        fs.fsync(ino, false)?;
        self.synced.insert(number, byte);
        Ok(())
    }

    /// Cuts the power within the last command or soon after.
    fn cut(&mut self) {
        let mut wire = self.wire.0.borrow_mut();
        let at = wire.now + SimSpan::from_us(self.rng.below(3000));
        let (mut drive, _) = wire.drive.take().unwrap().into_unrecovered_at(at).recover().unwrap();
        drive.remember_operations();
        (wire.drive, wire.now, wire.left) = (Some(drive), SimTime::ZERO, u64::MAX);
    }

    fn check(&self, fs: &mut F2fs<Handle>) {
        let root = fs.root();
        for (&number, &byte) in &self.synced {
            let found = fs.lookup(root, name(number).as_bytes());
            let ino = found.unwrap_or_else(|error| panic!("{}: {error}", name(number))).ino;
            let mut bytes = vec![0; size(number) + 1];
            let read = fs.read(ino, 0, &mut bytes).unwrap();
            assert_eq!(read, size(number), "{}", name(number));
            assert!(bytes[..read].iter().all(|&found| found == byte), "{}", name(number));
        }
    }
}

fn name(number: u64) -> String {
    format!("file-{number}")
}

/// Bytes of a file: from a part of a block to some units of a die.
fn size(number: u64) -> usize {
    1 + (number as usize * 37_511) % 300_000
}

fn faults(device: Handle) -> Vec<String> {
    let report = fsck::check(device, fsck::Options::default(), |_| {}).unwrap();
    let errors = report.findings.iter().filter(|found| found.severity() == Severity::Error);
    errors.map(ToString::to_string).collect()
}

fn run(seed: u64) -> u64 {
    let mut rig = Rig::new(seed);
    for _ in 0..CUTS {
        let mut fs = rig.mount();
        rig.check(&mut fs);
        rig.wire.0.borrow_mut().left = rig.rng.below(3000);
        rig.work(&mut fs);
        drop(fs);
        rig.cut();
    }
    let mut fs = rig.mount();
    rig.check(&mut fs);
    fs.unmount().unwrap();
    assert_eq!(faults(rig.wire.clone()), Vec::<String>::new());
    let wire = rig.wire.0.borrow();
    wire.resets
}

#[test]
fn what_was_fsynced_on_zones_survives_power_cuts() {
    let (mut resets, mut cuts) = (0, 0);
    let seeds = seeds();
    let once_failed = (seeds.end - seeds.start > 1).then_some(ONCE_FAILED);
    for seed in seeds.chain(once_failed) {
        resets += std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| {
            panic!("DOVETAIL_SEED={seed} cargo test -p dovetail-lab --test all zoned_crash::")
        });
        cuts += CUTS;
    }
    println!("{cuts} power cuts, {resets} commands on zones");
    assert!(resets > cuts, "zones are reset and written again");
}
