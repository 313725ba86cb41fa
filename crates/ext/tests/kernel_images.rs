//! Images that a real kernel wrote hold, for us, what the kernel itself found in them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common::manifest::{describe, of_volume};
use crate::common::{kernel_image, manifest_lines};
use dovetail_ext::Volume;
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

fn check_tree(name: &str, lines: usize) {
    let (equal, different) = compare(name);

    assert_eq!(different, [], "{name}");
    assert_eq!(equal, lines, "{name}");
    let mut expected: Vec<_> = manifest_lines(name)
        .iter()
        .map(|line| line["path"].as_str().unwrap().to_string())
        .collect();
    expected.sort();
    let paths: Vec<_> =
        of_volume(&mut Volume::open(kernel_image(name)).unwrap()).into_keys().collect();
    assert_eq!(paths, expected, "a walk finds what the kernel finds, and nothing else");
}

#[test]
fn ext4_is_read_whole() {
    check_tree("ext4-default", 1094);
}

#[test]
fn ext3_is_read_whole() {
    check_tree("ext3-default", 1094);
}

/// The journal's content shows without a write.

#[test]
fn crashed_volumes_are_read_as_after_their_recovery() {
    for name in ["ext4-crash", "ext3-crash"] {
        let recovery = Volume::open(kernel_image(name)).unwrap().recovery().unwrap();
        assert!(recovery.transactions > 3 && recovery.blocks > 30, "{name}: {recovery:?}");
        check_tree(name, 2216);
    }
}
