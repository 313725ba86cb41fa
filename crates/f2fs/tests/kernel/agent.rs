//! Program that runs inside the guest: this same program, over the kernel's file system.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dovetail_time::Rng;
use rustix::fs::{Advice, XattrFlags, fadvise, setxattr};

use super::disk;
use crate::common::manifest::{Manifest, describe_file, of_folder, to_text};

/// `describe FOLDER FILE`: the folder's manifest. `work FOLDER FILE SEED OPS`: that many random
/// operations, then sync, then the manifest. `fsync FOLDER FILE SEED OPS`: as many, with fsyncs
/// among them; the manifest has what was fsynced and not changed since. `unsynced FOLDER FILE SEED
/// OPS`: the same, and then data that are on the device and that no node knows. `put` and `take` are
/// [`disk`]'s.
pub(crate) fn run(arguments: &[String]) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["put" | "take", ..] = arguments[..] {
        return disk::run(&arguments);
    }
    let (manifest, file) = match arguments[..] {
        ["describe", folder, file] => (of_folder(Path::new(folder)), file),
        ["work", folder, file, seed, ops] => {
            let mut work = Work::new(folder, seed);
            (0..number(ops)).for_each(|_| work.step());
            rustix::fs::sync();
            (of_folder(Path::new(folder)), file)
        }
        ["fsync", folder, file, seed, ops] => {
            let mut work = Work::new(folder, seed);
            work.with_fsyncs(number(ops));
            (work.fsynced, file)
        }
        ["unsynced", folder, file, seed, ops] => {
            let mut work = Work::new(folder, seed);
            work.with_fsyncs(number(ops));
            (0..10).for_each(|_| work.write_back());
            (work.fsynced, file)
        }
        _ => panic!("{arguments:?}"),
    };
    fs::write(file, to_text(&manifest)).unwrap();
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

/// Random operations on a tree. Paths begin with ".".
struct Work {
    root: PathBuf,
    rng: Rng,
    names: u64,
    dirs: Vec<String>,
    files: Vec<String>,
    fsynced: Manifest,
}

impl Work {
    fn new(root: &str, seed: &str) -> Self {
        let manifest = of_folder(Path::new(root));
        let of_kind = |kind: &str, alone: bool| {
            let is = |line: &serde_json::Value| line["mode"].as_str().unwrap().starts_with(kind);
            let lines =
                manifest.iter().filter(|(_, line)| is(line) && (!alone || line["nlink"] == 1));
            lines
                .map(|(path, _)| path.clone())
                .filter(|path| path != "./lost+found")
                .collect::<Vec<_>>()
        };
        // of files with several names, what is done to one name happens to the others
        let (dirs, files) = (of_kind("0o4", false), of_kind("0o100", true));
        let rng = Rng::new(number(seed));
        Self {
            root: root.into(),
            rng,
            names: number(seed) * 1000,
            dirs,
            files,
            fsynced: Manifest::new(),
        }
    }

