//! Copying out of an image, with all that belongs to a file.
//!
//! No more is written than the volume can hold, whatever its pointers say: a damaged one may give
//! the same blocks to many files. No name of an image has a slash or leads up, and directories come
//! before what they hold, so nothing lands outside the target. A damaged directory may hold a link
//! and a directory of one name: what is in the way of a directory is never entered unless it is a
//! directory itself.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dovetail_vfs::mode::{S_IALLUGO, S_IFLNK, S_IFREG, S_ISVTX, is_symlink};
use dovetail_vfs::{Attr, DirEntry, Ino, Timestamp, shown};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

use crate::{CHUNK, Error, Tree};

const MORE_THAN_THE_VOLUME: &str = "the copy has more content by now than the volume has room for: files share blocks, fsck shows which";

/// Things to keep and to do beyond content, modes, times and extended attributes.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Files get the owners that they have in the image.
    pub owners: bool,
    /// Files in the place of a file are replaced, and directories are merged.
    pub replace: bool,
}

/// Counts of what was made, and of what was not.
#[derive(Debug, Default)]
pub struct Done {
    /// Regular files made.
    pub files: u64,
    /// Directories made.
    pub directories: u64,
    /// Symbolic links made.
    pub symlinks: u64,
    /// Further names made.
    pub hard_links: u64,
    /// Devices, fifos and sockets made.
    pub special: u64,
    special_left: u64,
    owners_left: u64,
    xattrs_left: u64,
    /// The first of them, and why.
    first_xattr: String,
    errors: Vec<String>,
}

impl Done {
    /// Lines about what the target did not take.
    pub fn left_out(&self) -> String {
        let mut text = String::new();
        if self.special_left > 0 {
            text += &format!(
                "{} devices, fifos and sockets were left out: they need root\n",
                self.special_left
            );
        }
        if self.owners_left > 0 {
            text += &format!("{} owners were left out: they need root\n", self.owners_left);
        }
        if self.xattrs_left > 0 {
            let (count, first) = (self.xattrs_left, &self.first_xattr);
            text += &format!("{count} extended attributes were refused, the first: {first}\n");
        }
        text
    }

    /// Nothing, if all was copied.
    ///
    /// # Errors
    /// Everything that could not be copied.
    pub fn result(&self) -> Result<(), Error> {
        match self.errors.as_slice() {
            [] => Ok(()),
            errors => Err(Error::Failed(format!(
                "{} could not be copied:\n{}",
                errors.len(),
                errors.join("\n")
            ))),
        }
    }
}

/// A directory that is being copied.
struct Frame {
    attr: Attr,
    /// Its path in the image.
    source: Vec<u8>,
    target: PathBuf,
    cookie: u64,
    entries: std::vec::IntoIter<DirEntry>,
}

impl Frame {
    fn new(attr: &Attr, source: &[u8], target: &Path) -> Self {
        let (source, target) = (source.to_vec(), target.to_path_buf());
        Self { attr: *attr, source, target, cookie: 0, entries: Vec::new().into_iter() }
    }

    /// The next entry; a large directory is read piece by piece.
    fn next(&mut self, tree: &mut dyn Tree) -> Result<Option<DirEntry>, dovetail_vfs::Error> {
        let next = match self.entries.next() {
            Some(entry) => Some(entry),
            None => {
                self.entries = tree.list(self.attr.ino, self.cookie)?.into_iter();
                self.entries.next()
            }
        };
        self.cookie = next.as_ref().map_or(self.cookie, |entry| entry.cookie);
        Ok(next)
    }
}

/// A copy out of an image that is going on.
pub struct CopyOut<'a> {
    tree: &'a mut dyn Tree,
    keep: Keep,
    /// Of files with names still to come: the first name, and how many there may be.
    links: HashMap<Ino, (PathBuf, u32)>,
    seen: HashSet<Ino>,
    /// Bytes of content that may still be written.
    room: u64,
    /// Bytes of content copied so far are told to it.
    tell: &'a mut dyn FnMut(u64),
    copied: u64,
    /// The account so far.
    pub done: Done,
}

impl<'a> CopyOut<'a> {
    /// A copy out of `tree`, whose files have at most `room` bytes of content; the bytes copied so
    /// far are told to `tell`.
    pub fn new(
        tree: &'a mut dyn Tree,
        room: u64,
        keep: Keep,
        tell: &'a mut dyn FnMut(u64),
    ) -> Self {
        let (links, seen) = (HashMap::new(), HashSet::new());
        Self { tree, keep, links, seen, room, tell, copied: 0, done: Done::default() }
    }

