//! IPLFS: a volume on a thin device, from mkfs to the next mount; what the device holds is what the
//! volume has.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::iplfs::{
    iplfs_device, iplfs_options, leaks, leaks_after_mount, narrow_options, thin,
};
use dovetail_block::{AREA_BLOCKS, AREAS, MemoryDevice};
use dovetail_f2fs::fsck::{Options as CheckOptions, check};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{Error, F2fs, Options, Volume};
use dovetail_testkit::{RecordingDevice, Survivors};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::kit::VolumeTree;
use dovetail_vfs::{Caller, Devirtualize as _, Fallocate, FileSystem, Ino, NewNode};

const MIB: u64 = 1 << 20;

fn fresh(bytes: u64) -> MemoryDevice {
    iplfs_device(bytes, &iplfs_options())
}

fn mount(device: MemoryDevice) -> F2fs<MemoryDevice> {
    F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

#[test]
fn pointers_to_the_drive_s_own_addresses_are_refused_with_the_reason() {
    let said = mount(fresh(64 * MIB)).renames_at_once().unwrap_err().to_string();
    assert!(said.starts_with("an IPLFS volume cannot have pointers"), "{said}");
    assert!(said.contains("its addresses are used once, in order"), "{said}");
}

fn file(fs: &mut F2fs<MemoryDevice>, name: &str) -> Ino {
    let root = fs.root();
    fs.create(&Caller::default(), root, name.as_bytes(), &NewNode { mode: 0o100_644, rdev: (0, 0) })
        .unwrap()
        .ino
}

fn content(fs: &mut F2fs<MemoryDevice>, ino: Ino) -> Vec<u8> {
    let mut bytes = vec![0; fs.getattr(ino).unwrap().size as usize];
    fs.read(ino, 0, &mut bytes).unwrap();
    bytes
}

/// After all is written and discarded, the device holds what the volume has, and nothing else.
fn assert_no_leak(fs: &mut F2fs<MemoryDevice>) {
    assert_eq!(leaks(fs, |fs| fs.device().clone()), [""; 0]);
}

#[test]
fn what_is_written_is_read_after_the_next_mount() {
    let mut fs = mount(fresh(64 * MIB));
    assert_no_leak(&mut fs);
    let (small, large) = (file(&mut fs, "small"), file(&mut fs, "large"));
    fs.write(&Caller::default(), small, 0, b"few bytes").unwrap();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|n| (n / 1000) as u8).collect();
    fs.write(&Caller::default(), large, 0, &bytes).unwrap();
    fs.sync().unwrap();
    fs.write(&Caller::default(), large, 4096 * 600, &[7; 8192]).unwrap();
    assert_no_leak(&mut fs);
    let mut fs = mount(fs.unmount().unwrap());
    let root = fs.root();
    let (small, large) =
        (fs.lookup(root, b"small").unwrap().ino, fs.lookup(root, b"large").unwrap().ino);
    assert_eq!(content(&mut fs, small), b"few bytes");
    let found = content(&mut fs, large);
    assert!(
        found[..4096 * 600] == bytes[..4096 * 600] && found[4096 * 600..4096 * 602] == [7; 8192]
    );
    fs.unlink(&Caller::default(), root, b"large").unwrap();
    assert_no_leak(&mut fs);
    let mut volume = Volume::open(fs.unmount().unwrap()).unwrap();
    let inode = volume.resolve(b"/small").unwrap();
    let mut bytes = [0; 9];
    assert_eq!(volume.read(&inode, 0, &mut bytes).unwrap(), 9);
    assert_eq!(&bytes, b"few bytes");
}

#[test]
fn what_was_fsynced_is_recovered_and_the_rest_does_not_leak() {
    let mut fs = mount(fresh(64 * MIB));
    let old = file(&mut fs, "old");
    fs.write(&Caller::default(), old, 0, &[1; 100 * 4096]).unwrap();
    fs.sync().unwrap();
    let new = file(&mut fs, "new");
    fs.write(&Caller::default(), new, 0, &[2; 50 * 4096]).unwrap();
    fs.write(&Caller::default(), old, 10 * 4096, &[3; 20 * 4096]).unwrap();
    fs.fsync(new, false).unwrap();
    fs.fsync(old, false).unwrap();
    let lost = file(&mut fs, "lost");
    fs.write(&Caller::default(), lost, 0, &[4; 300 * 4096]).unwrap();
    assert_eq!(fs.events().checkpoints, 1, "both fsyncs were records");
    let mut fs = mount(fs.into_device());
    let root = fs.root();
    assert!(fs.lookup(root, b"lost").is_err());
    let (new, old) = (fs.lookup(root, b"new").unwrap().ino, fs.lookup(root, b"old").unwrap().ino);
    assert!(content(&mut fs, new) == [2; 50 * 4096]);
    assert!(content(&mut fs, old)[10 * 4096..30 * 4096] == [3; 20 * 4096]);
    assert_no_leak(&mut fs);
}

