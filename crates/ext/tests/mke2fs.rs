//! Volumes that mke2fs made of a folder hold, for us, what the folder holds.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;
use crate::common::manifest::{Manifest, differences, of_folder, of_volume};
use crate::common::{TempImage, tool, tree};
use dovetail_block::MemoryDevice;
use dovetail_ext::format::{Compat, Incompat, RoCompat};
use dovetail_ext::{Error, Incompatible, Volume, fsck};
use dovetail_vfs::kit::VolumeTree;

/// Manifest of a folder as mke2fs stores it: whole seconds, its own lost+found; the root is not the
/// folder.
fn stored(mut manifest: Manifest) -> Manifest {
    manifest.retain(|path, _| path != "." && path != "./lost+found");
    for line in manifest.values_mut() {
        let time = line["mtime_ns"].as_i64().unwrap();
        line["mtime_ns"] = (time / 1_000_000_000).into();
    }
    manifest
}

#[test]
fn what_mke2fs_made_of_a_folder_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    tree::populate(folder.path());
    let expected = stored(of_folder(folder.path()));
    assert!(expected.len() > 900);
    let folder = folder.path().to_str().unwrap();
    let shapes: [&[&str]; 11] = [
        &["-t", "ext4"],
        &["-t", "ext4", "-b", "1024"],
        &["-t", "ext4", "-b", "1024", "-I", "128"],
        &["-t", "ext4", "-b", "2048", "-O", "^64bit"],
        &["-t", "ext4", "-b", "4096", "-O", "^metadata_csum,uninit_bg"],
        &["-t", "ext4", "-b", "1024", "-O", "^metadata_csum,uninit_bg,^flex_bg,^64bit"],
        &["-t", "ext4", "-O", "metadata_csum_seed,meta_bg,^resize_inode"],
        &["-t", "ext4", "-b", "1024", "-O", "bigalloc"],
        &["-t", "ext3", "-b", "1024"],
        &["-t", "ext3", "-b", "4096", "-I", "128"],
        &["-t", "ext2", "-b", "1024", "-O", "^filetype,^sparse_super,^resize_inode"],
    ];
    for shape in shapes {
        let image = TempImage::mke2fs(128 << 20, &[shape, &["-d", folder]].concat());
        // directories get their index
        tool_says_changed("e2fsck", &["-fyD", image.text()]);
        let found = stored(of_volume(&mut Volume::open(image.load()).unwrap()));
        assert_eq!(differences(&expected, &found), "", "{shape:?}");
    }
}

/// e2fsck that changed something says 1.
fn tool_says_changed(name: &str, arguments: &[&str]) {
    let status = common::run(name, arguments).status.code();
    assert!(matches!(status, Some(0 | 1)), "{name} {arguments:?}: {status:?}");
}

#[test]
fn the_lookup_of_every_name_goes_through_the_index() {
    let folder = tempfile::tempdir().unwrap();
    tree::populate(folder.path());
    let options = ["-t", "ext4", "-b", "1024", "-d", folder.path().to_str().unwrap()];
    let image = TempImage::mke2fs(128 << 20, &options);
    tool_says_changed("e2fsck", &["-fyD", image.text()]);
    let mut volume = Volume::open(image.load()).unwrap();
    let dir = volume.resolve(b"many").unwrap();
    for entry in volume.entries(&dir).unwrap() {
        assert_eq!(volume.lookup(&dir, &entry.name).unwrap(), Some(entry));
    }
    assert_eq!(volume.lookup(&dir, b"none").unwrap(), None);
    let htree = tool("debugfs", &["-R", "htree_dump /many", image.text()]);
    assert!(htree.contains("Indirect levels: ") && htree.contains("Root node dump"), "{htree}");
}

fn refused(device: MemoryDevice) -> Error {
    Volume::open(device).unwrap_err()
}

#[test]
fn what_is_not_supported_is_named() {
    let refuse = |options: &[&str]| refused(TempImage::mke2fs(64 << 20, options).load());
    let error = refuse(&["-t", "ext4", "-O", "inline_data,encrypt"]);
    let features = Incompat::INLINE_DATA.with(Incompat::ENCRYPT);
    assert_eq!(error, Incompatible::Features(features).into());
    assert_eq!(
        error.to_string(),
        "the volume uses features that are not supported: inline_data encrypt"
    );
    let clusters = TempImage::mke2fs(64 << 20, &["-t", "ext4", "-O", "bigalloc"]).load();
    let error = fsck::check(clusters, fsck::Options::default()).unwrap_err();
    assert_eq!(error, Incompatible::NotChecked(RoCompat::BIGALLOC).into());
    let error = refuse(&["-O", "journal_dev"]);
    assert_eq!(error.to_string(), "the volume uses features that are not supported: journal_dev");
    let volume = Volume::open(
        TempImage::mke2fs(64 << 20, &["-t", "ext4", "-O", "quota,orphan_file"]).load(),
    )
    .unwrap();
    let others = volume.superblock().ro_compat.without(RoCompat::WRITTEN);
    assert_eq!(others.to_string(), "quota");
    assert!(volume.superblock().compat.has(Compat::ORPHAN_FILE));
    assert_eq!(refused(MemoryDevice::new(1000)), Error::NotExt { found: 0 });
    assert_eq!(refused(MemoryDevice::default()), Error::NotExt { found: 0 });
}
