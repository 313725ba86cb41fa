//! Volumes made here hold the bytes that mkfs.f2fs would have written, and its checker finds no
//! fault in them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::common::{check_clean, run, tool};
use dovetail_block::{BlockDevice, BlockRange, Command, Content, Data, Hints, ImageDevice, Lba};
use dovetail_f2fs::format::{Features, FileType, Timestamp};
use dovetail_f2fs::mkfs::{MkfsError, MkfsOptions, existing_content, mkfs};
use dovetail_f2fs::{Error, Volume};
use dovetail_time::SimTime;
use md5::{Digest, Md5};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Makes mkfs.f2fs do the same each time.
const ALWAYS: [&str; 6] =
    ["-q", "-r", "-T", "1700000000", "-U", "11111111-2222-3333-4444-555555555555"];

/// Options that it uses then.
fn options() -> MkfsOptions {
    let mut uuid = [0; 16];
    (0..16).for_each(|i| uuid[i] = [0x11, 0x11, 0x22, 0x33, 0x44, 0x55, 0x55, 0x55][i / 2]);
    let time = Timestamp { seconds: 1_700_000_000, nanoseconds: 0 };
    MkfsOptions { uuid, time, checkpoint_version: 0x6B8B_4567, ..MkfsOptions::default() }
}

fn file(folder: &Path, name: &str, bytes: u64) -> PathBuf {
    let path = folder.join(name);
    File::create(&path).unwrap().set_len(bytes).unwrap();
    path
}

/// The blocks of `path` that are not zero, found without reading its holes.
fn blocks(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut device = ImageDevice::open_read_only(path).unwrap();
    let mut found = Vec::new();
    for start in data_blocks(path) {
        let mut content = [Content::Empty];
        let range = BlockRange::new(Lba(start), 1);
        device.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut content) }).unwrap();
        let Content::Bytes(bytes) = &content[0] else { continue };
        if bytes.iter().any(|&byte| byte != 0) {
            found.push((start, bytes.to_vec()));
        }
    }
    found
}

fn data_blocks(path: &Path) -> Vec<u64> {
    use rustix::fs::{SeekFrom, seek};
    let file = File::open(path).unwrap();
    let (mut blocks, mut at) = (Vec::new(), 0);
    while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(start)).unwrap();
        blocks.extend(start / 4096..at.div_ceil(4096));
    }
    blocks
}

/// The superblock's version strings name the program; its checksum covers them.
fn without_names(mut blocks: Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    for (_, bytes) in blocks.iter_mut().filter(|(n, _)| *n < 2) {
        bytes[1024 + 1668..1024 + 2180].fill(0);
        bytes[4092..].fill(0);
    }
    blocks
}

fn assert_same(theirs: &Path, ours: &Path, what: &str) {
    let (expected, found) = (without_names(blocks(theirs)), without_names(blocks(ours)));
    let numbers = |blocks: &[(u64, Vec<u8>)]| blocks.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    assert_eq!(numbers(&found), numbers(&expected), "{what}");
    for ((n, expected), (_, found)) in expected.iter().zip(&found) {
        let differs = expected.iter().zip(found).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{what}: the first byte of block {n} that differs");
    }
}

/// Makes both volumes, compares them, and checks ours.
fn compare(bytes: u64, arguments: &[&str], options: &MkfsOptions) {
    let folder = tempfile::tempdir().unwrap();
    let theirs = file(folder.path(), "theirs", bytes);
    let ours = file(folder.path(), "ours", bytes);
    tool("mkfs.f2fs", &[&ALWAYS, arguments, &[theirs.to_str().unwrap()]].concat());
    mkfs(&mut ImageDevice::open_read_write(&ours).unwrap(), options).unwrap();
    assert_same(&theirs, &ours, &format!("{bytes} {arguments:?}"));
    check_clean(&ours);
}

#[test]
fn the_default_volume_is_that_of_mkfs_f2fs_at_any_size() {
    for bytes in
        [52 * MIB, 53 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 516 * MIB, GIB, 3 * GIB + 12_345_678]
    {
        compare(bytes, &[], &options());
    }
}

#[test]
fn large_volumes_are_those_of_mkfs_f2fs() {
    for bytes in [111 * GIB, 4 * TIB] {
        compare(bytes, &[], &options());
    }
    compare(TIB, &["-i"], &MkfsOptions { large_nat: true, ..options() });
}

#[test]
fn the_test_vector() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "image", 128 * MIB);
    let report = mkfs(&mut ImageDevice::open_read_write(&path).unwrap(), &options()).unwrap();
    assert_eq!(
        (report.user_blocks, report.overprovision_segments, report.reserved_segments),
        (15872, 25, 18)
    );
    let md5 = |n: u64| {
        let bytes = &blocks(&path).into_iter().find(|(found, _)| *found == n).unwrap().1;
        Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    assert_eq!(md5(512), "f9713e466752c35834bafbeed7839ad2");
    assert_eq!(md5(513), "bf9ab395b6ccc109100aa136d6b74a20");
    assert_eq!(md5(4096), "b338b9cfd071d9362c11b9538784459e");
    assert_eq!(md5(5632), "8e3acbf066f662598a7a705e5c09e13c");
}

