//! The hints of what a mounted volume writes: a stream for each kind of block, and a program's
//! lifetime on what goes past the page cache.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeSet;

use dovetail_block::{
    BlockDevice, Command, Completion, Content, DeviceError, DeviceInfo, Lifetime, MemoryDevice,
    Pattern, performs_at_once,
};
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Options};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, FileSystem, Ino, NewNode, Simulated};

/// Has eight streams, and remembers stream and lifetime of all writes.
#[derive(Debug)]
struct Watched {
    device: MemoryDevice,
    seen: BTreeSet<(u8, Lifetime)>,
}

impl BlockDevice for Watched {
    fn info(&self) -> DeviceInfo {
        let mut info = self.device.info();
        info.capabilities.streams = 8;
        info
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        if let Command::Write { hints, .. } = &command {
            self.seen.insert((hints.stream.0, hints.lifetime));
        }
        self.device.submit(at, command)
    }
}

performs_at_once!(Watched);

fn mounted() -> Ext<Watched> {
    let mut device = MemoryDevice::new(25_600);
    mkfs(&mut device, &MkfsOptions::new(Kind::Ext4)).unwrap();
    let device = Watched { device, seen: BTreeSet::new() };
    Ext::mount(device, Options::default(), SimTime::ZERO).unwrap()
}

fn file(fs: &mut Ext<Watched>) -> Ino {
    let node = NewNode { mode: 0o100_644, rdev: (0, 0) };
    fs.create(&Caller::default(), fs.root(), b"file", &node).unwrap().ino
}

fn write(fs: &mut Ext<Watched>, ino: Ino, direct: bool) {
    let contents: Vec<Content> = (1..9).map(|n| Content::Pattern(Pattern::new(n))).collect();
    fs.write_pages(&Caller::default(), ino, (0, 8 * 4096), &contents, direct).unwrap();
}

#[test]
fn each_kind_of_block_has_its_stream() {
    let mut fs = mounted();
    let ino = file(&mut fs);
    write(&mut fs, ino, false);
    let seen = fs.unmount().unwrap().seen;
    let streams: BTreeSet<u8> = seen.iter().map(|(stream, _)| *stream).collect();
    assert_eq!(streams, (0..5).collect(), "content, journal, other, inodes, directories");
    assert!(seen.iter().all(|(_, lifetime)| *lifetime == Lifetime::NotSet), "{seen:?}");
}

#[test]
fn a_programs_hint_goes_with_direct_writes_alone() {
    for lifetime in Lifetime::ALL {
        let mut fs = mounted();
        let ino = file(&mut fs);
        fs.set_lifetime(ino, lifetime);
        fs.device_mut().seen.clear();
        write(&mut fs, ino, true);
        assert!(fs.device_mut().seen.contains(&(0, lifetime)), "{:?}", fs.device_mut().seen);
        fs.sync().unwrap();
        fs.device_mut().seen.clear();
        write(&mut fs, ino, false);
        fs.sync().unwrap();
        assert!(fs.device_mut().seen.contains(&(0, Lifetime::NotSet)));
        assert!(lifetime == Lifetime::NotSet || !fs.device_mut().seen.contains(&(0, lifetime)));
    }
}
