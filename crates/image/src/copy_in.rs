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

use crate::fit::{fits_only_instead, least};
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
        if meta.is_dir() {
            return self.directory(source, meta, dir, name).map(Some);
        }
        check_name(name).map_err(text)?;
        let there = self.there(meta, dir, name)?;
        let key = (meta.dev(), meta.ino());
        let target = match self.links.get(&key) {
            // a rename of a file to another name of its own would do nothing
            Some(&ino) if there.is_some_and(|there| there.ino == ino) => return Ok(None),
            Some(&ino) => self.put(dir, name, |copy, part| {
                copy.fs.link(&copy.caller, ino, dir, part).map(|_| ino).map_err(text)
            })?,
            None if meta.is_file() => self.file(source, meta, there, dir, name)?,
            None => self.special(source, meta, dir, name)?,
        };
        if meta.nlink() > 1 {
            self.links.insert(key, target);
        }
        Ok(None)
    }

    fn directory(
        &mut self,
        source: &Path,
        meta: &Metadata,
        dir: Ino,
        name: &[u8],
    ) -> Result<Frame, String> {
        let there = self.there(meta, dir, name)?;
        let entries = fs::read_dir(source).map_err(text)?;
        let target = match there {
            Some(attr) => attr.ino,
            None => self.make(meta, dir, name)?,
        };
        Ok(Frame { meta: meta.clone(), source: source.to_path_buf(), target, entries })
    }

    /// Copies a symbolic link, a device, a fifo or a socket.
    fn special(
        &mut self,
        source: &Path,
        meta: &Metadata,
        dir: Ino,
        name: &[u8],
    ) -> Result<Ino, String> {
        let to = meta.is_symlink().then(|| fs::read_link(source)).transpose().map_err(text)?;
        self.put(dir, name, |copy, part| {
            let target = match to {
                Some(to) => {
                    let to = to.as_os_str().as_bytes();
                    copy.fs.symlink(&copy.caller, dir, part, to).map_err(text)?.ino
                }
                None => copy.make(meta, dir, part)?,
            };
            copy.attributes(source, meta, target).map(|()| target)
        })
    }

    /// Copies a regular file. The old content stays until the new one is whole, where both fit.
    fn file(
        &mut self,
        source: &Path,
        meta: &Metadata,
        there: Option<Attr>,
        dir: Ino,
        name: &[u8],
    ) -> Result<Ino, String> {
        let mut content = File::open(source).map_err(text)?;
        if let Some(there) = there
            && fits_only_instead(least(meta), free_bytes(self.fs).map_err(text)?, &there)
        {
            self.fs.unlink(&self.caller, dir, name).map_err(text)?;
        }
        self.put(dir, name, |copy, part| {
            let target = copy.make(meta, dir, part)?;
            copy.content(&mut content, meta.len(), target)?;
            copy.attributes(source, meta, target).map(|()| target)
        })
    }

    /// Makes what has a name of its own until it is whole: neither a full volume nor an end of this
    /// process leaves a part of it under the name that it is to have, or takes away what has it.
    fn put(
        &mut self,
        dir: Ino,
        name: &[u8],
        make: impl FnOnce(&mut Self, &[u8]) -> Result<Ino, String>,
    ) -> Result<Ino, String> {
        let part = self.part_name(dir)?;
        let named = make(self, &part).and_then(|target| {
            let (from, to) = ((dir, part.as_slice()), (dir, name));
            let renamed = self.fs.rename(&self.caller, from, to, RenameFlags::default());
            renamed.map(|()| target).map_err(text)
        });
        if named.is_err() {
            drop(self.fs.unlink(&self.caller, dir, &part)); // what failed first is told
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

    /// The file or directory that has the name and that the new one may replace or be merged with.
    fn there(&mut self, meta: &Metadata, dir: Ino, name: &[u8]) -> Result<Option<Attr>, String> {
        match self.fs.lookup(dir, name) {
            Err(Error::NotFound) => Ok(None),
            Ok(there) if there.is_dir() == meta.is_dir() => Ok(Some(there)),
            Ok(there) if there.is_dir() => {
                Err("a directory of this name is in the image".to_string())
            }
            Ok(_) => Err("a file of this name is in the image".to_string()),
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
    fn content(&mut self, file: &mut File, size: u64, target: Ino) -> Result<(), String> {
        let mut buffer = vec![0; CHUNK];
        let mut at = 0;
        while let Some((start, end)) = data_range(file, at)? {
            at = rustix::fs::seek(&*file, SeekFrom::Start(start)).map_err(text)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mount, Source, find, format_of};
    use dovetail_vfs::Moment;

    fn mounted(folder: &Path) -> Box<dyn FileSystem> {
        use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
        let path = folder.join("image");
        File::create(&path).unwrap().set_len(64 << 20).unwrap();
        let mut device = dovetail_block::ImageDevice::open_read_write(&path).unwrap();
        mkfs(&mut device, &MkfsOptions::new(Kind::Ext4)).unwrap();
        let now = Moment::at(dovetail_time::SimTime::ZERO);
        let request = Mount { read_only: false, options: "", seed: 1, now };
        let source = Source::from(path);
        format_of(&source).unwrap().mount(&source, &request, &mut |said| panic!("{said}")).unwrap()
    }

    /// A source that is gone when it is opened; the larger one would fit only in the old one's
    /// place, if its holes took room.
    #[test]
    fn what_cannot_be_read_takes_nothing_away() {
        let folder = tempfile::tempdir().unwrap();
        let mut fs = mounted(folder.path());
        let root = FileSystem::root(&fs);
        let mut told = |_| {};
        let mut copy = CopyIn::new(&mut *fs, Caller::default(), false, &mut told);
        let source = folder.path().join("source");
        for name in [b"file", b"link"] {
            fs::write(&source, "old").unwrap();
            copy.copy(&source, false, root, name);
        }
        assert_eq!(copy.errors, [""; 0]);
        File::create(&source).unwrap().set_len(1 << 30).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        for (path, name) in [(source, b"file"), (link, b"link")] {
            let meta = fs::symlink_metadata(&path).unwrap();
            fs::remove_file(&path).unwrap();
            let failed = copy.entry(&path, &meta, root, name).map(drop).unwrap_err();
            assert!(failed.contains("No such file"), "{failed}");
        }
        for name in ["/file", "/link"] {
            assert_eq!(find(&mut fs, name.as_bytes(), false).unwrap().size, 3, "{name}");
        }
    }

    #[test]
    fn further_names_and_links_replace_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut fs = mounted(folder.path());
        let root = FileSystem::root(&fs);
        let tree = folder.path().join("tree");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("a"), "content").unwrap();
        fs::hard_link(tree.join("a"), tree.join("b")).unwrap();
        std::os::unix::fs::symlink("a", tree.join("c")).unwrap();
        let mut told = |_| {};
        for _ in 0..2 {
            let mut copy = CopyIn::new(&mut *fs, Caller::default(), false, &mut told);
            copy.copy(&tree, false, root, b"tree");
            assert_eq!(copy.errors, [""; 0]);
        }
        let mut ino = |path: &str| find(&mut fs, path.as_bytes(), true).unwrap();
        let (a, b, c) = (ino("/tree/a"), ino("/tree/b"), ino("/tree/c"));
        assert_eq!((a.ino, a.links, a.size), (b.ino, 2, 7));
        assert_eq!(a.ino, c.ino);
        let mut names = Vec::new();
        let tree = ino("/tree").ino;
        FileSystem::readdir(&mut fs, tree, 0, &mut |entry| {
            names.push(entry.name);
            true
        })
        .unwrap();
        assert_eq!(names.len(), 5, "no part is left: {names:?}");
    }
}