    /// Copies `attr`, which is no directory; `target` is its new name.
    pub fn single(&mut self, attr: &Attr, source: &[u8], target: &Path) {
        let copied = self.file(attr, source, target);
        self.note(source, copied);
    }

    /// Copies the content of the directory `attr`, and its attributes, into the directory `target`.
    pub fn directory(&mut self, attr: &Attr, source: &[u8], target: &Path) {
        self.seen.insert(attr.ino);
        let mut stack = vec![Frame::new(attr, source, target)];
        while let Some(frame) = stack.last_mut() {
            match frame.next(self.tree) {
                Ok(Some(entry)) => {
                    let (source, target) = child(frame, &entry.name);
                    stack.extend(self.entry(&entry, source, target));
                }
                end => {
                    let left = end.map(drop).map_err(told);
                    let left = left
                        .and_then(|()| self.attributes(&frame.attr, &frame.source, &frame.target));
                    let (source, ino) = (frame.source.clone(), frame.attr.ino);
                    stack.pop();
                    if left.is_ok() {
                        self.note_left_out(&source, ino);
                    }
                    self.note(&source, left);
                }
            }
        }
    }

    fn note(&mut self, source: &[u8], copied: Result<(), String>) {
        if let Err(error) = copied {
            self.done.errors.push(format!("{}: {error}", shown(source)));
        }
    }

    /// Notes what of a directory is damaged.
    fn note_left_out(&mut self, source: &[u8], dir: Ino) {
        match self.tree.left_out(dir) {
            Ok(left) => left.sentences().for_each(|why| self.note(source, Err(why))),
            Err(error) => self.note(source, Err(told(error))),
        }
    }

    /// Copies an entry; a directory is made and comes back, to be filled.
    fn entry(&mut self, entry: &DirEntry, source: Vec<u8>, target: PathBuf) -> Option<Frame> {
        let made = self.tree.attr(entry.ino).map_err(told).and_then(|attr| {
            if attr.is_dir() {
                self.make_directory(&attr, &target)?;
                return Ok(Some(Frame::new(&attr, &source, &target)));
            }
            self.file(&attr, &source, &target).map(|()| None)
        });
        made.unwrap_or_else(|error| {
            self.note(&source, Err(error));
            None
        })
    }

    /// Makes `target` for the directory `attr`.
    ///
    /// # Errors
    /// Something else that is in its place; a tree with a loop.
    pub fn make_directory(&mut self, attr: &Attr, target: &Path) -> Result<(), String> {
        if !self.seen.insert(attr.ino) {
            return Err(format!("directory {} is reached twice: the tree has a loop", attr.ino.0));
        }
        match fs::create_dir(target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.keep.replace => {
                let is_dir = fs::symlink_metadata(target).is_ok_and(|meta| meta.is_dir());
                if is_dir { Ok(()) } else { Err(format!("{} is no directory", target.display())) }
            }
            made => made.map_err(told),
        }?;
        self.done.directories += 1;
        Ok(())
    }

    fn file(&mut self, attr: &Attr, source: &[u8], target: &Path) -> Result<(), String> {
        if self.keep.replace {
            remove_file(target)?;
        }
        if self.link(attr, target)? {
            return Ok(());
        }
        let made = match attr.kind() {
            S_IFREG => self.regular(attr, target).map(|()| true),
            S_IFLNK => self.symlink(attr, target).map(|()| true),
            _ => self.special(attr, target),
        }?;
        if !made {
            return Ok(());
        }
        if attr.links > 1 {
            self.links.insert(attr.ino, (target.to_path_buf(), attr.links - 1));
        }
        self.attributes(attr, source, target)
    }

    /// Another name for what was copied already.
    fn link(&mut self, attr: &Attr, target: &Path) -> Result<bool, String> {
        let Some((first, left)) = self.links.get_mut(&attr.ino) else { return Ok(false) };
        fs::hard_link(first, target).map_err(told)?;
        self.done.hard_links += 1;
        *left -= 1;
        if *left == 0 {
            self.links.remove(&attr.ino);
        }
        Ok(true)
    }