/// Sizes that are a multiple of the zone: with a remainder mkfs.f2fs counts segments that are not
/// there.
#[test]
fn sections_and_zones_are_those_of_mkfs_f2fs() {
    let zones = |segments, sections| MkfsOptions {
        segments_per_section: segments,
        sections_per_zone: sections,
        ..options()
    };
    compare(GIB, &["-s", "4", "-z", "2"], &zones(4, 2));
    compare(150 * MIB, &["-s", "3"], &zones(3, 1));
    compare(512 * MIB, &["-z", "4"], &zones(1, 4));
    compare(GIB, &["-s", "4", "-z", "2", "-a", "1"], &MkfsOptions { heap: true, ..zones(4, 2) });
}

#[test]
fn a_remainder_of_a_zone_is_left_out() {
    for (bytes, segments_per_section, sections_per_zone) in
        [(GIB + 6 * MIB, 4, 2), (200 * MIB, 3, 1), (300 * MIB, 4, 2), (300 * MIB, 8, 1)]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "image", bytes);
        let options = MkfsOptions { segments_per_section, sections_per_zone, ..options() };
        mkfs(&mut ImageDevice::open_read_write(&path).unwrap(), &options).unwrap();
        check_clean(&path);
    }
}

#[test]
fn other_options_give_what_they_give_mkfs_f2fs() {
    compare(
        256 * MIB,
        &["-o", "20"],
        &MkfsOptions { overprovision_percent: Some(20.0), ..options() },
    );
    compare(
        2 * GIB,
        &["-o", "3.5"],
        &MkfsOptions { overprovision_percent: Some(3.5), ..options() },
    );
    compare(GIB, &["-i"], &MkfsOptions { large_nat: true, ..options() });
    compare(GIB, &["-a", "1"], &MkfsOptions { heap: true, ..options() });
    compare(
        64 * MIB,
        &["-l", "Größe 漢字 😀"],
        &MkfsOptions { label: "Größe 漢字 😀".into(), ..options() },
    );
    compare(64 * MIB, &["-R", "1000:100"], &MkfsOptions { root_owner: (1000, 100), ..options() });
    let mut extensions = options();
    extensions.cold_extensions.extend(["zip".into(), "tar".into()]);
    extensions.hot_extensions.push("log".into());
    compare(64 * MIB, &["-e", "zip,tar", "-E", "log"], &extensions);
}

#[test]
fn features_give_what_they_give_mkfs_f2fs() {
    let sets = [
        "extra_attr",
        "extra_attr,inode_checksum",
        "extra_attr,inode_checksum,sb_checksum",
        "extra_attr,inode_crtime",
        "extra_attr,flexible_inline_xattr,compression",
        "lost_found",
        "extra_attr,inode_checksum,flexible_inline_xattr,inode_crtime,lost_found,sb_checksum,compression,verity",
        "encrypt",
        "verity",
    ];
    for names in sets {
        let features = names.split(',').map(|name| Features::named(name).unwrap());
        let features = features.fold(Features(0), Features::with);
        compare(128 * MIB, &["-O", names], &MkfsOptions { features, ..options() });
    }
    let features = Features::CASEFOLD;
    compare(128 * MIB, &["-O", "casefold", "-C", "utf8"], &MkfsOptions { features, ..options() });
}

/// fsck.f2fs 1.15 opens no checkpoint of more than five payload blocks, and mkfs.f2fs makes them
/// from 1.5 TiB on.
#[test]
fn a_large_nat_stays_within_what_can_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "image", 1600 * GIB);
    let options = MkfsOptions { large_nat: true, ..options() };
    let report = mkfs(&mut ImageDevice::open_read_write(&path).unwrap(), &options).unwrap();
    assert_eq!((report.superblock.cp_payload, report.superblock.max_nid()), (5, 350 * 512 * 455));
    check_clean(&path);
}

/// mkfs.f2fs would also make a quota file.
#[test]
fn projects_need_no_quota_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "image", 128 * MIB);
    let features =
        Features::EXTRA_ATTR.with(Features::PROJECT_QUOTA).with(Features::INODE_CHECKSUM);
    mkfs(&mut ImageDevice::open_read_write(&path).unwrap(), &MkfsOptions { features, ..options() })
        .unwrap();
    check_clean(&path);
    let mut volume = Volume::open(ImageDevice::open_read_only(&path).unwrap()).unwrap();
    assert_eq!(volume.root().unwrap().project, Some(0));
}

#[test]
fn it_opens_with_an_empty_root() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "image", 100 * MIB);
    let options = MkfsOptions { label: "one".into(), features: Features::LOST_FOUND, ..options() };
    let report = mkfs(&mut ImageDevice::open_read_write(&path).unwrap(), &options).unwrap();
    let mut volume = Volume::open(ImageDevice::open_read_only(&path).unwrap()).unwrap();
    assert_eq!(volume.superblock(), &report.superblock);
    assert_eq!(
        (volume.superblock().label.as_str(), volume.superblock().uuid),
        ("one", options.uuid)
    );
    let root = volume.root().unwrap();
    assert_eq!((root.mode, root.links, root.mtime.seconds), (0o40755, 3, 1_700_000_000));
    let entries = volume.entries(&root).unwrap();
    let shown: Vec<_> = entries.iter().map(|entry| (&entry.name[..], entry.ino.0)).collect();
    assert_eq!(shown, [(&b"."[..], 3), (b"..", 3), (b"lost+found", 4)]);
    assert!(entries.iter().all(|entry| entry.file_type == FileType::DIRECTORY));
}

