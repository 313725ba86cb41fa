//! Power cuts at operations of the flash under F2FS with `mode=rm-ipu`: the drive recovers with
//! maps that agree, and the volume on it holds what was promised.
//!
//! Random operations are recorded once; for each cut the record is played to a fresh drive that is
//! full to the brim, so that it cleans all the time, until the power goes.
//!
//! `DOVETAIL_SEED=n` runs one workload alone, `DOVETAIL_SEEDS=n` that many.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop where it fails")]

use std::sync::OnceLock;

use crate::cut::{BLOCKS, Bench, config, erased, seeds};
use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, MemoryDevice, RemapLimits,
};
use dovetail_f2fs::fsck::{self, Severity};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Options};
use dovetail_ftl::{Drive, RemapConfig, RemapStore};
use dovetail_testkit::crash::{Cuts, Fragmented, Mountable, Tried, Workload};
use dovetail_testkit::exercise::Profile;
use dovetail_testkit::{Crash, Event, RecordingDevice, Survivors};
use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::Guarantees;

/// F2FS with a promise.
struct Volume {
    overprovision_percent: Option<f64>,
    options: &'static str,
    empty: OnceLock<MemoryDevice>,
}

impl Mountable for Volume {
    type Mounted = F2fs<RecordingDevice<MemoryDevice>>;

    fn format(&self) -> MemoryDevice {
        let make = || {
            let mut device = MemoryDevice::new(BLOCKS);
            let overprovision_percent = self.overprovision_percent;
            let options = MkfsOptions { overprovision_percent, ..MkfsOptions::default() };
            mkfs(&mut device, &options).unwrap();
            device
        };
        self.empty.get_or_init(make).clone()
    }

    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String> {
        let options = Options::parse(self.options).map_err(|error| error.to_string())?;
        let options = Options { gc_urgent: true, ..options };
        F2fs::mount(device, options, SimTime::ZERO).map_err(|error| error.to_string())
    }

    fn guarantees(&self) -> Guarantees {
        let with_fsync = self.options.contains("remap=fsync");
        Guarantees { atomic_fsync: with_fsync, updates_wait: with_fsync, ..Guarantees::default() }
    }

    fn check(&self, device: &MemoryDevice) -> Vec<String> {
        match fsck::check(device.clone(), fsck::Options::default(), |_| {}) {
            Ok(report) => {
                let errors =
                    report.findings.iter().filter(|found| found.severity() == Severity::Error);
                errors.map(ToString::to_string).collect()
            }
            Err(error) => vec![error.to_string()],
        }
    }
}

/// Copies the blocks that hold bytes from the drive into memory. All others never meant anything,
/// and stay empty.
fn content(drive: &mut Drive) -> MemoryDevice {
    let mut image = MemoryDevice::new(BLOCKS);
    let mut contents = vec![Content::Empty; BLOCKS as usize];
    let range = BlockRange::new(Lba(0), BLOCKS);
    drive.submit(drive.idle_from(), Command::Read { range, into: Some(&mut contents) }).unwrap();
    for (lba, content) in
        contents.iter().enumerate().filter(|(_, content)| matches!(content, Content::Bytes(_)))
    {
        let (range, data) =
            (BlockRange::new(Lba(lba as u64), 1), Data::Blocks(std::slice::from_ref(content)));
        image
            .submit(
                SimTime::ZERO,
                Command::Write { range, data, hints: Hints::default(), fua: true },
            )
            .unwrap();
    }
    image
}

/// Cuts tried in one workload.
const CUTS: u64 = 20;

fn run(name: &str, options: &'static str, store: RemapStore) {
    run_on(&Volume { overprovision_percent: None, options, empty: OnceLock::new() }, name, store);
}

fn run_on(volume: &impl Mountable, name: &str, store: RemapStore) {
    let profile = Profile { file_end: 300_000, many: 0, ..Profile::default() };
    let seeds = seeds();
    let (mut tried, mut cleaned, mut remaps) = (Tried::default(), 0, 0);
    for seed in seeds.clone() {
        let alone = format!(
            "DOVETAIL_SEED={seed} cargo test -p dovetail-lab --test all remap_crash::{name}"
        );
        let workload = Workload::run(volume, seed, profile, 150).unwrap();
        let events = workload.recording().events();
        let mut rng = Rng::new(seed).fork(7);
        for _ in 0..CUTS {
            let remap = RemapConfig { limits: RemapLimits::of(64, 4096), store };
            let whole = BlockRange::new(Lba(0), BLOCKS);
            let config = config(Some(remap), None, 4096, &mut rng);
            let bench = Bench::new(config, workload.recording().base(), whole, &mut rng);
            let before = bench.drive.counters().erases;
            let (mut drive, cut) = bench.cut(&events, &mut rng);
            cleaned += erased(&drive) - before;
            remaps +=
                events[..cut].iter().filter(|event| matches!(event, Event::Remap { .. })).count();
            let device = content(&mut drive);
            let crash = Crash { cut, survivors: Survivors::Random, unflushed: 0, device };
            workload.check_crash(&crash, Cuts::default(), &mut tried).unwrap_or_else(|what| {
                panic!("{name}, seed {seed}, cut {cut}: {what}\nalone: {alone}")
            });
        }
    }
    println!("{name}: {tried:?}, {remaps} remaps before the cuts, {cleaned} blocks erased");
    assert!(
        tried.cuts as u64 == (seeds.end - seeds.start) * CUTS && cleaned > 0 && remaps > 0,
        "{tried:?}"
    );
}

const NVM: RemapStore =
    RemapStore::NonVolatile { access: SimSpan::from_ns(100), discard_records: 20 };
const SEGMENTED_LOG: RemapStore = RemapStore::SegmentedLog {
    access: SimSpan::from_ns(100),
    discard_records: 20,
    segments: 0,
    segment_bytes: 64,
};

#[test]
fn eager_with_non_volatile_memory() {
    run("eager_with_non_volatile_memory", "nolazytime,mode=rm-ipu", NVM);
}

#[test]
fn eager_with_a_log() {
    run("eager_with_a_log", "nolazytime,mode=rm-ipu", RemapStore::Log);
}

#[test]
fn eager_with_a_segmented_log() {
    run("eager_with_a_segmented_log", "nolazytime,mode=rm-ipu", SEGMENTED_LOG);
}

/// Sections are cleaned by remaps that move with checkpoints.
fn cleaned(name: &str, store: RemapStore) {
    // by default nearly all of it is a reserve that cleaning keeps free
    let overprovision_percent = Some(50.0);
    let volume = |options| Volume { overprovision_percent, options, empty: OnceLock::new() };
    let cleaned = Fragmented::new(volume("nolazytime,mode=lfs,gc_remap"), volume("mode=lfs"));
    run_on(&cleaned, name, store);
}

#[test]
fn cleaned_with_non_volatile_memory() {
    cleaned("cleaned_with_non_volatile_memory", NVM);
}

#[test]
fn cleaned_with_a_segmented_log() {
    cleaned("cleaned_with_a_segmented_log", SEGMENTED_LOG);
}

#[test]
fn cleaned_with_a_log() {
    cleaned("cleaned_with_a_log", RemapStore::Log);
}

#[test]
fn with_fsync_and_non_volatile_memory() {
    run(
        "with_fsync_and_non_volatile_memory",
        "nolazytime,noinline_data,mode=rm-ipu,remap=fsync",
        NVM,
    );
}

#[test]
fn with_fsync_and_a_log() {
    run(
        "with_fsync_and_a_log",
        "nolazytime,noinline_data,mode=rm-ipu,remap=fsync",
        RemapStore::Log,
    );
}
