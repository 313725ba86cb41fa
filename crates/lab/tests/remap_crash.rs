//! Power cuts at operations of the flash under F2FS with `mode=rm-ipu`: the drive recovers with maps that agree, and the
//! volume on it holds what was promised.
//!
//! Random operations are recorded once; for each cut the record is played to a fresh drive that is full to the brim, so
//! that it cleans all the time, until the power goes.
//!
//! `DOVETAIL_SEED=n` runs one workload alone, `DOVETAIL_SEEDS=n` that many.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop where it fails")]

use std::sync::OnceLock;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Crash, Data, DeviceError, Event, Hints, Lba, MemoryDevice,
    Pattern, RecordingDevice, RemapLimits, Survivors,
};
use dovetail_f2fs::fsck::{self, Severity};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Options};
use dovetail_ftl::lines::LineShape;
use dovetail_ftl::{Drive, DriveConfig, RemapConfig, RemapStore, UnrecoveredDrive, mapping, victim};
use dovetail_nand::{FaultPlan, Geometry, NandConfig, PowerCut, Timing, Torn};
use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::crash::{Cuts, Mountable, Tried, Workload};
use dovetail_vfs::exercise::Profile;

const BLOCKS: u64 = (64 << 20) / 4096;

/// F2FS with a promise.
struct Volume {
    options: &'static str,
    empty: OnceLock<MemoryDevice>,
}

impl Mountable for Volume {
    type Mounted = F2fs<RecordingDevice<MemoryDevice>>;

    fn format(&self) -> MemoryDevice {
        let make = || {
            let mut device = MemoryDevice::new(BLOCKS);
            mkfs(&mut device, &MkfsOptions::default()).unwrap();
            device
        };
        self.empty.get_or_init(make).clone()
    }

    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String> {
        let options = Options::parse(self.options).map_err(|error| error.to_string())?;
        let options = Options { gc_urgent: true, ..options };
        F2fs::mount(device, options, SimTime::ZERO).map_err(|error| error.to_string())
    }

    fn atomic_fsync(&self) -> bool {
        self.options.contains("remap=fsync")
    }

    fn updates_wait_for_fsync(&self) -> bool {
        self.options.contains("remap=fsync")
    }

    fn check(&self, device: &MemoryDevice) -> Vec<String> {
        match fsck::check(device.clone(), fsck::Options::default(), |_| {}) {
            Ok(report) => {
                let errors = report.findings.iter().filter(|found| found.severity() == Severity::Error);
                errors.map(ToString::to_string).collect()
            }
            Err(error) => vec![error.to_string()],
        }
    }
}

/// A small drive with little room to spare.
fn config(store: RemapStore, rng: &mut Rng) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 150,
        pages_per_block: 64,
        page_bytes: 4096,
    };
    let timing = Timing {
        read: SimSpan::from_us(50),
        program: SimSpan::from_us(500),
        erase: SimSpan::from_ms(5),
        transfer_4k: SimSpan::from_us(10),
    };
    let limits = RemapLimits::of(64, 4096);
    DriveConfig {
        name: "test".into(),
        nand: NandConfig { geometry, timing, endurance: 100_000, factory_bad: vec![] },
        user_blocks: BLOCKS,
        addresses: None,
        scheme: &mapping::SCHEMES[rng.below(2) as usize],
        policy: &victim::POLICIES[rng.below(victim::POLICIES.len() as u64) as usize],
        choices: 4,
        shape: if rng.chance(0.5) { LineShape::Superblock } else { LineShape::Block },
        streams: 1,
        gc_apart: rng.chance(0.5),
        foreground_lines: 0,
        background_lines: 0,
        idle_after: SimSpan::from_ms(1),
        buffer_pages: [0, 4, 32][rng.below(3) as usize],
        wear_spread: [0, 3][rng.below(2) as usize],
        map_access: SimSpan::from_ns(50),
        link_4k: SimSpan::from_us(1),
        command: SimSpan::from_us(5),
        remap: Some(RemapConfig { limits, store }),
        devirtualize: None,
        seed: rng.next_u64(),
    }
}

/// A drive, and the time at which its last command was through.
struct Bench {
    drive: Drive,
    now: SimTime,
}

impl Bench {
    /// A drive with `image` on it and something in every other block, so often overwritten that it has begun to clean.
    fn new(config: DriveConfig, image: &MemoryDevice, rng: &mut Rng) -> Self {
        let mut bench = Self { drive: Drive::new(config).unwrap(), now: SimTime::ZERO };
        for start in (0..BLOCKS).step_by(64) {
            bench.put(image, BlockRange::new(Lba(start), 64.min(BLOCKS - start)));
        }
        while bench.drive.counters().erases < 4 {
            bench.put(image, BlockRange::new(Lba(rng.below(BLOCKS)), 1));
        }
        bench.submit(Command::Flush).unwrap();
        bench
    }

    fn put(&mut self, image: &MemoryDevice, range: BlockRange) {
        let block = |lba: Lba| match image.get(lba) {
            Content::Empty => Content::Pattern(Pattern::new(lba.0)),
            content => content.clone(),
        };
        let contents: Vec<Content> = range.iter().map(block).collect();
        self.write(range, &contents, false).unwrap();
    }

    fn submit(&mut self, command: Command<'_>) -> Result<(), DeviceError> {
        self.now = self.drive.submit(self.now, command)?.done;
        Ok(())
    }

    fn write(&mut self, range: BlockRange, contents: &[Content], fua: bool) -> Result<(), DeviceError> {
        self.submit(Command::Write { range, data: Data::Blocks(contents), hints: Hints::default(), fua })
    }

