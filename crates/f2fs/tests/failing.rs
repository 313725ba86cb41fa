//! A device that fails in the midst of things: nothing panics, what cannot be done says so, and
//! what is on the device is a sound volume.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use crate::common::{mkfs, strict_fsck};
use dovetail_block::{BlockDevice, Command, Completion, DeviceError, DeviceInfo, MemoryDevice};
use dovetail_f2fs::{F2fs, Options};
use dovetail_testkit::exercise::{Generator, Profile, Subject};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, Error, FileSystem, NewNode};

/// Performs commands, but for one.
#[derive(Debug)]
struct Failing {
    lower: MemoryDevice,
    reads: bool,
    /// Commands of the kind that may fail until one does.
    left: u64,
    failed: bool,
}

impl BlockDevice for Failing {
    fn info(&self) -> DeviceInfo {
        self.lower.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if matches!(command, Command::Read { .. }) == self.reads && !self.failed {
            self.failed = self.left == 0;
            self.left = self.left.saturating_sub(1);
            if self.failed {
                return Err(DeviceError::Internal("as the test wants it".into()));
            }
        }
        self.lower.submit(at, command)
    }
}

dovetail_block::performs_at_once!(Failing);

/// Random operations on a device whose command `left` fails; the device then, and whether one did.
fn run(empty: &MemoryDevice, reads: bool, left: u64) -> (MemoryDevice, bool) {
    let little =
        Options { page_cache_bytes: 1 << 18, node_cache_bytes: 1 << 16, ..Options::default() };
    let device = Failing { lower: empty.clone(), reads, left, failed: false };
    let Ok(fs) = F2fs::mount(device, little, SimTime::ZERO) else { return (empty.clone(), true) };
    let mut subject = Subject::new(fs);
    let profile = Profile { file_end: 6 << 20, many: 300, ..Profile::default() };
    let mut operations = Generator::new(left % 7, profile);
    for _ in 0..600 {
        let before = subject.fs.device().failed;
        let outcome = subject.apply(&operations.next_step());
        if before && subject.fs.is_read_only() {
            assert!(subject.fs.sync().is_err(), "nothing can become durable");
            let made = subject.fs.create(
                &Caller::default(),
                subject.fs.root(),
                b"late",
                &NewNode { mode: 0o100_644, rdev: (0, 0) },
            );
            assert!(
                matches!(made, Err(Error::Io(_) | Error::ReadOnly)),
                "{made:?} after {outcome:?}"
            );
            break;
        }
    }
    let failed = subject.fs.device().failed;
    // the failure may come now; what it cut short is done the second time
    if !subject.fs.is_read_only() && subject.fs.sync().is_err() && !subject.fs.is_read_only() {
        subject.fs.sync().unwrap();
    }
    (subject.fs.into_device().lower, failed)
}

fn check(reads: bool, points: impl Iterator<Item = u64>) {
    let empty = mkfs(64 << 20, &[]);
    let mut failures = 0;
    for left in points {
        let (device, failed) = run(&empty, reads, left);
        failures += u64::from(failed);
        assert_eq!(strict_fsck(&device), "", "reads: {reads}, command {left}: as it is");
        let device =
            F2fs::mount(device, Options::default(), SimTime::ZERO).unwrap().unmount().unwrap();
        assert_eq!(strict_fsck(&device), "", "reads: {reads}, command {left}: mounted again");
    }
    assert!(failures > 20, "only {failures} commands failed");
}

#[test]
fn a_write_fails() {
    check(false, (0..40).chain((40..600).step_by(11)));
}

#[test]
fn a_read_fails() {
    check(true, 0..80);
}