#[test]
fn a_device_that_is_not_thin_is_refused() {
    let mut dense = MemoryDevice::new(1 << 20);
    let error = mkfs(&mut dense, &iplfs_options()).unwrap_err();
    assert!(error.to_string().contains("more addresses than room"), "{error}");
    assert!(mkfs(&mut thin(1 << 20), &iplfs_options()).is_err(), "too little room");
    let mut short = MemoryDevice::thin(1 << 40, 1 << 20);
    assert!(mkfs(&mut short, &iplfs_options()).unwrap_err().to_string().contains("too few"));
    let device = fresh(64 * MIB);
    let mut copy = MemoryDevice::new(AREAS * AREA_BLOCKS);
    for (lba, content) in device.used() {
        let range = dovetail_block::BlockRange::new(lba, 1);
        let data = dovetail_block::Data::Blocks(std::slice::from_ref(content));
        let hints = dovetail_block::Hints::default();
        let write = dovetail_block::Command::Write { range, data, hints, fua: false };
        dovetail_block::BlockDevice::submit(&mut copy, SimTime::ZERO, write).unwrap();
    }
    let error = F2fs::mount(copy, Options::default(), SimTime::ZERO).unwrap_err();
    assert!(matches!(error, Error::Incompatible(dovetail_f2fs::Incompatible::NotThin)), "{error}");
}

#[test]
fn options_that_make_no_sense_are_refused_in_a_sentence() {
    for list in ["mode=rm-ipu", "mode=rm-ipu-adaptive,remap=fsync", "nodiscard"] {
        let options = Options::parse(list).unwrap();
        let error = F2fs::mount(fresh(64 * MIB), options, SimTime::ZERO).unwrap_err();
        assert!(
            error.to_string().starts_with("an IPLFS volume cannot be mounted with"),
            "{list}: {error}"
        );
    }
    for list in
        ["mode=lfs", "mode=adaptive", "alloc_mode=reuse", "background_gc=on", "active_logs=2", "ro"]
    {
        F2fs::mount(fresh(64 * MIB), Options::parse(list).unwrap(), SimTime::ZERO).unwrap();
    }
}

/// Overwrites every third block of a file, a part of it each round, so that what is given up are
/// blocks that stand alone.
fn scatter(fs: &mut F2fs<RecordingDevice<MemoryDevice>>, rounds: u64) {
    let root = fs.root();
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&Caller::default(), root, b"scattered", &node).unwrap().ino;
    fs.write(&Caller::default(), ino, 0, &vec![1; 400 * rounds as usize * 4096]).unwrap();
    fs.sync().unwrap();
    for round in 0..rounds {
        for block in (400 * round..400 * (round + 1)).step_by(3) {
            fs.write(&Caller::default(), ino, block * 4096, &[round as u8; 4096]).unwrap();
        }
        fs.sync().unwrap();
    }
}

/// A volume on which extents were scattered, with most of them still to be discarded: nobody woke
/// the discard thread.
fn scattered(options: Options) -> F2fs<RecordingDevice<MemoryDevice>> {
    let device = RecordingDevice::new(iplfs_device(64 * MIB, &iplfs_options()));
    let mut fs = F2fs::mount(device, options, SimTime::ZERO).unwrap();
    scatter(&mut fs, 6);
    fs
}

#[test]
fn what_waits_is_in_every_log_until_the_device_was_told() {
    let fs = scattered(Options::default());
    assert!(fs.awaiting_discard().len() > 600, "{}", fs.awaiting_discard().len());
    let recording = fs.device().recording();
    for crash in recording.crashes(5) {
        assert_eq!(
            leaks_after_mount(&crash.device),
            [""; 0],
            "cut {}, {:?}",
            crash.cut,
            crash.survivors
        );
    }
}

