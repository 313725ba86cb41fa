//! Performing an operation on a file system.

use dovetail_vfs::{Attr, Caller, Error, FileSystem, Ino, NewNode};

use super::listing;
use super::op::{Op, Path, Step, Target, content};
use super::tree::{Tree, read_tree};

/// A file system that performs operations.
#[derive(Debug)]
pub struct Subject<F> {
    /// The file system.
    pub fs: F,
    held: Vec<Option<Ino>>,
}

/// Answer to an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing but success.
    Done,
    /// Attributes, without what file systems may choose freely: numbers, blocks, sizes of
    /// directories.
    Attr(Box<Attr>),
    /// Content, a target, a value.
    Bytes(Vec<u8>),
    /// The names of a directory, sorted.
    Names(Vec<Vec<u8>>),
    /// An answer that must not be: the sentence says why.
    Wrong(String),
}

/// An error; two are the same if their errno is.
#[derive(Clone, Debug)]
pub struct Failed(pub Error);

impl PartialEq for Failed {
    fn eq(&self, other: &Self) -> bool {
        self.0.errno() == other.0.errno()
    }
}

/// Outcome of an operation: its answer, or its error.
pub type Outcome = Result<Answer, Failed>;

impl<F: FileSystem> Subject<F> {
    /// A file system of which nothing is held.
    pub fn new(fs: F) -> Self {
        Self { fs, held: Vec::new() }
    }

    /// Performs an operation.
    ///
    /// # Errors
    /// That of the file system.
    pub fn apply(&mut self, step: &Step) -> Outcome {
        self.perform(&step.caller, &step.op).map_err(Failed)
    }

    /// All that there is: names, attributes, content, extended attributes; held inodes as well.
    ///
    /// # Errors
    /// A read error of the file system.
    pub fn tree(&mut self) -> Result<Tree, Error> {
        read_tree(&mut self.fs, &self.held)
    }

    /// Lets go of all that is held.
    ///
    /// # Errors
    /// A write error of the file system.
    pub fn release_all(&mut self) -> Result<(), Error> {
        std::mem::take(&mut self.held)
            .into_iter()
            .flatten()
            .try_for_each(|ino| self.fs.forget(ino, 1))
    }

    pub(super) fn perform(&mut self, caller: &Caller, op: &Op) -> Result<Answer, Error> {
        match op {
            Op::Hold { path, slot } => self.hold(path, *slot),
            Op::Release { slot } => self.release(*slot),
            Op::Create { .. } | Op::Symlink { .. } | Op::Link { .. } => self.add_name(caller, op),
            Op::Unlink { .. } | Op::Rmdir { .. } | Op::Rename { .. } => {
                self.change_name(caller, op)
            }
            Op::SetXattr { .. } | Op::GetXattr { .. } | Op::RemoveXattr { .. } => {
                self.xattr(caller, op)
            }
            Op::List { target, chunk } => {
                let dir = self.find(target)?;
                listing::list(&mut self.fs, dir, *chunk)
            }
            Op::ListDuring { target, chunk, between } => {
                let dir = self.find(target)?;
                listing::list_during(self, caller, dir, *chunk, between)
            }
            Op::Sync => self.fs.sync().map(|()| Answer::Done),
            _ => self.on_inode(caller, op),
        }
    }

    fn hold(&mut self, path: &Path, slot: usize) -> Result<Answer, Error> {
        let ino = self.walk(path)?;
        self.fs.hold(ino);
        let answer = self.release(slot);
        self.held.resize((slot + 1).max(self.held.len()), None);
        self.held[slot] = Some(ino);
        answer
    }

    fn release(&mut self, slot: usize) -> Result<Answer, Error> {
        if let Some(ino) = self.held.get_mut(slot).and_then(Option::take) {
            self.fs.forget(ino, 1)?;
        }
        Ok(Answer::Done)
    }

    fn add_name(&mut self, caller: &Caller, op: &Op) -> Result<Answer, Error> {
        let attr = match op {
            Op::Create { path, mode, rdev } => {
                let (dir, name) = self.parent(path)?;
                self.fs.create(caller, dir, name, &NewNode { mode: *mode, rdev: *rdev })
            }
            Op::Symlink { path, len } => {
                let (dir, name) = self.parent(path)?;
                self.fs.symlink(caller, dir, name, &vec![b's'; *len])
            }
            Op::Link { target, path } => {
                let ino = self.find(target)?;
                let (dir, name) = self.parent(path)?;
                self.fs.link(caller, ino, dir, name)
            }
            _ => return Ok(Answer::Done),
        }?;
        Ok(Answer::Attr(Box::new(comparable(attr))))
    }

    fn change_name(&mut self, caller: &Caller, op: &Op) -> Result<Answer, Error> {
        match op {
            Op::Unlink { path } => {
                let (dir, name) = self.parent(path)?;
                self.fs.unlink(caller, dir, name)?;
            }
            Op::Rmdir { path } => {
                let (dir, name) = self.parent(path)?;
                self.fs.rmdir(caller, dir, name)?;
            }
            Op::Rename { from, to, flags } => {
                let (from, to) = (self.parent(from)?, self.parent(to)?);
                self.fs.rename(caller, from, to, *flags)?;
            }
            _ => {}
        }
        Ok(Answer::Done)
    }

