//! An operation as calls, and whether two results are the same.

use std::collections::BTreeMap;

use super::{At, Op, Target};
use crate::{Attr, Caller, Error, FileSystem, Ino, NewNode};

/// What an operation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing but success.
    Done,
    /// Attributes, without what file systems may choose.
    Attr(Attr),
    /// Content, a target, a value.
    Bytes(Vec<u8>),
    /// Names with the kind of what they name, sorted.
    Names(Vec<(Vec<u8>, u16)>),
    /// An offset.
    Offset(u64),
}

/// The attributes that all file systems agree on: not numbers, generations, blocks and the sizes of directories.
pub(super) fn comparable(attr: &Attr) -> Attr {
    let size = if attr.is_dir() { 0 } else { attr.size };
    Attr { ino: Ino(0), generation: 0, blocks: 0, size, ..*attr }
}

/// Bytes that tell where they were written, and by which operation.
fn pattern(offset: u64, len: u64, fill: u8) -> Vec<u8> {
    (offset..offset + len).map(|at| fill ^ (at ^ at >> 8 ^ at >> 16) as u8 | 1).collect()
}

/// The inodes that a run holds in one of its file systems.
#[derive(Debug, Default)]
pub struct Hand {
    held: BTreeMap<u8, Ino>,
}

impl Hand {
    fn directory(fs: &mut dyn FileSystem, path: &[Vec<u8>]) -> Result<Ino, Error> {
        path.iter().try_fold(fs.root(), |dir, name| fs.lookup(dir, name).map(|attr| attr.ino))
    }

    fn find(&self, fs: &mut dyn FileSystem, target: &Target) -> Result<Ino, Error> {
        match target {
            Target::Root => Ok(fs.root()),
            Target::Named(at) => {
                let dir = Self::directory(fs, &at.dir)?;
                fs.lookup(dir, &at.name).map(|attr| attr.ino)
            }
            Target::Held(slot) => self.held.get(slot).copied().ok_or(Error::NotFound),
        }
    }

    /// Performs `op`.
    ///
    /// # Errors
    /// What the file system says; [`Error::NotFound`] for a slot that holds nothing.
    pub fn apply(&mut self, fs: &mut dyn FileSystem, caller: &Caller, op: &Op) -> Result<Outcome, Error> {
        match op {
            Op::Hold { slot, target } => {
                let ino = self.find(fs, target)?;
                fs.hold(ino);
                let before = self.held.insert(*slot, ino);
                before.map_or(Ok(()), |before| fs.forget(before, 1)).map(|()| Outcome::Done)
            }
            Op::Forget { slot } => {
                let held = self.held.remove(slot);
                held.map_or(Ok(()), |ino| fs.forget(ino, 1)).map(|()| Outcome::Done)
            }
            Op::Create { .. }
            | Op::Symlink { .. }
            | Op::Link { .. }
            | Op::Unlink { .. }
            | Op::Rmdir { .. }
            | Op::Rename { .. }
            | Op::Lookup { .. } => self.apply_to_name(fs, caller, op),
            Op::SetXattr { target, .. }
            | Op::GetXattr { target, .. }
            | Op::ListXattr { target }
            | Op::RemoveXattr { target, .. } => {
                let ino = self.find(fs, target)?;
                apply_to_xattr(fs, caller, ino, op)
            }
            Op::Sync => fs.sync().map(|()| Outcome::Done),
            _ => self.apply_to_inode(fs, caller, op),
        }
    }

    fn apply_to_name(&self, fs: &mut dyn FileSystem, caller: &Caller, op: &Op) -> Result<Outcome, Error> {
        let attr = |attr: Attr| Outcome::Attr(comparable(&attr));
        let mut dir = |at: &At| Self::directory(fs, &at.dir);
        match op {
            Op::Create { at, mode, rdev } => {
                let dir = dir(at)?;
                fs.create(caller, dir, &at.name, &NewNode { mode: *mode, rdev: *rdev }).map(attr)
            }
            Op::Symlink { at, target } => {
                let dir = dir(at)?;
                fs.symlink(caller, dir, &at.name, target).map(attr)
            }
            Op::Link { target, at } => {
                let dir = dir(at)?;
                let ino = self.find(fs, target)?;
                fs.link(caller, ino, dir, &at.name).map(attr)
            }
            Op::Unlink { at } => {
                let dir = dir(at)?;
                fs.unlink(caller, dir, &at.name).map(|()| Outcome::Done)
            }
            Op::Rmdir { at } => {
                let dir = dir(at)?;
                fs.rmdir(caller, dir, &at.name).map(|()| Outcome::Done)
            }
            Op::Rename { from, to, flags } => {
                let dirs = (dir(from)?, dir(to)?);
                fs.rename(caller, (dirs.0, &from.name), (dirs.1, &to.name), *flags).map(|()| Outcome::Done)
            }
            Op::Lookup { at } => {
                let dir = dir(at)?;
                fs.lookup(dir, &at.name).map(attr)
            }
            _ => Ok(Outcome::Done),
        }
    }

