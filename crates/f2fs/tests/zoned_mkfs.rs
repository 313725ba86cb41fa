//! Zoned volumes, and those on several devices, as mkfs.f2fs 1.15 makes them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{
    Content, ImageDevice, JoinedDevice, Lba, MemoryDevice, Scheduler, ZoneState, ZonedDevice, Zones,
};
use dovetail_f2fs::format::Features;
use dovetail_f2fs::fsck::{Options as CheckOptions, check};
use dovetail_f2fs::mkfs::{DevicePart, MkfsError, MkfsOptions, MkfsReport, device_blocks, mkfs};
use dovetail_f2fs::{Error, Volume};

use crate::common::{kernel_image, strict_fsck, tool};

const MIB: u64 = 256;
const GIB: u64 = 1024 * MIB;

fn options() -> MkfsOptions {
    MkfsOptions { features: Features::BLKZONED, ..MkfsOptions::default() }
}

/// A device of so many blocks, with zones of so many, of which so many can be written; the first
/// are conventional.
fn zoned(blocks: u64, size: u64, capacity: u64, conventional: u64) -> ZonedDevice<MemoryDevice> {
    let first = Lba(conventional * size);
    let zones = Zones::covering(first, blocks - first.0, size, capacity);
    ZonedDevice::new(MemoryDevice::new(blocks), zones)
}

