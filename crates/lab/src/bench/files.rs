//! A workload's files on a file system: calls carried out, and every read checked against what was
//! last written.

use std::collections::HashMap;
use std::ops::Range;

use dovetail_block::{Content, Lifetime, Pattern};
use dovetail_time::SimTime;
use dovetail_vfs::{Caller, Error, Fallocate, Ino, Moment, NewNode, SetAttr, Simulated};
use dovetail_workload::{Call, FileId};

use super::versions::Versions;

const BLOCK: u64 = 4096;
/// Linux: `CONFIG_HZ=250`, Debian's and Ubuntu's default.
const TICK_NS: u64 = 4_000_000;
const REGULAR: NewNode = NewNode { mode: 0o100_644, rdev: (0, 0) };
const DIRECTORY: NewNode = NewNode { mode: 0o040_755, rdev: (0, 0) };

/// A file that is there.
#[derive(Debug)]
struct File {
    ino: Ino,
    size: u64,
    open: u64,
    /// The hint that it was given last.
    lifetime: Lifetime,
    /// Of each block, which write of all was the last.
    versions: Versions,
}

/// Reason why a call failed.
#[derive(Debug)]
pub enum CallError {
    /// The file system says so.
    Refused(Error),
    /// A read gave something else than what was written there last.
    WrongData {
        /// Its number in the file.
        block: u64,
    },
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// The files of a workload.
#[derive(Debug, Default)]
pub struct Files {
    table: Vec<Option<File>>,
    /// Files without a name that are still open, and how often.
    nameless: Vec<(FileId, Ino, u64)>,
    directories: HashMap<String, Ino>,
    contents: Vec<Content>,
    /// Bytes of a raw drive, which is the one file and is there from the start; 0 with a file
    /// system.
    drive_bytes: u64,
    /// Writes so far: no content comes twice, whatever becomes of a file's number.
    writes: u32,
    /// The hint of the thread whose call comes next.
    lifetime: Lifetime,
}

/// Effect of a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effect {
    /// Bytes read or written.
    pub bytes: u64,
    /// Blocks that the host had to copy.
    pub blocks: u64,
    /// It waits for another call's work, and is to be made again then.
    pub again: bool,
}

/// The blocks that a range of bytes touches: the first, and how many.
fn touched(offset: u64, len: u64) -> (u64, u64) {
    let first = offset / BLOCK;
    (first, (offset + len).div_ceil(BLOCK) - first)
}

fn pattern(file: FileId, block: u64, version: u32) -> Content {
    match version {
        0 => Content::Empty,
        version => Content::Pattern(Pattern::named(file.0.into(), block, version.into())),
    }
}

/// File times are those of the kernel's last tick, as in Linux: a file written twice within one
/// does not change twice.
fn caller(now: SimTime) -> Caller {
    let tick = SimTime::from_ns(now.as_ns() / TICK_NS * TICK_NS);
    Caller { now: Moment::at(tick).date, ..Caller::default() }
}

impl Files {
    /// The one file that is a raw drive of so many bytes, of which nothing was written yet; 0 for
    /// files of a file system.
    pub(super) fn on_drive_of(drive_bytes: u64) -> Self {
        Self { drive_bytes, ..Self::default() }
    }

    /// Gives files that are written from now on this hint.
    pub(super) fn set_lifetime(&mut self, lifetime: Lifetime) {
        self.lifetime = lifetime;
    }

