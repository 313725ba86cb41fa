//! Power cuts at operations of the flash under IPLFS: the drive recovers with maps that agree, the
//! volume on it holds what was promised, and after a recovery and a checkpoint the drive holds
//! exactly what the volume does.
//!
//! Random operations are recorded once; for each cut the record is played to a fresh thin drive,
//! filled by blocks that are not the volume's so that it cleans all the time, until the power goes.
//!
//! `DOVETAIL_SEED=n` runs one workload alone, `DOVETAIL_SEEDS=n` that many.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop where it fails")]

use std::collections::BTreeSet;

use crate::cut::{BLOCKS, Bench, config, erased, recover, seeds};
use dovetail_block::{
    AREA_BLOCKS, AREAS, BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, MemoryDevice,
    Scheduler, held_blocks,
};
use dovetail_f2fs::format::Variant;
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Options};
use dovetail_ftl::Drive;
use dovetail_nand::{FaultPlan, PowerCut, Torn};
use dovetail_testkit::crash::{Cuts, Mountable, Tried, Workload};
use dovetail_testkit::exercise::Profile;
use dovetail_testkit::{Crash, Event, RecordingDevice, Survivors};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::Limits;

/// Room of the volume, in blocks.
const ROOM: u64 = 4096;
/// Start of the blocks that are not the volume's: in the metadata's area, far behind the metadata.
const FOREIGN: u64 = AREA_BLOCKS / 2;

struct Volume;

impl Mountable for Volume {
    type Mounted = F2fs<RecordingDevice<MemoryDevice>>;

    fn format(&self) -> MemoryDevice {
        let mut device = MemoryDevice::thin(AREAS * AREA_BLOCKS, ROOM);
        mkfs(&mut device, &MkfsOptions { variant: Variant::IPLFS, ..MkfsOptions::default() })
            .unwrap();
        device
    }

    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String> {
        F2fs::mount(device, options(), SimTime::ZERO).map_err(|error| error.to_string())
    }

    fn limits(&self) -> Limits {
        Limits { file_size: Variant::IPLFS.write_limit(), ..Limits::default() }
    }

    fn check(&self, device: &MemoryDevice) -> Vec<String> {
        leaks(device.clone())
    }
}

fn options() -> Options {
    Options { lazytime: false, ..Options::default() }
}

/// Mounts the volume, which recovers it, writes a checkpoint, and compares what the device holds
/// with what the volume has.
fn leaks<D: Scheduler>(device: D) -> Vec<String> {
    match compare(device) {
        Ok(differences) => differences,
        Err(error) => vec![format!("it cannot be mounted and trimmed: {error}")],
    }
}

fn compare<D: Scheduler>(mut device: D) -> Result<Vec<String>, dovetail_f2fs::Error> {
    let mut fs = F2fs::mount(&mut device, options(), SimTime::from_ns(u64::MAX / 4))?;
    fs.sync_all().unwrap();
    fs.trim()?;
    let live: BTreeSet<u64> = fs.live_blocks()?.iter().map(|address| address.0).collect();
    drop(fs);
    let logs = BlockRange::new(Lba(AREA_BLOCKS), (AREAS - 1) * AREA_BLOCKS);
    let held: BTreeSet<u64> = held_blocks(&mut device, logs, usize::MAX)
        .unwrap()
        .unwrap()
        .iter()
        .map(|lba| lba.0)
        .collect();
    let lost =
        live.difference(&held).map(|block| format!("block {block} is live and not on the device"));
    let leaked =
        held.difference(&live).map(|block| format!("block {block} is on the device and not live"));
    Ok(lost.chain(leaked).collect())
}

/// Copies the volume's blocks from the drive into memory.
fn content(drive: &mut Drive) -> MemoryDevice {
    let mut image = MemoryDevice::thin(AREAS * AREA_BLOCKS, ROOM);
    let whole = BlockRange::new(Lba(0), AREAS * AREA_BLOCKS);
    let foreign = FOREIGN..FOREIGN + 8 * BLOCKS;
    for lba in held_blocks(drive, whole, usize::MAX)
        .unwrap()
        .unwrap()
        .into_iter()
        .filter(|lba| !foreign.contains(&lba.0))
    {
        let (range, mut into) = (BlockRange::new(lba, 1), [Content::Empty]);
        drive.submit(drive.idle_from(), Command::Read { range, into: Some(&mut into) }).unwrap();
        let write =
            Command::Write { range, data: Data::Blocks(&into), hints: Hints::default(), fua: true };
        image.submit(SimTime::ZERO, write).unwrap();
    }
    image
}

/// The power goes while the volume is mounted on the drive, and again; then what is there is
/// compared.
fn leaks_after_cuts(mut drive: Drive, rng: &mut Rng) -> Vec<String> {
    for _ in 0..rng.below(3) {
        let at_operation = drive.flash_operations() + rng.below(400);
        let cut = PowerCut { at_operation, torn: Torn::Garbage };
        drive.set_faults(FaultPlan { power_cut: Some(cut), ..FaultPlan::default() });
        leaks(&mut drive);
        drive = recover(drive.into_unrecovered());
    }
    let found = leaks(&mut drive);
    drive.check().unwrap();
    found
}

/// Cuts tried in one workload.
const CUTS: u64 = 20;

fn run(name: &str, page_bytes: u32) {
    let profile = Profile { file_end: 300_000, many: 0, ..Profile::default() };
    let seeds = seeds();
    let (mut tried, mut cleaned, mut discards) = (Tried::default(), 0, 0);
    for seed in seeds.clone() {
        let alone = format!(
            "DOVETAIL_SEED={seed} cargo test -p dovetail-lab --test all iplfs_crash::{name}"
        );
        let workload = Workload::run(&Volume, seed, profile, 150).unwrap();
        let events = workload.recording().events();
        let mut rng = Rng::new(seed).fork(11);
        for _ in 0..CUTS {
            let parts = u64::from(page_bytes / 4096);
            let config = config(None, Some(AREAS * AREA_BLOCKS), page_bytes, &mut rng);
            // pages of several blocks have room for each block of the volume in a page of its own
            let filled = BlockRange::new(Lba(FOREIGN), (BLOCKS - ROOM) * parts);
            let bench = Bench::new(config, workload.recording().base(), filled, &mut rng);
            let before = bench.drive.counters().erases;
            let (mut drive, cut) = bench.cut(&events, &mut rng);
            cleaned += erased(&drive) - before;
            discards +=
                events[..cut].iter().filter(|event| matches!(event, Event::Discard { .. })).count();
            let crash = Crash {
                cut,
                survivors: Survivors::Random,
                unflushed: 0,
                device: content(&mut drive),
            };
            let failed = |what| panic!("{name}, seed {seed}, cut {cut}: {what}\nalone: {alone}");
            workload.check_crash(&crash, Cuts::default(), &mut tried).unwrap_or_else(failed);
            let leaks = leaks_after_cuts(drive, &mut rng);
            assert!(leaks.is_empty(), "{name}, seed {seed}, cut {cut}: {leaks:?}\nalone: {alone}");
        }
    }
    println!("{name}: {tried:?}, {discards} discards before the cuts, {cleaned} blocks erased");
    assert!(
        tried.cuts as u64 == (seeds.end - seeds.start) * CUTS && cleaned > 0 && discards > 0,
        "{tried:?}"
    );
}

#[test]
fn iplfs_on_pages_of_one_block() {
    run("iplfs_on_pages_of_one_block", 4096);
}

#[test]
fn iplfs_on_pages_of_four_blocks() {
    run("iplfs_on_pages_of_four_blocks", 16384);
}
