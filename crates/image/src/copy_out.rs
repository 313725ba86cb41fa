//! Copying out of an image, with all that belongs to a file.
//!
//! No more is written than the volume can hold, whatever its pointers say: a damaged one may give
//! the same blocks to many files. No name of an image has a slash or leads up, and directories come
//! before what they hold, so nothing lands outside the target. A damaged directory may hold a link
//! and a directory of one name: what is in the way of a directory is never entered unless it is a
//! directory itself.
//!
//! A file gets its name when all of it is there ([`Part`]).

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dovetail_vfs::mode::{S_IALLUGO, S_IFLNK, S_IFREG, S_ISVTX, is_symlink};
use dovetail_vfs::{Attr, DirEntry, Ino, Timestamp, shown};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

use crate::{CHUNK, Error, Part, Tree};

/// The reason why a file's content was not copied to its end.
#[derive(Debug, thiserror::Error)]
enum NotWhole {
    #[error("{0}")]
    Unreadable(String),
    #[error("{0}")]
    Target(#[from] io::Error),
    #[error(
        "the copy has more content by now than the volume has room for: files share blocks, fsck shows which"
    )]
    Room,
    #[error("stopped: this file, and what would have come after it, was not copied")]
    Stopped,
}

fn unreadable(error: dovetail_vfs::Error) -> NotWhole {
    NotWhole::Unreadable(error.to_string())
}

/// Things to keep and to do beyond content, modes, times and extended attributes.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Files get the owners that they have in the image.
    pub owners: bool,
    /// Files in the place of a file are replaced, and directories are merged.
    pub replace: bool,
    /// Of a file that cannot be read to its end, the beginning, as NAME.part.
    pub pieces: bool,
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

/// Hearer of the bytes of content copied so far, which says whether to go on.
pub type TellCopied<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// A copy out of an image that is going on.
pub struct CopyOut<'a> {
    tree: &'a mut dyn Tree,
    keep: Keep,
    /// Of files with names still to come: the first name, and how many there may be.
    links: HashMap<Ino, (PathBuf, u32)>,
    seen: HashSet<Ino>,
    /// Bytes of content that may still be written.
    room: u64,
    tell: &'a mut TellCopied<'a>,
    copied: u64,
    stopped: bool,
    /// The account so far.
    pub done: Done,
}