    /// Carries out a call at `now`. `path` is that of the call's file.
    ///
    /// # Errors
    /// Refused by the file system, or a read that gave something else than was written.
    pub fn perform(
        &mut self,
        fs: &mut dyn Simulated,
        now: SimTime,
        call: &Call,
        path: &str,
    ) -> Result<Effect, CallError> {
        let caller = &caller(now);
        match *call {
            Call::Open { file } => {
                let ino = self.open(fs, caller, file, path)?;
                fs.hold(ino);
                if let Some(file) = self.file(file) {
                    file.open += 1;
                }
            }
            Call::MakeDirectories { .. } => drop(self.directory_of(fs, caller, path)?),
            Call::Close { file } => self.close(fs, file)?,
            Call::Read { file, offset, len, direct } => {
                return self.read(fs, caller, file, path, (offset, len), direct);
            }
            Call::Write { file, offset, len, direct } => {
                return self.write(fs, caller, file, path, (offset, len), direct);
            }
            Call::Append { file, len } => {
                self.open(fs, caller, file, path)?;
                let offset = self.file(file).map_or(0, |file| file.size);
                return self.write(fs, caller, file, path, (offset, len), false);
            }
            Call::PunchHole { file, offset, len } => {
                self.punch(fs, caller, file, path, (offset, len))?;
            }
            Call::Allocate { file, len, keep_size } => {
                self.allocate(fs, caller, file, path, (len, keep_size))?;
            }
            Call::Truncate { file, size } => self.truncate(fs, caller, file, path, size)?,
            Call::Sync { file, data_only } => {
                let ino = self.open(fs, caller, file, path)?;
                match fs.fsync(ino, data_only) {
                    Err(Error::Again) => return Ok(Effect { again: true, ..Effect::default() }),
                    synced => synced?,
                }
            }
            Call::SyncAll => fs.sync()?,
            Call::Unlink { file } => self.unlink(fs, caller, file, path)?,
            Call::Stat { file } => {
                let ino = self.open(fs, caller, file, path)?;
                fs.getattr(ino)?;
            }
            Call::DropCache { file } => {
                let ino = self.open(fs, caller, file, path)?;
                fs.drop_cache(ino);
            }
        }
        Ok(Effect::default())
    }

    /// The inode of a call's file that is there, and the blocks of it that the call is about: all
    /// for one that changes or syncs the file as a whole. `None` for a call that needs no block.
    pub(super) fn blocks_of(&self, call: &Call) -> Option<(Ino, Range<u64>)> {
        let file = self.table.get(call.file()?.0 as usize)?.as_ref()?;
        let (offset, len) = match *call {
            Call::Read { offset, len, .. }
            | Call::Write { offset, len, .. }
            | Call::PunchHole { offset, len, .. } => (offset, len),
            Call::Append { len, .. } => (file.size, len),
            Call::Allocate { .. }
            | Call::Truncate { .. }
            | Call::Sync { .. }
            | Call::Unlink { .. } => return Some((file.ino, 0..u64::MAX)),
            _ => return None,
        };
        let (first, blocks) = touched(offset, len);
        Some((file.ino, first..first + blocks))
    }

    /// The file's inode and its blocks, those of a range of bytes that lie in it and all of it, if
    /// the file is there and the range not empty.
    pub(super) fn part_of(
        &self,
        id: FileId,
        (offset, len): (u64, u64),
    ) -> Option<(Ino, Range<u64>, u64)> {
        let file = self.table.get(id.0 as usize)?.as_ref()?;
        let len = len.min(file.size.saturating_sub(offset));
        let (first, blocks) = touched(offset, len);
        (len > 0).then(|| (file.ino, first..first + blocks, file.size.div_ceil(BLOCK)))
    }

    /// Reads blocks of a file that is there, and checks them.
    pub(super) fn fetch(
        &mut self,
        fs: &mut dyn Simulated,
        id: FileId,
        blocks: Range<u64>,
        direct: bool,
    ) -> Result<(), CallError> {
        let Some(file) = self.table.get(id.0 as usize).and_then(Option::as_ref) else {
            return Ok(());
        };
        self.contents.clear();
        self.contents.resize((blocks.end - blocks.start) as usize, Content::Empty);
        fs.read_pages(file.ino, blocks.start, &mut self.contents, direct)?;
        for (block, content) in blocks.zip(&self.contents) {
            let version = file.versions.get(block);
            if *content != pattern(id, block, version) {
                return Err(CallError::WrongData { block });
            }
        }
        Ok(())
    }