    fn full(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn pick(&mut self, from: &[String]) -> String {
        from[self.rng.below(from.len() as u64) as usize].clone()
    }

    fn file(&mut self) -> String {
        if self.files.is_empty() {
            self.create();
        }
        let files = self.files.clone();
        let path = self.pick(&files);
        self.fsynced.remove(&path); // it is about to change
        path
    }

    fn dir(&mut self) -> String {
        let dirs = self.dirs.clone();
        self.pick(&dirs)
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        let long = if self.rng.chance(0.1) { "-a-long-name".repeat(18) } else { String::new() };
        format!("{}/n{}{long}", self.dir(), self.names)
    }

    /// The first half of it makes fsync write checkpoints, the second leaves files to roll forward.
    fn with_fsyncs(&mut self, ops: u64) {
        for n in 0..ops {
            if n < ops / 2 {
                self.step();
            } else {
                self.plain_step();
            }
            if n % 3 == 0 {
                let path = self.file();
                self.fsync(path);
            }
        }
        (0..5).for_each(|_| self.fsync_new());
    }

    fn step(&mut self) {
        match self.rng.below(22) {
            0..=4 | 20.. => self.create(),
            5..=8 => self.write(),
            9 => self.truncate(),
            10 => self.make_dir(),
            11 => self.link(),
            12 => self.make_symlink(),
            13 | 14 => self.rename_file(),
            15 => self.rename_dir(),
            16 => self.unlink(),
            17 => self.set_xattr(),
            18 => self.set_owner(),
            _ => self.set_times(),
        }
    }

    /// Files only, without what makes fsync write a checkpoint.
    fn plain_step(&mut self) {
        match self.rng.below(3) {
            0 => self.create(),
            1 => self.write(),
            _ => self.truncate(),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let max = [100, 4000, 20_000, 200_000][self.rng.below(4) as usize];
        let seed = self.rng.next_u64();
        (0..self.rng.below(max)).map(|i| (seed >> (i % 57)) as u8 ^ (i / 512) as u8).collect()
    }

    fn create(&mut self) {
        let (path, bytes) = (self.new_name(), self.bytes());
        fs::write(self.full(&path), bytes).unwrap();
        self.files.push(path);
    }

    fn write(&mut self) {
        let (path, bytes, offset) = (self.file(), self.bytes(), self.rng.below(300_000));
        let file = OpenOptions::new().write(true).open(self.full(&path)).unwrap();
        file.write_all_at(&bytes, offset).unwrap();
    }

    /// Writes to a file, and has the kernel write its pages back, but not its nodes.
    fn write_back(&mut self) {
        let (path, bytes) = (self.file(), self.bytes());
        let file = OpenOptions::new().write(true).open(self.full(&path)).unwrap();
        file.write_all_at(&bytes, 50_000).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    }

    fn truncate(&mut self) {
        let (path, size) = (self.file(), self.rng.below(100_000));
        OpenOptions::new().write(true).open(self.full(&path)).unwrap().set_len(size).unwrap();
    }

    fn make_dir(&mut self) {
        let path = self.new_name();
        fs::create_dir(self.full(&path)).unwrap();
        self.dirs.push(path);
    }

    fn link(&mut self) {
        let (path, name) = (self.file(), self.new_name());
        fs::hard_link(self.full(&path), self.full(&name)).unwrap();
        // the names share an inode from now on: neither is followed any more
        self.files.retain(|file| *file != path);
    }

    fn make_symlink(&mut self) {
        let (path, len) = (self.new_name(), 1 + self.rng.below(300));
        symlink("t".repeat(len as usize), self.full(&path)).unwrap();
    }

    fn rename_file(&mut self) {
        let from = self.file();
        let to = if self.rng.chance(0.3) { self.file() } else { self.new_name() };
        fs::rename(self.full(&from), self.full(&to)).unwrap();
        self.files.retain(|file| *file != from && *file != to);
        self.files.push(to);
    }

    fn rename_dir(&mut self) {
        let (from, to) = (self.dir(), self.new_name());
        if from == "." || to.starts_with(&format!("{from}/")) {
            return;
        }
        fs::rename(self.full(&from), self.full(&to)).unwrap();
        let below = format!("{from}/");
        self.fsynced.retain(|path, _| !path.starts_with(&below));
        for path in self.dirs.iter_mut().chain(&mut self.files) {
            if path.starts_with(&below) || *path == from {
                path.replace_range(..from.len(), &to);
            }
        }
    }

    fn unlink(&mut self) {
        let path = self.file();
        fs::remove_file(self.full(&path)).unwrap();
        self.files.retain(|file| *file != path);
    }

    fn set_xattr(&mut self) {
        let (path, len) = (self.file(), 1 + self.rng.below(300));
        let name = format!("user.x{}", self.rng.below(3));
        let value = vec![self.rng.below(256) as u8; len as usize];
        setxattr(self.full(&path), name, &value, XattrFlags::empty()).unwrap();
    }

    fn set_owner(&mut self) {
        let (path, owner, mode) =
            (self.file(), self.rng.below(70_000) as u32, self.rng.below(0o1000) as u32);
        lchown(self.full(&path), Some(owner), Some(owner + 1)).unwrap();
        fs::set_permissions(self.full(&path), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn set_times(&mut self) {
        let (path, at) = (self.file(), self.rng.below(2_000_000_000_000_000_000));
        let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(at);
        let file = File::open(self.full(&path)).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    }

    /// A new file in the root: what roll-forward recovery is sure to find.
    fn fsync_new(&mut self) {
        self.names += 1;
        let (path, bytes) = (format!("./n{}", self.names), self.bytes());
        fs::write(self.full(&path), bytes).unwrap();
        self.fsync(path);
    }

    fn fsync(&mut self, path: String) {
        File::open(self.full(&path)).unwrap().sync_all().unwrap();
        let line = describe_file(&self.root, &path);
        self.fsynced.insert(path, line);
    }
}