/// A device that keeps what it is not told to overwrite.
struct NoDiscard(ImageDevice);

impl BlockDevice for NoDiscard {
    fn info(&self) -> dovetail_block::DeviceInfo {
        let mut info = self.0.info();
        info.capabilities.discard = false;
        info
    }

    fn submit(
        &mut self,
        at: SimTime,
        command: Command<'_>,
    ) -> Result<dovetail_block::Completion, dovetail_block::DeviceError> {
        assert!(!matches!(command, Command::Discard { .. }), "it has no discard");
        self.0.submit(at, command)
    }
}

#[test]
fn without_a_discard_all_that_is_read_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, large_nat) in [(64 * MIB, false), (256 * MIB, true)] {
        let path = file(folder.path(), "image", bytes);
        let mut device = NoDiscard(ImageDevice::open_read_write(&path).unwrap());
        let garbage: Vec<_> = (0..bytes / 4096)
            .map(|n| Content::Bytes(std::sync::Arc::new([n as u8 | 1; 4096])))
            .collect();
        let range = BlockRange::new(Lba(0), bytes / 4096);
        let data = Data::Blocks(&garbage);
        device
            .submit(
                SimTime::ZERO,
                Command::Write { range, data, hints: Hints::default(), fua: false },
            )
            .unwrap();
        mkfs(&mut device, &MkfsOptions { large_nat, ..options() }).unwrap();
        check_clean(&path);
        let volume = Volume::open(device).unwrap();
        assert!(!volume.checkpoint().flags.to_string().contains("trimmed"));
    }
}

#[test]
fn a_sparse_file_stays_sparse() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "image", 4 * TIB);
    mkfs(&mut ImageDevice::open_read_write(&path).unwrap(), &options()).unwrap();
    let taken = std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(taken < MIB, "{taken} bytes");
}

/// Sizes without a remainder: with one, mkfs.f2fs counts segments that are not there.
#[test]
fn it_refuses_the_sizes_that_mkfs_f2fs_refuses() {
    let (mut made, mut refused) = (0, 0);
    for (segments, sections) in [(1, 1), (2, 1), (3, 1), (1, 2), (4, 2), (8, 1)] {
        let zone = u64::from(segments * sections) * 2 * MIB;
        for bytes in (1..).map(|n| n * zone).take_while(|&bytes| bytes <= 300 * MIB).step_by(3) {
            let folder = tempfile::tempdir().unwrap();
            let [theirs, ours] = ["theirs", "ours"].map(|name| file(folder.path(), name, bytes));
            let zones = [
                "-s",
                &segments.to_string(),
                "-z",
                &sections.to_string(),
                theirs.to_str().unwrap(),
            ];
            let expected = run("mkfs.f2fs", &[&ALWAYS[..], &zones].concat()).status.success();
            let (segments_per_section, sections_per_zone) = (segments, sections);
            let options = MkfsOptions { segments_per_section, sections_per_zone, ..options() };
            let found = mkfs(&mut ImageDevice::open_read_write(&ours).unwrap(), &options);
            assert_eq!(found.is_ok(), expected, "{bytes} {zones:?}: {found:?}");
            if expected {
                assert_same(&theirs, &ours, &format!("{bytes} {zones:?}"));
                made += 1;
            } else {
                assert!(matches!(found, Err(Error::Mkfs(MkfsError::TooSmall { .. }))), "{found:?}");
                assert!(data_blocks(&ours).is_empty(), "nothing was written");
                refused += 1;
            }
        }
    }
    assert!(made > 50 && refused > 20, "{made} {refused}");
}

#[test]
fn what_a_device_holds_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "image", 64 * MIB);
    let name = path.to_str().unwrap();
    let mut device = ImageDevice::open_read_write(&path).unwrap();
    assert_eq!(existing_content(&mut device), Ok(None));
    tool("mkfs.f2fs", &["-q", name]);
    assert_eq!(existing_content(&mut device), Ok(Some("an F2FS volume")));
    mkfs(&mut device, &options()).unwrap();
    assert_eq!(existing_content(&mut device), Ok(Some("an F2FS volume")));
    let path = file(folder.path(), "other", MIB);
    File::options().write(true).open(&path).unwrap().write_all_at(&[0x53, 0xEF], 1080).unwrap();
    let found = existing_content(&mut ImageDevice::open_read_only(&path).unwrap());
    assert_eq!(found, Ok(Some("an ext2, ext3 or ext4 file system")));
    let path = file(folder.path(), "empty", 0);
    assert_eq!(existing_content(&mut ImageDevice::open_read_only(&path).unwrap()), Ok(None));
}