    /// The inodes of the files from `first` on that are there.
    pub fn inodes(&self, first: FileId) -> impl Iterator<Item = Ino> {
        self.from(first).map(|file| file.ino)
    }

    /// Blocks of the files from `first` on, holes left out.
    pub fn blocks(&self, first: FileId) -> u64 {
        self.from(first).map(|file| file.versions.written()).sum()
    }

    fn from(&self, first: FileId) -> impl Iterator<Item = &File> {
        self.table.iter().skip(first.0 as usize).flatten()
    }

    fn file(&mut self, file: FileId) -> Option<&mut File> {
        self.table.get_mut(file.0 as usize)?.as_mut()
    }

    /// The file's inode; it is made if it is not there.
    fn open(
        &mut self,
        fs: &mut dyn Simulated,
        caller: &Caller,
        id: FileId,
        path: &str,
    ) -> Result<Ino, Error> {
        if let Some(file) = self.file(id) {
            return Ok(file.ino);
        }
        let (dir, name) = self.directory_of(fs, caller, path)?;
        let ino = match fs.lookup(dir, name) {
            Err(Error::NotFound) => fs.create(caller, dir, name, &REGULAR)?.ino,
            found => found?.ino,
        };
        let index = id.0 as usize;
        if self.table.len() <= index {
            self.table.resize_with(index + 1, || None);
        }
        let (size, versions) = (self.drive_bytes, Versions::default());
        self.table[index] = Some(File { ino, size, open: 0, lifetime: Lifetime::NotSet, versions });
        Ok(ino)
    }