impl<'a> CopyOut<'a> {
    /// A copy out of `tree`, whose files have at most `room` bytes of content; the bytes copied so
    /// far are told to `tell`, which may end the copy.
    pub fn new(
        tree: &'a mut dyn Tree,
        room: u64,
        keep: Keep,
        tell: &'a mut TellCopied<'a>,
    ) -> Self {
        let (links, seen, done) = (HashMap::new(), HashSet::new(), Done::default());
        Self { tree, keep, links, seen, room, tell, copied: 0, stopped: false, done }
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
        while let Some(frame) = stack.last_mut().filter(|_| !self.stopped) {
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
        if let Some((first, _)) = self.links.get(&attr.ino) {
            let (part, ()) = Part::make(target, |path| fs::hard_link(first, path)).map_err(told)?;
            self.stand(part, target)?;
            self.done.hard_links += 1;
            self.note_link(attr.ino);
            return Ok(());
        }
        let Some((part, file)) = self.make(attr, target)? else { return Ok(()) };
        if let Some(file) = file
            && let Err(why) = self.content(attr, &file)
        {
            return Err(self.piece(part, target, why));
        }
        let attributes = self.attributes(attr, source, part.path());
        self.stand(part, target)?;
        match attr.kind() {
            S_IFREG => self.done.files += 1,
            S_IFLNK => self.done.symlinks += 1,
            _ => self.done.special += 1,
        }
        if attr.links > 1 {
            self.links.insert(attr.ino, (target.to_path_buf(), attr.links - 1));
        }
        attributes
    }

    /// Another name was made for what was copied already.
    fn note_link(&mut self, ino: Ino) {
        if let Some((_, left)) = self.links.get_mut(&ino) {
            *left -= 1;
            if *left == 0 {
                self.links.remove(&ino);
            }
        }
    }

    /// Gives a file that is whole its name.
    fn stand(&self, part: Part, target: &Path) -> Result<(), String> {
        if self.keep.replace { part.replace(target) } else { part.stand(target) }.map_err(told)
    }

    /// Makes a regular file without its content, a symbolic link or a special file; `None` for one
    /// that is not permitted.
    fn make(&mut self, attr: &Attr, target: &Path) -> Result<Option<(Part, Option<File>)>, String> {
        let made = match attr.kind() {
            S_IFREG => Part::make(target, |path| {
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(Some)
            }),
            S_IFLNK => {
                let to = self.tree.read_link(attr.ino).map_err(told)?;
                let to = OsStr::from_bytes(&to);
                Part::make(target, |path| std::os::unix::fs::symlink(to, path).map(|()| None))
            }
            _ => Part::make(target, |path| special(attr, path).map(|()| None)),
        };
        match made {
            Err(error) if is_special(attr) && error.kind() == io::ErrorKind::PermissionDenied => {
                self.done.special_left += 1;
                Ok(None)
            }
            made => made.map(Some).map_err(told),
        }
    }

    /// Keeps what there is of a file that cannot be read to its end, if that is wanted; the sentence
    /// about it.
    fn piece(&self, part: Part, target: &Path, why: NotWhole) -> String {
        let NotWhole::Unreadable(why) = why else { return why.to_string() };
        let mut name = target.as_os_str().to_owned();
        name.push(".part");
        let empty = fs::metadata(part.path()).is_ok_and(|meta| meta.len() == 0);
        if !self.keep.pieces || empty || part.stand(Path::new(&name)).is_err() {
            return why;
        }
        format!("{why}; its beginning is in {}", Path::new(&name).display())
    }

    /// Holes stay holes.
    fn content(&mut self, attr: &Attr, file: &File) -> Result<(), NotWhole> {
        let mut out = BufWriter::new(file);
        let mut buffer = vec![0; CHUNK.min(attr.size as usize)];
        let mut at = 0;
        'all: while at < attr.size {
            at = self.tree.next_data(attr.ino, at).map_err(unreadable)?;
            if at >= attr.size {
                break;
            }
            // damage ahead may hide the next hole, and not the data before it
            let end = self.tree.next_hole(attr.ino, at).unwrap_or(at.saturating_add(CHUNK as u64));
            let end = end.clamp(at + 1, attr.size);
            out.seek(SeekFrom::Start(at))?;
            while at < end {
                let wanted = buffer.len().min((end - at) as usize);
                let into = &mut buffer[..wanted];
                let len = self.tree.read_up_to_damage(attr.ino, at, into).map_err(unreadable)?;
                if len == 0 {
                    break 'all;
                }
                self.room = self.room.checked_sub(len as u64).ok_or(NotWhole::Room)?;
                out.write_all(&buffer[..len])?;
                self.copied += len as u64;
                if (self.tell)(self.copied).is_break() {
                    self.stopped = true;
                    return Err(NotWhole::Stopped);
                }
                at += len as u64;
            }
        }
        out.flush()?;
        Ok(file.set_len(attr.size)?)
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

fn is_special(attr: &Attr) -> bool {
    !matches!(attr.kind(), S_IFREG | S_IFLNK)
}

/// Makes a device, fifo or socket.
fn special(attr: &Attr, path: &Path) -> io::Result<()> {
    let kind = FileType::from_raw_mode(attr.mode.into());
    let device = rustix::fs::makedev(attr.rdev.0, attr.rdev.1);
    Ok(rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o600), device)?)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn timespec(time: Timestamp) -> Timespec {
    // a damaged inode may have more nanoseconds than a second has
    Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.min(999_999_999).into() }
}
