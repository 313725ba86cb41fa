//! Power cuts of a mounted volume: everywhere, also during recovery, and what is left is what was
//! promised.
//!
//! `DOVETAIL_SEED=n` runs one workload alone, `DOVETAIL_SEEDS=n` that many.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop where it fails")]

use std::sync::OnceLock;

use crate::common::iplfs::{
    all_features, iplfs_device, iplfs_limits, iplfs_options, leaks_after_mount, narrow_options,
};
use crate::common::mkfs;
use crate::common::zoned::{states_of, zoned_volume, zones};
use dovetail_block::{MemoryDevice, RemapLimits, ZonedDevice, Zones};
use dovetail_f2fs::fsck::{self, Severity};
use dovetail_f2fs::mkfs::MkfsOptions;
use dovetail_f2fs::{Events, F2fs, Options};
use dovetail_testkit::RecordingDevice;
use dovetail_testkit::crash::{
    Cuts, Fragmented, Mountable, Tried, Workload, check_changes_in_one_tick,
};
use dovetail_testkit::exercise::Profile;
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, Guarantees, Limits, NewNode};

/// The file system with mkfs and mount options.
struct Volume {
    mkfs: Vec<&'static str>,
    options: &'static str,
    gc_urgent: bool,
    /// Limits of the device's remap command, if other than memory's own.
    limits: Option<RemapLimits>,
    empty: OnceLock<MemoryDevice>,
}

impl Volume {
    fn new(mkfs: &[&'static str], options: &'static str) -> Self {
        Self {
            mkfs: mkfs.to_vec(),
            options,
            gc_urgent: false,
            limits: None,
            empty: OnceLock::new(),
        }
    }
}

impl Mountable for Volume {
    type Mounted = F2fs<RecordingDevice<MemoryDevice>>;

    fn format(&self) -> MemoryDevice {
        let empty = self.empty.get_or_init(|| mkfs(64 << 20, &self.mkfs)).clone();
        self.limits.map_or(empty.clone(), |limits| empty.with_limits(limits))
    }

    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String> {
        let options = Options::parse(self.options).map_err(|error| error.to_string())?;
        let options = Options { gc_urgent: self.gc_urgent, ..options };
        F2fs::mount(device, options, SimTime::ZERO).map_err(|error| error.to_string())
    }

    fn guarantees(&self) -> Guarantees {
        let atomic_fsync = self.options.contains("remap=fsync");
        // with few pairs an update may have to be appended, and then shows with a checkpoint
        let updates_wait = atomic_fsync && self.limits.is_none();
        Guarantees { atomic_fsync, updates_wait, ..Guarantees::default() }
    }

    fn check(&self, device: &MemoryDevice) -> Vec<String> {
        let report = match fsck::check(device.clone(), fsck::Options::default(), |_| {}) {
            Ok(report) => report,
            Err(error) => return vec![error.to_string()],
        };
        let errors = report.findings.iter().filter(|finding| finding.severity() == Severity::Error);
        errors.map(ToString::to_string).collect()
    }
}

/// A zoned volume. After a cut each zone is written up to the last block that is left: what was lost
/// before it, and what a reset should have taken, is harder than a real zone.
struct Zoned {
    zones: Zones,
    mib: u64,
    options: &'static str,
    gc_urgent: bool,
    empty: OnceLock<MemoryDevice>,
}

impl Zoned {
    fn new(mib: u64, zones: Zones, options: &'static str) -> Self {
        Self { zones, mib, options, gc_urgent: false, empty: OnceLock::new() }
    }
}

impl Mountable for Zoned {
    type Mounted = F2fs<ZonedDevice<RecordingDevice<MemoryDevice>>>;

    fn format(&self) -> MemoryDevice {
        let make = || zoned_volume(self.mib, self.zones).into_below();
        self.empty.get_or_init(make).clone()
    }

    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String> {
        let options = Options::parse(self.options).map_err(|error| error.to_string())?;
        let options = Options { gc_urgent: self.gc_urgent, ..options };
        let states = states_of(&device.recording().newest(), &self.zones);
        let zoned = ZonedDevice::found(device, self.zones, states);
        F2fs::mount(zoned, options, SimTime::ZERO).map_err(|error| error.to_string())
    }