    /// The directory of a path, made if need be, and the name in it.
    fn directory_of<'p>(
        &mut self,
        fs: &mut dyn Simulated,
        caller: &Caller,
        path: &'p str,
    ) -> Result<(Ino, &'p [u8]), Error> {
        let Some((parents, name)) = path.rsplit_once('/') else {
            return Ok((fs.root(), path.as_bytes()));
        };
        if let Some(&dir) = self.directories.get(parents) {
            return Ok((dir, name.as_bytes()));
        }
        let (parent, last) = self.directory_of(fs, caller, parents)?;
        let dir = match fs.lookup(parent, last) {
            Err(Error::NotFound) => fs.create(caller, parent, last, &DIRECTORY)?.ino,
            found => found?.ino,
        };
        self.directories.insert(parents.into(), dir);
        Ok((dir, name.as_bytes()))
    }

    fn close(&mut self, fs: &mut dyn Simulated, id: FileId) -> Result<(), Error> {
        if let Some(at) = self.nameless.iter().position(|(nameless, ..)| *nameless == id) {
            let (_, ino, open) = &mut self.nameless[at];
            let ino = *ino;
            *open -= 1;
            if *open == 0 {
                self.nameless.remove(at);
            }
            return fs.forget(ino, 1);
        }
        match self.file(id) {
            Some(file) if file.open > 0 => {
                file.open -= 1;
                fs.forget(file.ino, 1)
            }
            _ => Ok(()),
        }
    }

    fn read(
        &mut self,
        fs: &mut dyn Simulated,
        caller: &Caller,
        id: FileId,
        path: &str,
        (offset, len): (u64, u64),
        direct: bool,
    ) -> Result<Effect, CallError> {
        self.open(fs, caller, id, path)?;
        let size = self.file(id).map_or(0, |file| file.size);
        let bytes = len.min(size.saturating_sub(offset));
        let Some((_, blocks, _)) = self.part_of(id, (offset, len)) else {
            return Ok(Effect::default());
        };
        let count = blocks.end - blocks.start;
        self.fetch(fs, id, blocks, direct)?;
        Ok(Effect { bytes, blocks: count, again: false })
    }

    fn write(
        &mut self,
        fs: &mut dyn Simulated,
        caller: &Caller,
        id: FileId,
        path: &str,
        (offset, len): (u64, u64),
        direct: bool,
    ) -> Result<Effect, CallError> {
        let ino = self.open(fs, caller, id, path)?;
        if len == 0 {
            return Ok(Effect::default());
        }
        self.tell_lifetime(fs, id, ino);
        let (first, count) = touched(offset, len);
        let mut contents = std::mem::take(&mut self.contents);
        contents.clear();
        self.writes = self.writes.wrapping_add(1).max(1);
        let version = self.writes;
        contents.extend((first..first + count).map(|block| pattern(id, block, version)));
        let written = fs.write_pages(caller, ino, (offset, len), &contents, direct);
        self.contents = contents;
        written?;
        if let Some(file) = self.file(id) {
            file.versions.set(first..first + count, version);
            file.size = file.size.max(offset + len);
        }
        Ok(Effect { bytes: len, blocks: count, again: false })
    }

    fn tell_lifetime(&mut self, fs: &mut dyn Simulated, id: FileId, ino: Ino) {
        let lifetime = self.lifetime;
        if let Some(file) = self.file(id).filter(|file| file.lifetime != lifetime) {
            file.lifetime = lifetime;
            fs.set_lifetime(ino, lifetime);
        }
    }

    fn punch(
        &mut self,
        fs: &mut dyn Simulated,
        caller: &Caller,
        id: FileId,
        path: &str,
        (offset, len): (u64, u64),
    ) -> Result<(), Error> {
        let ino = self.open(fs, caller, id, path)?;
        let (from, to) = (offset.next_multiple_of(BLOCK), (offset + len) / BLOCK * BLOCK);
        if from >= to {
            return Ok(());
        }
        fs.fallocate(caller, ino, Fallocate::PunchHole, from, to - from)?;
        if let Some(file) = self.file(id) {
            file.versions.clear(from / BLOCK..to / BLOCK);
        }
        Ok(())
    }

    fn allocate(
        &mut self,
        fs: &mut dyn Simulated,
        caller: &Caller,
        id: FileId,
        path: &str,
        (len, keep_size): (u64, bool),
    ) -> Result<(), Error> {
        let ino = self.open(fs, caller, id, path)?;
        if len == 0 {
            return Ok(());
        }
        match fs.fallocate(caller, ino, Fallocate::Reserve { keep_size }, 0, len) {
            // fio goes on without, where a file system has no fallocate
            Err(Error::Unsupported(_)) => return Ok(()),
            reserved => reserved?,
        }
        if let Some(file) = self.file(id)
            && !keep_size
        {
            file.size = file.size.max(len);
        }
        Ok(())
    }

    fn truncate(
        &mut self,
        fs: &mut dyn Simulated,
        caller: &Caller,
        id: FileId,
        path: &str,
        size: u64,
    ) -> Result<(), Error> {
        let ino = self.open(fs, caller, id, path)?;
        let Some(file) = self.file(id) else { return Ok(()) };
        // a block that is named cannot be cut: the size is that of whole blocks
        let size =
            if size < file.size { size.next_multiple_of(BLOCK).min(file.size) } else { size };
        fs.setattr(caller, ino, &SetAttr { size: Some(size), ..SetAttr::default() })?;
        if let Some(file) = self.file(id) {
            file.versions.truncate(size.div_ceil(BLOCK));
            file.size = size;
        }
        Ok(())
    }

    fn unlink(
        &mut self,
        fs: &mut dyn Simulated,
        caller: &Caller,
        id: FileId,
        path: &str,
    ) -> Result<(), Error> {
        let Some(file) = self.file(id) else { return Ok(()) };
        let (ino, open) = (file.ino, file.open);
        let (dir, name) = self.directory_of(fs, caller, path)?;
        fs.unlink(caller, dir, name)?;
        self.table[id.0 as usize] = None;
        if open > 0 {
            self.nameless.push((id, ino, open));
        }
        Ok(())
    }
}
