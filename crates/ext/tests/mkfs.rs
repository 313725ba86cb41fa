//! Volumes made here are those of mke2fs, byte for byte, and e2fsck finds nothing.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;

use crate::common::{TempImage, tool};
use dovetail_block::{
    BlockDevice, Capabilities, Command, Completion, DeviceError, DeviceInfo, Lba, MemoryDevice,
};
use dovetail_ext::format::{Compat, GroupNo, Incompat, RoCompat, Superblock};
use dovetail_ext::mkfs::{Kind, MkfsError, MkfsOptions, mkfs};
use dovetail_ext::{Error, Volume};
use dovetail_time::SimTime;

const TIME: u64 = 1_700_000_000;
const UUID: &str = "01020304-0506-0708-090a-0b0c0d0e0f10";
const HASH_SEED: &str = "11121314-1516-1718-191a-1b1c1d1e1f20";

fn options(kind: Kind) -> MkfsOptions {
    MkfsOptions {
        uuid: std::array::from_fn(|n| n as u8 + 1),
        hash_seed: std::array::from_fn(|n| n as u8 + 17),
        time: TIME,
        ..MkfsOptions::new(kind)
    }
}

/// Volume that mke2fs makes with the same time and numbers.
fn reference(bytes: u64, arguments: &[&str]) -> TempImage {
    let image = TempImage::new(bytes);
    let seed = format!("hash_seed={HASH_SEED},root_owner=0:0");
    let mut program = dovetail_testkit::program("mke2fs");
    program.env("E2FSPROGS_FAKE_TIME", TIME.to_string());
    let output = program
        .args(["-q", "-F", "-U", UUID, "-E", &seed])
        .args(arguments)
        .arg(&image.path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    image
}

fn made(bytes: u64, options: &MkfsOptions) -> MemoryDevice {
    let mut device = MemoryDevice::new(bytes / 4096);
    mkfs(&mut device, options).unwrap();
    device
}

/// Lets the KiB written, and the checksum over them, be zero in every copy of the superblock.
fn without_counter(device: &mut MemoryDevice) {
    let superblock = Superblock::parse(&common::superblock_bytes(device), GroupNo(0)).unwrap();
    for group in
        (0..superblock.group_count()).map(GroupNo).filter(|&group| superblock.has_superblock(group))
    {
        let start = superblock.group_start(group).0 * u64::from(superblock.block_size());
        let start = if group.0 == 0 { 1024 } else { start };
        let block = device.bytes_mut(Lba(start / 4096)).unwrap();
        for byte in (0x178..0x180).chain(0x3FC..0x400) {
            block[(start % 4096) as usize + byte] = 0;
        }
    }
}

fn check_same(bytes: u64, options: &MkfsOptions, arguments: &[&str]) {
    let image = reference(bytes, arguments);
    let mut expected = image.load();
    let mut found = made(bytes, options);
    TempImage::of(&found).check_clean();
    without_counter(&mut expected);
    without_counter(&mut found);
    let blocks = expected.info().blocks;
    let zeros = [0; 4096];
    let first = (0..4096)
        .find(|&at| expected.bytes(Lba(0)).unwrap()[at] != found.bytes(Lba(0)).unwrap()[at]);
    assert_eq!(first, None, "{bytes} bytes, {arguments:?}: a byte of the first block");
    let different: Vec<_> = (0..blocks)
        .map(Lba)
        .filter(|&lba| {
            let bytes = |device: &MemoryDevice| device.bytes(lba).map_or(zeros, |bytes| **bytes);
            bytes(&expected) != bytes(&found)
        })
        .collect();
    assert_eq!(different, [], "{bytes} bytes, {arguments:?}");
}

#[test]
fn defaults_are_those_of_mke2fs_byte_for_byte() {
    // KiB: one group; a few; a last group that is too small; a flex group that begins anew; 2 and 4
    // KiB blocks' sizes
    for kib in [
        1024, 2047, 2048, 2100, 2560, 4096, 8192, 8256, 32_768, 65_536, 139_264, 139_272, 147_456,
        204_800, 400_000,
    ] {
        for (kind, name) in [(Kind::Ext2, "ext2"), (Kind::Ext3, "ext3"), (Kind::Ext4, "ext4")] {
            check_same(kib << 10, &options(kind), &["-t", name]);
        }
    }
}

#[test]
fn other_shapes_are_those_of_mke2fs_byte_for_byte() {
    let ext4 = || options(Kind::Ext4);
    let no_checksums = |mut o: MkfsOptions| {
        o.ro_compat = o.ro_compat.without(RoCompat::METADATA_CSUM);
        o
    };
    let uninit = |o: MkfsOptions| {
        let mut o = no_checksums(o);
        o.ro_compat = o.ro_compat.with(RoCompat::GDT_CSUM);
        o
    };
    let narrow =
        |o: MkfsOptions| MkfsOptions { incompat: o.incompat.without(Incompat::BITS_64), ..o };
    let apart =
        |o: MkfsOptions| MkfsOptions { incompat: o.incompat.without(Incompat::FLEX_BG), ..o };
    let small_inodes = |o: MkfsOptions| MkfsOptions { inode_size: 128, ..o };
    let shapes: [(MkfsOptions, &[&str]); 19] = [
        (MkfsOptions { block_size: Some(4096), ..ext4() }, &["-t", "ext4", "-b", "4096"]),
        (MkfsOptions { block_size: Some(2048), ..ext4() }, &["-t", "ext4", "-b", "2048"]),
        (
            MkfsOptions { block_size: Some(2048), ..options(Kind::Ext3) },
            &["-t", "ext3", "-b", "2048"],
        ),
        (small_inodes(ext4()), &["-t", "ext4", "-I", "128"]),
        (small_inodes(options(Kind::Ext3)), &["-t", "ext3", "-I", "128"]),
        (no_checksums(ext4()), &["-t", "ext4", "-O", "^metadata_csum"]),
        (uninit(ext4()), &["-t", "ext4", "-O", "^metadata_csum,uninit_bg"]),
        (
            uninit(narrow(apart(ext4()))),
            &["-t", "ext4", "-O", "^metadata_csum,uninit_bg,^64bit,^flex_bg"],
        ),
        (apart(ext4()), &["-t", "ext4", "-O", "^flex_bg"]),
        (
            MkfsOptions { incompat: ext4().incompat.with(Incompat::CSUM_SEED), ..ext4() },
            &["-t", "ext4", "-O", "metadata_csum_seed"],
        ),
        (
            MkfsOptions {
                compat: ext4().compat.without(Compat::RESIZE_INODE),
                label: "a label".into(),
                ..ext4()
            },
            &["-t", "ext4", "-O", "^resize_inode", "-L", "a label"],
        ),
        (
            MkfsOptions {
                inode_ratio: Some(2048),
                journal_blocks: Some(10_240),
                reserved_percent: 1,
                root_owner: (0, 0),
                ..ext4()
            },
            &["-t", "ext4", "-i", "2048", "-J", "size=10", "-m", "1"],
        ),
        (
            // a full bitmap of inodes in each group
            MkfsOptions { inode_ratio: Some(1024), ..small_inodes(ext4()) },
            &["-t", "ext4", "-i", "1024", "-I", "128"],
        ),
        (
            // more inodes than a bitmap has bits: smaller groups
            MkfsOptions { block_size: Some(4096), inode_ratio: Some(1024), ..ext4() },
            &["-t", "ext4", "-b", "4096", "-i", "1024"],
        ),
        (
            // the first inodes lie in two groups
            MkfsOptions { inode_ratio: Some(1 << 20), ..ext4() },
            &["-t", "ext4", "-i", "1M"],
        ),
        (
            MkfsOptions { inode_ratio: Some(1 << 26), ..options(Kind::Ext3) },
            &["-t", "ext3", "-i", "64M"],
        ),
        (MkfsOptions { inodes: Some(5001), ..ext4() }, &["-t", "ext4", "-N", "5001"]),
        (MkfsOptions { blocks_per_group: Some(4096), ..ext4() }, &["-t", "ext4", "-g", "4096"]),
        (
            MkfsOptions {
                block_size: Some(4096),
                blocks_per_group: Some(1000),
                ..options(Kind::Ext3)
            },
            &["-t", "ext3", "-b", "4096", "-g", "1000"],
        ),
    ];
    for (options, arguments) in shapes {
        check_same(100 << 20, &options, arguments);
    }
}

/// Groups and sizes by dumpe2fs, and the first files by debugfs.
fn description(image: &TempImage) -> String {
    let text = tool("dumpe2fs", &[image.text()]);
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("Lifetime writes") && !line.starts_with("Checksum:"));
    let mut all = lines.map(|line| format!("{line}\n")).collect::<String>();
    for ino in [1, 2, 7, 8, 11] {
        let stat = tool("debugfs", &["-R", &format!("stat <{ino}>"), image.text()]);
        // where the journal's extents have a node of their own, mke2fs leaves old ones in the inode
        let lines = stat.lines().filter(|line| !line.starts_with("Inode checksum"));
        all.extend(lines.map(|line| format!("{line}\n")));
    }
    all
}

