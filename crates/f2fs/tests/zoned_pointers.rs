//! Write pointers that contradict the volume: of each log and of zones that nobody owns, ahead,
//! behind, full, read-only and offline.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it saw"
)]

use dovetail_block::{MemoryDevice, ZoneState};
use dovetail_f2fs::fsck::{Finding, Options as CheckOptions, Severity, check, repair};
use dovetail_f2fs::{F2fs, Options, Volume};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, NewNode};

use crate::common::bed::{Bed, BedDevice, on_one, zoned_beds};
use crate::common::lab::Lab;

const FILES: u64 = 12;

/// A volume with synced files, and one that was only fsynced if it was cut.
fn in_use(device: BedDevice, is_cut: bool) -> BedDevice {
    let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let (root, caller) = (fs.root(), Caller::default());
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let make = |fs: &mut F2fs<BedDevice>, name: String, byte: u8| {
        let ino = fs.create(&caller, root, name.as_bytes(), &node).unwrap().ino;
        fs.write(&caller, ino, 0, &vec![byte; 300_000]).unwrap();
        ino
    };
    for n in 0..FILES {
        make(&mut fs, format!("file{n}"), n as u8);
    }
    let large = make(&mut fs, "large".into(), 99);
    (0..20).for_each(|n| fs.write(&caller, large, n << 20, &vec![99; 1 << 20]).unwrap());
    fs.sync().unwrap();
    if !is_cut {
        return fs.unmount().unwrap();
    }
    let fsynced = make(&mut fs, "fsynced".into(), 77);
    fs.fsync(fsynced, false).unwrap();
    make(&mut fs, "lost".into(), 78);
    fs.into_device()
}

/// Files of which each byte is as it was written.
fn intact(fs: &mut F2fs<BedDevice>) -> usize {
    let mut names: Vec<_> = (0..FILES).map(|n| (format!("file{n}"), n as u8)).collect();
    names.push(("fsynced".into(), 77));
    let mut is_whole = |(name, byte): &(String, u8)| {
        let mut content = vec![0; 300_000];
        let found = fs.lookup(fs.root(), name.as_bytes());
        let read = found.and_then(|found| fs.read(found.ino, 0, &mut content));
        read.is_ok_and(|len| len == content.len()) && content.iter().all(|found| found == byte)
    };
    names.iter().filter(|file| is_whole(file)).count()
}

fn kinds(device: BedDevice) -> Result<Vec<&'static str>, String> {
    let report = check(device, CheckOptions::default(), |_| {}).map_err(|e| e.to_string())?;
    let kinds = report.findings.iter().map(Finding::kind);
    let mut names: Vec<_> =
        kinds.filter(|kind| kind.severity != Severity::Note).map(|kind| kind.name).collect();
    names.dedup();
    Ok(names)
}

/// Outcome of each way to use a volume with a contradiction.
#[derive(Debug)]
struct Outcome {
    /// Files that a mount without writing shows whole; or why it was refused.
    read_only: Result<usize, String>,
    /// Kinds of findings.
    check: Result<Vec<&'static str>, String>,
    /// Kinds of findings after a repair.
    repaired: Result<Vec<&'static str>, String>,
    /// Files that a mount shows whole, after which it was written to, unmounted and checked.
    mounted: Result<usize, String>,
    /// The zones after that mount began.
    after: Vec<(ZoneState, u64)>,
}

/// Writes 24 MiB to a new file.
fn change(fs: &mut F2fs<BedDevice>) -> Result<(), dovetail_vfs::Error> {
    let (root, node) = (fs.root(), NewNode { mode: 0o100_644, rdev: (0, 0) });
    let made = fs.create(&Caller::default(), root, b"new", &node)?.ino;
    for n in 0..24 {
        fs.write(&Caller::default(), made, n << 20, &vec![1; 1 << 20])?;
    }
    fs.fsync(made, false)
}

