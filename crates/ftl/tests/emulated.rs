//! A drive in a file keeps what was flushed, whatever it did in between, and refuses files that are
//! none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba, SectorRange,
};
use dovetail_ftl::{EmulatedDrive, EmulatedError, Overrides, Profile};
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
            drive.drive().check().unwrap();
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
            erases = drive.drive().erase_counts().sum();
            drop(drive);
            let mut again = EmulatedDrive::open(&path, false).unwrap().0;
            for (lba, content) in expected.iter().enumerate() {
                assert_eq!(read(&mut again, lba as u64), *content, "{profile} block {lba}");
            }
            assert_eq!(again.drive().erase_counts().sum::<u32>(), erases);
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
