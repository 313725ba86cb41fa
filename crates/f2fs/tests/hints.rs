//! The hints of what a mounted volume writes: the table that was read from Linux 6.12.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeSet;

use dovetail_block::{
    BlockDevice, Command, Completion, Content, DeviceError, DeviceInfo, Lifetime, MemoryDevice,
    Pattern, performs_at_once,
};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::{Rng, SimTime};
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Simulated};

/// Remembers stream and lifetime of all writes.
#[derive(Debug)]
struct Watched {
    device: MemoryDevice,
    seen: BTreeSet<(u8, Lifetime)>,
}

impl BlockDevice for Watched {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if let Command::Write { hints, .. } = &command {
            self.seen.insert((hints.stream.0, hints.lifetime));
        }
        self.device.submit(at, command)
    }
}

performs_at_once!(Watched);

fn mounted(options: &str) -> F2fs<Watched> {
    let mut device = MemoryDevice::new(25_600);
    mkfs(&mut device, &MkfsOptions::default()).unwrap();
    let device = Watched { device, seen: BTreeSet::new() };
    F2fs::mount(device, Options::parse(options).unwrap(), SimTime::ZERO).unwrap()
}

fn file(fs: &mut F2fs<Watched>, name: &str) -> Ino {
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    fs.create(&Caller::default(), fs.root(), name.as_bytes(), &node).unwrap().ino
}

fn write(fs: &mut F2fs<Watched>, ino: Ino, first: u64, blocks: u64, direct: bool) {
    let contents: Vec<Content> =
        (first..first + blocks).map(|n| Content::Pattern(Pattern::new(n + 1))).collect();
    let range = (first * 4096, blocks * 4096);
    fs.write_pages(&Caller::default(), ino, range, &contents, direct).unwrap();
}

/// The writes of `work` alone.
fn seen(fs: &mut F2fs<Watched>, work: impl FnOnce(&mut F2fs<Watched>)) -> Vec<(u8, Lifetime)> {
    fs.sync().unwrap();
    fs.device_mut().seen.clear();
    work(fs);
    fs.device().seen.iter().copied().collect()
}

const HOT: (u8, Lifetime) = (0, Lifetime::Short);
const WARM: (u8, Lifetime) = (1, Lifetime::NotSet);
const COLD: (u8, Lifetime) = (2, Lifetime::Extreme);
const WARM_NODE: (u8, Lifetime) = (4, Lifetime::Medium);

#[test]
fn each_log_and_the_metadata_have_their_lifetimes() {
    let mut fs = mounted("mode=lfs");
    let all = seen(&mut fs, |fs| {
        let warm = file(fs, "warm");
        // far out: pointers to pointers
        write(fs, warm, 0, 64, false);
        write(fs, warm, 3000, 64, false);
        let cold = file(fs, "film.mp4");
        write(fs, cold, 0, 64, false);
        fs.sync().unwrap();
    });
    let expected =
        [HOT, WARM, COLD, (3, Lifetime::None), WARM_NODE, (5, Lifetime::Long), (7, Lifetime::None)];
    assert_eq!(all, expected);
}

#[test]
fn an_fsync_of_a_few_blocks_is_hot() {
    let mut fs = mounted("mode=lfs");
    let ino = file(&mut fs, "file");
    write(&mut fs, ino, 0, 64, false);
    let fsync = |blocks| {
        move |fs: &mut F2fs<Watched>| {
            write(fs, ino, 0, blocks, false);
            fs.fsync(ino, false).unwrap();
        }
    };
    assert_eq!(seen(&mut fs, fsync(8)), [HOT, WARM_NODE]);
    assert_eq!(seen(&mut fs, fsync(64)), [WARM, WARM_NODE]);
}

#[test]
fn of_a_programs_hints_short_and_extreme_choose_a_log() {
    for direct in [false, true] {
        for lifetime in Lifetime::ALL {
            let mut fs = mounted("mode=lfs");
            let ino = file(&mut fs, "file");
            fs.set_lifetime(ino, lifetime);
            write(&mut fs, ino, 0, 64, direct);
            let data = seen(&mut fs, |fs| {
                write(fs, ino, 0, 64, direct);
                fs.fsync(ino, true).unwrap();
            });
            let expected = match lifetime {
                Lifetime::Short => HOT,
                Lifetime::Extreme => COLD,
                _ => WARM,
            };
            assert_eq!(data[0], expected, "{lifetime:?}, direct {direct}: {data:?}");
        }
    }
}

#[test]
fn a_write_in_place_has_the_lifetime_of_the_log_that_it_would_go_to() {
    let mut fs = mounted("");
    let (short, unset) = (file(&mut fs, "short"), file(&mut fs, "unset"));
    fs.set_lifetime(short, Lifetime::Short);
    for ino in [short, unset] {
        write(&mut fs, ino, 0, 64, true);
    }
    let mut rng = Rng::new(1);
    let mut direct = |fs: &mut F2fs<Watched>, ino| {
        (0..20).for_each(|_| write(fs, ino, rng.below(40), 20, true));
    };
    assert_eq!(seen(&mut fs, |fs| direct(fs, short)), [(6, Lifetime::Short)]);
    assert_eq!(seen(&mut fs, |fs| direct(fs, unset)), [(6, Lifetime::NotSet)]);
}

#[test]
fn a_hint_goes_with_its_file() {
    let mut fs = mounted("mode=lfs");
    let ino = file(&mut fs, "file");
    fs.set_lifetime(ino, Lifetime::Extreme);
    fs.unlink(&Caller::default(), fs.root(), b"file").unwrap();
    let again = file(&mut fs, "file");
    let data = seen(&mut fs, |fs| {
        write(fs, again, 0, 64, false);
        fs.sync().unwrap();
    });
    assert!(!data.contains(&COLD) && data.contains(&WARM), "{again:?}: {data:?}");
}