fn outcome(name: &str, image: &MemoryDevice, bed: &Bed, expected: Expected) -> Outcome {
    let device = || bed.device(image);
    let options = Options { read_only: true, ..Options::default() };
    let read_only = F2fs::mount(device(), options, SimTime::ZERO).map(|mut fs| {
        let whole = intact(&mut fs);
        let left = fs.into_device();
        assert!(left.image().used().eq(image.used()), "{name}: written read-only");
        assert_eq!(left.bed().states, bed.device(image).bed().states, "{name}: zones read-only");
        whole
    });
    let mut repaired = device();
    let repaired = match repair(&mut repaired) {
        Ok(_) => {
            let again = repair(&mut repaired);
            assert!(again.as_ref().is_ok_and(Vec::is_empty), "{name}: {again:?}");
            kinds(repaired)
        }
        Err(error) => Err(error.to_string()),
    };
    let mut after = Vec::new();
    let mounted = F2fs::mount(device(), Options::default(), SimTime::ZERO).map(|mut fs| {
        let whole = intact(&mut fs);
        after = fs.device().bed().states;
        let changed = change(&mut fs);
        let left = fs.unmount();
        if expected != Expected::Lost {
            changed.unwrap();
            assert_eq!(kinds(left.unwrap()), Ok(vec![]), "{name}, after a mount");
        }
        whole
    });
    let text = |error: dovetail_f2fs::Error| error.to_string();
    Outcome {
        read_only: read_only.map_err(text),
        check: kinds(device()),
        repaired,
        mounted: mounted.map_err(text),
        after,
    }
}

/// Each log's zone and position in it.
fn logs(device: &BedDevice) -> Vec<(usize, u64)> {
    let volume = Volume::open(device.clone()).unwrap();
    let (superblock, bed) = (volume.superblock(), device.bed());
    let per_section = superblock.segments_per_section;
    let place = |log: &dovetail_f2fs::format::LogPosition| {
        let block = superblock.main_start.0 + u64::from(log.segment.0) * 512;
        let offset = u64::from(log.segment.0 % per_section) * 512 + u64::from(log.offset);
        bed.zone_of(block).map(|zone| (zone, offset))
    };
    volume.checkpoint().logs.iter().filter_map(place).collect()
}

/// A way in which a zone's report contradicts the volume.
struct Case {
    what: String,
    zone: usize,
    state: (ZoneState, u64),
    expected: Expected,
}

/// The result that must come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// Nothing is lost: all files are whole, and the log, if one was there, is elsewhere.
    Whole,
    /// The zone holds nothing and no log: a check finds it, a repair and a mount reset it.
    Left,
    /// The device has lost blocks, or a zone: every use ends, and nothing is written wrongly.
    Lost,
}

fn cases(device: &BedDevice) -> Vec<Case> {
    let bed = device.bed();
    let capacity = bed.capacity();
    let mut cases = Vec::new();
    let mut add = |what: &str, zone: usize, state, expected| {
        cases.push(Case { what: format!("zone {zone}, {what}"), zone, state, expected });
    };
    for (zone, at) in logs(device) {
        let written = bed.states[zone].1.max(at);
        let ahead = (ZoneState::Closed, (written + 7).min(capacity - 1));
        add("pointer ahead", zone, ahead, Expected::Whole);
        add("full", zone, (ZoneState::Full, capacity), Expected::Whole);
        add("read-only", zone, (ZoneState::ReadOnly, written), Expected::Whole);
        if at == 0 && written == 0 {
            add("offline and fresh", zone, (ZoneState::Offline, 0), Expected::Whole);
            continue;
        }
        add("offline", zone, (ZoneState::Offline, 0), Expected::Lost);
        add("empty", zone, (ZoneState::Empty, 0), Expected::Lost);
        if at > 1 {
            add("pointer behind", zone, (ZoneState::Closed, at - 1), Expected::Lost);
        }
    }
    let last = bed.states.iter().rposition(|(state, _)| *state == ZoneState::Empty).unwrap();
    add("nobody's, written", last, (ZoneState::Closed, 5), Expected::Left);
    add("nobody's, full", last, (ZoneState::Full, capacity), Expected::Left);
    add("nobody's, read-only", last, (ZoneState::ReadOnly, 0), Expected::Whole);
    add("nobody's, read-only and written", last, (ZoneState::ReadOnly, 9), Expected::Whole);
    add("nobody's, offline", last, (ZoneState::Offline, 0), Expected::Whole);
    if let Some(full) = bed.states.iter().position(|(state, _)| *state == ZoneState::Full) {
        add("data, read-only", full, (ZoneState::ReadOnly, capacity), Expected::Whole);
        add("data, offline", full, (ZoneState::Offline, 0), Expected::Lost);
        add("data, pointer behind", full, (ZoneState::Closed, 5), Expected::Lost);
    }
    cases
}