/// A log of one block has room for 256 entries; blocks 150 apart are no shorter as a bitmap.
#[test]
fn a_small_log_brings_checkpoints_forward_and_tells_the_device_first() {
    let small = MkfsOptions { discard_log_blocks: Some(1), ..iplfs_options() };
    let device = RecordingDevice::new(iplfs_device(256 * MIB, &small));
    let recording = device.recording();
    let mut fs = F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap();
    let root = fs.root();
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&Caller::default(), root, b"file", &node).unwrap().ino;
    (0..180)
        .for_each(|part| fs.write(&Caller::default(), ino, part * 819_200, &[1; 819_200]).unwrap());
    fs.sync().unwrap();
    let before = fs.events().checkpoints;
    let overwrite = |fs: &mut F2fs<RecordingDevice<MemoryDevice>>, from: u64| {
        for block in (from..from + 15_000).step_by(150) {
            fs.write(&Caller::default(), ino, block * 4096, &[9; 4096]).unwrap();
        }
        fs.sync().unwrap();
    };
    overwrite(&mut fs, 0);
    let cut = recording.position();
    let held = fs.awaiting_discard().len();
    assert!(held > 95, "{held} extents of the first round");
    overwrite(&mut fs, 15_000);
    assert_eq!(fs.events().checkpoints, before + 2);
    assert!(fs.awaiting_discard().len() > 2 * 95);
    overwrite(&mut fs, 10);
    assert!(fs.awaiting_discard().len() < 200, "what waited did not fit beside what came");
    for cut in cut..=recording.position() {
        let survivors = [Survivors::None, Survivors::All, Survivors::Random][cut % 3];
        let image = recording.image_at(cut, survivors, &mut Rng::new(cut as u64));
        assert_eq!(leaks_after_mount(&image), [""; 0], "cut {cut}, {survivors:?}");
    }
    let before = fs.events().checkpoints;
    for block in (20..24_000).step_by(150) {
        fs.write(&Caller::default(), ino, block * 4096, &[9; 4096]).unwrap();
        fs.fsync(ino, false).unwrap();
    }
    assert!(fs.events().checkpoints > before, "half a log was spoken for");
}

/// A second has twenty rounds. With the default nothing is left after the first; the paper's text
/// has sixteen commands a round.
#[test]
fn the_discard_thread_sends_what_waits_or_as_many_commands_as_it_is_told() {
    for (commands, rounds) in [(None, 1), (Some(16), 9), (Some(50), 9)] {
        let max_discard_request = commands.and_then(std::num::NonZeroU32::new);
        let mut fs = scattered(Options { max_discard_request, ..Options::default() });
        let before = fs.awaiting_discard().len();
        assert!(before > 600, "{before}");
        let expected = commands.map_or(before, |commands| rounds * commands as usize);
        assert_eq!(rounds_in_half_a_second(&mut fs), (rounds, expected), "{commands:?}");
    }
}

/// Rounds of the discard thread in half a second, and the extents that they discard.
fn rounds_in_half_a_second(fs: &mut F2fs<RecordingDevice<MemoryDevice>>) -> (usize, usize) {
    let (before, start) = (fs.awaiting_discard().len(), fs.now());
    let mut rounds = 0;
    while let Some(next) = fs.next_wake().filter(|next| next.since(start).as_ns() < 500_000_000) {
        fs.set_now(next);
        fs.wake().unwrap();
        rounds += 1;
        assert!(rounds < 100);
    }
    (rounds, before - fs.awaiting_discard().len())
}

/// 100 times what the hardiest drive of the paper's table 1 takes (3,600 TB), then far beyond:
/// addresses are only numbers.
#[test]
fn a_hundred_lifetimes_change_nothing() {
    for log_start in [0, 100 * 3_600_000_000_000_000 / 4096, 1 << 50, 1 << 57, AREA_BLOCKS - 40_000]
    {
        let options = MkfsOptions { log_start, ..iplfs_options() };
        let mut fs = mount(iplfs_device(64 * MIB, &options));
        let ino = file(&mut fs, "file");
        for round in 0..20_u64 {
            let start = round * 37 % 100 * 4096;
            fs.write(&Caller::default(), ino, start, &[round as u8; 300 * 4096]).unwrap();
            fs.fsync(ino, false).unwrap();
        }
        let mut fs = mount(fs.into_device());
        assert_eq!(content(&mut fs, ino)[4096 * 395], 8, "logs from {log_start}");
        assert_no_leak(&mut fs);
        let device = fs.device();
        assert!(
            device.used().all(|(lba, _)| lba.0 < AREA_BLOCKS || lba.0 % AREA_BLOCKS >= log_start)
        );
    }
}

