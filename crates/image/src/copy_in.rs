//! Copying into an image, which is mounted for it in this process.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, ReadDir};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dovetail_vfs::mode::{S_IALLUGO, is_device};
use dovetail_vfs::{
    Attr, Caller, Error, FileSystem, Ino, NewNode, RenameFlags, SetAttr, Timestamp, XattrFlags,
    check_name,
};
use rustix::fs::SeekFrom;

use crate::{CHUNK, free_bytes};

/// Bytes of the longest list of names, and of the longest value: the kernel's limits (xattr(7)).
const XATTR_MAX: usize = 65_536;

/// A directory that is being copied.
struct Frame {
    meta: Metadata,
    source: PathBuf,
    target: Ino,
    entries: ReadDir,
}

/// A copy into an image that is going on.
pub struct CopyIn<'a> {
    fs: &'a mut dyn FileSystem,
    caller: Caller,
    /// Files get the owners that they have outside.
    owners: bool,
    /// Device and inode number of files with several names, and what they became.
    links: HashMap<(u64, u64), Ino>,
    /// Bytes of content copied so far are told to it.
    tell: &'a mut dyn FnMut(u64),
    copied: u64,
    /// Sentences about what could not be copied.
    pub errors: Vec<String>,
    /// Extended attributes that the image cannot store.
    pub xattrs_left: u64,
}

impl<'a> CopyIn<'a> {
    /// A copy by `caller` that keeps the owners of outside, if `owners`, and tells the bytes copied
    /// so far to `tell`.
    pub fn new(
        fs: &'a mut dyn FileSystem,
        caller: Caller,
        owners: bool,
        tell: &'a mut dyn FnMut(u64),
    ) -> Self {
        let (links, errors) = (HashMap::new(), Vec::new());
        Self { fs, caller, owners, links, tell, copied: 0, errors, xattrs_left: 0 }
    }

    /// Copies `source`, a directory with all below it, as `name` of directory `dir`.
    pub fn copy(&mut self, source: &Path, follow: bool, dir: Ino, name: &[u8]) {
        let meta = if follow { fs::metadata(source) } else { fs::symlink_metadata(source) };
        let made = meta.map_err(text).and_then(|meta| self.entry(source, &meta, dir, name));
        let mut stack: Vec<Frame> = self.noted(source, made).flatten().into_iter().collect();
        while let Some(frame) = stack.last_mut() {
            match frame.entries.next() {
                Some(Ok(entry)) => {
                    let (source, name, dir) = (entry.path(), entry.file_name(), frame.target);
                    let made = entry.metadata().map_err(text);
                    let made =
                        made.and_then(|meta| self.entry(&source, &meta, dir, name.as_bytes()));
                    stack.extend(self.noted(&source, made).flatten());
                }
                end => {
                    let left = end.transpose().map(drop).map_err(text);
                    let left = left
                        .and_then(|()| self.attributes(&frame.source, &frame.meta, frame.target));
                    self.noted(&frame.source, left);
                    stack.pop();
                }
            }
        }
    }

    fn noted<T>(&mut self, source: &Path, made: Result<T, String>) -> Option<T> {
        made.map_err(|error| self.errors.push(format!("{}: {error}", source.display()))).ok()
    }

    /// Copies one entry; a directory is made and comes back, to be filled.
    fn entry(
        &mut self,
        source: &Path,
        meta: &Metadata,
        dir: Ino,
        name: &[u8],
    ) -> Result<Option<Frame>, String> {
        if meta.is_file() && !self.links.contains_key(&(meta.dev(), meta.ino())) {
            return self.file(source, meta, dir, name).map(|()| None);
        }
        let there = self.make_room(meta, dir, name)?;
        if meta.is_dir() {
            let target = match there {
                Some(attr) => attr.ino,
                None => self.make(meta, dir, name)?,
            };
            let entries = fs::read_dir(source).map_err(text)?;
            return Ok(Some(Frame {
                meta: meta.clone(),
                source: source.to_path_buf(),
                target,
                entries,
            }));
        }
        let key = (meta.dev(), meta.ino());
        if let Some(&ino) = self.links.get(&key) {
            self.fs.link(&self.caller, ino, dir, name).map_err(text)?;
            return Ok(None);
        }
        let target = if meta.is_symlink() {
            let to = fs::read_link(source).map_err(text)?;
            self.fs.symlink(&self.caller, dir, name, to.as_os_str().as_bytes()).map_err(text)?.ino
        } else {
            self.make(meta, dir, name)?
        };
        if meta.nlink() > 1 {
            self.links.insert(key, target);
        }
        self.attributes(source, meta, target).map(|()| None)
    }

    /// Copies a regular file. It has a name of its own until it is whole: neither a full volume nor
    /// an end of this process leaves a part of it under the name that it is to have.
    fn file(
        &mut self,
        source: &Path,
        meta: &Metadata,
        dir: Ino,
        name: &[u8],
    ) -> Result<(), String> {
        check_name(name).map_err(text)?;
        match self.fs.lookup(dir, name) {
            Ok(there) if there.is_dir() => {
                return Err("a directory of this name is in the image".to_string());
            }
            // the old content stays as long as there is room for both
            Ok(_) if free_bytes(self.fs).map_err(text)? < 2 * meta.len() => {
                self.fs.unlink(&self.caller, dir, name).map_err(text)?;
            }
            Ok(_) | Err(Error::NotFound) => {}
            Err(error) => return Err(text(error)),
        }
        let part = self.part_name(dir)?;
        let target = self.make(meta, dir, &part)?;
        let copied = self.content(source, meta.len(), target);
        let copied = copied.and_then(|()| self.attributes(source, meta, target));
        let to = (dir, name);
        let named = copied.and_then(|()| {
            let renamed = self.fs.rename(&self.caller, (dir, &part), to, RenameFlags::default());
            renamed.map_err(text)
        });
        if named.is_err() {
            drop(self.fs.unlink(&self.caller, dir, &part)); // what failed first is told
        } else if meta.nlink() > 1 {
            self.links.insert((meta.dev(), meta.ino()), target);
        }
        named
    }

