//! Images that a real kernel wrote hold, for us, what the kernel itself found in them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common::manifest::{describe, of_volume};
use crate::common::{kernel_image, manifest_lines};
use dovetail_f2fs::Volume;
use dovetail_f2fs::format::{InodeFlags, SegNo};
use dovetail_vfs::kit::VolumeTree;
use serde_json::Value;

/// Number of lines of the manifest that hold; the others come back with what was found in their
/// place.
fn compare(name: &str) -> (usize, Vec<(Value, String)>) {
    let mut volume = Volume::open(kernel_image(name)).unwrap();
    let mut different = Vec::new();
    let mut equal = 0;
    for line in manifest_lines(name) {
        let path = line["path"].as_str().unwrap().to_string();
        let found = volume.resolve_link(path.as_bytes());
        let found = found.map(|inode| describe(&mut volume, &path, &inode));
        match found {
            Ok(found) if found == line => equal += 1,
            other => different.push((line, format!("{other:?}"))),
        }
    }
    (equal, different)
}

fn paths(name: &str) -> Vec<String> {
    of_volume(&mut Volume::open(kernel_image(name)).unwrap()).into_keys().collect()
}

fn check_clean(name: &str, lines: usize) {
    let (equal, different) = compare(name);
    assert_eq!(different, [], "{name}");
    assert_eq!(equal, lines);
    let mut expected: Vec<_> = manifest_lines(name)
        .iter()
        .map(|line| line["path"].as_str().unwrap().to_string())
        .collect();
    expected.sort();
    assert_eq!(paths(name), expected, "a walk finds what the kernel finds, and nothing else");
}

#[test]
fn the_default_image_is_read_whole() {
    check_clean("f2fs-default", 1095);
}

#[test]
fn the_image_with_features_is_read_whole() {
    check_clean("f2fs-features", 1096);
}

#[test]
fn the_image_with_a_large_nat_and_sections_is_read_whole() {
    check_clean("f2fs-largenat-sections", 1095);
}

#[test]
fn the_image_with_compressed_files_is_read_whole() {
    check_clean("f2fs-compressed", 56);
}

/// Reads of a few bytes, each from a cluster of its own, and of the same bytes in one go.
#[test]
fn compressed_files_are_read_at_any_place() {
    let mut volume = Volume::open(kernel_image("f2fs-compressed")).unwrap();
    for algorithm in ["lz4", "lz4hc", "zstd", "lzo", "lzo-rle"] {
        let inode = volume.resolve(format!("{algorithm}/mixed").as_bytes()).unwrap();
        assert!(inode.flags.has(InodeFlags::COMPRESSED));
        let mut whole = vec![0; inode.size as usize];
        assert_eq!(volume.read(&inode, 0, &mut whole), Ok(whole.len()));
        for start in (0..whole.len()).rev().step_by(7919) {
            let mut part = [0; 100];
            let len = volume.read(&inode, start as u64, &mut part).unwrap();
            assert!(
                part[..len] == whole[start..whole.len().min(start + 100)],
                "{algorithm} at {start}"
            );
            assert!(volume.next_data(&inode, start as u64).unwrap() - (start as u64) < 65_536);
        }
        let middle = inode.size.min(5 * 4096);
        assert_eq!(
            volume.next_data(&inode, middle),
            Ok(middle),
            "a slot without a block is no hole"
        );
    }
}

#[test]
fn the_segments_of_a_clean_image_have_as_many_blocks_as_the_checkpoint_says() {
    let mut volume = Volume::open(kernel_image("f2fs-default")).unwrap();
    let segments = volume.superblock().segment_count_main;
    let total: u32 = (0..segments).map(|n| volume.segment(SegNo(n)).unwrap().valid_blocks).sum();
    // blocks that fallocate reserved are counted by the checkpoint, and have no bit
    let reserved = volume.checkpoint().valid_block_count - u64::from(total);
    assert!(reserved < 2048, "{reserved}");
}

/// Summaries lead to a node that points back: of segments in the summary area, of those with a log,
/// whose summaries are compacted or not, and of node logs that have none.
#[test]
fn the_owner_of_every_block_points_to_it() {
    for (name, blocks) in [("f2fs-default", 5000), ("f2fs-crash", 5000), ("f2fs-compressed", 500)] {
        let mut volume = Volume::open(kernel_image(name)).unwrap();
        let mut checked = 0;
        for segno in (0..volume.superblock().segment_count_main).map(SegNo) {
            let entry = volume.segment(segno).unwrap();
            let summaries = volume.summaries(segno).unwrap();
            for offset in (0..512).filter(|&offset| entry.is_valid(offset)) {
                let address = volume.block_in_segment(segno, offset);
                let owner = volume.owner(summaries[offset as usize], entry.log >= 3).unwrap();
                let found = match owner.file_block {
                    None => volume.nat(owner.nid).unwrap().address,
                    Some(block) => {
                        let inode = volume.inode(owner.ino).unwrap();
                        volume.block_of(&inode, block).unwrap()
                    }
                };
                assert_eq!(found, address, "{name}: {owner:?}");
                checked += 1;
            }
        }
        assert!(checked > blocks, "{name}: {checked}");
    }
}

/// Content that the kernel's roll-forward recovery brings back is not shown: only that of the last
/// checkpoint is.
#[test]
fn a_crashed_image_is_shown_as_of_its_last_checkpoint() {
    let (equal, different) = compare("f2fs-crash");
    let names = different.iter().map(|(line, _)| line["path"].as_str().unwrap());
    let unfinished = |name: &&str| name.starts_with("./fsynced-") || *name == "./open-unlinked";
    let others: Vec<_> = names.clone().filter(|name| !unfinished(name)).collect();
    assert_eq!(
        others,
        [".", "./a/rnd"],
        "the root that got new names, a file written and fsynced again"
    );
    assert_eq!((equal, names.filter(unfinished).count()), (2187, 31));
}
