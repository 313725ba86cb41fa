//! A mounted zoned volume: what its zones see, and what it refuses.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::sync::{Arc, Mutex};

use dovetail_block::{
    BlockDevice, Command, Completion, Content, DeviceError, DeviceInfo, Lba, MemoryDevice,
    ZoneAction, ZoneState, ZonedDevice, Zones, performs_at_once,
};
use dovetail_f2fs::format::SegNo;
use dovetail_f2fs::fsck::{Finding, Options as CheckOptions, RepairError, check, repair};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode};

use crate::common::lab::Lab;
use crate::common::strict_fsck;
use crate::common::zoned::{shown, states_of, zoned_volume, zones};

type Zoned = ZonedDevice<MemoryDevice>;

/// Counts the commands on zones, and remembers the one before each write.
#[derive(Debug)]
struct Watched {
    device: Zoned,
    resets: u32,
    finishes: u32,
    /// The zone that was just reset, and nothing came since.
    reset_before: Option<Lba>,
    /// Resets after which something else came than a write to that zone.
    idle_resets: u32,
}

impl Watched {
    fn new(device: Zoned) -> Self {
        Self { device, resets: 0, finishes: 0, reset_before: None, idle_resets: 0 }
    }
}

impl BlockDevice for Watched {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match &command {
            Command::Zone { start, action } => {
                self.idle_resets += u32::from(self.reset_before.is_some());
                self.resets += u32::from(*action == ZoneAction::Reset);
                self.finishes += u32::from(*action == ZoneAction::Finish);
                self.reset_before = start.filter(|_| *action == ZoneAction::Reset);
            }
            Command::Write { range, .. } if self.reset_before == Some(range.start) => {
                self.reset_before = None;
            }
            _ => {}
        }
        self.device.submit(at, command)
    }
}

performs_at_once!(Watched);

fn mount(device: Zoned, options: &str) -> F2fs<Watched> {
    let options = Options::parse(options).unwrap();
    F2fs::mount(Watched::new(device), options, SimTime::ZERO).unwrap()
}

fn file<D: dovetail_block::Scheduler>(fs: &mut F2fs<D>, name: &[u8]) -> Ino {
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    fs.create(&Caller::default(), root, name, &node).unwrap().ino
}

/// Overwrites random blocks of a file of so many MiB.
fn overwrite(fs: &mut F2fs<Watched>, ino: Ino, mib: u64, blocks: u64, seed: u64) {
    let mut rng = Rng::new(seed);
    for n in 0..blocks {
        let at = rng.below(mib * 256) * 4096;
        fs.write(&Caller::default(), ino, at, &[n as u8; 4096]).unwrap();
        if n % 10 == 9 {
            fs.fsync(ino, false).unwrap();
        }
    }
}

fn fill(fs: &mut F2fs<Watched>, ino: Ino, mib: u64) {
    let block = vec![7; 1 << 20];
    (0..mib).for_each(|n| fs.write(&Caller::default(), ino, n << 20, &block).unwrap());
    fs.sync().unwrap();
}

/// No reset while there are empty zones; then one before each zone that a log takes, and at the
/// unmount all that are left.
#[test]
fn a_zone_is_reset_just_before_it_is_written_again_or_at_the_unmount() {
    let mut fs = mount(zoned_volume(512, zones(512, 16, 16, 4)), "");
    let ino = file(&mut fs, b"file");
    fill(&mut fs, ino, 40);
    overwrite(&mut fs, ino, 40, 70_000, 1);
    assert!(fs.device().resets > 0, "the pool of empty zones is used up once");
    assert_eq!(fs.device().idle_resets, 0, "each just before the write that follows");
    let full = |fs: &F2fs<Watched>| fs.device().device.table().in_state(ZoneState::Full).count();
    assert!(full(&fs) > 10, "dead zones stay as they are");
    let open = fs.device().device.table().active();
    assert!(open <= 6, "a zone for each log: {open}");
    let device = fs.unmount().unwrap();
    let states: Vec<_> = (0..28).map(|zone| device.device.table().state(zone)).collect();
    let in_use = states.iter().filter(|state| **state != ZoneState::Empty).count();
    assert!(in_use < 12, "{states:?}");
    let flags = dovetail_f2fs::Volume::open(device.device.clone()).unwrap().checkpoint().flags;
    assert_eq!(flags.0 & !0x80, 0x145, "unmounted, compact, trimmed, with its checksum: {flags:?}");
    assert_eq!(strict_fsck(device.device.below()), "");
    let report = check(device.device, CheckOptions::default(), |_| {}).unwrap();
    assert_eq!(report.findings, []);
}

