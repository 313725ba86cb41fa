//! Random operations: few names, so that they meet; sizes around the limits of formats.

use dovetail_time::Rng;
use dovetail_vfs::mode::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFREG, S_IFSOCK};
use dovetail_vfs::{Caller, Fallocate, RenameFlags, SetAttr, Timestamp, XattrFlags};

use super::op::{Op, Path, Step, Target};

/// Operations that may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Files end before this byte, but for a few that are expected to fail.
    pub file_end: u64,
    /// Directory "many" gets names out of this many (0: none), for directories of many blocks.
    pub many: u64,
    /// Inodes are held and let go, so that there are some without names.
    pub holds: bool,
    /// Extended attributes come.
    pub xattrs: bool,
    /// fsync and sync come.
    pub syncs: bool,
}

impl Default for Profile {
    /// Everything, in files of up to 16 MiB.
    fn default() -> Self {
        Self { file_end: 16 << 20, many: 1500, holds: true, xattrs: true, syncs: true }
    }
}

/// Offsets near which formats change: bytes of inline data, pages, pointers in an F2FS inode (with
/// and without inline attributes), then of its direct nodes.
const EDGES: [u64; 11] = [
    0,
    3488,
    3692,
    4096,
    3 * 4096,
    64 * 4096,
    873 * 4096,
    923 * 4096,
    (873 + 1018) * 4096,
    (923 + 1018) * 4096,
    (873 + 2 * 1018) * 4096,
];
const LENGTHS: [u64; 8] = [1, 7, 100, 3488, 4096, 4097, 3 * 4096, 40_000];
/// Short ones that meet often, and some by which file systems choose where to write.
const FILES: [&str; 7] = ["a", "b", "c", "d", "film.mp4", "rows.db", "with space"];
/// Other ones for directories, or every path would soon lead through a file.
const DIRECTORIES: [&str; 4] = ["x", "y", "z", "sub"];
const XATTRS: [&str; 6] =
    ["user.a", "user.comment", "trusted.overlay", "security.selinux", "user.b", "unknown.name"];
const SLOTS: u64 = 3;
/// Paths of files, and of directories, that are remembered.
const KNOWN: usize = 24;

/// A sequence of operations that follows from its seed.
#[derive(Clone, Debug)]
pub struct Generator {
    rng: Rng,
    seed: u64,
    profile: Profile,
    step: i64,
    /// Paths that were asked for lately: most likely there.
    files: Vec<Path>,
    dirs: Vec<Path>,
}

