//! A worker: operations that its seed decides, each noted before and after. It is a process of its
//! own, because it may be in a system call when the mount dies.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use super::model::{BLOCK, BLOCKS, DIRECTORIES, Found, Kind, Mark, Model, NAMES, Name, Operation};

/// Operations of one run at most.
const OPERATIONS: usize = 5000;
/// Log entries of an operation that has begun, and of one that was acknowledged.
const BEGUN: u8 = b'b';
const DONE: u8 = b'd';

/// Random numbers that depend on the seed alone: `SplitMix64` (Steele, Lea, Flood: Fast Splittable
/// Pseudorandom Number Generators, 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % u64::from(bound)) as u32
    }
}

/// The operations of a seed, each one possible after those before.
pub(super) struct Sequence {
    random: Random,
    pub(super) model: Model,
}

impl Sequence {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random(seed), model: Model::default() }
    }

    fn name(&mut self) -> Name {
        let (dir, name) = (self.random.below(DIRECTORIES.into()), self.random.below(NAMES.into()));
        Name { dir: dir as u8, name: name as u8 }
    }

    /// The next operation; `begin` and `finish` of the model are the caller's.
    pub(super) fn next(&mut self) -> Operation {
        loop {
            let (name, other) = (self.name(), self.name());
            if let Some(operation) = self.attempt(name, other) {
                return operation;
            }
        }
    }

    fn attempt(&mut self, name: Name, other: Name) -> Option<Operation> {
        let kind = self.model.kind(name);
        let is_file = kind == Some(Kind::File);
        match self.random.below(20) {
            0..=4 if kind.is_none() => {
                let kinds = [Kind::File, Kind::File, Kind::File, Kind::Symlink, Kind::Directory];
                Some(Operation::Make(name, kinds[self.random.below(5) as usize]))
            }
            5 if is_file && self.model.kind(other).is_none() => Some(Operation::Link(name, other)),
            6 | 7 if kind.is_some() => Some(Operation::Remove(name)),
            8 | 9 if self.may_rename(name, other) => Some(Operation::Rename(name, other)),
            10..=12 if is_file => {
                let first = self.random.below(BLOCKS);
                Some(Operation::Write(name, first, 1 + self.random.below((BLOCKS - first).min(8))))
            }
            13 if is_file => Some(Operation::Truncate(name, self.random.below(BLOCKS))),
            14..=16 if is_file => Some(Operation::SyncFile(name, self.random.below(2) == 0)),
            17..=19 => Some(Operation::SyncDirectory(name.dir)),
            _ => None,
        }
    }

    fn may_rename(&self, from: Name, to: Name) -> bool {
        let is_dir = |name| self.model.kind(name).map(|kind| kind == Kind::Directory);
        let replaces = is_dir(to).is_none_or(|dir| Some(dir) == is_dir(from));
        is_dir(from).is_some() && replaces && !self.model.are_same(from, to)
    }
}

fn path(root: &Path, name: Name) -> PathBuf {
    directory(root, name.dir).join(format!("n{}", name.name))
}

pub(super) fn directory(root: &Path, dir: u8) -> PathBuf {
    root.join(format!("d{dir}"))
}

fn perform(root: &Path, model: &Model, operation: Operation) -> io::Result<()> {
    let at = |name| path(root, name);
    let open = |name| OpenOptions::new().write(true).open(path(root, name));
    match operation {
        Operation::Make(name, Kind::File) => File::create_new(at(name)).map(drop),
        Operation::Make(name, Kind::Symlink) => symlink(model.next_object().to_string(), at(name)),
        Operation::Make(name, Kind::Directory) => fs::create_dir(at(name)),
        Operation::Link(from, to) => fs::hard_link(at(from), at(to)),
        Operation::Remove(name) if model.kind(name) == Some(Kind::Directory) => {
            fs::remove_dir(at(name))
        }
        Operation::Remove(name) => fs::remove_file(at(name)),
        Operation::Rename(from, to) => fs::rename(at(from), at(to)),
        Operation::Write(name, first, count) => {
            let blocks = first..first + count;
            let bytes: Vec<u8> =
                blocks.flat_map(|block| filled(model.next_mark(name, block))).collect();
            open(name)?.write_all_at(&bytes, u64::from(first) * BLOCK as u64)
        }
        Operation::Truncate(name, size) => open(name)?.set_len(u64::from(size) * BLOCK as u64),
        Operation::SyncFile(name, true) => open(name)?.sync_data(),
        Operation::SyncFile(name, false) => open(name)?.sync_all(),
        Operation::SyncDirectory(dir) => File::open(directory(root, dir))?.sync_all(),
    }
}

/// A block full of its mark.
fn filled(mark: Mark) -> Vec<u8> {
    let mark: Vec<u8> = [mark.object, mark.write, mark.block, !mark.write]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    mark.repeat(BLOCK / mark.len())
}