/// Foreground cleaning begins where the reserve begins, and moves whole sections.
#[test]
fn sections_are_cleaned_when_free_ones_are_as_few_as_the_reserve() {
    let mut fs = mount(zoned_volume(512, zones(512, 8, 8, 8)), "");
    let ino = file(&mut fs, b"file");
    let reserved = fs.checkpoint_state().reserved_segments / 4;
    fill(&mut fs, ino, 200);
    overwrite(&mut fs, ino, 200, 60_000, 1);
    let (events, free) = (fs.events(), fs.checkpoint_state().free_segments / 4);
    assert!(events.foreground_cleanings > 0 && events.moved_blocks > 0, "{events:?}");
    assert_eq!((events.ssr_blocks, events.in_place_blocks), (0, 0), "{events:?}");
    assert!((reserved..reserved + 8).contains(&free), "{free} free sections, {reserved} reserved");
    let device = fs.unmount().unwrap().device;
    assert_eq!(strict_fsck(device.below()), "");
}

/// Sections without a valid block as of the last checkpoint.
fn free_sections(fs: &F2fs<Watched>) -> u32 {
    let mut volume = dovetail_f2fs::Volume::open(fs.device().device.clone()).unwrap();
    let superblock = volume.superblock().clone();
    let mut is_empty = |section: u32| {
        let per_section = superblock.segments_per_section;
        let mut segments = (section * per_section..(section + 1) * per_section).map(SegNo);
        segments.all(|segno| volume.segment(segno).unwrap().valid_blocks == 0)
    };
    (0..superblock.section_count).filter(|&section| is_empty(section)).count() as u32
}

/// Free sections between 25 and 60 percent: the idle volume cleans in windows until 60 are free.
#[test]
fn an_idle_volume_is_cleaned_in_windows() {
    let mut fs = mount(zoned_volume(512, zones(512, 8, 8, 8)), "");
    let mut now = 1_000_000_000_u64;
    for n in 0..34_u8 {
        let ino = file(&mut fs, &[b'a' + n / 26, b'a' + n % 26]);
        fill(&mut fs, ino, 7);
        now += 2_000_000_000;
        fs.set_now(SimTime::from_ns(now));
    }
    let root = fs.root();
    for n in (0..34_u8).step_by(2) {
        fs.unlink(&Caller::default(), root, &[b'a' + n / 26, b'a' + n % 26]).unwrap();
    }
    fs.sync().unwrap();
    let before = free_sections(&fs);
    for _ in 0..400 {
        let Some(next) = fs.next_wake() else { break };
        fs.set_now(next);
        fs.wake().unwrap();
    }
    fs.sync().unwrap();
    let (events, after) = (fs.events(), free_sections(&fs));
    assert!(events.background_cleanings > 0, "{events:?}, {before} {after}");
    assert!((15..36).contains(&before), "between 25 and 60 percent of 61: {before}");
    assert!((36..40).contains(&after), "it stops when more than 60 percent are free: {after}");
}

/// A log is at the end of what its zones can hold: it goes on in another.
#[test]
fn a_capacity_below_the_size_is_never_exceeded() {
    let mut fs = mount(zoned_volume(512, zones(512, 16, 9, 3)), "");
    let ino = file(&mut fs, b"file");
    fill(&mut fs, ino, 30);
    overwrite(&mut fs, ino, 30, 20_000, 3);
    let device = fs.unmount().unwrap().device;
    let sections = dovetail_f2fs::Volume::open(device.clone()).unwrap();
    // 29 sections of which 5 segments can be written, the last one half
    assert!(sections.checkpoint().free_segments < 29 * 5);
    let report = check(device, CheckOptions::default(), |_| {}).unwrap();
    assert_eq!(report.findings, []);
}

