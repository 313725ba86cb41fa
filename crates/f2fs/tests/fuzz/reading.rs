//! Reads an input as of its last checkpoint, checks it and repairs a copy.

use dovetail_f2fs::fsck::{Finding, Options, Severity, check, repair};
use dovetail_f2fs::{Visit, Volume};

use crate::common::bed::BedDevice;
use crate::input::Input;

/// Verdict of a check on an input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Clean,
    /// Clean, but for what fsyncs wrote after the last checkpoint, which the check does not judge.
    AwaitsRecovery,
    /// It has errors, or cannot be opened.
    Damaged(String),
}

/// Opens, walks, reads (at most a megabyte) and checks.
pub(crate) fn use_all(input: &mut Input<'_>) -> Verdict {
    let mut left = 1 << 20;
    let mut buffer = vec![0; 64 << 10];
    if let Ok(mut volume) = Volume::open(&mut *input) {
        let Ok(root) = volume.root() else { return checked(input.rewound()) };
        volume.walk(root, |volume, entry| {
            let Ok(inode) = entry.inode else { return Visit::Enter };
            let _ = (volume.xattrs(&inode), volume.read_link(&inode));
            if inode.is_dir() {
                let _ = volume.lookup(&inode, b"no such name");
            }
            let mut at = 0;
            while left > 0 {
                let Ok(next) = volume.next_data(&inode, at) else { break };
                match volume.read(&inode, next, &mut buffer) {
                    Ok(len) if len > 0 => (at, left) = (next + len as u64, left - len as i64),
                    _ => break,
                }
            }
            Visit::Enter
        });
    }
    checked(input.rewound())
}

/// Checks the input.
pub(crate) fn checked(input: &mut Input<'_>) -> Verdict {
    match check(input, Options { kept_per_kind: 100 }, |_| {}) {
        Ok(report) if report.is_clean() => {
            let awaits = |finding: &Finding| matches!(finding, Finding::AwaitsRecovery { .. });
            if report.findings.iter().any(awaits) {
                Verdict::AwaitsRecovery
            } else {
                Verdict::Clean
            }
        }
        Ok(report) => Verdict::Damaged(format!("{:?}", report.findings)),
        Err(error) => Verdict::Damaged(error.to_string()),
    }
}

/// A repair leaves no more errors than there were, and nothing that it could do itself.
pub(crate) fn repair_too(input: &Input<'_>) {
    let errors = |device: &mut BedDevice| {
        check(device, Options::default(), |_| {}).map_or(0, |report| report.count(Severity::Error))
    };
    let mut device = input.device();
    let before = errors(&mut device);
    if repair(&mut device).is_ok() {
        let after = errors(&mut device);
        assert!(after <= before, "a repair made {after} errors of {before}");
    }
}
