//! Use of a file system that may be damaged: whatever its names lead to is read, or changed.
//! A call may fail; it must only come back.

use std::collections::BTreeSet;

use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::{
    Caller, Fallocate, FileSystem, Ino, Moment, NewNode, RenameFlags, SetAttr, Timestamp,
    XattrFlags,
};

const CALLER: Caller =
    Caller { uid: 5, gid: 6, now: Timestamp { seconds: 1_700_000_000, nanoseconds: 999_999_999 } };

/// A name, and what it names.
#[derive(Clone, Debug)]
struct Name {
    dir: Ino,
    name: Vec<u8>,
    ino: Ino,
    is_dir: bool,
}

/// Reads all that names lead to, at most `max_bytes` of content in all.
pub fn read_everything<F: FileSystem>(fs: &mut F, max_bytes: usize) {
    let mut left = max_bytes;
    for name in names(fs, usize::MAX) {
        read_one(fs, &name, &mut left);
    }
    let _ = fs.statfs();
}

/// All that the names below the root lead to, each once, up to `max` names.
fn names<F: FileSystem>(fs: &mut F, max: usize) -> Vec<Name> {
    let root = fs.root();
    let mut all = vec![Name { dir: root, name: b".".to_vec(), ino: root, is_dir: true }];
    let mut seen = BTreeSet::from([root]);
    let mut next = 0;
    while next < all.len() {
        let Name { ino: dir, is_dir, .. } = all[next];
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
                all.push(Name { dir, name, ino, is_dir });
            }
        }
    }
    all
}

fn read_one<F: FileSystem>(fs: &mut F, name: &Name, left: &mut usize) {
    let ino = name.ino;
    let _ = (fs.lookup(name.dir, &name.name), fs.readlink(ino));
    if name.is_dir {
        let _ = fs.lookup(ino, b"no such name");
    }
    for attribute in fs.listxattr(ino).unwrap_or_default() {
        let _ = fs.getxattr(ino, &attribute);
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

/// Changes a file system at random.
#[derive(Debug)]
pub struct Changes<'a, F> {
    fs: F,
    names: Vec<Name>,
    rng: &'a mut Rng,
    now: SimTime,
}

impl<'a, F: FileSystem> Changes<'a, F> {
    /// Changes of `fs`, to up to `max_names` of what there is and to what is new.
    pub fn new(mut fs: F, max_names: usize, rng: &'a mut Rng) -> Self {
        let names = names(&mut fs, max_names);
        Self { fs, names, rng, now: SimTime::ZERO }
    }

    /// The file system.
    pub fn into_inner(self) -> F {
        self.fs
    }

    /// Makes everything durable.
    pub fn sync(&mut self) {
        let _ = self.fs.sync();
    }

    /// Reads what some names lead to, at most `max_bytes` of content in all.
    pub fn read_some(&mut self, max_bytes: usize) {
        let mut left = max_bytes;
        for name in self.names.iter().take(20) {
            read_one(&mut self.fs, name, &mut left);
        }
    }

    /// One change.
    pub fn change(&mut self) {
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

    fn pick(&mut self) -> Name {
        self.names[self.rng.below(self.names.len() as u64) as usize].clone()
    }

    fn create(&mut self, dir: Ino, mode: u16) {
        let name = vec![b'n'; 1 + self.rng.below(255) as usize];
        let Ok(attr) = self.fs.create(&CALLER, dir, &name, &NewNode { mode, rdev: (0, 0) }) else {
            return;
        };
        self.names.push(Name { dir, name, ino: attr.ino, is_dir: attr.is_dir() });
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

    /// A place near the start of a file, in it, or far beyond.
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

    fn rename(&mut self, from: &Name, dir: Ino, taken: &[u8]) {
        let flags =
            RenameFlags { no_replace: self.rng.below(4) == 0, exchange: self.rng.below(4) == 0 };
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
            self.now += SimSpan::from_ms(400_000);
            self.fs.set_now(Moment::at(self.now));
            let _ = self.fs.wake();
        }
    }
}