/// Holds what comes of a case against what must.
fn judge(case: &Case, is_cut: bool, image: &MemoryDevice, bed: &Bed) {
    let mut bed = bed.clone();
    bed.states[case.zone] = case.state;
    let outcome = outcome(&case.what, image, &bed, case.expected);
    let what = format!("{}, cut {is_cut}: {outcome:?}", case.what);
    let synced = FILES as usize;
    if case.expected == Expected::Lost {
        return;
    }
    assert_eq!(outcome.read_only, Ok(synced), "{what}");
    assert_eq!(outcome.mounted, Ok(synced + usize::from(is_cut)), "{what}");
    let found = outcome.check.as_ref().unwrap();
    assert!(found.iter().all(|kind| ["LogPointer", "ZoneLeft"].contains(kind)), "{what}");
    assert_eq!(found.contains(&"ZoneLeft"), case.expected == Expected::Left, "{what}");
    match &outcome.repaired {
        Ok(left) => assert!(!left.contains(&"ZoneLeft"), "{what}"),
        Err(refused) => assert!(is_cut && refused.contains("await recovery"), "{what}"),
    }
    if case.expected == Expected::Left {
        assert_eq!(outcome.after[case.zone].0, ZoneState::Empty, "{what}");
    }
}

/// Read-only mounts write nothing and reset nothing; mounts lose no file that the device has;
/// checks name what contradicts; repairs reset what is nobody's; no zone ever refuses a command.
#[test]
fn a_report_that_contradicts_the_volume_costs_nothing_that_is_there() {
    let mut tried = 0;
    for (name, device) in beds() {
        for is_cut in [false, true] {
            let device = in_use(device.clone(), is_cut);
            let (image, bed) = (device.image(), device.bed());
            for case in cases(&device) {
                judge(
                    &Case { what: format!("{name}, {}", case.what), ..case },
                    is_cut,
                    &image,
                    &bed,
                );
                tried += 1;
            }
        }
    }
    println!("{tried} contradictions");
    assert!(tried >= 90, "{tried}");
}

/// A repair takes no zone that can only be read, though it is the last without a block in use, and
/// what wears out while it holds files is never taken again.
#[test]
fn worn_zones_are_never_written() {
    let device = in_use(on_one(512, 16, 16, 4), false);
    let mut lab = Lab::new(device.image());
    let links = lab.in_inode("file1", 12);
    lab.set(links, &7_u32.to_le_bytes());
    let mut bed = device.bed();
    let last = bed.states.len() - 1;
    bed.states[last] = (ZoneState::ReadOnly, 0);
    let mut repaired = bed.device(&lab.image);
    assert_eq!(repair(&mut repaired).unwrap().len(), 1);
    assert_eq!(kinds(repaired), Ok(vec![]));
    let full = bed.states.iter().position(|(state, _)| *state == ZoneState::Full).unwrap();
    bed.states[full].0 = ZoneState::ReadOnly;
    let mut fs =
        F2fs::mount(bed.device(&device.image()), Options::default(), SimTime::ZERO).unwrap();
    let root = fs.root();
    fs.unlink(&Caller::default(), root, b"large").unwrap();
    fs.sync().unwrap();
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    for round in 0..8 {
        let made = fs.create(&Caller::default(), root, b"again", &node).unwrap().ino;
        for n in 0..64 {
            fs.write(&Caller::default(), made, n << 20, &vec![round; 1 << 20]).unwrap();
        }
        fs.sync().unwrap();
        fs.unlink(&Caller::default(), root, b"again").unwrap();
    }
    let left = fs.unmount().unwrap();
    assert_eq!(left.bed().states[full].0, ZoneState::ReadOnly);
    assert_eq!(kinds(left), Ok(vec![]));
}

fn beds() -> Vec<(&'static str, BedDevice)> {
    let mut beds = zoned_beds().to_vec();
    beds.push(("capacity", on_one(512, 16, 12, 2)));
    beds
}
