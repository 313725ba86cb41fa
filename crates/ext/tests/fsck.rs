//! The check finds nothing in sound volumes, and in damaged ones what was damaged; e2fsck is the
//! referee.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;
use std::collections::BTreeMap;

use crate::common::{TempImage, kernel_image, run, tree};
use dovetail_block::{Lba, MemoryDevice};
use dovetail_ext::format::{
    BlockAddr, Extent, ExtentEntries, ExtentIndex, ExtentNode, Ino, Inode, orphan_block_checksums,
};
use dovetail_ext::fsck::{Options, Report, Severity, check};
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Volume};
use dovetail_time::SimTime;
use dovetail_vfs::kit::VolumeTree;
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
    let cases: [(&str, &str); 27] = [
        ("set_inode_field size-1024 links_count 2", "Links"),
        ("set_inode_field size-1024 mode 0", "Mode"),
        ("set_inode_field size-1024 dtime 1700000000", "DeletionTime"),
        ("set_inode_field size-1024 blocks 77", "Sectors"),
        ("set_inode_field size-12288 size 100", "Size"),
        ("set_inode_field many size 1024", "Size"),
        ("set_inode_field size-1024 flags 0x1000", "Flags"),
        ("set_inode_field size-1024 faddr 7", "Vacant"),
        ("set_inode_field many size 0x100000400", "Vacant"),
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

/// Of entries in a block, and of those in an inode that have one.
#[test]
fn hashes_of_attributes_are_compared() {
    let image = TempImage::mke2fs(16 << 20, &["-t", "ext3", "-b", "1024", "-I", "256"]);
    debugfs(&image, "mkdir small");
    debugfs(&image, "mkdir large");
    debugfs(&image, "ea_set small user.name value");
    debugfs(&image, &format!("ea_set large user.name {}", "x".repeat(300)));
    let whole = image.load();
    assert!(report(&whole).is_clean(), "{:?}", report(&whole).findings);
    let mut volume = Volume::open(whole.clone()).unwrap();
    let root = volume.root().unwrap();
    let large = volume.lookup(&root, b"large").unwrap().unwrap();
    let at = volume.inode(large.ino).unwrap().xattr_block.0 * 1024 + 32 + 12;
    let slot = (whole.used()).flat_map(|(lba, _)| (0..16).map(move |slot| (lba, slot * 256))).find(
        |&(lba, slot)| {
            whole.bytes(lba).is_some_and(|b| b[slot + 160..][..4] == 0xEA02_0000_u32.to_le_bytes())
        },
    );
    let (lba, slot) = slot.unwrap();
    for (lba, byte) in [(Lba(at / 4096), (at % 4096) as usize), (lba, slot + 160 + 4 + 12)] {
        let mut damaged = whole.clone();
        damaged.bytes_mut(lba).unwrap()[byte] ^= 4;
        let found = report(&damaged);
        let (theirs, text) = e2fsck_finds(&damaged).unwrap();
        let ours = found.findings.iter().any(|finding| finding.to_string().contains("e_hash"));
        assert!(ours && theirs, "{:?}\n{text}", found.findings);
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

/// Kinds of findings and how many there are of each, notes aside.
fn kinds(image: &MemoryDevice) -> Vec<(&'static str, u64)> {
    let report = report(image);
    let mut kinds: Vec<_> =
        report.kinds().map(|(kind, count)| (kind.name, kind.severity, count)).collect();
    kinds.retain(|(_, severity, _)| *severity > Severity::Note);
    kinds.into_iter().map(|(name, _, count)| (name, count)).collect()
}

/// An image of ext4 with blocks of 4 KiB, without checksums, and files `/a` and `/b` of 8 blocks.
fn with_two_files() -> TempImage {
    let folder = tempfile::tempdir().unwrap();
    for (name, seed) in [("a", 1), ("b", 2)] {
        std::fs::write(folder.path().join(name), tree::bytes(seed, 8 << 12)).unwrap();
    }
    let options = ["-t", "ext4", "-b", "4096", "-O", "^metadata_csum", "-d"];
    TempImage::mke2fs(64 << 20, &[&options[..], &[folder.path().to_str().unwrap()]].concat())
}

fn inode(image: &MemoryDevice, path: &str) -> Inode {
    Volume::open(image.clone()).unwrap().resolve_link(path.as_bytes()).unwrap()
}

/// The first block of a file.
fn first_block(image: &MemoryDevice, path: &str) -> u64 {
    let inode = inode(image, path);
    let run = Volume::open(image.clone()).unwrap().run(&inode, 0).unwrap();
    assert_eq!(run.len, 8, "its blocks lie side by side");
    run.mapped.data().unwrap().0
}

/// Puts another root of its extent tree into the inode of a file.
fn set_root(image: &mut MemoryDevice, path: &str, root: &ExtentNode) {
    let inode = inode(image, path);
    let is_at = |bytes: &[u8], at: usize| bytes[at..at + 60] == inode.block[..];
    let blocks: Vec<_> = image.used().map(|(lba, _)| lba).collect();
    let mut places = blocks.into_iter().flat_map(|lba| {
        let bytes = image.bytes(lba).unwrap().clone();
        (0..16)
            .map(move |slot| (lba, 256 * slot + 40))
            .filter(move |(_, at)| is_at(&bytes[..], *at))
    });
    let (lba, at) = places.next().unwrap();
    drop(places);
    root.encode(&mut image.bytes_mut(lba).unwrap()[at..at + 60]);
}

fn node(bytes: usize, depth: u16, entries: ExtentEntries) -> ExtentNode {
    ExtentNode { depth, entries, ..ExtentNode::new_leaf(bytes) }
}

fn leaf(extents: &[(u32, u16, u64)]) -> ExtentNode {
    let extent =
        |&(block, len, start)| Extent { block, len, start: BlockAddr(start), written: true };
    node(4096, 0, ExtentEntries::Leaf(extents.iter().map(extent).collect()))
}

fn index(bytes: usize, depth: u16, entries: &[(u32, u64)]) -> ExtentNode {
    let entry = |&(block, at)| ExtentIndex { block, node: BlockAddr(at) };
    node(bytes, depth, ExtentEntries::Index(entries.iter().map(entry).collect()))
}

fn put_node(image: &mut MemoryDevice, at: u64, node: &ExtentNode) {
    node.encode(&mut image.bytes_mut(Lba(at)).unwrap()[..]);
}

/// Each entry of each level leads to the one node below: without end, as far as anybody waits.
#[test]
fn a_node_that_many_entries_lead_to_is_entered_once() {
    let mut image = with_two_files().load();
    let first = first_block(&image, "a");
    let entries = |count, below| (0..count).map(|block| (block, below)).collect::<Vec<_>>();
    set_root(&mut image, "a", &index(60, 5, &entries(4, first)));
    for (level, depth) in (0..4).zip([4, 3, 2, 1]) {
        put_node(&mut image, first + level, &index(4096, depth, &entries(8, first + level + 1)));
    }
    put_node(&mut image, first + 4, &leaf(&[(0, 1, first + 5)]));
    let shared = 3 + 4 * 7;
    assert!(kinds(&image).contains(&("BlockShared", shared)), "{:?}", kinds(&image));
    assert!(e2fsck_finds(&image).unwrap().0);
}

#[test]
fn extents_that_reach_into_the_next_leaf_are_found() {
    let mut image = with_two_files().load();
    let first = first_block(&image, "a");
    set_root(&mut image, "a", &index(60, 1, &[(0, first), (4, first + 1)]));
    put_node(&mut image, first + 1, &leaf(&[(4, 2, first + 6)]));
    put_node(&mut image, first, &leaf(&[(0, 4, first + 2)]));
    check_sound(&image, "leaves side by side");
    assert!(!e2fsck_finds(&image).unwrap().0);
    set_root(&mut image, "a", &index(60, 1, &[(0, first), (3, first + 1)]));
    put_node(&mut image, first + 1, &leaf(&[(3, 2, first + 6)]));
    assert_eq!(kinds(&image), [("ExtentEnd", 1)]);
    assert!(e2fsck_finds(&image).unwrap().0);
}

/// As images of Android: files of equal content have the same blocks.
#[test]
fn files_may_share_blocks_with_the_feature_for_it() {
    let image = with_two_files();
    let (a, b) = (first_block(&image.load(), "a"), first_block(&image.load(), "b"));
    debugfs(&image, "feature shared_blocks");
    let mut device = image.load();
    set_root(&mut device, "b", &ExtentNode { max: 4, ..leaf(&[(0, 8, a)]) });
    let image = TempImage::of(&device);
    debugfs(&image, &format!("freeb {b} 8"));
    run("e2fsck", &["-f", "-y", image.text()]); // debugfs leaves the counts of free blocks
    image.check_errors();
    check_sound(&image.load(), "two files of one content");
    debugfs(&image, "feature -shared_blocks");
    assert_eq!(kinds(&image.load()), [("BlockShared", 1)]);
    debugfs(&image, "feature shared_blocks");
    let mut device = image.load();
    let table = inode_table(&image);
    set_root(&mut device, "b", &ExtentNode { max: 4, ..leaf(&[(0, 8, table)]) });
    assert_eq!(kinds(&device), [("BlockShared", 1)], "an inode table is nobody's content");
}

/// The first block of the inode table of group 0.
fn inode_table(image: &TempImage) -> u64 {
    let text = common::tool("dumpe2fs", &[image.text()]);
    let (_, rest) = text.split_once("Inode table at ").unwrap();
    rest.split('-').next().unwrap().parse().unwrap()
}

#[test]
fn the_hashes_of_a_sealed_file_may_lie_behind_its_end() {
    let image = with_two_files();
    debugfs(&image, "feature verity");
    debugfs(&image, "sif a size 5000");
    assert_eq!(kinds(&image.load()), [("Size", 1)]);
    debugfs(&image, "sif a flags 0x180000");
    image.check_errors();
    check_sound(&image.load(), "fs-verity");
}

/// A volume that was not unmounted, with file `/a` removed while it was open: the orphan file lists
/// it. Without checksums, or with them.
fn with_orphan_file(features: &str) -> MemoryDevice {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), tree::bytes(1, 20_000)).unwrap();
    let options = ["-t", "ext4", "-b", "4096", "-O", features, "-d"];
    let options = [&options[..], &[folder.path().to_str().unwrap()]].concat();
    let image = TempImage::mke2fs(64 << 20, &options);
    image.check_clean();
    check_sound(&image.load(), "an empty orphan file");
    let ino = inode(&image.load(), "a").ino;
    debugfs(&image, "unlink a");
    debugfs(&image, &format!("sif <{}> links_count 0", ino.0));
    debugfs(&image, "feature orphan_present");
    let mut device = image.load();
    list_orphans(&mut device, &[ino]);
    device
}

/// Puts inodes into the first block of the orphan file.
fn list_orphans(device: &mut MemoryDevice, orphans: &[Ino]) {
    let mut volume = Volume::open(device.clone()).unwrap();
    let file = volume.superblock().orphan_file_ino;
    let file = volume.inode(file).unwrap();
    let seed = file.checksum_seed(volume.superblock());
    let at = volume.run(&file, 0).unwrap().mapped.data().unwrap();
    let block = device.bytes_mut(Lba(at.0)).unwrap();
    for (slot, ino) in block.chunks_exact_mut(4).skip(7).zip(orphans) {
        slot.copy_from_slice(&ino.0.to_le_bytes());
    }
    if let Some(seed) = seed {
        let (_, sum) = orphan_block_checksums(&block[..], at, seed);
        block[4092..].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn the_orphan_file_is_read() {
    for features in ["orphan_file", "orphan_file,^metadata_csum"] {
        let device = with_orphan_file(features);
        let report = check_sound(&device, features);
        assert_eq!((report.findings.len(), report.counts.orphans), (0, 1), "{features}");
        let mounted = Ext::mount(device.clone(), Default::default(), SimTime::ZERO);
        assert!(mounted.is_err(), "a mount that writes would leave it in the file");
        // e2fsck -n does not read it; when it may write, it clears the orphan and finds no error
        let image = TempImage::of(&device);
        let repaired = run("e2fsck", &["-f", "-p", image.text()]);
        let text = String::from_utf8_lossy(&repaired.stdout).into_owned();
        assert_eq!(repaired.status.code(), Some(1), "corrected: {text}");
        assert!(text.contains("Clearing orphaned inode"), "{text}");
        check_sound(&image.load(), "without the orphan");
    }
}

#[test]
fn damage_to_the_orphan_file_is_found() {
    let listing = |orphans: &[Ino]| {
        let mut device = with_orphan_file("orphan_file");
        list_orphans(&mut device, orphans);
        device
    };
    let orphan = inode_without_links(&with_orphan_file("orphan_file"));
    assert_eq!(kinds(&listing(&[orphan, orphan])), [("Orphan", 1)], "twice");
    let nonsense = [orphan, Ino(2), Ino(4000), Ino(u32::MAX)];
    assert_eq!(kinds(&listing(&nonsense)), [("Damaged", 3)], "kept, free, beyond the last");
    let image = TempImage::of(&listing(&[orphan]));
    debugfs(&image, "feature -orphan_present");
    assert_eq!(kinds(&image.load()), [("Orphan", 1)], "marked as having none");
    for (change, expected) in [("size 0", 1), ("size 0x40000000000", 1), ("block[0] 0", 1)] {
        let image = TempImage::of(&listing(&[orphan]));
        let file = Volume::open(image.load()).unwrap().superblock().orphan_file_ino;
        debugfs(&image, &format!("sif <{}> {change}", file.0));
        let damaged = kinds(&image.load());
        let found = damaged.iter().find(|(name, _)| *name == "Damaged");
        assert!(found.is_some_and(|(_, count)| *count >= expected), "{change}: {damaged:?}");
    }
}

fn inode_without_links(device: &MemoryDevice) -> Ino {
    let mut volume = Volume::open(device.clone()).unwrap();
    let mut inodes = (13..100).map(Ino);
    inodes.find(|ino| volume.inode(*ino).is_ok_and(|inode| inode.links == 0)).unwrap()
}