/// Whatever is written and never unmounted is there again, and the zones are as a kernel leaves
/// them: six logs in new zones, the old ones finished.
#[test]
fn after_a_cut_logs_go_on_in_new_zones() {
    let mut fs = mount(zoned_volume(512, zones(512, 16, 16, 2)), "");
    let ino = file(&mut fs, b"file");
    fill(&mut fs, ino, 3);
    overwrite(&mut fs, ino, 3, 100, 1);
    let device = fs.into_device().device.after_power_cut();
    let active = device.table().active();
    assert!(active >= 3, "{active}");
    let mut again = mount(device, "");
    assert!(again.device().finishes >= 3, "{:?}", shown(&mut again.device().device.clone()));
    let mut bytes = vec![0; 4096];
    let found = again.lookup(again.root(), b"file").unwrap();
    assert_eq!(again.read(found.ino, 0, &mut bytes).unwrap(), 4096);
    let device = again.unmount().unwrap().device;
    assert_eq!(strict_fsck(device.below()), "");
    // clean: logs stay where they are, and nothing is done to zones
    let quiet = mount(device, "");
    assert_eq!((quiet.device().resets, quiet.device().finishes), (0, 0));
}

#[test]
fn what_cannot_be_mounted_is_refused_with_what_would() {
    let volume = || zoned_volume(512, zones(512, 16, 16, 4));
    let refused = |device: Zoned, options: &str| {
        let options = Options::parse(options).unwrap();
        F2fs::mount(device, options, SimTime::ZERO).unwrap_err().to_string()
    };
    for (options, reason) in [
        ("mode=adaptive", "a zone is only appended to"),
        ("mode=rm-ipu", "nothing is written where it was"),
        ("nodiscard", "zones must be reset"),
        ("background_gc=off", "only cleaning makes free zones"),
        ("gc_remap", "takes no block that another held"),
    ] {
        let error = refused(volume(), options);
        assert!(error.contains("a zoned volume cannot be mounted with"), "{error}");
        assert!(error.contains(reason), "{error}");
    }
    for options in ["", "mode=lfs", "background_gc=sync", "fsync_mode=nobarrier", "active_logs=4"] {
        F2fs::mount(volume(), Options::parse(options).unwrap(), SimTime::ZERO).unwrap();
    }
    let few = |max_open, max_active| {
        let device = volume().into_below();
        let zones = Zones { max_open, max_active, ..zones(512, 16, 16, 4) };
        let states = states_of(&device, &zones);
        ZonedDevice::found(device, zones, states)
    };
    for (device, limit) in [
        (few(5, 0), "5 open"),
        (few(5, 6), "5 open"),
        (few(0, 5), "5 active"),
        (few(8, 4), "4 active"),
    ] {
        let error = refused(device, "");
        let is_told = error.contains("6 logs") && error.contains("active_logs=4");
        assert!(is_told && error.contains(limit), "{error}");
    }
    F2fs::mount(few(5, 5), Options::parse("active_logs=4").unwrap(), SimTime::ZERO).unwrap();
    let plain = Options::default;
    let error = F2fs::mount(volume().into_below(), plain(), SimTime::ZERO).unwrap_err().to_string();
    assert!(error.contains("this one has no zones"), "{error}");
    let mut ordinary = MemoryDevice::new(512 * 256);
    mkfs(&mut ordinary, &MkfsOptions::default()).unwrap();
    let all_empty = |zones: Zones| vec![(ZoneState::Empty, 0); zones.count as usize];
    let states = all_empty(zones(512, 16, 16, 4));
    let ordinary = ZonedDevice::found(ordinary, zones(512, 16, 16, 4), states);
    assert!(refused(ordinary, "").contains("was not made for that"));
    let states = all_empty(zones(512, 32, 32, 2));
    let other = ZonedDevice::found(volume().into_below(), zones(512, 32, 32, 2), states);
    assert!(refused(other, "").contains("zones of 8192 blocks"), "of another size");
}