fn made<D: Scheduler>(
    device: D,
    options: &MkfsOptions,
) -> Result<(MkfsReport, Volume<D>), MkfsError> {
    let mut device = device;
    match mkfs(&mut device, options) {
        Ok(report) => Ok((report, Volume::open(device).unwrap())),
        Err(Error::Mkfs(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

/// Metadata segments, main segments, sections, reserve, overprovision, segments of users, and free
/// ones.
fn figures<D: Scheduler>(report: &MkfsReport, volume: &Volume<D>) -> [u64; 7] {
    let (s, c) = (&report.superblock, volume.checkpoint());
    [
        u64::from(2 + s.segment_count_sit + s.segment_count_nat + s.segment_count_ssa),
        s.segment_count_main.into(),
        s.section_count.into(),
        c.reserved_segments.into(),
        c.overprovision_segments.into(),
        c.user_block_count / 512,
        c.free_segments.into(),
    ]
}

/// Rows measured with mkfs.f2fs 1.15 on null_blk: on one device it counts the zone of the
/// superblocks as free, one zone too many.
#[test]
fn one_zoned_device_gives_the_sizes_of_mkfs_f2fs() {
    let rows = [
        (512 * MIB, 16, 16, 8, [8, 240, 30, 132, 166, 82, 242]),
        (512 * MIB, 16, 12, 8, [8, 240, 30, 102, 131, 69, 194]),
        (512 * MIB, 16, 16, 4, [8, 240, 30, 132, 166, 82, 242]),
        (512 * MIB, 16, 12, 2, [8, 240, 30, 96, 128, 60, 182]),
        (512 * MIB, 8, 8, 8, [8, 244, 61, 90, 121, 127, 242]),
        (512 * MIB, 2, 2, 16, [7, 248, 248, 42, 73, 176, 243]),
        (GIB, 16, 16, 4, [16, 488, 61, 252, 276, 220, 490]),
        (4 * GIB, 64, 64, 2, [32, 1984, 62, 924, 1033, 983, 2010]),
        (4 * GIB, 64, 64, 64, [32, 1984, 62, 924, 1033, 983, 2010]),
        (4 * GIB, 64, 48, 8, [32, 1984, 62, 728, 811, 757, 1562]),
        (4 * GIB, 64, 49, 8, [32, 1984, 62, 756, 842, 782, 1618]),
        (4 * GIB, 128, 128, 4, [64, 1920, 30, 1876, 1886, 98, 1978]),
        (32 * GIB, 256, 256, 8, [128, 16128, 126, 3640, 4901, 11355, 16250]),
    ];
    for (blocks, size, capacity, conventional, expected) in rows {
        let conventional = if conventional == 64 { 63 } else { conventional };
        let device = zoned(blocks, size * MIB, capacity * MIB, conventional);
        let (report, volume) = made(device, &options()).unwrap();
        assert_eq!(figures(&report, &volume), expected, "{blocks} {size}/{capacity}");
        let superblock = &report.superblock;
        assert_eq!(superblock.segments_per_section, (size / 2) as u32);
        assert_eq!((superblock.cp_start.0, superblock.sections_per_zone), (size * MIB, 1));
        assert!(superblock.main_start.0.is_multiple_of(size * MIB));
        assert_eq!(volume.checkpoint().flags.0, 0x185);
        let spz = (size / 2) as u32;
        let logs: Vec<_> = volume.checkpoint().logs.iter().map(|log| log.segment.0 / spz).collect();
        assert_eq!(logs, [3, 4, 5, 0, 1, 2]);
    }
}

#[test]
fn a_larger_overprovision_gives_more_to_users_where_zones_are_large() {
    let more = MkfsOptions { overprovision_percent: Some(25.0), ..options() };
    let (report, _) = made(zoned(4 * GIB, 128 * MIB, 128 * MIB, 4), &more).unwrap();
    assert_eq!(report.user_blocks / 512, 684);
}

fn join(first: u64, zoned: ZonedDevice<MemoryDevice>) -> JoinedDevice<Box<dyn Scheduler>> {
    use dovetail_block::BlockDevice;
    let sizes = device_blocks(&[first, zoned.info().blocks], true);
    let parts: [(Box<dyn Scheduler>, u64); 2] =
        [(Box::new(MemoryDevice::new(first)), sizes[0]), (Box::new(zoned), sizes[1])];
    JoinedDevice::new(parts).unwrap()
}

fn on_two(first: u64, second: u64) -> MkfsOptions {
    let part = |path: &str, blocks| DevicePart { path: path.into(), blocks };
    MkfsOptions { devices: vec![part("/dev/a", first), part("/dev/z", second)], ..options() }
}

/// Rows of `mkfs.f2fs -m -c`, where all counts are exact.
#[test]
fn a_zoned_device_behind_another_one_gives_the_sizes_of_mkfs_f2fs() {
    // main, reserve, overprovision, users
    let rows = [
        (128 * MIB, 4 * GIB, 64, 64, [2048, 896, 1011, 1037]),
        (256 * MIB, 4 * GIB, 64, 64, [2112, 896, 1017, 1095]),
        (GIB, 4 * GIB, 64, 64, [2496, 896, 1055, 1441]),
        (64 * MIB, 512 * MIB, 16, 16, [272, 224, 228, 44]),
    ];
    for (first, second, size, capacity, expected) in rows {
        let device = join(first, zoned(second, size * MIB, capacity * MIB, 0));
        let (report, volume) = made(device, &on_two(first, second)).unwrap();
        let [_, main, _, reserve, overprovision, users, free] = figures(&report, &volume);
        assert_eq!([main, reserve, overprovision, users], expected, "{first}");
        assert_eq!(free, main - 6);
    }
    for (first, second, size, capacity, users) in
        [(256 * MIB, 4 * GIB, 64, 48, 811), (64 * MIB, 512 * MIB, 16, 12, 11)]
    {
        let device = join(first, zoned(second, size * MIB, capacity * MIB, 0));
        let (report, _) = made(device, &on_two(first, second)).unwrap();
        assert_eq!(report.user_blocks / 512, users);
    }
    let (first, second) = (200 * MIB, 4 * GIB);
    let device = join(first, zoned(second, 64 * MIB, 64 * MIB, 0));
    let (report, volume) = made(device, &on_two(first, second)).unwrap();
    assert_eq!(report.superblock.cp_start.0, 72 * MIB, "the second begins on a section's border");
    assert_eq!(volume.superblock().device_blocks(), [first, second]);
}

/// Blanks the names of the systems, and what mkfs.f2fs leaves behind the end of a device's path.
fn forget_names(bytes: &mut [u8; 4096]) {
    bytes[1024 + 1668..1024 + 2180].fill(0);
    for device in 0..8 {
        let path = &mut bytes[1024 + 2201 + 68 * device..][..64];
        let end = path.iter().position(|&byte| byte == 0).unwrap_or(64);
        path[end..].fill(0);
    }
}

/// The superblocks that mkfs.f2fs wrote, but for the names of the systems.
#[test]
fn superblocks_are_those_of_mkfs_f2fs() {
    let single = zoned(512 * MIB, 16 * MIB, 16 * MIB, 4);
    let capacity = zoned(512 * MIB, 16 * MIB, 12 * MIB, 2);
    let multi = join(64 * MIB, zoned(512 * MIB, 16 * MIB, 16 * MIB, 0));
    let images: [(&str, Box<dyn Scheduler>, MkfsOptions); 3] = [
        ("zoned-clean", Box::new(single), options()),
        ("zoned-cap-crash", Box::new(capacity), options()),
        ("zoned-multi.a", Box::new(multi), on_two(64 * MIB, 512 * MIB)),
    ];
    for (name, device, options) in images {
        let image = kernel_image(name);
        let theirs = *image.bytes(Lba(0)).unwrap().clone();
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&theirs[1024 + 108..1024 + 124]);
        let (_, volume) = made(device, &MkfsOptions { uuid, ..options }).unwrap();
        let mut device = volume.into_device();
        let mut ours = [Content::Empty];
        let range = dovetail_block::BlockRange::new(Lba(0), 1);
        let read = dovetail_block::Command::Read { range, into: Some(&mut ours) };
        device.submit(dovetail_time::SimTime::ZERO, read).unwrap();
        let [Content::Bytes(ours)] = ours else { panic!() };
        let (mut ours, mut theirs) = (*ours, theirs);
        [&mut ours, &mut theirs].into_iter().for_each(forget_names);
        let differs = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{name}: the first byte that differs");
    }
}

#[test]
fn new_zoned_volumes_are_clean_for_both_checkers() {
    for (size, capacity, conventional) in [(16, 16, 4), (16, 13, 3), (2, 2, 16)] {
        let device = zoned(512 * MIB, size * MIB, capacity * MIB, conventional);
        let (_, volume) = made(device, &options()).unwrap();
        let device = volume.into_device();
        if size == capacity {
            // of an image fsck.f2fs knows no zones, and mkfs counts one as free that is no segment
            let found = strict_fsck(device.below());
            let is_count =
                |line: &str| line.contains("free segment_count") || line.contains("exit");
            assert!(found.lines().all(is_count), "{found}");
        }
        let written: Vec<_> = (0..device.table().zones().count)
            .filter(|&zone| device.table().state(zone) != ZoneState::Empty)
            .collect();
        assert!(written.len() <= 2, "the root's inode and its entries: {written:?}");
        let report = check(device, CheckOptions::default(), |_| {}).unwrap();
        assert_eq!(report.findings, []);
    }
}

fn refusal(device: impl Scheduler, options: &MkfsOptions) -> String {
    made(device, options).map(drop).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_is_refused_with_what_would() {
    let plain = MkfsOptions::default();
    let one =
        |size, capacity, conventional| zoned(4 * GIB, size * MIB, capacity * MIB, conventional);
    assert!(refusal(one(64, 64, 4), &plain).ends_with("with the feature blkzoned (-m)"));
    assert!(
        refusal(MemoryDevice::new(GIB), &options())
            .contains("needs a device that is written in zones")
    );
    let few = refusal(one(64, 64, 1), &options());
    assert!(few.contains("need 2 conventional zones, and the device has 1"), "{few}");
    assert!(few.contains("of at least 128 MiB"), "{few}");
    let none = refusal(zoned(GIB, 16 * MIB, 16 * MIB, 0), &options());
    assert!(none.contains("need 3 conventional zones, and the device has 0"), "{none}");
    let small = refusal(one(1, 1, 4), &options());
    assert!(small.starts_with("zones of 256 blocks cannot be sections"), "{small}");
    let odd = zoned(4 * GIB, 48 * MIB, 48 * MIB, 4);
    assert!(refusal(odd, &options()).contains("must be a power of two"));
    let large = refusal(one(256, 256, 4), &options());
    assert!(large.starts_with("16 zones of 256 MiB are too few"), "{large}");
    let more = MkfsOptions { overprovision_percent: Some(50.0), ..options() };
    let (report, _) = made(one(256, 256, 4), &more).unwrap();
    assert_eq!(report.user_blocks / 512, 132);
    let first = refusal(
        join(100 * MIB, zoned(4 * GIB, 64 * MIB, 64 * MIB, 0)),
        &on_two(100 * MIB, 4 * GIB),
    );
    assert!(first.contains("and there are 100 MiB: use a larger first device"), "{first}");
    let many =
        MkfsOptions { devices: vec![DevicePart { path: "x".into(), blocks: GIB }; 9], ..plain };
    assert!(refusal(MemoryDevice::new(9 * GIB), &many).contains("9 devices are too many"));
}

/// The least that works: 16 zones of 16 MiB, with 8 segments for users.
#[test]
fn sixteen_zones_are_enough_for_a_small_volume() {
    let (report, _) = made(zoned(256 * MIB, 16 * MIB, 16 * MIB, 4), &options()).unwrap();
    assert_eq!((report.superblock.section_count, report.user_blocks / 512), (14, 8));
    let short = zoned(240 * MIB, 16 * MIB, 16 * MIB, 4);
    assert!(refusal(short, &options()).contains("15 zones of 16 MiB are too few"));
}

/// Two image files, byte for byte.
#[test]
fn a_volume_on_two_ordinary_devices_is_that_of_mkfs_f2fs() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    for (first, second) in [(128 * MIB, 256 * MIB), (100 * MIB + 77, 64 * MIB + 300)] {
        let path = |name: &str| {
            let path = folder.path().join(name);
            std::fs::File::create(&path)
                .unwrap()
                .set_len(if name.ends_with('1') { first } else { second } * 4096)
                .unwrap();
            path
        };
        let (one, two) = (path("1"), path("2"));
        let names = (one.to_str().unwrap(), two.to_str().unwrap());
        let uuid = "11111111-2222-3333-4444-555555555555";
        tool("mkfs.f2fs", &["-q", "-r", "-T", "1700000000", "-U", uuid, "-c", names.1, names.0]);
        let theirs = [&one, &two].map(|path| MemoryDevice::from_image(path).unwrap());
        let sizes = device_blocks(&[first, second], false);
        [path("1"), path("2")].iter().for_each(drop);
        let parts = [&one, &two].map(|path| ImageDevice::open_read_write(path).unwrap());
        let mut device = JoinedDevice::new(parts.into_iter().zip(sizes)).unwrap();
        let devices = [(names.0, first), (names.1, second)]
            .map(|(path, blocks)| DevicePart { path: path.into(), blocks });
        let mut uuid = [0; 16];
        (0..16).for_each(|i| uuid[i] = [0x11, 0x11, 0x22, 0x33, 0x44, 0x55, 0x55, 0x55][i / 2]);
        let time = dovetail_f2fs::format::Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
        let options = MkfsOptions {
            uuid,
            time,
            checkpoint_version: 0x6B8B_4567,
            devices: devices.to_vec(),
            ..MkfsOptions::default()
        };
        mkfs(&mut device, &options).unwrap();
        drop(device);
        let ours = [&one, &two].map(|path| MemoryDevice::from_image(path).unwrap());
        for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            for lba in (0..[first, second][number]).map(Lba) {
                let bytes = |device: &MemoryDevice| {
                    let mut bytes = device.bytes(lba).map_or([0; 4096], |bytes| **bytes);
                    if number == 0 && lba.0 < 2 {
                        forget_names(&mut bytes);
                    }
                    bytes
                };
                assert!(bytes(ours) == bytes(theirs), "device {number}, block {lba}");
            }
        }
    }
}

/// Two image files that were mounted and written to: fsck.f2fs finds the second by its path.
#[test]
fn fsck_f2fs_checks_a_volume_on_two_image_files() {
    use dovetail_vfs::{Caller, FileSystem, NewNode};
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let paths = ["1", "2"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| std::fs::File::create(path).unwrap().set_len(96 << 20).unwrap());
    let blocks = 96 * MIB;
    let parts = paths.each_ref().map(|path| ImageDevice::open_read_write(path).unwrap());
    let mut device =
        JoinedDevice::new(parts.into_iter().zip(device_blocks(&[blocks, blocks], false))).unwrap();
    let devices = paths
        .each_ref()
        .map(|path| DevicePart { path: path.to_str().unwrap().to_string(), blocks });
    mkfs(&mut device, &MkfsOptions { devices: devices.to_vec(), ..MkfsOptions::default() })
        .unwrap();
    let start = dovetail_time::SimTime::ZERO;
    let mut fs = dovetail_f2fs::F2fs::mount(device, Default::default(), start).unwrap();
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let ino = fs.create(&Caller::default(), fs.root(), b"file", &node).unwrap().ino;
    for mib in 0..100 {
        fs.write(&Caller::default(), ino, mib << 20, &vec![7; 1 << 20]).unwrap();
    }
    drop(fs.unmount().unwrap());
    crate::common::check_clean(&paths[0]);
}
