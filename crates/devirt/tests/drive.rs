//! ext4 on a drive: room while blocks are reached by the drive's own addresses (a volume that is as
//! good as full, one whose drive still holds what was freed, what a power cut leaves, a new volume
//! over an old one's places), wear levelling, and a check on another drive.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, Devirtualize, Hints, Lba, RemapLimits,
};
use dovetail_devirt::{Run, Selection, Way};
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Options, fsck};
use dovetail_ftl::{Drive, DriveConfig, RemapConfig, RemapStore, mapping};
use dovetail_nand::{FaultPlan, Geometry, PowerCut, Torn};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, Devirtualize as _, Error, FileSystem, Ino, NewNode};

const BLOCKS: u64 = 8192;
const BLOCK: usize = 4096;

type Fs = Ext<Drive>;

fn drive() -> Drive {
    Drive::new(config(BLOCKS)).unwrap()
}

fn config(blocks: u64) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: (blocks / 64) as u32 + 32,
        pages_per_block: 32,
        page_bytes: 4096,
    };
    DriveConfig {
        scheme: mapping::scheme("hash").unwrap(),
        wear_spread: 3,
        remap: Some(RemapConfig { limits: RemapLimits::of(600, 0), store: RemapStore::Log }),
        devirtualize: Some(600),
        ..DriveConfig::plain(geometry, blocks)
    }
}

fn format(mut drive: Drive) -> Drive {
    let options = MkfsOptions {
        block_size: Some(4096),
        journal_blocks: Some(1024),
        time: 1_700_000_000,
        ..MkfsOptions::new(Kind::Ext4)
    };
    mkfs(&mut drive, &options).unwrap();
    drive
}

fn mount(drive: Drive, physical_pointers: bool) -> Fs {
    let now = drive.idle_from();
    Ext::mount(drive, Options { physical_pointers, ..Options::default() }, now).unwrap()
}

fn create(fs: &mut Fs, name: &str) -> Ino {
    let (root, caller) = (fs.root(), Caller::default());
    fs.create(&caller, root, name.as_bytes(), &NewNode { mode: 0o100_644, rdev: (0, 0) })
        .unwrap()
        .ino
}

/// Each block says whose it is.
fn block(seed: u64, index: u64) -> Vec<u8> {
    (seed << 32 | (index + 1)).to_le_bytes().repeat(BLOCK / 8)
}

/// Writes blocks until there are as many, or room for no more; returns how many there are.
fn fill(fs: &mut Fs, ino: Ino, seed: u64, blocks: u64) -> u64 {
    for index in 0..blocks {
        match fs.write(&Caller::default(), ino, index * BLOCK as u64, &block(seed, index)) {
            Err(Error::NoSpace) => return index,
            done => assert_eq!(done, Ok(())),
        }
    }
    blocks
}

fn compare(fs: &mut Fs, ino: Ino, seed: u64, blocks: u64, what: &str) {
    let mut found = vec![0; BLOCK];
    for index in 0..blocks {
        fs.read(ino, index * BLOCK as u64, &mut found).unwrap();
        assert!(found == block(seed, index), "{what}: block {index}");
    }
}

fn run(fs: &mut Fs, way: Way) -> Result<(), Error> {
    let selection = Selection::all(fs)?;
    Run::new(fs, way, selection)?.finish(fs).map(drop)
}

/// The pages of a file in one piece lie apart, so that its extents need many nodes: with little
/// room that works, or nothing has changed.
#[test]
fn a_batch_on_a_full_volume_is_done_or_not_at_all() {
    for left in [0, 30, 40, 50, 60, 70, 80, 100, 200] {
        let what = format!("{left} blocks left");
        let mut fs = mount(format(drive()), true);
        let [big, filler] = ["big", "filler"].map(|name| create(&mut fs, name));
        assert_eq!(fill(&mut fs, big, 1, 600), 600);
        fs.sync().unwrap();
        let free = fs.statfs().unwrap().free;
        let filled = fill(&mut fs, filler, 2, free.saturating_sub(left));
        fs.sync().unwrap();
        let done = run(&mut fs, Way::ToDevice);
        assert!(matches!(done, Ok(()) | Err(Error::NoSpace)), "{what}: {done:?}");
        fs.sync().unwrap();
        let mut fs = mount(fs.unmount().unwrap(), true);
        compare(&mut fs, big, 1, 600, &what);
        compare(&mut fs, filler, 2, filled, &what);
    }
}

/// The drive holds freed blocks that it was never told of; places must find room beside them.
#[test]
fn what_was_freed_without_a_discard_takes_no_room_from_places() {
    let mut fs = mount(format(drive()), false);
    let old = create(&mut fs, "old");
    let most = fs.statfs().unwrap().free * 9 / 10;
    assert_eq!(fill(&mut fs, old, 1, most), most);
    fs.sync().unwrap();
    let root = fs.root();
    fs.unlink(&Caller::default(), root, b"old").unwrap();
    fs.sync().unwrap();
    let half = create(&mut fs, "half");
    assert_eq!(fill(&mut fs, half, 2, most / 2), most / 2);
    let mut fs = mount(fs.unmount().unwrap(), true);
    run(&mut fs, Way::ToDevice).unwrap();
    let rest = create(&mut fs, "rest");
    let blocks = fill(&mut fs, rest, 3, u64::MAX);
    fs.sync().unwrap();
    assert!(blocks > most / 3, "{blocks}");
    let mut fs = mount(fs.unmount().unwrap(), true);
    compare(&mut fs, half, 2, most / 2, "half");
    compare(&mut fs, rest, 3, blocks, "rest");
}

