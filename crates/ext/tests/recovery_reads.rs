//! Reads of a mount that replays the journal: each block once, and one that fails.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeMap;
use std::ops::Range;

use dovetail_block::{Lba, MemoryDevice};
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Options};
use dovetail_testkit::ReadLog;
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, NewNode};

const FILES: u32 = 150;

/// A volume whose power was cut when the journal held many transactions.
fn crashed() -> MemoryDevice {
    let mut device = MemoryDevice::new(25_600);
    mkfs(&mut device, &MkfsOptions::new(Kind::Ext4)).unwrap();
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    for number in 0..FILES {
        let name = format!("file-{number}");
        let ino = fs.create(&Caller::default(), fs.root(), name.as_bytes(), &node).unwrap().ino;
        fs.write(&Caller::default(), ino, 0, &[number as u8; 5000]).unwrap();
        fs.fsync(ino, false).unwrap();
    }
    fs.into_device()
}

/// Mounts the volume, looks at its files, and returns how often each block was read by the mount.
fn recovered(device: ReadLog) -> BTreeMap<Lba, u32> {
    let mut fs = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let mut times = BTreeMap::new();
    let reads = &fs.device().reads;
    reads.iter().flat_map(|range| range.iter()).for_each(|lba| *times.entry(lba).or_insert(0) += 1);
    for number in 0..FILES {
        let ino = fs.lookup(fs.root(), format!("file-{number}").as_bytes()).unwrap().ino;
        let mut bytes = [0; 6000];
        assert_eq!(fs.read(ino, 0, &mut bytes).unwrap(), 5000);
        assert!(bytes[..5000].iter().all(|byte| *byte == number as u8), "file {number}");
    }
    times
}

/// The blocks of the log, with what was read ahead: the longest run.
fn log_of(times: &BTreeMap<Lba, u32>) -> Range<u64> {
    let (mut run, mut longest) = (0..0, 0..0);
    for lba in times.keys() {
        run = if run.end == lba.0 { run.start..lba.0 + 1 } else { lba.0..lba.0 + 1 };
        if run.end - run.start > longest.end - longest.start {
            longest = run.clone();
        }
    }
    longest
}

#[test]
fn the_log_is_read_once() {
    let times = recovered(ReadLog::new(crashed()));
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.len() < 10, "{twice:?}");
    assert!(times.len() > FILES as usize, "{} blocks are no log of all files", times.len());
}

#[test]
fn a_block_that_is_only_read_ahead_may_be_lost() {
    let device = crashed();
    let times = recovered(ReadLog::new(device.clone()));
    let beyond = Lba(log_of(&times).end - 1);
    let again = recovered(ReadLog::new(device).without(beyond));
    assert!(again.contains_key(&beyond), "nobody asked for {beyond:?}");
}

#[test]
fn a_block_of_the_log_that_is_lost_fails_the_mount() {
    let device = crashed();
    let log = log_of(&recovered(ReadLog::new(device.clone())));
    let device = ReadLog::new(device).without(Lba(log.start + 1));
    let error = Ext::mount(device, Options::default(), SimTime::ZERO).unwrap_err();
    assert!(error.to_string().contains("lost this block"), "{error}");
}
