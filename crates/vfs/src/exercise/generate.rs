//! Random operations that meet each other: few names, few directories but deep ones, sizes around the edges.

use dovetail_time::Rng;

use super::{At, Op, Target};
use crate::{Caller, Fallocate, RenameFlags, SetAttr, Timestamp, XattrFlags};

const NAMES: [&str; 7] = ["a", "b", "c", "d", "file.db", "movie.mp4", "e"];
const XATTRS: [&str; 9] = [
    "user.a",
    "user.b",
    "user.a-rather-long-name-of-an-attribute",
    "trusted.t",
    "security.s",
    "system.posix_acl_access",
    "system.posix_acl_default",
    "user.",
    "unknown.x",
];
/// Where F2FS changes the way it stores a file: inline, direct, one and two indirect nodes (873 pointers in the inode,
/// 1018 in a node).
const EDGES: [u64; 10] =
    [0, 1, 3488, 3689, 4096, 8192, 100 * 4096, 873 * 4096, (873 + 1018) * 4096, (873 + 2 * 1018) * 4096];
/// No write is longer, in bytes, nor a reservation longer than four times that.
const LONGEST: u64 = 70_000;

/// Draws operations. It remembers what succeeded in making something, so that most operations meet something.
#[derive(Clone, Debug)]
pub struct Generator {
    rng: Rng,
    /// Names that are there, and paths of directories; some are forgotten, some are out of date.
    names: Vec<At>,
    dirs: Vec<Vec<Vec<u8>>>,
}

/// How many names and directories are remembered.
const REMEMBERED: (usize, usize) = (40, 10);

impl Generator {
    /// Operations that follow from `rng`.
    pub fn new(rng: Rng) -> Self {
        Self { rng, names: Vec::new(), dirs: Vec::new() }
    }