    /// A name that is free in `dir`, for a file that is not whole yet.
    fn part_name(&mut self, dir: Ino) -> Result<Vec<u8>, String> {
        for number in 0.. {
            let name = format!(".dovetail-cp.{number}").into_bytes();
            match self.fs.lookup(dir, &name) {
                Err(Error::NotFound) => return Ok(name),
                Err(error) => return Err(text(error)),
                Ok(_) => {}
            }
        }
        Err("every name is taken".into())
    }

    /// Removes a file that is in a file's way; a directory stays for a directory.
    fn make_room(
        &mut self,
        meta: &Metadata,
        dir: Ino,
        name: &[u8],
    ) -> Result<Option<Attr>, String> {
        match self.fs.lookup(dir, name) {
            Err(Error::NotFound) => Ok(None),
            Ok(there) if there.is_dir() && meta.is_dir() => Ok(Some(there)),
            Ok(there) if there.is_dir() => {
                Err("a directory of this name is in the image".to_string())
            }
            Ok(_) if meta.is_dir() => Err("a file of this name is in the image".to_string()),
            Ok(_) => self.fs.unlink(&self.caller, dir, name).map(|()| None).map_err(text),
            Err(error) => Err(text(error)),
        }
    }

    /// An empty file, a directory, a device, a fifo or a socket.
    fn make(&mut self, meta: &Metadata, dir: Ino, name: &[u8]) -> Result<Ino, String> {
        let mode = meta.mode() as u16;
        let device = || (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
        let node = NewNode { mode, rdev: if is_device(mode) { device() } else { (0, 0) } };
        self.fs.create(&self.caller, dir, name, &node).map(|attr| attr.ino).map_err(text)
    }

    /// Holes stay holes, where the system tells them.
    fn content(&mut self, source: &Path, size: u64, target: Ino) -> Result<(), String> {
        let mut file = File::open(source).map_err(text)?;
        let mut buffer = vec![0; CHUNK];
        let mut at = 0;
        while let Some((start, end)) = data_range(&file, at)? {
            at = rustix::fs::seek(&file, SeekFrom::Start(start)).map_err(text)?;
            while at < end {
                let wanted = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
                let len = file.read(&mut buffer[..wanted]).map_err(text)?;
                if len == 0 {
                    break;
                }
                self.fs.write(&self.caller, target, at, &buffer[..len]).map_err(text)?;
                at += len as u64;
                self.copied += len as u64;
                (self.tell)(self.copied);
            }
            if at < end {
                break;
            }
        }
        let grown = SetAttr { size: Some(size.max(at)), ..SetAttr::default() };
        if at < size {
            self.fs.setattr(&self.caller, target, &grown).map(drop).map_err(text)
        } else {
            Ok(())
        }
    }

    /// Extended attributes, mode, owner and times; times come last.
    fn attributes(&mut self, source: &Path, meta: &Metadata, target: Ino) -> Result<(), String> {
        self.xattrs(source, target)?;
        let time = |seconds, nanoseconds: i64| {
            Some(Timestamp { seconds, nanoseconds: nanoseconds as u32 })
        };
        let changes = SetAttr {
            mode: (!meta.is_symlink()).then_some(meta.mode() as u16 & S_IALLUGO),
            uid: self.owners.then_some(meta.uid()),
            gid: self.owners.then_some(meta.gid()),
            atime: time(meta.atime(), meta.atime_nsec()),
            mtime: time(meta.mtime(), meta.mtime_nsec()),
            ..SetAttr::default()
        };
        self.fs.setattr(&self.caller, target, &changes).map(drop).map_err(text)
    }

    fn xattrs(&mut self, source: &Path, target: Ino) -> Result<(), String> {
        let mut names = vec![0; XATTR_MAX];
        let len = match rustix::fs::llistxattr(source, &mut names[..]) {
            Ok(len) => len,
            Err(rustix::io::Errno::NOTSUP) => return Ok(()),
            Err(error) => return Err(text(error)),
        };
        let mut value = vec![0; if len > 0 { XATTR_MAX } else { 0 }];
        for name in names[..len].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let len = rustix::fs::lgetxattr(source, OsStr::from_bytes(name), &mut value[..])
                .map_err(text)?;
            match self.fs.setxattr(&self.caller, target, name, &value[..len], XattrFlags::default())
            {
                Ok(()) => {}
                Err(Error::Unsupported(_) | Error::TooBig | Error::NoSpace | Error::Invalid(_)) => {
                    self.xattrs_left += 1;
                }
                Err(error) => return Err(text(error)),
            }
        }
        Ok(())
    }
}

/// The next bytes from `at` on that are no hole; to the end, whatever that is, where the system
/// does not tell holes.
fn data_range(file: &File, at: u64) -> Result<Option<(u64, u64)>, String> {
    let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        Err(rustix::io::Errno::INVAL) => return Ok(Some((at, u64::MAX))),
        Err(error) => return Err(text(error)),
    };
    Ok(Some((start, rustix::fs::seek(file, SeekFrom::Hole(start)).map_err(text)?)))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