    fn check(&self, device: &MemoryDevice) -> Vec<String> {
        let states = states_of(device, &self.zones);
        let zoned = ZonedDevice::found(device.clone(), self.zones, states);
        let report = fsck::check(zoned, fsck::Options::default(), |_| {}).unwrap();
        let errors = report.findings.iter().filter(|finding| finding.severity() == Severity::Error);
        errors.map(ToString::to_string).collect()
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs `seeds` workloads; the normal run reaches at least `least` cuts.
fn run(test: &str, volume: &impl Mountable, seeds: u64, steps: usize, least: usize) {
    run_variant(test, "", volume, seeds, steps, least);
}

/// The same, for a test of several variants.
fn run_variant(
    test: &str,
    variant: &str,
    volume: &impl Mountable,
    seeds: u64,
    steps: usize,
    least: usize,
) {
    let profile = Profile { file_end: 300_000, many: 0, ..Profile::default() };
    let mut tried = Tried::default();
    let seeds = match variable("DOVETAIL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("DOVETAIL_SEEDS").unwrap_or(seeds),
    };
    for seed in seeds.clone() {
        let workload = Workload::run(volume, seed, profile, steps);
        let checked = workload.and_then(|workload| workload.check_cuts(Cuts::default()));
        let alone =
            format!("DOVETAIL_SEED={seed} cargo test -p dovetail-f2fs --test all crash::{test}");
        tried += checked
            .unwrap_or_else(|what| panic!("{test} {variant}, seed {seed}: {what}\nalone: {alone}"));
    }
    println!("{test} {variant}: {tried:?}");
    assert!(seeds.end - seeds.start == 1 || tried.cuts >= least, "{tried:?}");
}

#[test]
fn defaults() {
    run("defaults", &Volume::new(&[], "nolazytime"), 180, 120, 10_000);
}

#[test]
fn features() {
    let mkfs = ["-O", "extra_attr,inode_checksum,sb_checksum,inode_crtime,flexible_inline_xattr"];
    run("features", &Volume::new(&mkfs, "nolazytime"), 20, 120, 1000);
}

#[test]
fn out_of_place_only() {
    run("out_of_place_only", &Volume::new(&[], "nolazytime,mode=lfs"), 20, 120, 1000);
}

#[test]
fn strict() {
    run("strict", &Volume::new(&[], "nolazytime,fsync_mode=strict"), 20, 120, 1000);
}

/// Zones with all of their blocks and with fewer, of one segment and of several.
#[test]
fn zoned() {
    let variants = [
        ("small zones", 96, zones(96, 2, 2, 8), 40, 2500),
        ("large zones", 256, zones(256, 8, 8, 4), 60, 4000),
        ("capacity", 256, zones(256, 8, 5, 4), 40, 2500),
    ];
    for (name, mib, zones, seeds, least) in variants {
        let volume = Zoned::new(mib, zones, "nolazytime");
        run_variant("zoned", name, &volume, seeds, 120, least);
    }
}

#[test]
fn zoned_and_cleaned() {
    let volume = Zoned { gc_urgent: true, ..Zoned::new(96, zones(96, 2, 2, 8), "nolazytime") };
    run("zoned_and_cleaned", &volume, 20, 400, 4000);
}

/// The events of a mount whose sections are cleaned between the writes.
fn events_of_cleaning(
    volume: &impl Mountable<Mounted = F2fs<RecordingDevice<MemoryDevice>>>,
) -> Events {
    let mut plain = volume.mount(RecordingDevice::new(volume.format())).unwrap();
    let (root, node) = (plain.root(), NewNode { mode: 0o100_600, rdev: (0, 0) });
    let mut rng = Rng::new(1);
    let ino = plain.create(&Caller::default(), root, b"file", &node).unwrap().ino;
    for second in 1..100 {
        plain.write(&Caller::default(), ino, rng.below(200) * 4096, &[second; 100_000]).unwrap();
        plain.fsync(ino, false).unwrap();
        plain.set_now(SimTime::from_ns(u64::from(second) * 1_000_000_000));
        plain.wake().unwrap();
    }
    plain.events()
}

/// Sections are cleaned between the operations.
#[test]
fn cleaned() {
    let volume = Volume { gc_urgent: true, ..Volume::new(&[], "nolazytime,mode=lfs") };
    let events = events_of_cleaning(&volume);
    assert!(events.moved_blocks > 10, "{events:?}");
    run("cleaned", &volume, 20, 400, 4000);
}

/// The device moves what cleaning moves, also on devices that hold few pairs.
#[test]
fn cleaned_by_remaps() {
    for (name, options, limits) in [
        ("append", "mode=lfs", None),
        ("few pairs", "mode=lfs", Some(RemapLimits::of(4, 6))),
        ("in place", "mode=adaptive", None),
        ("eager", "mode=rm-ipu", None),
        ("with fsync", "noinline_data,mode=rm-ipu,remap=fsync", None),
        ("with fsync, few pairs", "mode=rm-ipu,remap=fsync", Some(RemapLimits::of(64, 100))),
    ] {
        let options = format!("nolazytime,gc_remap,{options}").leak();
        let mkfs = ["-o", "50"]; // by default nearly all of it is a reserve that cleaning keeps free
        let volume = Volume { gc_urgent: true, limits, ..Volume::new(&mkfs, options) };
        let volume = Fragmented::new(volume, Volume::new(&mkfs, "mode=lfs"));
        let events = events_of_cleaning(&volume);
        assert!(events.gc_remapped_blocks > 10, "{name}: {events:?}");
        run_variant("cleaned_by_remaps", name, &volume, 10, 400, 2000);
    }
}

/// Sections are cleaned by need alone, most of them between the pages of an fsync: of this small
/// volume nearly all is a reserve that cleaning keeps free.
#[test]
fn cleaned_in_an_fsync() {
    for (name, options) in [("copied", "nogc_remap"), ("remapped", "gc_remap")] {
        let options = format!("nolazytime,background_gc=off,mode=lfs,{options}").leak();
        let volume = Fragmented::new(Volume::new(&[], options), Volume::new(&[], "mode=lfs"));
        let events = events_of_cleaning(&volume);
        assert!(events.foreground_cleanings > 5, "{name}: {events:?}");
        run_variant("cleaned_in_an_fsync", name, &volume, 10, 400, 2000);
    }
}

#[test]
fn long() {
    run("long", &Volume::new(&[], "nolazytime"), 3, 600, 800);
}

/// Updates move to their places as they are written.
#[test]
fn remapped() {
    run("remapped", &Volume::new(&[], "nolazytime,mode=rm-ipu"), 60, 120, 3000);
}

/// Updates move with their fsync, as one.
#[test]
fn remapped_with_fsync() {
    run(
        "remapped_with_fsync",
        &Volume::new(&[], "nolazytime,noinline_data,mode=rm-ipu,remap=fsync"),
        60,
        120,
        3000,
    );
}

/// The same while sections are cleaned.
#[test]
fn remapped_and_cleaned() {
    for (name, options) in [
        ("eager", "mode=rm-ipu"),
        ("with fsync", "mode=rm-ipu,remap=fsync"),
        ("adaptive", "mode=rm-ipu-adaptive"),
        ("adaptive with fsync", "mode=rm-ipu-adaptive,remap=fsync"),
    ] {
        let options = format!("nolazytime,noinline_data,{options}").leak();
        let volume = Volume { gc_urgent: true, ..Volume::new(&[], options) };
        run(name, &volume, 6, 400, 1200);
    }
}

/// Devices that take few pairs, or hold few or a number that is no multiple of a command's.
#[test]
fn remapped_in_small_pieces() {
    for limits in [(1, 0), (4, 6), (64, 100)] {
        let options = "nolazytime,noinline_data,mode=rm-ipu,remap=fsync";
        let limits = Some(RemapLimits::of(limits.0, limits.1));
        let volume = Volume { limits, ..Volume::new(&[], options) };
        run("remapped_in_small_pieces", &volume, 10, 120, 500);
    }
}

/// IPLFS: whatever a cut leaves, after recovery, a checkpoint and all discards the device holds
/// exactly what the volume has.
struct Iplfs {
    mkfs: MkfsOptions,
    bytes: u64,
    options: &'static str,
}

impl Iplfs {
    fn new(options: &'static str) -> Self {
        Self { mkfs: iplfs_options(), bytes: 64 << 20, options }
    }
}

impl Mountable for Iplfs {
    type Mounted = F2fs<RecordingDevice<MemoryDevice>>;

    fn format(&self) -> MemoryDevice {
        iplfs_device(self.bytes, &self.mkfs)
    }

    fn mount(&self, device: RecordingDevice<MemoryDevice>) -> Result<Self::Mounted, String> {
        let options = Options::parse(self.options).map_err(|error| error.to_string())?;
        F2fs::mount(device, options, SimTime::ZERO).map_err(|error| error.to_string())
    }

    fn limits(&self) -> Limits {
        iplfs_limits(self.format(), &Options::default())
    }

    fn check(&self, device: &MemoryDevice) -> Vec<String> {
        leaks_after_mount(device)
    }
}

#[test]
fn iplfs_volumes() {
    run("iplfs_volumes", &Iplfs::new("nolazytime"), 60, 120, 3000);
    let mkfs = MkfsOptions { features: all_features(), ..iplfs_options() };
    run(
        "iplfs_volumes",
        &Iplfs { mkfs, ..Iplfs::new("nolazytime,fsync_mode=strict") },
        10,
        120,
        500,
    );
}

#[test]
fn iplfs_volumes_with_narrow_addresses() {
    let volumes = Iplfs { mkfs: narrow_options(), ..Iplfs::new("nolazytime") };
    run("iplfs_volumes_with_narrow_addresses", &volumes, 20, 120, 1000);
}

#[test]
fn iplfs_volumes_for_long() {
    run("iplfs_volumes_for_long", &Iplfs::new("nolazytime"), 2, 600, 500);
}

/// So little room that calls make checkpoints for it.
#[test]
fn iplfs_volumes_with_little_room() {
    let little = Iplfs { bytes: 10 << 20, ..Iplfs::new("nolazytime,noinline_data") };
    run("iplfs_volumes_with_little_room", &little, 20, 150, 1000);
    let inline = Iplfs { bytes: 10 << 20, ..Iplfs::new("nolazytime") };
    run("iplfs_volumes_with_little_room, inline", &inline, 20, 150, 1000);
}

#[test]
fn changes_in_one_tick() {
    for options in
        ["", "nolazytime,fsync_mode=strict", "mode=lfs", "mode=rm-ipu", "mode=rm-ipu,remap=fsync"]
    {
        let checked = check_changes_in_one_tick(&Volume::new(&[], options));
        checked.unwrap_or_else(|what| panic!("{options}: {what}"));
        let checked = check_changes_in_one_tick(&Iplfs::new(if options.contains("rm-ipu") {
            ""
        } else {
            options
        }));
        checked.unwrap_or_else(|what| panic!("iplfs, {options}: {what}"));
    }
}