    fn play(&mut self, event: &Event) -> Result<(), DeviceError> {
        match event {
            Event::Write { range, contents, fua } => self.write(*range, contents, *fua),
            Event::Flush => self.submit(Command::Flush),
            Event::Discard { ranges } => self.submit(Command::Discard { ranges }),
            Event::Remap { pairs, when } => self.submit(Command::Remap { pairs, when: *when }),
        }
    }

    /// Plays the events until the power goes during or after number `at`; returns the drive, recovered, and how many events
    /// were through.
    fn cut_in(mut self, events: &[Event], at: usize, rng: &mut Rng) -> (Drive, usize) {
        events[..at].iter().for_each(|event| self.play(event).unwrap());
        let within = if rng.chance(0.5) { 3 } else { 60 };
        let torn = [Torn::Untouched, Torn::Garbage, Torn::Finished][rng.below(3) as usize];
        let at_operation = self.drive.flash_operations() + rng.below(within);
        let cut = PowerCut { at_operation, torn };
        self.drive.set_faults(FaultPlan { power_cut: Some(cut), ..FaultPlan::default() });
        let through = events[at..].iter().take_while(|event| self.play(event).is_ok()).count();
        (recover(self.drive.into_unrecovered()), at + through)
    }

    /// The same with the power cut at a time during number `at`: operations of all dies under way are torn.
    fn cut_at_a_time(mut self, events: &[Event], at: usize, rng: &mut Rng) -> (Drive, usize) {
        self.drive.remember_operations();
        events[..at].iter().for_each(|event| self.play(event).unwrap());
        let start = self.now;
        let through = events.get(at).map(|event| self.play(event).unwrap());
        let during = self.now.since(start).as_ns();
        let time = start + SimSpan::from_ns(rng.below(during + 1));
        let through = usize::from(through.is_some() && time >= self.now);
        (recover(self.drive.into_unrecovered_at(time)), at + through)
    }
}

/// Recovers, anew if a cut that was not reached before comes in the midst; the maps of what comes out agree.
fn recover(drive: UnrecoveredDrive) -> Drive {
    let again = |lost: Box<(UnrecoveredDrive, DeviceError)>| {
        assert_eq!(lost.1, DeviceError::PowerLost);
        lost.0.recover().unwrap()
    };
    let (mut drive, _) = drive.recover().unwrap_or_else(again);
    drive.set_faults(FaultPlan::default());
    drive.check().unwrap();
    drive
}

/// What the drive holds. What was there from the start and never meant anything is nothing.
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
            .submit(SimTime::ZERO, Command::Write { range, data, hints: Hints::default(), fua: true })
            .unwrap();
    }
    image
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Cuts tried in one workload.
const CUTS: u64 = 20;

fn run(name: &str, options: &'static str, store: RemapStore) {
    let volume = Volume { options, empty: OnceLock::new() };
    let profile = Profile { file_end: 300_000, many: 0, ..Profile::default() };
    let seeds = match variable("DOVETAIL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("DOVETAIL_SEEDS").unwrap_or(12),
    };
    let (mut tried, mut cleaned, mut remaps) = (Tried::default(), 0, 0);
    for seed in seeds.clone() {
        let alone = format!("DOVETAIL_SEED={seed} cargo test -p dovetail-lab --test remap_crash {name}");
        let workload = Workload::run(&volume, seed, profile, 150).unwrap();
        let events = workload.recording().events();
        let mut rng = Rng::new(seed).fork(7);
        for _ in 0..CUTS {
            let bench = Bench::new(config(store, &mut rng), workload.recording().base(), &mut rng);
            let before = bench.drive.counters().erases;
            let at = rng.below(events.len() as u64 + 1) as usize;
            let (mut drive, cut) = match rng.chance(0.5) {
                true => bench.cut_in(&events, at, &mut rng),
                false => bench.cut_at_a_time(&events, at, &mut rng),
            };
            cleaned += drive.erase_counts().map(u64::from).sum::<u64>() - before;
            remaps += events[..cut].iter().filter(|event| matches!(event, Event::Remap { .. })).count();
            let device = content(&mut drive);
            let crash = Crash { cut, survivors: Survivors::Random, unflushed: 0, device };
            workload
                .check_crash(&crash, Cuts::default(), &mut tried)
                .unwrap_or_else(|what| panic!("{name}, seed {seed}, cut {cut}: {what}\nalone: {alone}"));
        }
    }
    println!("{name}: {tried:?}, {remaps} remaps before the cuts, {cleaned} blocks erased");
    assert!(tried.cuts as u64 == (seeds.end - seeds.start) * CUTS && cleaned > 0 && remaps > 0, "{tried:?}");
}

const NVM: RemapStore = RemapStore::NonVolatile { access: SimSpan::from_ns(100), discard_records: 20 };

#[test]
fn eager_with_non_volatile_memory() {
    run("eager_with_non_volatile_memory", "nolazytime,mode=rm-ipu", NVM);
}

#[test]
fn eager_with_a_log() {
    run("eager_with_a_log", "nolazytime,mode=rm-ipu", RemapStore::Log);
}

#[test]
fn with_fsync_and_non_volatile_memory() {
    run("with_fsync_and_non_volatile_memory", "nolazytime,noinline_data,mode=rm-ipu,remap=fsync", NVM);
}

#[test]
fn with_fsync_and_a_log() {
    run("with_fsync_and_a_log", "nolazytime,noinline_data,mode=rm-ipu,remap=fsync", RemapStore::Log);
}