/// A volume of 96 MiB with files, cut while it was in use.
fn small_and_cut() -> (MemoryDevice, Zones) {
    let small = zones(96, 2, 2, 8);
    let mut fs = mount(zoned_volume(96, small), "");
    let ino = file(&mut fs, b"file");
    fill(&mut fs, ino, 3);
    for n in 0..20 {
        let name = format!("a name of a file, number {n}");
        let small = file(&mut fs, name.as_bytes());
        fs.write(&Caller::default(), small, 0, &[n; 9000]).unwrap();
    }
    fs.sync().unwrap();
    overwrite(&mut fs, ino, 3, 40, 5);
    (fs.into_device().device.into_below(), small)
}

/// Whatever the bytes and the write pointers say, a check and a mount end with an error at worst.
#[test]
fn damaged_zoned_volumes_end_in_errors() {
    let (image, zones) = small_and_cut();
    let used: Vec<Lba> = image.used().map(|(lba, _)| lba).collect();
    let states = states_of(&image, &zones);
    let (mut mounted, mut rng) = (0, Rng::new(20));
    for _ in 0..400 {
        let (mut image, mut states) = (image.clone(), states.clone());
        for _ in 0..rng.below(12) {
            let block = used[rng.below(used.len() as u64) as usize];
            let (byte, mask) = (rng.below(4096) as usize, 1 + rng.below(255) as u8);
            image.bytes_mut(block).unwrap()[byte] ^= mask;
        }
        for _ in 0..rng.below(4) {
            let zone = rng.below(states.len() as u64) as usize;
            states[zone] = match rng.below(4) {
                0 => (ZoneState::Empty, 0),
                1 => (ZoneState::Full, zones.capacity),
                2 => (ZoneState::ReadOnly, 7),
                _ => (ZoneState::Closed, 1 + rng.below(zones.capacity - 1)),
            };
        }
        let device = ZonedDevice::found(image, zones, states);
        let _ = check(device.clone(), CheckOptions::default(), |_| {});
        let _ = repair(device.clone());
        let Ok(mut fs) = F2fs::mount(device, Options::default(), SimTime::ZERO) else { continue };
        mounted += 1;
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        if let Ok(made) = fs.create(&Caller::default(), fs.root(), b"new", &node) {
            let _ = fs.write(&Caller::default(), made.ino, 0, &[1; 50_000]);
            let _ = fs.fsync(made.ino, false);
        }
        let _ = fs.unmount();
    }
    assert!(mounted > 50, "{mounted}");
}

/// A repair writes what it changes to the start of an empty zone, and resets zones that hold
/// nothing; without the zones it does nothing.
#[test]
fn a_zoned_volume_is_repaired_in_the_order_of_its_zones() {
    let mut fs = mount(zoned_volume(512, zones(512, 16, 12, 4)), "");
    let ino = file(&mut fs, b"file");
    fill(&mut fs, ino, 3);
    let device = fs.unmount().unwrap().device;
    let layout = *device.table().zones();
    let states: Vec<_> = (0..layout.count)
        .map(|zone| (device.table().state(zone), device.table().written(zone)))
        .collect();
    let mut lab = Lab::new(device.into_below());
    let links = lab.in_inode("file", 12);
    lab.set(links, &7_u32.to_le_bytes());
    let refused = repair(lab.image.clone()).unwrap_err();
    assert_eq!(refused, RepairError::NoZones);
    let mut states = states;
    states[20] = (ZoneState::Closed, 40);
    let mut device = ZonedDevice::found(lab.image, layout, states);
    let report = check(&mut device, CheckOptions::default(), |_| {}).unwrap();
    assert!(report.findings.iter().any(|found| matches!(found, Finding::ZoneLeft { .. })));
    let done = repair(&mut device).unwrap();
    assert_eq!(done.len(), 2, "{done:?}");
    let report = check(&mut device, CheckOptions::default(), |_| {}).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(device.table().state(20), ZoneState::Empty);
    let mut fs = mount(device, "");
    let found = fs.lookup(fs.root(), b"file").unwrap();
    assert_eq!(found.links, 1);
    fs.write(&Caller::default(), found.ino, 0, &[3; 100_000]).unwrap();
    fs.unmount().unwrap();
}

