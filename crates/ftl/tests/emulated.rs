//! A drive in a file keeps what was flushed, whatever it did in between, and refuses files that are
//! none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba, SectorRange,
    ZoneAction, ZoneState, ZoneTable, Zones,
};
use dovetail_ftl::{EmulatedDrive, EmulatedError, Overrides, Profile, Storage, SwitchedOn};
use dovetail_time::{Rng, SimTime};
use tempfile::TempDir;

fn drive_file(profile: &str, scale: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive");
    let overrides = Overrides {
        scale: scale.parse().ok(),
        over_provisioning: Some(30.0),
        ..Overrides::default()
    };
    EmulatedDrive::create(&path, &Profile::load(profile).unwrap(), &overrides).unwrap();
    (folder, path)
}

#[test]
fn a_serial_number_is_its_drive_s_whatever_the_file_is_called() {
    let (folder, path) = drive_file("fsdv-5g", "1/256");
    let serial = open(&path).drive().config().serial;
    let overrides = Overrides { scale: "1/256".parse().ok(), ..Overrides::default() };
    let other = folder.path().join("other");
    EmulatedDrive::create(&other, &Profile::load("fsdv-5g").unwrap(), &overrides).unwrap();
    assert_ne!(open(&other).drive().config().serial, serial);
    fs::rename(&path, &other).unwrap();
    assert_eq!(open(&other).drive().config().serial, serial);
}

fn open(path: &Path) -> EmulatedDrive {
    EmulatedDrive::open(path, true).unwrap().0
}

fn bytes(number: u64) -> Content {
    let mut block = [0; 4096];
    block[..8].copy_from_slice(&number.to_le_bytes());
    Content::Bytes(Arc::new(block))
}

fn write(drive: &mut EmulatedDrive, lba: u64, content: Content) -> Result<(), DeviceError> {
    let range = BlockRange::new(Lba(lba), 1);
    let data = Data::Blocks(std::slice::from_ref(&content));
    drive
        .submit(SimTime::ZERO, Command::Write { range, data, hints: Hints::default(), fua: false })
        .map(drop)
}

fn read(drive: &mut EmulatedDrive, lba: u64) -> Content {
    let mut into = [Content::Empty];
    let range = BlockRange::new(Lba(lba), 1);
    drive.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut into) }).unwrap();
    let [content] = into;
    content
}

fn flush(drive: &mut EmulatedDrive) {
    drive.submit(SimTime::ZERO, Command::Flush).unwrap();
}

/// Several times its capacity is written, so that lines are cleaned and erased, and it is switched
/// off in between.
#[test]
fn what_was_flushed_is_there_after_each_switch_on() {
    for (profile, scale) in [("femu-32g-log", "1/512"), ("openssd-230g", "1/2048")] {
        let (_folder, path) = drive_file(profile, scale);
        let blocks = open(&path).info().blocks;
        let (mut expected, mut rng) = (vec![Content::Empty; blocks as usize], Rng::new(5));
        let (mut number, mut erases) = (0, 0);
        for _ in 0..2 {
            let mut drive = open(&path);
            drive.drive().page_mapped().unwrap().check().unwrap();
            for _ in 0..blocks {
                let lba = rng.below(blocks);
                number += 1;
                if rng.chance(0.1) {
                    let ranges = [SectorRange::from(BlockRange::new(Lba(lba), 1))];
                    drive.submit(SimTime::ZERO, Command::Discard { ranges: &ranges }).unwrap();
                    expected[lba as usize] = Content::Empty;
                } else {
                    write(&mut drive, lba, bytes(number)).unwrap();
                    expected[lba as usize] = bytes(number);
                }
            }
            flush(&mut drive);
            erases = drive.drive().erase_counts().iter().sum();
            drop(drive);
            let mut again = EmulatedDrive::open(&path, false).unwrap().0;
            for (lba, content) in expected.iter().enumerate() {
                assert_eq!(read(&mut again, lba as u64), *content, "{profile} block {lba}");
            }
            assert_eq!(again.drive().erase_counts().iter().sum::<u32>(), erases);
            assert_eq!(write(&mut again, 0, bytes(0)), Err(DeviceError::NotWritable));
        }
        assert!(erases > 100, "{profile} was erased {erases} times");
    }
}

/// Of what was not flushed a host that fails may lose any part: here the bytes of one page.
#[test]
fn a_page_whose_bytes_did_not_arrive_is_torn_and_the_older_one_counts() {
    let (_folder, path) = drive_file("femu-32g-log", "1/512");
    let mut drive = open(&path);
    write(&mut drive, 7, bytes(1)).unwrap();
    flush(&mut drive);
    let before = fs::read(&path).unwrap();
    write(&mut drive, 7, bytes(0x1122_3344_5566_7788)).unwrap();
    flush(&mut drive);
    drop(drive);
    let after = fs::read(&path).unwrap();
    let needle = 0x1122_3344_5566_7788_u64.to_le_bytes();
    let at = after.windows(8).position(|window| window == needle).unwrap();
    assert_ne!(before[at..at + 8], needle);
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .write_all_at(&[0; 8], at as u64)
        .unwrap();
    let (mut again, report) = EmulatedDrive::open(&path, true).unwrap();
    let SwitchedOn::PageMapped(report) = report else { panic!("it has no zones") };
    assert_eq!(report.torn_pages, 1);
    assert_eq!(read(&mut again, 7), bytes(1));
}