#[test]
fn large_volumes_are_those_of_mke2fs() {
    for (gib, kind, name) in [
        (10, Kind::Ext4, "ext4"),
        (10, Kind::Ext3, "ext3"),
        (100, Kind::Ext4, "ext4"),
        (1024, Kind::Ext4, "ext4"),
        (100, Kind::Ext3, "ext3"),
    ] {
        let bytes = gib << 30;
        let expected = description(&reference(bytes, &["-t", name]));
        let image = TempImage::of(&made(bytes, &options(kind)));
        let found = description(&image);
        let different = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
        assert_eq!(different, None, "{gib} GiB {name}");
        assert_eq!(expected.len(), found.len(), "{gib} GiB {name}");
        if gib <= 10 {
            image.check_clean();
        }
    }
}

/// A device without discard, that was full of something else.
struct Used(MemoryDevice);

impl BlockDevice for Used {
    fn info(&self) -> DeviceInfo {
        DeviceInfo { capabilities: Capabilities::default(), ..self.0.info() }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        assert!(!matches!(command, Command::Discard { .. }));
        self.0.submit(at, command)
    }
}

#[test]
fn what_was_on_the_device_does_not_matter() {
    for kind in [Kind::Ext3, Kind::Ext4] {
        for lazy_itable_init in [false, true] {
            let mut device = Used(MemoryDevice::new(40 << 8));
            for lba in 0..40 << 8 {
                *device.0.bytes_mut(Lba(lba)).unwrap() = [0xA5; 4096];
            }
            let options = MkfsOptions { lazy_itable_init, ..options(kind) };
            mkfs(&mut device, &options).unwrap();
            TempImage::of(&device.0).check_clean();
            let groups = tool("dumpe2fs", &[TempImage::of(&device.0).text()]);
            let zeroed = kind == Kind::Ext4 && !lazy_itable_init;
            assert_eq!(groups.contains("ITABLE_ZEROED"), zeroed, "{kind:?}, {lazy_itable_init}");
            let mut volume = Volume::open(device.0).unwrap();
            let root = volume.root().unwrap();
            assert_eq!(volume.entries(&root).unwrap().len(), 3);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let refused = |blocks: u64, options: &MkfsOptions| {
        let mut device = MemoryDevice::new(blocks);
        let Err(Error::Mkfs(error)) = mkfs(&mut device, options) else {
            panic!("made on {blocks} blocks")
        };
        assert_eq!(device.used().count(), 0);
        error
    };
    assert!(matches!(refused(8, &options(Kind::Ext4)), MkfsError::TooSmall { .. }));
    assert!(matches!(refused(0, &options(Kind::Ext3)), MkfsError::TooSmall { .. }));
    assert!(matches!(refused(1 << 33, &options(Kind::Ext4)), MkfsError::TooLarge { .. }));
    let many = MkfsOptions { inode_ratio: Some(1024), ..options(Kind::Ext4) };
    assert!(matches!(refused(1 << 31, &many), MkfsError::Inodes(_)));
    let groups = MkfsOptions { blocks_per_group: Some(256), ..options(Kind::Ext4) };
    assert!(matches!(refused(1 << 20, &groups), MkfsError::SmallGroups { blocks: 256, .. }));
    let journal = MkfsOptions { journal_blocks: Some(1000), ..options(Kind::Ext4) };
    assert!(matches!(
        refused(1 << 16, &journal),
        MkfsError::Journal { blocks: 1000, min: 1024, .. }
    ));
    let journal = MkfsOptions { journal_blocks: Some(200_000), ..options(Kind::Ext4) };
    assert!(matches!(refused(1 << 16, &journal), MkfsError::Journal { blocks: 200_000, .. }));
}