/// A pointer that is moved on, taken back, or left where nothing is: one finding each.
#[test]
fn each_wrong_write_pointer_has_its_finding() {
    let mut fs = mount(zoned_volume(512, zones(512, 16, 16, 2)), "");
    let ino = file(&mut fs, b"file");
    fill(&mut fs, ino, 20);
    let device = fs.unmount().unwrap().device;
    let layout = *device.table().zones();
    let states: Vec<_> = (0..layout.count)
        .map(|zone| (device.table().state(zone), device.table().written(zone)))
        .collect();
    let log = states.iter().position(|(state, _)| *state == ZoneState::ImplicitlyOpen).unwrap();
    let full = states.iter().position(|(state, _)| *state == ZoneState::Full).unwrap();
    let found = |zone: usize, state: (ZoneState, u64)| {
        let mut states = states.clone();
        states[zone] = state;
        let device = ZonedDevice::found(device.below().clone(), layout, states);
        let report = check(device, CheckOptions::default(), |_| {}).unwrap();
        report.findings.iter().map(|finding| finding.kind().name).collect::<Vec<_>>()
    };
    let written = states[log].1;
    assert_eq!(found(log, states[log]), [""; 0]);
    assert_eq!(found(log, (ZoneState::Closed, written + 9)), ["LogPointer"]);
    assert_eq!(found(full, (ZoneState::Closed, 9)), ["BeyondPointer"]);
    assert_eq!(found(26, (ZoneState::Full, layout.capacity)), ["ZoneLeft"]);
}

/// A device that outlives its mount; with `cut` it performs no write.
#[derive(Clone, Debug)]
struct Cut {
    device: Arc<Mutex<Zoned>>,
    cut: bool,
}

impl BlockDevice for Cut {
    fn info(&self) -> DeviceInfo {
        self.device.lock().unwrap().info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if self.cut && matches!(command, Command::Write { .. }) {
            return Err(DeviceError::Internal("the power is cut".into()));
        }
        self.device.lock().unwrap().submit(at, command)
    }
}

performs_at_once!(Cut);

/// A recovery finishes zones. A block that was lost must not count as there for the next one.
#[test]
fn a_recovery_that_is_cut_leaves_lost_blocks_lost() {
    let mut fs = mount(zoned_volume(512, zones(512, 16, 16, 4)), "");
    let ino = file(&mut fs, b"file");
    let rewrite = |fs: &mut F2fs<Watched>, byte: u8| {
        fs.write(&Caller::default(), ino, 0, &[byte; 4096]).unwrap();
        fs.fsync(ino, false).unwrap();
    };
    // the first fsync of a mount is a checkpoint
    (0..3).for_each(|_| rewrite(&mut fs, 1));
    let written = |fs: &F2fs<Watched>| -> Vec<(ZoneState, u64)> {
        let table = fs.device().device.table();
        (0..table.zones().count).map(|zone| (table.state(zone), table.written(zone))).collect()
    };
    let before = written(&fs);
    rewrite(&mut fs, 2);
    let device = fs.into_device().device;
    let layout = *device.table().zones();
    let state = |zone| (device.table().state(zone), device.table().written(zone));
    let mut states: Vec<_> = (0..layout.count).map(state).collect();
    let grown: Vec<usize> =
        (0..states.len()).filter(|&zone| states[zone] != before[zone]).collect();
    let mut image = device.into_below();
    // the power was cut when the node was durable, and the block was not
    let holds = |image: &MemoryDevice, zone: usize| {
        let last = layout.start(zone as u32).0 + states[zone].1 - 1;
        image.bytes(Lba(last)).is_some_and(|bytes| bytes[..] == [2; 4096])
    };
    let zone = grown.into_iter().find(|&zone| holds(&image, zone)).unwrap();
    states[zone].1 -= 1;
    image.set(Lba(layout.start(zone as u32).0 + states[zone].1), Content::Empty);

    let device = ZonedDevice::found(image, layout, states);
    let mut device = Cut { device: Arc::new(Mutex::new(device)), cut: true };
    F2fs::mount(device.clone(), Options::default(), SimTime::ZERO).unwrap_err();
    device.cut = false;
    let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let mut content = [0; 4096];
    fs.read(ino, 0, &mut content).unwrap();
    assert!(content == [1; 4096], "{:?}", &content[..4]);
    let device = fs.unmount().unwrap();
    let report = check(device, CheckOptions::default(), |_| {}).unwrap();
    assert_eq!(report.findings, []);
}
