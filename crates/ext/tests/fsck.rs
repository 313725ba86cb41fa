//! The check finds nothing in sound volumes, and in damaged ones what was damaged; e2fsck is the
//! referee.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;
use std::collections::BTreeMap;

use crate::common::{TempImage, kernel_image, run, tree};
use dovetail_block::{Lba, MemoryDevice};
use dovetail_ext::Ext;
use dovetail_ext::fsck::{Options, Report, Severity, check};
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, NewNode};

fn report(image: &MemoryDevice) -> Report {
    check(image.clone(), Options::default()).unwrap()
}

fn check_sound(image: &MemoryDevice, what: &str) -> Report {
    let report = report(image);
    let bad: Vec<_> = report
        .findings
        .iter()
        .filter(|f| f.severity() > Severity::Note)
        .map(ToString::to_string)
        .collect();
    assert_eq!(bad, [""; 0], "{what}");
    report
}

#[test]
fn nothing_is_found_in_what_kernels_wrote() {
    for name in ["ext4-default", "ext3-default"] {
        let report = check_sound(&kernel_image(name), name);
        assert_eq!(report.findings, [], "{name}");
        assert!(
            report.counts.inodes > 1000 && report.counts.names > 1000,
            "{name}: {:?}",
            report.counts
        );
    }
    for name in ["ext4-crash", "ext3-crash"] {
        let report = check_sound(&kernel_image(name), name);
        assert_eq!(report.kinds().next().unwrap().0.name, "AwaitsRecovery");
    }
}

/// Volumes of mke2fs with a tree, in several shapes.
const SHAPES: [&[&str]; 8] = [
    &["-t", "ext4", "-b", "1024"],
    &["-t", "ext4", "-b", "4096"],
    &["-t", "ext4", "-b", "2048", "-I", "128"],
    &["-t", "ext4", "-O", "^metadata_csum,uninit_bg"],
    &["-t", "ext4", "-O", "^metadata_csum,uninit_bg,^flex_bg,^64bit"],
    &["-t", "ext4", "-O", "metadata_csum_seed,meta_bg,^resize_inode"],
    &["-t", "ext3", "-b", "1024"],
    &["-t", "ext3", "-b", "4096", "-I", "128"],
];

fn populated(shape: &[&str], bytes: u64) -> TempImage {
    let folder = tempfile::tempdir().unwrap();
    tree::populate(folder.path());
    let image =
        TempImage::mke2fs(bytes, &[shape, &["-d", folder.path().to_str().unwrap()]].concat());
    run("e2fsck", &["-fyD", image.text()]);
    image
}

#[test]
fn nothing_is_found_in_what_mke2fs_made() {
    for shape in SHAPES {
        let report = check_sound(&populated(shape, 64 << 20).load(), &format!("{shape:?}"));
        assert_eq!(report.findings, [], "{shape:?}");
    }
}

#[test]
fn nothing_is_found_in_new_volumes() {
    for kind in [Kind::Ext2, Kind::Ext3, Kind::Ext4] {
        for mib in [8, 100, 600, 20_000] {
            let mut device = MemoryDevice::new(mib << 8);
            mkfs(&mut device, &MkfsOptions::new(kind)).unwrap();
            assert_eq!(check_sound(&device, &format!("{kind:?} {mib}")).findings, []);
        }
    }
}