    /// The next operation, and who asks for it (the time is left open).
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> (Op, Caller) {
        let caller =
            Caller { uid: self.pick(&[0, 0, 1000]), gid: self.pick(&[0, 100]), now: Timestamp::default() };
        let op = match self.below(100) {
            0..22 => self.name_op(),
            22..34 => self.rename(),
            34..58 => self.write(),
            58..64 => Op::Read { target: self.target(), offset: self.offset(), len: self.below(LONGEST) },
            64..72 => self.set_attributes(),
            72..78 => self.fallocate(),
            78..84 => self.xattr(),
            84..88 => self.hold(),
            88..91 => Op::Fsync { target: self.target(), data_only: self.chance(0.5) },
            91 => Op::Sync,
            _ => self.look(),
        };
        (op, caller)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    fn chance(&mut self, p: f64) -> bool {
        self.rng.chance(p)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn name(&mut self) -> Vec<u8> {
        match self.below(200) {
            0 => vec![b'x'; 256],
            1 => vec![b'y'; 255],
            2 => b".".to_vec(),
            3 => b"..".to_vec(),
            4..40 => format!("n{}", self.below(300)).into_bytes(),
            _ => self.pick(&NAMES).into(),
        }
    }

    /// A name that may be free or taken.
    fn at(&mut self) -> At {
        if !self.dirs.is_empty() && self.chance(0.7) {
            let dir = self.below(self.dirs.len() as u64) as usize;
            return At { dir: self.dirs[dir].clone(), name: self.name() };
        }
        let depth = self.pick(&[0, 0, 0, 1, 1, 2, 3]);
        At { dir: (0..depth).map(|_| self.pick(&NAMES[..4]).into()).collect(), name: self.name() }
    }

    /// A name that is probably taken.
    fn taken(&mut self) -> At {
        if self.names.is_empty() || self.chance(0.2) {
            return self.at();
        }
        let name = self.below(self.names.len() as u64) as usize;
        self.names[name].clone()
    }

    /// Takes in that an operation succeeded.
    pub fn learn(&mut self, op: &Op) {
        match op {
            Op::Create { at, mode, .. } => self.made(at, mode & 0o170_000 == 0o040_000),
            Op::Symlink { at, .. } | Op::Link { at, .. } => self.made(at, false),
            Op::Unlink { at } | Op::Rmdir { at } => {
                let path = path(at);
                self.names.retain(|known| known != at);
                self.dirs.retain(|known| *known != path);
            }
            Op::Rename { from, to, flags } if !flags.exchange => {
                self.names.retain(|known| known != from);
                self.made(to, false);
                let (from, to) = (path(from), path(to));
                self.names.iter_mut().for_each(|known| move_path(&mut known.dir, &from, &to));
                self.dirs.iter_mut().for_each(|known| move_path(known, &from, &to));
            }
            _ => {}
        }
    }

    fn made(&mut self, at: &At, is_dir: bool) {
        remember(&mut self.rng, &mut self.names, at.clone(), REMEMBERED.0);
        if is_dir && at.dir.len() < 6 {
            remember(&mut self.rng, &mut self.dirs, path(at), REMEMBERED.1);
        }
    }

    fn target(&mut self) -> Target {
        match self.below(20) {
            0 => Target::Root,
            1..4 => Target::Held(self.below(4) as u8),
            _ => Target::Named(self.taken()),
        }
    }

    fn offset(&mut self) -> u64 {
        let near = self.below(17) * self.pick(&[1, 1, 4096]);
        match self.below(300) {
            0 => self.pick(&[4_402_345_721_856, 1 << 45, i64::MAX as u64 - 100_000]),
            1..100 => self.below(20_000),
            _ => (self.pick(&EDGES) + near).saturating_sub(8),
        }
    }

    fn name_op(&mut self) -> Op {
        match self.below(16) {
            0..6 => self.create(0o100_000),
            6..9 => self.create(0o040_000),
            9 => {
                let kind = self.pick(&[0o010_000, 0o020_000, 0o060_000, 0o140_000]);
                self.create(kind)
            }
            10 => {
                let at = self.at();
                Op::Symlink { at, target: vec![b't'; self.pick(&[1, 7, 100, 3488, 3489, 4095, 4096])] }
            }
            11..13 => {
                let at = self.at();
                Op::Link { target: self.target(), at }
            }
            13..15 => Op::Unlink { at: self.taken() },
            _ => Op::Rmdir { at: self.taken() },
        }
    }

    fn create(&mut self, kind: u16) -> Op {
        let at = self.at();
        let rdev = if kind == 0o100_000 { (0, 0) } else { self.pick(&[(1, 3), (259, 70_000)]) };
        Op::Create { at, mode: kind | self.permissions(), rdev }
    }

    fn rename(&mut self) -> Op {
        let from = self.taken();
        let to = if self.chance(0.4) { self.taken() } else { self.at() };
        Op::Rename { from, to, flags: self.rename_flags() }
    }

    fn permissions(&mut self) -> u16 {
        self.pick(&[0o644, 0o755, 0o600, 0o2775, 0o4755, 0o1777, 0o6711])
    }

    fn rename_flags(&mut self) -> RenameFlags {
        RenameFlags { no_replace: self.chance(0.15), exchange: self.chance(0.25) }
    }

    fn write(&mut self) -> Op {
        let len = match self.below(4) {
            0 => self.below(100),
            1 => self.pick(&[0, 1, 4096, 8192, 3488, 3489]),
            _ => self.below(LONGEST),
        };
        Op::Write { target: self.target(), offset: self.offset(), len, fill: self.below(256) as u8 }
    }

    fn time(&mut self) -> Timestamp {
        let seconds = self.pick(&[0, 1, -1, 1_500_000_000, 5_000_000_000]);
        Timestamp { seconds, nanoseconds: self.pick(&[0, 1, 999_999_999]) }
    }

    fn set_attributes(&mut self) -> Op {
        let mut changes = SetAttr::default();
        match self.below(8) {
            0..4 => changes.size = Some(self.offset()),
            4 => changes.mode = Some(self.permissions()),
            5 => {
                changes.uid = Some(self.pick(&[0, 1000]));
                changes.gid = self.chance(0.5).then_some(100);
            }
            _ => {
                changes.atime = self.chance(0.5).then(|| self.time());
                changes.mtime = self.chance(0.7).then(|| self.time());
                changes.ctime = self.chance(0.3).then(|| self.time());
            }
        }
        Op::SetAttr { target: self.target(), changes }
    }

    fn fallocate(&mut self) -> Op {
        let keep_size = self.chance(0.5);
        let how = match self.below(3) {
            0 => Fallocate::Reserve { keep_size },
            1 => Fallocate::PunchHole,
            _ => Fallocate::ZeroRange { keep_size },
        };
        Op::Fallocate { target: self.target(), how, offset: self.offset(), len: self.below(4 * LONGEST) }
    }

    fn xattr(&mut self) -> Op {
        let (target, name) = (self.target(), Vec::from(self.pick(&XATTRS)));
        match self.below(6) {
            0 => Op::GetXattr { target, name },
            1 => Op::ListXattr { target },
            2 => Op::RemoveXattr { target, name },
            _ => {
                let flags = XattrFlags { create: self.chance(0.15), replace: self.chance(0.15) };
                Op::SetXattr { target, value: self.xattr_value(&name), name, flags }
            }
        }
    }

    fn xattr_value(&mut self, name: &[u8]) -> Vec<u8> {
        if name.starts_with(b"system") {
            return acl(self.below(8) as u8);
        }
        let len = match self.below(8) {
            0 => self.pick(&[0, 1, 2000, 4072, 4248, 4300, 65_536]),
            1 => self.below(4300),
            _ => self.below(120),
        };
        (0..len).map(|at| (at * 7 + len) as u8).collect()
    }

    fn hold(&mut self) -> Op {
        let slot = self.below(4) as u8;
        if self.chance(0.7) { Op::Hold { slot, target: self.target() } } else { Op::Forget { slot } }
    }

    fn look(&mut self) -> Op {
        match self.below(8) {
            0 => Op::Lookup { at: self.taken() },
            1 => Op::Readlink { target: self.target() },
            2 => Op::SeekData { target: self.target(), offset: self.offset() },
            3 => Op::SeekHole { target: self.target(), offset: self.offset() },
            4..6 => Op::Readdir { target: self.target() },
            _ => Op::Stat { target: self.target() },
        }
    }
}

fn path(at: &At) -> Vec<Vec<u8>> {
    [&at.dir[..], std::slice::from_ref(&at.name)].concat()
}

/// A path that led through `from` leads through `to`.
fn move_path(path: &mut Vec<Vec<u8>>, from: &[Vec<u8>], to: &[Vec<u8>]) {
    if path.starts_with(from) {
        path.splice(..from.len(), to.iter().cloned());
    }
}

/// Adds to what is remembered; something else is forgotten when there is too much.
fn remember<T>(rng: &mut Rng, known: &mut Vec<T>, new: T, most: usize) {
    if known.len() < most {
        known.push(new);
    } else {
        known[rng.below(most as u64) as usize] = new;
    }
}

/// A valid ACL in the system's form: owner, a named user, group, mask, others.
fn acl(permissions: u8) -> Vec<u8> {
    let entries: [(u8, u32); 5] =
        [(0x01, u32::MAX), (0x02, 1000), (0x04, u32::MAX), (0x10, u32::MAX), (0x20, u32::MAX)];
    let entry = |(tag, id): (u8, u32)| [&[tag, 0, permissions, 0][..], &id.to_le_bytes()].concat();
    [2, 0, 0, 0].into_iter().chain(entries.into_iter().flat_map(entry)).collect()
}