#[test]
fn what_is_no_drive_file_is_refused_in_a_sentence() {
    let (folder, path) = drive_file("femu-32g-log", "1/512");
    let other = folder.path().join("other");
    fs::write(&other, [7; 100]).unwrap();
    assert!(matches!(EmulatedDrive::open(&other, false), Err(EmulatedError::NotADrive)));
    assert!(!EmulatedDrive::is_one(&other).unwrap() && EmulatedDrive::is_one(&path).unwrap());
    let mut file = fs::read(&path).unwrap();
    file[30] ^= 1;
    fs::write(&other, &file).unwrap();
    assert!(matches!(EmulatedDrive::open(&other, false), Err(EmulatedError::Header)));
    file[30] ^= 1;
    fs::write(&other, &file[..file.len() / 2]).unwrap();
    assert!(
        EmulatedDrive::open(&other, false)
            .unwrap_err()
            .to_string()
            .contains("shorter than its flash")
    );
    file[8] = 9;
    fs::write(&other, &file).unwrap();
    assert!(EmulatedDrive::open(&other, false).unwrap_err().to_string().contains("version 9"));
    let overrides = Overrides::default();
    let refused = EmulatedDrive::create(&other, &Profile::load("femu-32g").unwrap(), &overrides);
    assert!(refused.unwrap_err().to_string().contains("femu-32g-log"));
}

/// The zones of the drive in a file.
fn table(drive: &EmulatedDrive) -> &ZoneTable {
    drive.drive().zoned().unwrap().zones()
}

fn act(drive: &mut EmulatedDrive, zones: &Zones, zone: u32, action: ZoneAction) {
    let start = Some(zones.start(zone));
    drive.submit(SimTime::ZERO, Command::Zone { start, action }).unwrap();
}

/// Zones are written, finished and reset at random; each time the drive is switched on, states,
/// write pointers and contents are those of the last flush, or what was written since as far as it
/// is there.
#[test]
fn a_zoned_drive_is_kept_with_its_zones() {
    for (seed, profile, scale) in [(1, "femu-32g-zoned", "1/256"), (2, "zn540-1t", "1/2048")] {
        let (_folder, path) = drive_file(profile, scale);
        let mut rng = Rng::new(seed);
        let mut drive = open(&path);
        let zones = *table(&drive).zones();
        assert!(zones.count > 8 && matches!(drive.drive(), Storage::Zoned(_)));
        let used = 6.min(zones.count);
        // by zone: the numbers of its blocks' contents, and how many of them were flushed
        let mut model = vec![(Vec::new(), 0, false); used as usize];
        for number in 0..6_000 {
            let zone = rng.below(u64::from(used)) as u32;
            let (blocks, flushed, is_full) = &mut model[zone as usize];
            match rng.below(400) {
                0 => {
                    act(&mut drive, &zones, zone, ZoneAction::Reset);
                    (*blocks, *flushed, *is_full) = (Vec::new(), 0, false);
                }
                1 if !*is_full && !blocks.is_empty() => {
                    act(&mut drive, &zones, zone, ZoneAction::Finish);
                    (*flushed, *is_full) = (blocks.len(), true);
                }
                2..12 => {
                    flush(&mut drive);
                    model.iter_mut().for_each(|zone| zone.1 = zone.0.len());
                }
                12 => {
                    drop(drive);
                    drive = open(&path);
                    for (zone, (blocks, flushed, is_full)) in (0..).zip(&mut model) {
                        let written = table(&drive).written(zone) as usize;
                        let kept = *flushed..=blocks.len();
                        assert!(kept.contains(&written), "zone {zone}: {written} of {kept:?}");
                        let state = table(&drive).state(zone);
                        assert_eq!(state == ZoneState::Full, *is_full, "zone {zone}: {state:?}");
                        assert!(!state.is_open());
                        blocks.truncate(written);
                        *flushed = written;
                        for (offset, number) in (0..).zip(blocks.iter()) {
                            let found = read(&mut drive, zones.start(zone).0 + offset);
                            assert_eq!(found, bytes(*number), "zone {zone}, block {offset}");
                        }
                    }
                }
                _ if !*is_full => {
                    let at = zones.start(zone).0 + blocks.len() as u64;
                    write(&mut drive, at, bytes(number)).unwrap();
                    blocks.push(number);
                    *is_full = blocks.len() as u64 == zones.capacity;
                    if *is_full {
                        flush(&mut drive);
                        model.iter_mut().for_each(|zone| zone.1 = zone.0.len());
                    }
                }
                _ => {}
            }
        }
        drop(drive);
        let mut drive = EmulatedDrive::open(&path, false).unwrap().0;
        let reset = Command::Zone { start: None, action: ZoneAction::Reset };
        let refused = drive.submit(SimTime::ZERO, reset).unwrap_err();
        assert!(matches!(refused, DeviceError::NotWritable), "{refused}");
    }
}
