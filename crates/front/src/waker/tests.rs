//! Mounts whose clock the tests move: background work, ages and dates follow from it.

use std::sync::atomic::{AtomicU64, Ordering};

use dovetail_block::{Content, MemoryDevice, Scheduler};
use dovetail_ext::Ext;
use dovetail_ext::mkfs::MkfsOptions;
use dovetail_f2fs::F2fs;
use dovetail_testkit::{Event, Recording, RecordingDevice};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, Moment, NewNode, Timestamp};

use super::*;
use crate::faults::Faults;

const PAGE: [u8; 4096] = [7; 4096];
/// Seconds from 1970 to the date of the mounts here.
const DATE_S: i64 = 1_700_000_000;

/// Start of a commit block: the journal's magic number and block type 2.
const COMMIT_BLOCK: [u8; 8] = [0xC0, 0x3B, 0x39, 0x98, 0, 0, 0, 2];

/// A mount whose clock the test moves, in milliseconds.
struct Mount {
    shared: Shared,
    ms: Arc<AtomicU64>,
}

fn moment(ms: u64) -> Moment {
    let (time, seconds) = (SimTime::from_ns(ms * 1_000_000), DATE_S + (ms / 1000) as i64);
    Moment { time, date: Timestamp { seconds, nanoseconds: 0 } }
}

impl Mount {
    fn new(fs: impl FileSystem + Send + Sync + 'static) -> Self {
        let ms = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&ms);
        let clock = Box::new(move || moment(clock.load(Ordering::Relaxed)));
        Self {
            shared: Shared::new(Box::new(fs), Faults::new(Box::new(|_| {}), false), None, clock),
            ms,
        }
    }

    fn create(&self, name: &str) -> Ino {
        let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
        let make = |fs: &mut dyn FileSystem| {
            fs.create(&Caller::default(), fs.root(), name.as_bytes(), &node)
        };
        self.shared.call(make).unwrap().ino
    }

    fn write(&self, ino: Ino, page: u64) {
        self.shared.call(|fs| fs.write(&Caller::default(), ino, page * 4096, &PAGE)).unwrap();
    }

    /// Lets `ms` milliseconds go by, with `load` every ten of them; the waker looks as often as its
    /// thread does.
    fn pass(&self, ms: u64, load: impl Fn(&Self)) {
        let end = self.ms.load(Ordering::Relaxed) + ms;
        let mut look = 0;
        while self.ms.fetch_add(10, Ordering::Relaxed) < end {
            load(self);
            let now = self.ms.load(Ordering::Relaxed);
            if now >= look {
                look = now + work_that_is_due(&self.shared).as_millis() as u64;
            }
        }
    }
}

fn f2fs<D: Scheduler>(device: D) -> F2fs<D> {
    F2fs::mount(device, dovetail_f2fs::Options::default(), moment(0)).unwrap()
}

fn recorded(device: MemoryDevice) -> (RecordingDevice<MemoryDevice>, Recording) {
    let device = RecordingDevice::new(device);
    let recording = device.recording();
    (device, recording)
}

fn written(recording: &Recording) -> u64 {
    let blocks =
        |event: &Event| if let Event::Write { range, .. } = event { range.blocks } else { 0 };
    recording.events().iter().map(blocks).sum()
}

/// An F2FS volume of segments that are half valid, which background cleaning likes to empty.
fn to_be_cleaned() -> MemoryDevice {
    let mut device = MemoryDevice::new(128 << 8);
    dovetail_f2fs::mkfs::mkfs(&mut device, &dovetail_f2fs::mkfs::MkfsOptions::default()).unwrap();
    let mut fs = f2fs(device);
    let (caller, root) = (Caller::default(), fs.root());
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    let [a, b] = [b"a", b"b"].map(|name| fs.create(&caller, root, name, &node).unwrap().ino);
    for page in 0..4000 {
        for ino in [a, b] {
            FileSystem::write(&mut fs, &caller, ino, page * 4096, &PAGE).unwrap();
        }
        if page % 64 == 63 {
            FileSystem::sync(&mut fs).unwrap();
        }
    }
    fs.unlink(&caller, root, b"b").unwrap();
    fs.unmount().unwrap()
}

#[test]
fn a_busy_mount_is_not_cleaned_and_an_idle_one_is() {
    let (device, recording) = recorded(to_be_cleaned());
    let mount = Mount::new(f2fs(device));
    let file = mount.create("file");
    let begin = written(&recording);
    mount.pass(20_000, |mount| mount.write(file, 0));
    let busy = written(&recording) - begin;
    assert!(busy < 40, "{busy} blocks in 20 s of writes to one page");
    mount.pass(200_000, |_| {});
    let idle = written(&recording) - begin - busy;
    assert!(idle > 200, "{idle} blocks in 200 s of rest");
}

/// An ext4 volume, mounted.
fn ext4(device: RecordingDevice<MemoryDevice>) -> Mount {
    Mount::new(Ext::mount(device, dovetail_ext::Options::default(), moment(0)).unwrap())
}

fn empty_ext4() -> (RecordingDevice<MemoryDevice>, Recording) {
    let mut device = MemoryDevice::new(64 << 8);
    let ext4 = MkfsOptions::new(dovetail_ext::mkfs::Kind::Ext4);
    let options = MkfsOptions { block_size: Some(4096), ..ext4 };
    dovetail_ext::mkfs::mkfs(&mut device, &options).unwrap();
    recorded(device)
}

#[test]
fn the_first_change_after_a_pause_is_committed_after_five_seconds() {
    let (device, recording) = empty_ext4();
    let mount = ext4(device);
    mount.pass(60_000, |_| {});
    let begin = written(&recording);
    mount.create("file");
    mount.pass(4_900, |_| {});
    assert_eq!(written(&recording), begin, "committed too early");
    mount.pass(600, |_| {});
    assert!(written(&recording) > begin, "not committed after 5.5 s");
}

/// The dates of the journal's commit blocks, in seconds since 1970.
fn commit_dates(recording: &Recording) -> Vec<u64> {
    let blocks = recording.events().into_iter().flat_map(|event| match event {
        Event::Write { contents, .. } => contents,
        _ => Vec::new(),
    });
    let date = |block: Content| match block {
        Content::Bytes(bytes) if bytes.starts_with(&COMMIT_BLOCK) => {
            bytes[48..].first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
        }
        _ => None,
    };
    blocks.filter_map(date).collect()
}

#[test]
fn the_dates_of_a_volume_are_those_of_the_calendar() {
    let (device, recording) = empty_ext4();
    let mount = ext4(device);
    mount.create("file");
    mount.pass(100_000, |_| {});
    mount.create("other");
    let Some(fs) = mount.shared.take() else { panic!("the mount has ended") };
    fs.unmount().unwrap();
    let dates: Vec<u64> =
        commit_dates(&recording).into_iter().map(|date| date - DATE_S as u64).collect();
    let [first, last] = dates[..] else { panic!("{dates:?}") };
    assert!(first == 5 && last == 100, "{dates:?}");
    let mut device = recording.newest();
    let superblock = Ext::superblock_of(&mut device).unwrap();
    let expected = (DATE_S as u64, DATE_S as u64 + 100);
    assert_eq!((superblock.mount_time, superblock.write_time), expected);
}