/// Discards come after the commit: between the two the power goes.
#[test]
fn a_mount_finds_the_places_that_a_power_cut_left() {
    let mut left = 0;
    for operation in 0..40 {
        let mut fs = mount(format(drive()), true);
        let file = create(&mut fs, "file");
        fill(&mut fs, file, 1, 300);
        fs.sync().unwrap();
        run(&mut fs, Way::ToDevice).unwrap();
        let root = fs.root();
        fs.unlink(&Caller::default(), root, b"file").unwrap();
        let at_operation = fs.device().flash_operations() + operation;
        let power_cut = Some(PowerCut { at_operation, torn: Torn::Untouched });
        fs.device_mut().set_faults(FaultPlan { power_cut, ..FaultPlan::default() });
        let _ = fs.sync();
        let mut off = fs.into_device().into_unrecovered();
        off.set_faults(FaultPlan::default());
        let (mut drive, _) = off.recover().unwrap();
        let before = held(&mut drive);
        let mut fs = mount(drive, true);
        let root = fs.root();
        if fs.lookup(root, b"file").is_err() {
            left += before;
            assert_eq!(held(fs.device_mut()), 0, "cut at {operation}");
        }
    }
    assert!(left > 0);
}

/// Blocks that the drive holds at places.
fn held(drive: &mut Drive) -> usize {
    let space = drive.info().capabilities.devirtualize.unwrap();
    let range = BlockRange::new(space.first, space.blocks);
    let held = Command::Devirtualize(Devirtualize::Held { range });
    drive.submit(drive.idle_from(), held).unwrap().answer.into_addresses().len()
}

#[test]
fn a_new_volume_has_the_room_of_the_old_one_s_places() {
    let mut fs = mount(format(drive()), true);
    let file = create(&mut fs, "file");
    fill(&mut fs, file, 1, 5000);
    fs.sync().unwrap();
    run(&mut fs, Way::ToDevice).unwrap();
    let mut fs = mount(format(fs.unmount().unwrap()), false);
    let file = create(&mut fs, "file");
    let blocks = fill(&mut fs, file, 2, u64::MAX);
    fs.sync().unwrap();
    assert!(blocks > 6000, "{blocks}");
    let mut fs = mount(fs.unmount().unwrap(), false);
    compare(&mut fs, file, 2, blocks, "the new one's");
}

/// The drive moves what nobody writes, to wear its blocks alike; the tool lets the map forget it
/// again.
#[test]
fn content_stays_while_wear_is_levelled() {
    let mut fs = mount(format(drive()), true);
    let [cold, hot] = ["cold", "hot"].map(|name| create(&mut fs, name));
    fill(&mut fs, cold, 1, 5000);
    fs.sync().unwrap();
    run(&mut fs, Way::ToDevice).unwrap();
    let before = held(fs.device_mut());
    assert!(before >= 5000);
    for round in 0..60 {
        fill(&mut fs, hot, 2 + round, 800);
        fs.sync().unwrap();
        if round % 10 == 9 {
            run(&mut fs, Way::ToDevice).unwrap();
            compare(&mut fs, cold, 1, 5000, &format!("round {round}"));
        }
    }
    assert!(fs.device().counters().wear_runs > 0);
    let mut fs = mount(fs.unmount().unwrap(), true);
    compare(&mut fs, cold, 1, 5000, "mounted again");
    compare(&mut fs, hot, 61, 800, "mounted again");
}

#[test]
fn f2fs_that_remaps_is_refused_with_the_reason() {
    use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
    use dovetail_f2fs::{F2fs, Mode, Options};
    let options = |mode| Options { mode, physical_pointers: true, ..Options::default() };
    let mut device = Drive::new(config(16_384)).unwrap();
    mkfs(&mut device, &MkfsOptions::default()).unwrap();
    let fs = F2fs::mount(device, options(Mode::RmIpu), SimTime::ZERO).unwrap();
    let said = fs.renames_at_once().unwrap_err().to_string();
    assert!(
        said.contains("mode=rm-ipu-adaptive cannot have") && said.contains("map entry"),
        "{said}"
    );
    // nor is a volume mounted so that has such pointers
    let device = fs.unmount().unwrap();
    let now = device.idle_from();
    let mut fs = F2fs::mount(device, options(Mode::Adaptive), now).unwrap();
    let selection = Selection::all(&mut fs).unwrap();
    Run::new(&fs, Way::ToDevice, selection).unwrap().finish(&mut fs).unwrap();
    let device = fs.unmount().unwrap();
    let now = device.idle_from();
    let said = F2fs::mount(device, options(Mode::RmIpu), now).unwrap_err().to_string();
    assert!(said.contains("use mode=adaptive or mode=lfs"), "{said}");
}

#[test]
fn a_check_knows_the_drive() {
    let mut fs = mount(format(drive()), true);
    let file = create(&mut fs, "file");
    fill(&mut fs, file, 1, 100);
    fs.sync().unwrap();
    run(&mut fs, Way::ToDevice).unwrap();
    let mut own = fs.unmount().unwrap();
    let report = fsck::check(&mut own, fsck::Options::default()).unwrap();
    assert!(report.is_clean() && report.findings.is_empty(), "{report:?}");
    let mut other = drive();
    let range = BlockRange::new(Lba(0), BLOCKS);
    let mut contents = vec![Content::Empty; BLOCKS as usize];
    own.submit(own.idle_from(), Command::Read { range, into: Some(&mut contents) }).unwrap();
    let (data, hints) = (Data::Blocks(&contents), Hints::default());
    other.submit(SimTime::ZERO, Command::Write { range, data, hints, fua: true }).unwrap();
    let report = fsck::check(&mut other, fsck::Options::default()).unwrap();
    assert!(report.kinds().any(|(kind, _)| kind.name == "PlaceMissing"), "{report:?}");
}
