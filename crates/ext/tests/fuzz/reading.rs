//! Reads an input without mounting it, and checks it.

use dovetail_ext::format::FileType;
use dovetail_ext::fsck::{Finding, Options, check};
use dovetail_ext::{Visit, Volume};

use crate::input::Input;

/// Result of the check of an input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Clean,
    /// Clean, with a journal to be replayed, of which a check sees only the content: numbers of
    /// transactions that are wrong may come to light later.
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
            while left > 0 && inode.file_type() == FileType::REGULAR {
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

/// Result of the check.
pub(crate) fn checked(input: &mut Input<'_>) -> Verdict {
    match check(input, Options { kept_per_kind: 100 }) {
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