    fn xattr(&mut self, caller: &Caller, op: &Op) -> Result<Answer, Error> {
        match op {
            Op::SetXattr { target, name, len, fill, flags } => {
                let ino = self.find(target)?;
                self.fs.setxattr(caller, ino, name, &content(*fill, 0, *len), *flags)?;
            }
            Op::RemoveXattr { target, name } => {
                let ino = self.find(target)?;
                self.fs.removexattr(caller, ino, name)?;
            }
            Op::GetXattr { target, name } => {
                let ino = self.find(target)?;
                return self.fs.getxattr(ino, name).map(Answer::Bytes);
            }
            _ => {}
        }
        Ok(Answer::Done)
    }

    fn on_inode(&mut self, caller: &Caller, op: &Op) -> Result<Answer, Error> {
        match op {
            Op::Write { target, offset, len, fill } => {
                let ino = self.find(target)?;
                self.fs.write(caller, ino, *offset, &content(*fill, *offset, *len))?;
            }
            Op::Read { target, offset, len } => {
                let ino = self.find(target)?;
                return self.read(ino, *offset, *len).map(Answer::Bytes);
            }
            Op::Fallocate { target, how, offset, len } => {
                let ino = self.find(target)?;
                self.fs.fallocate(caller, ino, *how, *offset, *len)?;
            }
            Op::SetAttr { target, changes } => {
                let ino = self.find(target)?;
                let attr = self.fs.setattr(caller, ino, changes)?;
                return Ok(Answer::Attr(Box::new(comparable(attr))));
            }
            Op::Stat { target } => {
                let ino = self.find(target)?;
                let attr = self.fs.getattr(ino)?;
                if self.fs.shared().and_then(|fs| fs.getattr(ino)).is_some_and(|a| a != attr) {
                    return Ok(Answer::Wrong("attributes differ for those who share".into()));
                }
                return Ok(Answer::Attr(Box::new(comparable(attr))));
            }
            Op::Seek { target, offset } => {
                let ino = self.find(target)?;
                return self.seek(ino, *offset);
            }
            Op::Readlink { target } => {
                let ino = self.find(target)?;
                return self.fs.readlink(ino).map(Answer::Bytes);
            }
            Op::Fsync { target, data_only } => {
                let ino = self.find(target)?;
                self.fs.fsync(ino, *data_only)?;
            }
            _ => {}
        }
        Ok(Answer::Done)
    }

    /// Reads as one of several callers, or alone, which brings pages into memory, and then both must
    /// say the same.
    fn read(&mut self, ino: Ino, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
        if offset.is_multiple_of(2)
            && let Some(bytes) = self.read_shared(ino, offset, len)
        {
            return Ok(bytes);
        }
        if offset % 4 == 1
            && self.fs.prepare_shared_read(ino, offset..offset + len as u64)?
            && let Some(bytes) = self.read_shared(ino, offset, len)
        {
            return Ok(bytes);
        }
        let mut bytes = vec![0xEE; len];
        let read = self.fs.read(ino, offset, &mut bytes)?;
        bytes.truncate(read);
        match self.read_shared(ino, offset, len) {
            Some(shared) if shared != bytes => Err(Error::Corrupt("a shared read differs".into())),
            _ => Ok(bytes),
        }
    }

    fn read_shared(&self, ino: Ino, offset: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0xEE; len];
        let read = self.fs.shared()?.read(ino, offset, &mut bytes)?;
        bytes.truncate(read);
        Some(bytes)
    }

    /// File systems may call zeros data, and reserved blocks a hole: what counts is that no content
    /// is in a hole.
    fn seek(&mut self, ino: Ino, offset: u64) -> Result<Answer, Error> {
        let size = self.fs.getattr(ino)?.size;
        let hole = self.fs.seek_hole(ino, offset)?;
        let data = match self.fs.seek_data(ino, offset) {
            Err(Error::BeyondEnd) => size,
            found => found?,
        };
        if hole < offset || hole > size || data < offset || data > size {
            return Ok(Answer::Wrong(format!(
                "from {offset} of {size}: data at {data}, a hole at {hole}"
            )));
        }
        let skipped = self.read(ino, offset, (data - offset).min(1 << 20) as usize)?;
        let zeros = skipped.iter().all(|&byte| byte == 0);
        Ok(if zeros {
            Answer::Done
        } else {
            Answer::Wrong(format!("data before {data} was skipped"))
        })
    }

    pub(crate) fn find(&mut self, target: &Target) -> Result<Ino, Error> {
        match target {
            Target::Path(path) => self.walk(path),
            Target::Held(slot) => self.held.get(*slot).copied().flatten().ok_or(Error::NotFound),
        }
    }

    fn walk(&mut self, path: &[Vec<u8>]) -> Result<Ino, Error> {
        path.iter().try_fold(self.fs.root(), |dir, name| Ok(self.fs.lookup(dir, name)?.ino))
    }

    fn parent<'a>(&mut self, path: &'a [Vec<u8>]) -> Result<(Ino, &'a [u8]), Error> {
        match path.split_last() {
            Some((name, dirs)) => Ok((self.walk(dirs)?, name)),
            None => Ok((self.fs.root(), b".")),
        }
    }
}

/// Without what file systems may choose freely.
pub(super) fn comparable(attr: Attr) -> Attr {
    let size = if attr.is_dir() { 0 } else { attr.size };
    Attr { ino: Ino(0), blocks: 0, generation: 0, size, ..attr }
}
