//! Checking: sound volumes have no findings, and each kind of damage has its own.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::{kernel_image, tool};
use dovetail_block::{ImageDevice, MemoryDevice};
use dovetail_f2fs::Volume;
use dovetail_f2fs::format::{Features, Nid};
use dovetail_f2fs::fsck::{Finding, Options, RepairError, Report, Severity, check, repair};

fn report(image: MemoryDevice) -> Report {
    check(image, Options::default(), |_| {}).unwrap()
}

/// The findings but for those that say that nothing is wrong.
fn complaints(report: &Report) -> Vec<String> {
    let findings = report.findings.iter().filter(|finding| finding.severity() != Severity::Note);
    findings.map(|finding| finding.to_string()).collect()
}

#[test]
fn what_a_kernel_wrote_is_clean() {
    for (name, files) in
        [("f2fs-default", 1095), ("f2fs-features", 1096), ("f2fs-largenat-sections", 1095)]
    {
        let report = report(kernel_image(name));
        assert_eq!(complaints(&report), Vec::<String>::new(), "{name}");
        assert_eq!(report.counts.names + 1, files, "{name}");
    }
}

#[test]
fn a_volume_that_was_not_unmounted_is_clean_and_its_fsynced_files_are_counted() {
    let report = report(kernel_image("f2fs-crash"));
    assert_eq!(complaints(&report), Vec::<String>::new());
    let awaiting =
        report.findings.iter().filter(|f| matches!(f, Finding::AwaitsRecovery { count: 32 }));
    assert_eq!(awaiting.count(), 1, "{:?}", report.findings);
}

/// Checks a volume that mkfs.f2fs made and sload.f2fs filled. Returns the findings that say that
/// something is wrong.
fn made_by_tools(size: u64, options: &[&str]) -> (Vec<String>, bool) {
    let folder = tempfile::tempdir().unwrap();
    let (image, source) = (folder.path().join("image"), folder.path().join("source"));
    std::fs::File::create(&image).unwrap().set_len(size).unwrap();
    let name = image.to_str().unwrap();
    tool("mkfs.f2fs", &[&["-q"], options, &[name]].concat());
    std::fs::create_dir_all(source.join("folder/below")).unwrap();
    std::fs::write(source.join("large"), vec![7; 4096 * 960]).unwrap();
    std::os::unix::fs::symlink("folder/below", source.join("link")).unwrap();
    for n in 0..if size < 1 << 40 { 700 } else { 3 } {
        std::fs::write(source.join(format!("folder/name number {n}")), format!("{n}")).unwrap();
    }
    let fresh =
        check(ImageDevice::open_read_only(&image).unwrap(), Options::default(), |_| {}).unwrap();
    assert_eq!(complaints(&fresh), Vec::<String>::new(), "{options:?}");
    if size < 1 << 40 {
        tool("sload.f2fs", &["-f", source.to_str().unwrap(), name]);
    }
    let report =
        check(ImageDevice::open_read_only(&image).unwrap(), Options::default(), |_| {}).unwrap();
    let clean = common::lab::verdict(&image).clean;
    repair_root(&image);
    (complaints(&report), clean)
}

/// Damages the root's count of links, and twice has it repaired: the first repair goes to the one
/// pack and the other copies of the tables, the second one back.
fn repair_root(image: &Path) {
    for _ in 0..2 {
        let mut volume = Volume::open(ImageDevice::open_read_only(image).unwrap()).unwrap();
        let root = volume.nat(Nid(3)).unwrap().address;
        let file = std::fs::OpenOptions::new().write(true).open(image).unwrap();
        file.write_all_at(&[77, 0, 0, 0], root.0 * 4096 + 12).unwrap();
        let inode_sums = volume.superblock().features.has(Features::INODE_CHECKSUM);
        let repaired = repair(ImageDevice::open_read_write(image).unwrap());
        if inode_sums {
            assert!(
                matches!(repaired, Err(RepairError::Hidden(_))),
                "the checksum is wrong, too: {repaired:?}"
            );
            return;
        }
        assert_eq!(repaired.unwrap().len(), 1);
        let moved = Volume::open(ImageDevice::open_read_only(image).unwrap())
            .unwrap()
            .nat(Nid(3))
            .unwrap()
            .address;
        assert_ne!(moved, root, "what the old checkpoint refers to is left alone");
        let verdict = common::lab::verdict(image);
        assert!(verdict.clean, "{:?}", verdict.complaints);
    }
}

#[test]
fn what_the_tools_made_is_clean() {
    let features = "extra_attr,inode_checksum,sb_checksum,inode_crtime,lost_found";
    let layouts: [(u64, &[&str]); 6] = [
        (256 << 20, &[]),
        (256 << 20, &["-O", features]),
        (256 << 20, &["-O", "extra_attr,project_quota,quota"]),
        (1 << 30, &["-i"]),
        (1 << 30, &["-s", "4", "-z", "2"]),
        (4 << 40, &[]),
    ];
    for (size, options) in layouts {
        let (complaints, referee) = made_by_tools(size, options);
        assert!(referee, "fsck.f2fs itself complains: {options:?}");
        assert_eq!(complaints, Vec::<String>::new(), "{options:?}");
    }
}
