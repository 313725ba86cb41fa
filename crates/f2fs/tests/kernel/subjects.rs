//! Makers of the images that the kernel is given.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use dovetail_time::Rng;

use crate::common::manifest::Manifest;
use crate::common::tool;
use crate::ours;

/// A maker of images, and what else it can do with them.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    /// Makes an image at the path, cleanly unmounted, with content that depends on the seed.
    pub(crate) make: fn(&Path, u64),
    /// Makes one as a power cut leaves it, with fsyncs that no checkpoint covers, and returns what
    /// was fsynced and not changed since.
    pub(crate) crash: Option<fn(&Path, u64) -> Manifest>,
    /// Mounts an image that a power cut left, recovers it and unmounts it.
    pub(crate) recover: Option<fn(&Path)>,
}

pub(crate) const SUBJECTS: [Subject; 5] = [
    Subject {
        name: "ours",
        make: ours::make,
        crash: Some(ours::crash),
        recover: Some(ours::recover),
    },
    Subject {
        name: "ours remapped",
        make: ours::make_remapped,
        crash: Some(ours::crash_remapped),
        recover: Some(ours::recover),
    },
    Subject {
        name: "tools",
        make: |image, seed| tools(image, seed, &[]),
        crash: None,
        recover: Some(ours::recover),
    },
    Subject {
        name: "tools with checksums",
        make: |image, seed| tools(image, seed, &["-O", "extra_attr,inode_checksum,sb_checksum"]),
        crash: None,
        recover: Some(ours::recover),
    },
    Subject {
        name: "empty with features",
        make: |image, _| empty(image),
        crash: None,
        recover: Some(ours::recover),
    },
];

const SIZE: u64 = 128 << 20;

fn empty(image: &Path) {
    let features =
        "extra_attr,inode_checksum,sb_checksum,inode_crtime,flexible_inline_xattr,lost_found";
    File::create(image).unwrap().set_len(SIZE).unwrap();
    tool("mkfs.f2fs", &["-q", "-O", features, image.to_str().unwrap()]);
}

/// mkfs.f2fs, and a tree of files that sload.f2fs puts there.
fn tools(image: &Path, seed: u64, options: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), &mut Rng::new(seed));
    File::create(image).unwrap().set_len(SIZE).unwrap();
    let image = image.to_str().unwrap();
    tool("mkfs.f2fs", &[&["-q"], options, &[image]].concat());
    tool("sload.f2fs", &["-f", folder.path().to_str().unwrap(), image]);
}

fn fill(folder: &Path, rng: &mut Rng) {
    for d in 0..4 {
        let dir = folder.join(format!("dir{d}"));
        fs::create_dir(&dir).unwrap();
        for f in 0..rng.below(80) {
            let max = [100, 5000, 100_000, 5_000_000][rng.below(3 + u64::from(f == 7)) as usize];
            let key = rng.next_u64();
            let bytes: Vec<u8> =
                (0..rng.below(max)).map(|i| (key >> (i % 53)) as u8 ^ (i >> 12) as u8).collect();
            fs::write(dir.join(format!("file{f}")), bytes).unwrap();
        }
        symlink("dir0/file0", dir.join("link")).unwrap();
    }
}