    fn regular(&mut self, attr: &Attr, target: &Path) -> Result<(), String> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(target)
            .map_err(told)?;
        self.content(attr, &file)?;
        file.set_len(attr.size).map_err(told)?;
        self.done.files += 1;
        Ok(())
    }

    /// Holes stay holes.
    fn content(&mut self, attr: &Attr, file: &File) -> Result<(), String> {
        let mut out = BufWriter::new(file);
        let mut buffer = vec![0; CHUNK.min(attr.size as usize)];
        let mut at = 0;
        while at < attr.size {
            at = self.tree.next_data(attr.ino, at).map_err(told)?;
            if at >= attr.size {
                break;
            }
            let end = self.tree.next_hole(attr.ino, at).map_err(told)?.clamp(at + 1, attr.size);
            out.seek(SeekFrom::Start(at)).map_err(told)?;
            while at < end {
                let wanted = buffer.len().min((end - at) as usize);
                let len = self.tree.read(attr.ino, at, &mut buffer[..wanted]).map_err(told)?;
                if len == 0 {
                    return out.flush().map_err(told);
                }
                self.room = self.room.checked_sub(len as u64).ok_or(MORE_THAN_THE_VOLUME)?;
                out.write_all(&buffer[..len]).map_err(told)?;
                self.copied += len as u64;
                (self.tell)(self.copied);
                at += len as u64;
            }
        }
        out.flush().map_err(told)
    }

    fn symlink(&mut self, attr: &Attr, target: &Path) -> Result<(), String> {
        let to = self.tree.read_link(attr.ino).map_err(told)?;
        std::os::unix::fs::symlink(OsStr::from_bytes(&to), target).map_err(told)?;
        self.done.symlinks += 1;
        Ok(())
    }

    /// A device, fifo or socket; `false` if that is not permitted.
    fn special(&mut self, attr: &Attr, target: &Path) -> Result<bool, String> {
        let kind = FileType::from_raw_mode(attr.mode.into());
        let device = rustix::fs::makedev(attr.rdev.0, attr.rdev.1);
        match rustix::fs::mknodat(CWD, target, kind, Mode::from_raw_mode(0o600), device) {
            Ok(()) => self.done.special += 1,
            Err(rustix::io::Errno::PERM) => {
                self.done.special_left += 1;
                return Ok(false);
            }
            Err(error) => return Err(error.to_string()),
        }
        Ok(true)
    }

    /// Owner, extended attributes, mode and times, in this order: a new owner takes capabilities
    /// and set-id bits away, an unwritable file takes no attributes, and times come last.
    fn attributes(&mut self, attr: &Attr, source: &[u8], target: &Path) -> Result<(), String> {
        let owned = self.owner(attr, target)?;
        self.xattrs(attr, source, target, owned)?;
        if !is_symlink(attr.mode) {
            // the set-id bits of a stranger would be ours, as would be capabilities
            let kept = if owned { S_IALLUGO } else { S_ISVTX | 0o777 };
            let mode = fs::Permissions::from_mode(u32::from(attr.mode & kept));
            fs::set_permissions(target, mode).map_err(told)?;
        }
        let times = Timestamps {
            last_access: timespec(attr.atime),
            last_modification: timespec(attr.mtime),
        };
        let set = rustix::fs::utimensat(CWD, target, &times, AtFlags::SYMLINK_NOFOLLOW);
        set.map_err(|error| format!("its times cannot be set: {error}"))
    }

    /// Gives the file the owner that it has in the image; returns true if it has that owner now.
    fn owner(&mut self, attr: &Attr, target: &Path) -> Result<bool, String> {
        if !self.keep.owners {
            return Ok(false);
        }
        match std::os::unix::fs::lchown(target, Some(attr.uid), Some(attr.gid)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.done.owners_left += 1;
                Ok(false)
            }
            set => set.map(|()| true).map_err(told),
        }
    }

    fn xattrs(
        &mut self,
        attr: &Attr,
        source: &[u8],
        target: &Path,
        owned: bool,
    ) -> Result<(), String> {
        for (name, value) in self.tree.xattrs(attr.ino).map_err(told)? {
            if !owned && name == b"security.capability" {
                continue;
            }
            let set = value.map_err(told).and_then(|value| {
                let set =
                    rustix::fs::lsetxattr(target, name.as_slice(), &value, XattrFlags::empty());
                set.map_err(told)
            });
            if let Err(why) = set {
                if self.done.xattrs_left == 0 {
                    self.done.first_xattr = format!("{} of {}: {why}", shown(&name), shown(source));
                }
                self.done.xattrs_left += 1;
            }
        }
        Ok(())
    }
}

fn child(frame: &Frame, name: &[u8]) -> (Vec<u8>, PathBuf) {
    let slash: &[u8] = if frame.source.ends_with(b"/") { b"" } else { b"/" };
    ([&frame.source, slash, name].concat(), frame.target.join(OsStr::from_bytes(name)))
}

fn remove_file(target: &Path) -> Result<(), String> {
    match fs::remove_file(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn timespec(time: Timestamp) -> Timespec {
    // a damaged inode may have more nanoseconds than a second has
    Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.min(999_999_999).into() }
}