impl Generator {
    /// The sequence of this seed.
    pub fn new(seed: u64, profile: Profile) -> Self {
        Self { rng: Rng::new(seed), seed, profile, step: 0, files: Vec::new(), dirs: Vec::new() }
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next operation; each comes a little later than the one before.
    pub fn next_step(&mut self) -> Step {
        self.step += 1;
        let nanoseconds = self.rng.below(1_000_000_000) as u32;
        let now = Timestamp { seconds: 1_700_000_000 + self.step, nanoseconds };
        let (uid, gid) = (self.rng.below(3) as u32, self.rng.below(3) as u32);
        Step { caller: Caller { uid, gid, now }, op: self.op() }
    }

    fn op(&mut self) -> Op {
        match self.rng.below(100) {
            0..30 => self.name_op(),
            30..65 => self.data_op(),
            65..75 => Op::SetAttr { target: self.target(), changes: self.changes() },
            75..83 if self.profile.xattrs => self.xattr_op(),
            83..88 if self.profile.holds => self.hold_op(),
            88..91 if self.profile.syncs => self.sync_op(),
            91..96 if self.profile.many > 0 => self.many_op(),
            _ => self.look_op(),
        }
    }

    fn name_op(&mut self) -> Op {
        match self.rng.below(16) {
            0..4 => self.create_file(),
            4..7 => self.create_dir(),
            7 => self.special(),
            8 => Op::Symlink {
                path: self.path(),
                len: self.pick(&[0, 1, 59, 3488, 3692, 4095, 4096]) as usize,
            },
            9..11 => Op::Link { target: self.target(), path: self.path() },
            11 => Op::Unlink { path: self.path() },
            12 => Op::Rmdir { path: self.dir() },
            _ => Op::Rename { from: self.path(), to: self.path(), flags: self.rename_flags() },
        }
    }

    fn create_file(&mut self) -> Op {
        let path = self.new_path(&FILES);
        self.remember(path.clone(), false);
        Op::Create { path, mode: S_IFREG | self.permissions(), rdev: (0, 0) }
    }

    fn create_dir(&mut self) -> Op {
        let path = self.new_path(&DIRECTORIES);
        self.remember(path.clone(), true);
        Op::Create { path, mode: S_IFDIR | self.permissions(), rdev: (0, 0) }
    }

    fn remember(&mut self, path: Path, is_dir: bool) {
        let known = if is_dir { &mut self.dirs } else { &mut self.files };
        if known.len() < KNOWN {
            known.push(path);
        } else {
            known[self.rng.below(KNOWN as u64) as usize] = path;
        }
    }

    fn special(&mut self) -> Op {
        let kind = self.pick(&[S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK].map(u64::from)) as u16;
        let rdev = (self.rng.below(4096) as u32, self.rng.below(1 << 20) as u32);
        Op::Create { path: self.path(), mode: kind | self.permissions(), rdev }
    }

    fn rename_flags(&mut self) -> RenameFlags {
        RenameFlags { no_replace: self.rng.chance(0.2), exchange: self.rng.chance(0.3) }
    }

    fn data_op(&mut self) -> Op {
        let target = self.file();
        let (offset, len) = self.range();
        match self.rng.below(12) {
            0..6 => {
                Op::Write { target, offset, len: len as usize, fill: self.rng.below(256) as u8 }
            }
            6..8 => Op::Read { target, offset, len: len as usize },
            8 => Op::SetAttr {
                target,
                changes: SetAttr { size: Some(offset + len), ..SetAttr::default() },
            },
            9..11 => Op::Fallocate { target, how: self.fallocate(), offset, len },
            _ => Op::Seek { target, offset },
        }
    }

    fn fallocate(&mut self) -> Fallocate {
        let keep_size = self.rng.chance(0.5);
        match self.rng.below(3) {
            0 => Fallocate::Reserve { keep_size },
            1 => Fallocate::PunchHole,
            _ => Fallocate::ZeroRange { keep_size },
        }
    }

    fn changes(&mut self) -> SetAttr {
        let mut changes = SetAttr::default();
        match self.rng.below(5) {
            0 => changes.mode = Some(self.permissions() | (self.rng.below(8) as u16) << 9),
            1 => changes.uid = Some(self.rng.below(3) as u32),
            2 => changes.gid = Some(self.rng.below(3) as u32),
            3 => changes.size = Some(self.range().0),
            _ => {
                let seconds = self.rng.below(1 << 34) as i64 - (1 << 31);
                changes.atime =
                    Some(Timestamp { seconds, nanoseconds: self.rng.below(1_000_000_000) as u32 });
                changes.mtime = changes.atime.filter(|_| self.rng.chance(0.5));
            }
        }
        changes
    }

    fn xattr_op(&mut self) -> Op {
        let target = self.target();
        let name = XATTRS[self.rng.below(XATTRS.len() as u64) as usize].as_bytes().to_vec();
        match self.rng.below(4) {
            0 => Op::RemoveXattr { target, name },
            1 => Op::GetXattr { target, name },
            _ => {
                let len = self.pick(&[0, 1, 40, 150, 200, 1000, 3000, 5000]) as usize;
                let fill = self.rng.below(256) as u8;
                let flags =
                    XattrFlags { create: self.rng.chance(0.2), replace: self.rng.chance(0.2) };
                Op::SetXattr { target, name, len, fill, flags }
            }
        }
    }

    fn hold_op(&mut self) -> Op {
        let slot = self.rng.below(SLOTS) as usize;
        match self.rng.below(3) {
            0 => Op::Release { slot },
            _ => Op::Hold { path: self.path(), slot },
        }
    }

    fn sync_op(&mut self) -> Op {
        match self.rng.below(4) {
            0 => Op::Sync,
            n => Op::Fsync { target: self.file(), data_only: n == 1 },
        }
    }

    /// Adds to a large directory, or takes away.
    fn many_op(&mut self) -> Op {
        let number = self.rng.below(self.profile.many);
        let path = vec![
            b"many".to_vec(),
            format!("{number:0width$}", width = 1 + (number % 60) as usize).into(),
        ];
        match self.rng.below(10) {
            0 => Op::Create { path: path[..1].to_vec(), mode: 0o040_755, rdev: (0, 0) },
            1..7 => Op::Create { path, mode: 0o100_644, rdev: (0, 0) },
            7 => Op::Rename { from: path, to: self.path(), flags: RenameFlags::default() },
            8 => Op::List { target: Target::Path(path[..1].to_vec()), chunk: 50 },
            _ => Op::Unlink { path },
        }
    }

    fn look_op(&mut self) -> Op {
        let target = self.target();
        match self.rng.below(6) {
            0 => Op::Readlink { target },
            1 => {
                Op::List { target: Target::Path(self.dir()), chunk: 1 + self.rng.below(5) as usize }
            }
            2 => {
                let (target, chunk) = (Target::Path(self.dir()), 1 + self.rng.below(4) as usize);
                Op::ListDuring { target, chunk, between: Box::new(self.name_op()) }
            }
            _ => Op::Stat { target },
        }
    }

    fn range(&mut self) -> (u64, u64) {
        let edges = EDGES.iter().filter(|&&edge| edge < self.profile.file_end).count() as u64;
        let edge = EDGES[self.rng.below(edges.max(1)) as usize];
        let offset = match self.rng.below(4) {
            0 => self.rng.below(self.profile.file_end.min(100_000)),
            1 => edge,
            2 => edge.saturating_sub(self.rng.below(5000)),
            _ => edge + self.rng.below(5000),
        };
        let len = self.pick(&LENGTHS);
        if self.rng.chance(0.002) { (u64::MAX / 4, len) } else { (offset, len) }
    }

    fn target(&mut self) -> Target {
        if self.profile.holds && self.rng.chance(0.15) {
            return Target::Held(self.rng.below(SLOTS) as usize);
        }
        Target::Path(self.path())
    }

    fn file(&mut self) -> Target {
        match self.known(false) {
            Some(path) if self.rng.chance(0.8) => Target::Path(path),
            _ => self.target(),
        }
    }

    fn dir(&mut self) -> Path {
        self.known(true).filter(|path| path.len() < 6).unwrap_or_default()
    }

    fn known(&mut self, is_dir: bool) -> Option<Path> {
        let known = if is_dir { &self.dirs } else { &self.files };
        let at = self.rng.below(known.len().max(1) as u64) as usize;
        known.get(at).cloned()
    }

    /// A name in a directory: mostly one that was asked for before, or of the names that files
    /// have.
    fn path(&mut self) -> Path {
        let known = match self.rng.below(10) {
            0..3 => self.known(false),
            3 => self.known(true),
            _ => None,
        };
        known.unwrap_or_else(|| self.new_path(&FILES))
    }

    fn new_path(&mut self, names: &[&str]) -> Path {
        let mut path = if self.rng.chance(0.6) { self.dir() } else { Path::new() };
        path.push(self.name(names));
        path
    }

    fn name(&mut self, names: &[&str]) -> Vec<u8> {
        match self.rng.below(200) {
            0 => vec![b'n'; 255],
            1 => vec![b'n'; 256],
            2 => b"..".to_vec(),
            3 => b".".to_vec(),
            4..12 => DIRECTORIES[self.rng.below(DIRECTORIES.len() as u64) as usize].into(),
            _ => names[self.rng.below(names.len() as u64) as usize].into(),
        }
    }

    fn permissions(&mut self) -> u16 {
        self.rng.below(0o1000) as u16 | self.pick(&[0, 0, 0, 0o2000, 0o4000, 0o6000, 0o1000]) as u16
    }

    fn pick(&mut self, from: &[u64]) -> u64 {
        from[self.rng.below(from.len() as u64) as usize]
    }
}
