//! Images that mkfs.f2fs made and sload.f2fs filled, with every layout that reading has to know.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_vfs::kit::VolumeTree;
use std::fs;
use std::path::Path;

use crate::common::tool;
use dovetail_block::ImageDevice;
use dovetail_f2fs::Volume;
use dovetail_f2fs::format::{Features, FileType};

/// Files of sizes around the limits: inline, the inode's pointers, direct nodes, indirect nodes.
fn fill(folder: &Path, sizes: &[u64], names: u32) {
    for blocks in sizes {
        let bytes: Vec<u8> =
            (0..blocks * 4096 + 17_u64).map(|i| ((i / 7) ^ (i >> 12)) as u8).collect();
        fs::write(folder.join(format!("f{blocks}")), bytes).unwrap();
    }
    fs::create_dir(folder.join("many")).unwrap();
    for n in 0..names {
        fs::write(folder.join(format!("many/name number {n}")), format!("{n}")).unwrap();
    }
    std::os::unix::fs::symlink("many/name number 3", folder.join("link")).unwrap();
}

fn compare(volume: &mut Volume<ImageDevice>, folder: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(folder.join("many")).unwrap().chain(fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        let inside = path.strip_prefix(folder).unwrap().to_str().unwrap();
        let inode = volume.resolve(inside.as_bytes()).unwrap();
        if inode.file_type() != FileType::REGULAR {
            continue;
        }
        let expected = fs::read(&path).unwrap();
        let mut found = vec![1; expected.len() + 1];
        let len = volume.read(&inode, 0, &mut found).unwrap();
        assert!(found[..len] == expected, "{inside}");
        files += 1;
    }
    files
}

const SIZES: [u64; 7] = [0, 1, 3, 860, 930, 2000, 3200];

fn check(size: u64, options: &[&str]) -> Volume<ImageDevice> {
    check_with(size, options, &SIZES, 700)
}

fn check_with(size: u64, options: &[&str], sizes: &[u64], names: u32) -> Volume<ImageDevice> {
    let folder = tempfile::tempdir().unwrap();
    let (image, source) = (folder.path().join("image"), folder.path().join("source"));
    fs::File::create(&image).unwrap().set_len(size).unwrap();
    let image_name = image.to_str().unwrap();
    tool("mkfs.f2fs", &[&["-q"], options, &[image_name]].concat());
    fs::create_dir(&source).unwrap();
    fill(&source, sizes, names);
    tool("sload.f2fs", &["-f", source.to_str().unwrap(), image_name]);
    let mut volume = Volume::open(ImageDevice::open_read_only(&image).unwrap()).unwrap();
    assert_eq!(compare(&mut volume, &source), names as usize + sizes.len() + 1, "{options:?}");
    volume
}

#[test]
fn defaults() {
    check(256 << 20, &[]);
}

#[test]
fn extra_attributes_and_checksums() {
    let volume = check(256 << 20, &["-O", "extra_attr,inode_checksum,sb_checksum"]);
    assert!(volume.superblock().features.has(Features::INODE_CHECKSUM));
}

#[test]
fn a_large_nat() {
    check(1 << 30, &["-i"]);
}

#[test]
fn large_sections_and_zones() {
    check(1 << 30, &["-s", "4", "-z", "2"]);
}

#[test]
fn four_tebibytes_on_a_sparse_file() {
    // few blocks: sload.f2fs searches for each through all segments (the files above take it
    // minutes here)
    let volume = check_with(4 << 40, &[], &[0, 3], 4);
    assert_eq!(volume.superblock().cp_payload, 2, "the bitmaps go on after the checkpoint's head");
}
