//! What mounts an input: everything is read, or some of it changed.

use std::collections::BTreeSet;

use dovetail_block::BlockDevice;
use dovetail_f2fs::{F2fs, Mode, Options};
use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::{
    Caller, Fallocate, FileSystem, Ino, NewNode, RenameFlags, SetAttr, Timestamp, XattrFlags,
};

use crate::input::Input;

/// Bytes of content that are read at most.
const MAX_CONTENT: usize = 1 << 20;
/// Entries that changes choose from.
const MAX_ENTRIES: usize = 200;
/// Changes of one mount at most.
const MAX_CHANGES: u64 = 24;
const CALLER: Caller =
    Caller { uid: 5, gid: 6, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 999_999_999 } };

/// A name, and what it names.
#[derive(Clone)]
struct Entry {
    dir: Ino,
    name: Vec<u8>,
    ino: Ino,
    is_dir: bool,
}

/// Mounts the input read-only, walks and reads.
pub(crate) fn read(input: &mut Input<'_>) {
    let options = Options { read_only: true, ..Options::default() };
    let Ok(mut fs) = F2fs::mount(input, options, SimTime::ZERO) else { return };
    let mut left = MAX_CONTENT;
    for entry in entries(&mut fs, usize::MAX) {
        read_one(&mut fs, &entry, &mut left);
    }
    let _ = (fs.statfs(), fs.unmount());
}

/// All that the names below the root lead to, each once, up to `max` names.
fn entries<D: BlockDevice>(fs: &mut F2fs<D>, max: usize) -> Vec<Entry> {
    let root = fs.root();
    let mut all = vec![Entry { dir: root, name: b".".to_vec(), ino: root, is_dir: true }];
    let mut seen = BTreeSet::from([root]);
    let mut next = 0;
    while next < all.len() {
        let Entry { ino: dir, is_dir, .. } = all[next];
        next += 1;
        if !is_dir {
            continue;
        }
        let room = max.saturating_sub(all.len());
        let mut found = Vec::new();
        let _ = fs.readdir(dir, 0, &mut |entry| {
            found.push((entry.name, entry.ino));
            found.len() < room
        });
        for (name, ino) in found {
            let is_dir = fs.getattr(ino).is_ok_and(|attr| attr.is_dir());
            if seen.insert(ino) {
                all.push(Entry { dir, name, ino, is_dir });
            }
        }
    }
    all
}

fn read_one<D: BlockDevice>(fs: &mut F2fs<D>, entry: &Entry, left: &mut usize) {
    let ino = entry.ino;
    let _ = (fs.lookup(entry.dir, &entry.name), fs.readlink(ino));
    if entry.is_dir {
        let _ = fs.lookup(ino, b"no such name");
    }
    for name in fs.listxattr(ino).unwrap_or_default() {
        let _ = fs.getxattr(ino, &name);
    }
    let _ = fs.seek_hole(ino, 0);
    let mut buffer = vec![0; 64 << 10];
    let mut at = 0;
    while *left > 0 {
        let Ok(next) = fs.seek_data(ino, at) else { break };
        match fs.read(ino, next, &mut buffer) {
            Ok(len) if len > 0 => (at, *left) = (next + len as u64, left.saturating_sub(len)),
            _ => break,
        }
    }
}

/// Mounts the input, which recovers what there is, and changes it; then once more, perhaps as after a power cut.
pub(crate) fn change(input: &mut Input<'_>, rng: &mut Rng) {
    for _ in 0..2 {
        let options = Options {
            mode: if rng.below(4) == 0 { Mode::Lfs } else { Mode::Adaptive },
            page_cache_bytes: 64 << (10 + rng.below(11)),
            node_cache_bytes: 64 << (10 + rng.below(10)),
            ..Options::default()
        };
        let Ok(mut fs) = F2fs::mount(&mut *input, options, SimTime::ZERO) else { return };
        let entries = entries(&mut fs, MAX_ENTRIES);
        let mut work = Work { fs, entries, rng };
        for _ in 0..work.rng.below(MAX_CHANGES) {
            work.change();
        }
        let _ = work.fs.sync();
        let mut left = MAX_CONTENT / 8;
        for entry in work.entries.iter().take(20) {
            read_one(&mut work.fs, entry, &mut left);
        }
        let cut = work.rng.below(4) == 0;
        if cut {
            work.change();
            work.fs.into_device();
        } else {
            let _ = work.fs.unmount();
        }
    }
}