/// Runs e2fsck without changes: true if it found something, and its output; `None` if it stopped
/// for another reason than the volume.
fn e2fsck_finds(image: &MemoryDevice) -> Option<(bool, String)> {
    let output = run("e2fsck", &["-f", "-n", TempImage::of(image).text()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(0) => Some((false, text)),
        Some(4 | 8 | 12) => Some((true, text)),
        _ => None,
    }
}

fn debugfs(image: &TempImage, request: &str) {
    common::tool("debugfs", &["-w", "-R", request, image.text()]);
}

/// Each is damaged through debugfs, and must be found as this kind.
#[test]
fn what_debugfs_damages_is_found() {
    let cases: [(&str, &str); 25] = [
        ("set_inode_field size-1024 links_count 2", "Links"),
        ("set_inode_field size-1024 mode 0", "Mode"),
        ("set_inode_field size-1024 dtime 1700000000", "DeletionTime"),
        ("set_inode_field size-1024 blocks 77", "Sectors"),
        ("set_inode_field size-12288 size 100", "Size"),
        ("set_inode_field many size 1024", "Size"),
        ("set_inode_field size-1024 flags 0x1000", "Flags"),
        ("freeb 3000 200", "BlocksFree"),
        ("setb 60000 5", "BlocksLeaked"),
        ("freei size-1024", "InodesFree"),
        ("seti <4000>", "InodesLeaked"),
        ("clri size-1024", "EntryFree"),
        ("unlink size-1024", "Unconnected"),
        ("link size-1024 again", "Links"),
        ("ln many many/deep/loop", "DirectoryShared"),
        ("ln <8> journal", "EntryInode"),
        ("set_super_value free_blocks_count 5", "Total"),
        ("set_super_value free_inodes_count 5", "Total"),
        ("set_super_value r_blocks_count 60000", "Reserved"),
        ("set_block_group 1 free_blocks_count 7", "GroupCount"),
        ("set_block_group 0 used_dirs_count 7", "GroupCount"),
        ("set_block_group 1 block_bitmap 99999999", "Damaged"),
        ("set_inode_field size-1024 block[0] 99999999", "Damaged"),
        ("set_inode_field <7> block[IND] 5", "ResizeInode"),
        ("set_super_value error_count 3", "ErrorsNoted"),
    ];
    let whole = populated(&["-t", "ext3", "-b", "1024"], 64 << 20);
    for (request, kind) in cases {
        let image = TempImage::of(&whole.load());
        debugfs(&image, request);
        let damaged = image.load();
        let report = report(&damaged);
        let kinds: Vec<_> = report.kinds().map(|(kind, _)| kind.name).collect();
        assert!(kinds.contains(&kind), "{request}: {kinds:?}");
        let (theirs, text) = e2fsck_finds(&damaged).unwrap();
        assert_eq!(theirs, !report.is_clean(), "{request}: {kinds:?}\n{text}");
    }
}

/// One bit is changed, anywhere in what is used: what e2fsck finds is found.
#[test]
fn random_damage_is_judged_as_by_e2fsck() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut verdicts: BTreeMap<(bool, bool), u32> = BTreeMap::new();
    for shape in [&SHAPES[0], &SHAPES[3], &SHAPES[6]] {
        let whole = populated(shape, 24 << 20).load();
        let blocks: Vec<_> = whole.used().map(|(lba, _)| lba).collect();
        for _ in 0..100 {
            let mut image = whole.clone();
            let lba =
                if next(8) == 0 { Lba(0) } else { blocks[next(blocks.len() as u64) as usize] };
            let (byte, bit) = (next(4096) as usize, next(8));
            image.bytes_mut(lba).unwrap()[byte] ^= 1 << bit;
            let Some((theirs, text)) = e2fsck_finds(&image) else { continue };
            let found = check(image, Options::default());
            let ours = found.as_ref().map_or(true, |report| !report.is_clean());
            *verdicts.entry((theirs, ours)).or_insert(0) += 1;
            if theirs != ours {
                println!(
                    "{shape:?} block {lba} byte {byte} bit {bit}: theirs {theirs}, ours {found:?}\n{text}"
                );
            }
        }
    }
    // of 1,200 cases none was missed; in four e2fsck found the damage and passed it over (a group's
    // checksum, the depth of a tree), or took it for whole (a pointer to a kept block)
    let count = |verdict| verdicts.get(&verdict).copied().unwrap_or(0);
    assert!(count((true, true)) > 20, "{verdicts:?}");
    assert!(count((true, false)) <= 1 && count((false, true)) <= 4, "{verdicts:?}");
}

/// A block by which hosts see each other; a directory that once had too many subdirectories to count.
#[test]
fn what_e2fsck_finds_sound_is_sound() {
    let image = TempImage::mke2fs(64 << 20, &["-t", "ext4", "-O", "mmp"]);
    image.check_clean();
    check_sound(&image.load(), "mmp");
    let image = TempImage::mke2fs(64 << 20, &["-t", "ext4", "-O", "quota,project"]);
    image.check_clean();
    check_sound(&image.load(), "quotas of projects");
    let (caller, node) = (Caller::default(), |mode| NewNode { mode, rdev: (0, 0) });
    let device = TempImage::mke2fs(64 << 20, &["-t", "ext4"]).load();
    let mut fs = Ext::mount(device, Default::default(), SimTime::ZERO).unwrap();
    let root = fs.root();
    let dir = fs.create(&caller, root, b"d", &node(0o40_755)).unwrap().ino;
    for n in 0..200 {
        let name = format!("a-name-so-long-that-a-block-does-not-hold-all-{n}");
        fs.create(&caller, dir, name.as_bytes(), &node(0o100_644)).unwrap();
    }
    let image = TempImage::of(&fs.unmount().unwrap());
    common::tool("debugfs", &["-w", "-R", "sif d links_count 1", image.text()]);
    image.check_errors();
    check_sound(&image.load(), "dir_nlink");
}
