//! Checking: sound volumes have no findings, and each kind of damage has its own.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod common;

use common::kernel_image;
use dovetail_block::MemoryDevice;
use dovetail_f2fs::fsck::{Finding, Options, Report, Severity, check};

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
    for (name, files) in [("f2fs-default", 1095), ("f2fs-features", 1096), ("f2fs-largenat-sections", 1095)] {
        let report = report(kernel_image(name));
        assert_eq!(complaints(&report), Vec::<String>::new(), "{name}");
        assert_eq!(report.counts.names + 1, files, "{name}");
    }
}

#[test]
fn a_volume_that_was_not_unmounted_is_clean_and_its_fsynced_files_are_counted() {
    let report = report(kernel_image("f2fs-crash"));
    assert_eq!(complaints(&report), Vec::<String>::new());
    let awaiting = report.findings.iter().filter(|f| matches!(f, Finding::AwaitsRecovery { count: 32 }));
    assert_eq!(awaiting.count(), 1, "{:?}", report.findings);
}