    fn apply_to_inode(&self, fs: &mut dyn FileSystem, caller: &Caller, op: &Op) -> Result<Outcome, Error> {
        match op {
            Op::Stat { target } => {
                let ino = self.find(fs, target)?;
                fs.getattr(ino).map(|attr| Outcome::Attr(comparable(&attr)))
            }
            Op::SetAttr { target, changes } => {
                let ino = self.find(fs, target)?;
                fs.setattr(caller, ino, changes).map(|attr| Outcome::Attr(comparable(&attr)))
            }
            Op::Readlink { target } => {
                let ino = self.find(fs, target)?;
                fs.readlink(ino).map(Outcome::Bytes)
            }
            Op::Write { target, offset, len, fill } => {
                let ino = self.find(fs, target)?;
                fs.write(caller, ino, *offset, &pattern(*offset, *len, *fill)).map(|()| Outcome::Done)
            }
            Op::Read { target, offset, len } => {
                let ino = self.find(fs, target)?;
                read(fs, ino, *offset, *len)
            }
            Op::Fallocate { target, how, offset, len } => {
                let ino = self.find(fs, target)?;
                fs.fallocate(caller, ino, *how, *offset, *len).map(|()| Outcome::Done)
            }
            Op::SeekData { target, offset } => {
                let ino = self.find(fs, target)?;
                only_of_files(fs, ino)?;
                fs.seek_data(ino, *offset).map(Outcome::Offset)
            }
            Op::SeekHole { target, offset } => {
                let ino = self.find(fs, target)?;
                only_of_files(fs, ino)?;
                fs.seek_hole(ino, *offset).map(Outcome::Offset)
            }
            Op::Readdir { target } => {
                let ino = self.find(fs, target)?;
                names(fs, ino)
            }
            Op::Fsync { target, data_only } => {
                let ino = self.find(fs, target)?;
                fs.fsync(ino, *data_only).map(|()| Outcome::Done)
            }
            _ => Ok(Outcome::Done),
        }
    }

    /// Lets everything go.
    pub(super) fn release_all(&mut self, fs: &mut dyn FileSystem) {
        for ino in std::mem::take(&mut self.held).into_values() {
            let _ = fs.forget(ino, 1); // the run is over and was right
        }
    }
}

fn apply_to_xattr(fs: &mut dyn FileSystem, caller: &Caller, ino: Ino, op: &Op) -> Result<Outcome, Error> {
    match op {
        Op::SetXattr { name, value, flags, .. } => {
            fs.setxattr(caller, ino, name, value, *flags).map(|()| Outcome::Done)
        }
        Op::GetXattr { name, .. } => fs.getxattr(ino, name).map(Outcome::Bytes),
        Op::RemoveXattr { name, .. } => fs.removexattr(caller, ino, name).map(|()| Outcome::Done),
        _ => fs.listxattr(ino).map(|mut names| {
            names.sort();
            Outcome::Names(names.into_iter().map(|name| (name, 0)).collect())
        }),
    }
}

/// What only regular files have is refused by whoever calls a file system.
fn only_of_files(fs: &mut dyn FileSystem, ino: Ino) -> Result<(), Error> {
    match fs.getattr(ino)?.kind() {
        0o100_000 => Ok(()),
        0o040_000 => Err(Error::IsADirectory),
        _ => Err(Error::Invalid("it is no regular file")),
    }
}

fn read(fs: &mut dyn FileSystem, ino: Ino, offset: u64, len: u64) -> Result<Outcome, Error> {
    only_of_files(fs, ino)?;
    let mut bytes = vec![0; len as usize];
    let read = fs.read(ino, offset, &mut bytes)?;
    bytes.truncate(read);
    Ok(Outcome::Bytes(bytes))
}

/// Lists in pieces of a few entries, as a kernel does.
fn names(fs: &mut dyn FileSystem, dir: Ino) -> Result<Outcome, Error> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let before = names.len();
        fs.readdir(dir, cookie, &mut |entry| {
            if names.len() == before + 5 {
                return false;
            }
            cookie = entry.cookie;
            names.push((entry.name, entry.kind));
            true
        })?;
        if names.len() == before {
            names.sort();
            return Ok(Outcome::Names(names));
        }
    }
}

/// Compares two results; offsets of data and holes by what they promise, since file systems may choose.
pub(super) fn compare(
    tested: &Result<Outcome, Error>,
    reference: &Result<Outcome, Error>,
    op: &Op,
    hand: &Hand,
    fs: &mut dyn FileSystem,
) -> Result<(), String> {
    if let Op::SeekData { target, offset } | Op::SeekHole { target, offset } = op
        && let Ok(ino) = hand.find(fs, target)
        && only_of_files(fs, ino).is_ok()
    {
        let data = matches!(op, Op::SeekData { .. });
        return check_seek(tested, data, *offset, ino, fs);
    }
    let same = match (tested, reference) {
        (Ok(tested), Ok(reference)) => tested == reference,
        (Err(tested), Err(reference)) => tested.errno() == reference.errno(),
        _ => false,
    };
    if same { Ok(()) } else { Err(format!("{} instead of {}", show(tested), show(reference))) }
}

fn show(result: &Result<Outcome, Error>) -> String {
    let text = format!("{result:?}");
    if text.len() <= 600 {
        text
    } else {
        format!("{}... ({} characters)", text.chars().take(600).collect::<String>(), text.len())
    }
}

/// From `offset` to where data was found, all must be zeros; a hole is found at the end of the file at the latest.
fn check_seek(
    found: &Result<Outcome, Error>,
    data: bool,
    offset: u64,
    ino: Ino,
    fs: &mut dyn FileSystem,
) -> Result<(), String> {
    let size = fs.getattr(ino).map_err(|error| error.to_string())?.size;
    let skipped = match found {
        Err(Error::BeyondEnd) if offset >= size => return Ok(()),
        Err(Error::BeyondEnd) if data => offset..size,
        Ok(Outcome::Offset(at)) if offset < size && (offset..=size).contains(at) => offset..*at,
        _ => return Err(format!("{found:?} for a search from {offset} in {size} bytes")),
    };
    if !data || super::compare::is_zero(fs, ino, skipped.clone())? {
        return Ok(());
    }
    Err(format!("there is data in {skipped:?}, which was passed over"))
}