#[test]
fn a_log_that_has_come_to_its_end_says_so() {
    for options in [iplfs_options(), narrow_options()] {
        let log_start = options.variant.area_blocks() - 300;
        at_the_end_of_a_log(&MkfsOptions { log_start, ..options });
    }
}

fn at_the_end_of_a_log(options: &MkfsOptions) {
    let mut fs = mount(iplfs_device(64 * MIB, options));
    let ino = file(&mut fs, "file");
    fs.write(&Caller::default(), ino, 0, &[1; 100 * 4096]).unwrap();
    fs.sync().unwrap();
    let failed = loop {
        let written =
            fs.write(&Caller::default(), ino, 0, &[2; 100 * 4096]).and_then(|()| fs.sync());
        if let Err(error) = written {
            break error;
        }
    };
    assert_eq!(failed, dovetail_vfs::Error::NoSpace);
    assert!(matches!(fs.sync_all(), Err(Error::LogAtEnd(_))));
    let report = check(fs.device().clone(), CheckOptions::default(), |_| {}).unwrap();
    assert_eq!(report.findings, []);
    let mut fs = mount(fs.into_device());
    let found = content(&mut fs, ino);
    assert!(found.len() == 100 * 4096 && found.iter().all(|byte| (1..=2).contains(byte)));
}

/// A file of 100 MiB has half of the nodes; a check finds nothing wrong with either.
#[test]
fn a_node_has_twice_the_pointers_if_addresses_are_narrow() {
    let nodes = [iplfs_options(), narrow_options()].map(|options| {
        let mut fs = mount(iplfs_device(256 * MIB, &options));
        let ino = file(&mut fs, "large");
        let bytes: Vec<u8> = (0..100 * MIB).map(|at| (at / 4096 % 251) as u8).collect();
        fs.write(&Caller::default(), ino, 0, &bytes).unwrap();
        let device = fs.unmount().unwrap();
        let report = check(device.clone(), CheckOptions::default(), |_| {}).unwrap();
        assert_eq!(report.findings, []);
        let mut fs = mount(device);
        assert!(content(&mut fs, ino) == bytes);
        assert_no_leak(&mut fs);
        fs.checkpoint_state().valid_nodes
    });
    // root and inode, direct nodes for what the inode does not point to, one indirect node
    let of = |own: u64, each: u64| 2 + (25_600 - own).div_ceil(each) as u32 + 1;
    assert_eq!(nodes, [of(436, 509), of(873, 1018)]);
}

#[test]
fn narrow_addresses_are_refused_where_they_cannot_reach() {
    let most = narrow_options().variant.area_blocks();
    let error = mkfs(&mut thin(4096 * (most + 1)), &narrow_options()).unwrap_err().to_string();
    assert!(error.ends_with("take addresses of 8 bytes"), "{error}");
}

#[test]
fn the_size_of_an_area_tells_the_width() {
    let mut image = iplfs_device(64 * MIB, &narrow_options());
    let wide = iplfs_device(64 * MIB, &iplfs_options());
    assert_eq!(Volume::open(wide).unwrap().superblock().variant, iplfs_options().variant);
    assert_eq!(Volume::open(&mut image).unwrap().superblock().variant, narrow_options().variant);
}

#[test]
fn statfs_tells_what_the_device_has_room_for() {
    let mut fs = mount(fresh(64 * MIB));
    let empty = fs.statfs().unwrap();
    assert_eq!(empty.blocks, 64 * MIB / 4096);
    assert!(empty.free > empty.blocks * 9 / 10 - 256 && empty.free < empty.blocks, "{empty:?}");
    let ino = file(&mut fs, "file");
    fs.fallocate(&Caller::default(), ino, Fallocate::Reserve { keep_size: false }, 0, 1000 * 4096)
        .unwrap();
    let full = fs.statfs().unwrap();
    assert!((1001..1010).contains(&(empty.free - full.free)), "{full:?}");
    let rest = Fallocate::Reserve { keep_size: false };
    let all = fs.fallocate(&Caller::default(), ino, rest, 0, 64 * MIB);
    assert_eq!(all, Err(dovetail_vfs::Error::NoSpace));
}