/// The mark of a block; none for zeros.
fn mark_of(bytes: &[u8]) -> Result<Option<Mark>, String> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(None);
    }
    let word = |at: usize| {
        bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
    };
    let mark = Mark { object: word(0), write: word(4), block: word(8) };
    let whole = bytes == filled(mark).as_slice();
    whole
        .then_some(Some(mark))
        .ok_or_else(|| format!("a block is of no write: {:?}...", &bytes[..16]))
}

/// Does the operations of `seed` until one fails, in directories that are there, and notes each in
/// `log`.
///
/// # Errors
/// Any failure, except that the mount has died.
pub(super) fn work(root: &Path, log: &Path, seed: u64) -> Result<(), String> {
    let shown = |error: io::Error| format!("{}: {error}", log.display());
    let mut log = OpenOptions::new().create(true).append(true).open(log).map_err(shown)?;
    let mut sequence = Sequence::new(seed);
    for _ in 0..OPERATIONS {
        let operation = sequence.next();
        log.write_all(&[BEGUN]).map_err(shown)?;
        if let Err(error) = perform(root, &sequence.model, operation) {
            return if has_died(&error) { Ok(()) } else { Err(format!("{operation:?}: {error}")) };
        }
        log.write_all(&[DONE]).map_err(shown)?;
        sequence.model.begin(operation);
        sequence.model.finish(operation);
    }
    Ok(())
}

/// Is true for the errors of calls on a mount whose process is gone: ENOTCONN, ECONNABORTED; EIO
/// for a call that was on its way.
fn has_died(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, NotConnected};
    const EIO: i32 = 5;
    matches!(error.kind(), NotConnected | ConnectionAborted) || error.raw_os_error() == Some(EIO)
}

/// States that the log of a seed allows, and the number of acknowledged syncs.
pub(super) fn replay(log: &[u8], seed: u64) -> (Model, usize) {
    let mut sequence = Sequence::new(seed);
    let mut syncs = 0;
    for (at, _) in log.iter().enumerate().filter(|(_, note)| **note == BEGUN) {
        let operation = sequence.next();
        sequence.model.begin(operation);
        if log.get(at + 1) == Some(&DONE) {
            sequence.model.finish(operation);
            syncs += usize::from(matches!(
                operation,
                Operation::SyncFile(..) | Operation::SyncDirectory(_)
            ));
        }
    }
    (sequence.model, syncs)
}

/// The last operations of a log, each with whether it was acknowledged.
pub(super) fn last_operations(log: &[u8], seed: u64) -> Vec<String> {
    const SHOWN: usize = 12;
    let mut sequence = Sequence::new(seed);
    let mut lines = Vec::new();
    for (at, _) in log.iter().enumerate().filter(|(_, note)| **note == BEGUN) {
        let operation = sequence.next();
        sequence.model.begin(operation);
        let done = if log.get(at + 1) == Some(&DONE) { "" } else { ", not acknowledged" };
        lines.push(format!("{operation:?}{done}"));
    }
    lines.split_off(lines.len().saturating_sub(SHOWN))
}

/// Operations that were acknowledged.
pub(super) fn acknowledged(log: &[u8]) -> usize {
    log.iter().filter(|note| **note == DONE).count()
}

/// Objects below `root`, by name.
///
/// # Errors
/// An object that cannot be read, or that nobody wrote.
pub(super) fn look(root: &Path) -> Result<BTreeMap<Name, Found>, String> {
    let mut found = BTreeMap::new();
    for dir in 0..DIRECTORIES {
        let directory = directory(root, dir);
        let shown = |error: io::Error| format!("{}: {error}", directory.display());
        for entry in fs::read_dir(&directory).map_err(shown)? {
            let entry = entry.map_err(shown)?;
            let name =
                entry.file_name().to_string_lossy().strip_prefix('n').and_then(|n| n.parse().ok());
            let name = name.ok_or_else(|| format!("{:?} was never made", entry.path()))?;
            let path = entry.path();
            let object = look_at(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if found.insert(Name { dir, name }, object).is_some() {
                return Err(format!("{} is listed twice", path.display()));
            }
        }
    }
    Ok(found)
}

fn look_at(path: &Path) -> Result<Found, String> {
    let tell = |error: io::Error| error.to_string();
    let kind = fs::symlink_metadata(path).map_err(tell)?.file_type();
    if kind.is_dir() {
        return Ok(Found::Directory);
    }
    if kind.is_symlink() {
        let target = fs::read_link(path).map_err(tell)?;
        let number = target.to_str().and_then(|target| target.parse().ok());
        return number.map(Found::Symlink).ok_or_else(|| format!("it leads to {target:?}"));
    }
    let mut content = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut content)).map_err(tell)?;
    content.chunks(BLOCK).map(mark_of).collect::<Result<Vec<_>, _>>().map(Found::File)
}