/// A mounted input that is being changed.
struct Work<'a, D> {
    fs: F2fs<D>,
    entries: Vec<Entry>,
    rng: &'a mut Rng,
}

impl<D: BlockDevice> Work<'_, D> {
    /// One change. Whether it works is not the question.
    fn change(&mut self) {
        let (one, other) = (self.pick(), self.pick());
        let dir = if other.is_dir { other.ino } else { other.dir };
        match self.rng.below(15) {
            0 | 1 => self.create(dir, 0o100_644),
            2 => self.create(dir, 0o040_755),
            3 => self.link(dir),
            4 | 5 => self.write(one.ino),
            6 => drop(self.fs.unlink(&CALLER, one.dir, &one.name)),
            7 => drop(self.fs.rmdir(&CALLER, one.dir, &one.name)),
            8 => self.set_size(one.ino),
            9 => self.set_xattr(one.ino),
            10 => self.rename(&one, dir, &other.name),
            11 => drop(self.fs.link(&CALLER, one.ino, dir, b"a second name")),
            12 => self.allocate(one.ino),
            13 => drop(self.fs.fsync(one.ino, self.rng.below(2) == 0)),
            _ => self.pass_time(),
        }
    }

    fn pick(&mut self) -> Entry {
        self.entries[self.rng.below(self.entries.len() as u64) as usize].clone()
    }

    fn create(&mut self, dir: Ino, mode: u16) {
        let name = vec![b'n'; 1 + self.rng.below(255) as usize];
        let Ok(attr) = self.fs.create(&CALLER, dir, &name, &NewNode { mode, rdev: (0, 0) }) else { return };
        self.entries.push(Entry { dir, name, ino: attr.ino, is_dir: attr.is_dir() });
        self.write(attr.ino);
    }

    fn link(&mut self, dir: Ino) {
        let target = vec![b't'; self.rng.below(4096) as usize];
        let _ = self.fs.symlink(&CALLER, dir, b"a new link", &target);
    }

    fn write(&mut self, ino: Ino) {
        let offset = self.offset(ino);
        let bytes = vec![b'b'; 1 << self.rng.below(15)];
        let _ = self.fs.write(&CALLER, ino, offset, &bytes);
    }

    /// A place near the start of a file, in it, or beyond its inode's pointers.
    fn offset(&mut self, ino: Ino) -> u64 {
        let size = self.fs.getattr(ino).map_or(0, |attr| attr.size);
        match self.rng.below(4) {
            0 => self.rng.below(100),
            1 => self.rng.below(size.max(1)),
            2 => size,
            _ => self.rng.next_u64() >> (21 + self.rng.below(43)),
        }
    }

    fn set_size(&mut self, ino: Ino) {
        let size = Some(self.offset(ino));
        let _ = self.fs.setattr(&CALLER, ino, &SetAttr { size, ..SetAttr::default() });
    }

    fn set_xattr(&mut self, ino: Ino) {
        let listed = self.fs.listxattr(ino).unwrap_or_default();
        let name = listed.first().map_or(&b"user.name"[..], |name| name);
        let _ = match self.rng.below(3) {
            0 => self.fs.removexattr(&CALLER, ino, name),
            1 => self.fs.setxattr(&CALLER, ino, b"user.new", b"value", XattrFlags::default()),
            _ => {
                let value = vec![b'v'; self.rng.below(4000) as usize];
                self.fs.setxattr(&CALLER, ino, name, &value, XattrFlags::default())
            }
        };
    }

    fn rename(&mut self, from: &Entry, dir: Ino, taken: &[u8]) {
        let flags = RenameFlags { no_replace: self.rng.below(4) == 0, exchange: self.rng.below(4) == 0 };
        let name = if self.rng.below(2) == 0 { taken } else { b"renamed" };
        let _ = self.fs.rename(&CALLER, (from.dir, &from.name), (dir, name), flags);
    }

    fn allocate(&mut self, ino: Ino) {
        let how = match self.rng.below(3) {
            0 => Fallocate::Reserve { keep_size: self.rng.below(2) == 0 },
            1 => Fallocate::PunchHole,
            _ => Fallocate::ZeroRange { keep_size: self.rng.below(2) == 0 },
        };
        let offset = self.offset(ino);
        let _ = self.fs.fallocate(&CALLER, ino, how, offset, 1 << self.rng.below(18));
    }

    /// Time for what happens in the background.
    fn pass_time(&mut self) {
        for _ in 0..3 {
            let _ = self.fs.wake(self.fs.now() + SimSpan::from_ms(400_000));
        }
    }
}
