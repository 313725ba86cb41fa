//! The file-system trait.

use std::ops::Range;

use dovetail_time::SimTime;

use crate::{Devirtualize, Error, LeftOut, Moment, SharedCalls, mode};

/// The number of an inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u64);

/// A time since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// The caller of a file system, and the date that its changes of files get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The date on the caller's clock.
    pub now: Timestamp,
}

/// Attributes of an inode, as stat shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// The inode.
    pub ino: Ino,
    /// Type and permissions.
    pub mode: u16,
    /// Names that lead to it; of a directory 2 and one for each subdirectory.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Major and minor number of a device file.
    pub rdev: (u32, u32),
    /// Bytes.
    pub size: u64,
    /// Units of 512 bytes that it takes.
    pub blocks: u64,
    /// Last read.
    pub atime: Timestamp,
    /// Content last changed.
    pub mtime: Timestamp,
    /// Last changed in any way.
    pub ctime: Timestamp,
    /// Tells apart the files that had this number.
    pub generation: u32,
}

impl Attr {
    /// The bits of the mode that say what it is, `S_IFMT`.
    pub const fn kind(&self) -> u16 {
        mode::kind(self.mode)
    }

    /// It is a directory.
    pub const fn is_dir(&self) -> bool {
        mode::is_dir(self.mode)
    }
}

/// Attributes that setattr changes; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// Permissions; the type cannot change.
    pub mode: Option<u16>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// Bytes: the content is cut off or continued with zeros.
    pub size: Option<u64>,
    /// Last read.
    pub atime: Option<Timestamp>,
    /// Content last changed.
    pub mtime: Option<Timestamp>,
    /// Last changed in any way; the caller's clock if `None`.
    pub ctime: Option<Timestamp>,
}

/// A new inode: everything but a symbolic link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewNode {
    /// Type (regular, directory, device, fifo, socket) and permissions.
    pub mode: u16,
    /// Major and minor number of a device file.
    pub rdev: (u32, u32),
}

impl NewNode {
    /// A regular file with these permissions, as `0o644`.
    pub const fn file(permissions: u16) -> Self {
        Self { mode: mode::S_IFREG | permissions, rdev: (0, 0) }
    }
}

/// Size of a volume, as statfs shows it, in blocks of 4096 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatFs {
    /// Size of the volume.
    pub blocks: u64,
    /// Free blocks.
    pub free: u64,
    /// Free blocks that a user may fill.
    pub available: u64,
    /// Inodes that there may be.
    pub files: u64,
    /// Inodes that may still be made.
    pub files_free: u64,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name.
    pub name: Vec<u8>,
    /// The inode.
    pub ino: Ino,
    /// The bits of a mode that say what it is, `S_IFMT`.
    pub kind: u16,
    /// Position at which a listing goes on after this entry.
    pub cookie: u64,
}

/// Flags of rename, for a name that is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenameFlags {
    /// It is an error (`RENAME_NOREPLACE`).
    pub no_replace: bool,
    /// The two change places (`RENAME_EXCHANGE`).
    pub exchange: bool,
}

/// Change that fallocate makes to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallocate {
    /// Reserves blocks; the file grows to the end of the range unless `keep_size`.
    Reserve {
        /// The size stays.
        keep_size: bool,
    },
    /// The range becomes a hole; the size stays.
    PunchHole,
    /// The range reads as zeros and stays reserved.
    ZeroRange {
        /// The size stays.
        keep_size: bool,
    },
}

/// Flags of setxattr, for an attribute that is there, or is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XattrFlags {
    /// It must not be there (`XATTR_CREATE`).
    pub create: bool,
    /// It must be there (`XATTR_REPLACE`).
    pub replace: bool,
}

/// Work that is left of an fsync after [`FileSystem::begin_fsync`]. A call of
/// [`FileSystem::fsync`] does all of it, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsyncRest {
    /// The file survives a power cut already.
    Nothing,
    /// A flush of the whole device: the file survives a power cut when one that begins from now on
    /// has succeeded.
    Flush,
    /// The fsync itself, or [`FileSystem::begin_fsyncs`].
    Fsync,
}

/// A file system. Names are single components of 1 to 255 bytes without NUL and slash.
///
/// Permissions of the caller are not checked here. The consequences of a call are carried out:
/// times, link counts, inherited groups. Inode numbers come from [`Self::lookup`] and from the
/// calls that make inodes; one that is gone gives [`Error::NotFound`].
pub trait FileSystem {
    /// The root directory.
    fn root(&self) -> Ino;

    /// Sizes and what is free.
    ///
    /// # Errors
    /// A read error of the file system; the same for every call below.
    fn statfs(&mut self) -> Result<StatFs, Error>;

    /// The entry `name` of directory `dir`; "." and ".." are entries as well.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotADirectory`], [`Error::NameTooLong`].
    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error>;

    /// Attributes of the inode.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    fn getattr(&mut self, ino: Ino) -> Result<Attr, Error>;

    /// As [`Self::getattr`], of a number that somebody kept, in a file handle: it may have been
    /// free for long. What is wrong with it then is no damage.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for a number that no directory leads to.
    fn attr_of_handle(&mut self, ino: Ino) -> Result<Attr, Error> {
        match self.getattr(ino) {
            Err(Error::Corrupt(_)) => Err(Error::NotFound),
            found => found,
        }
    }

    /// Changes attributes, and nothing but those: taking set-id bits away from a file that gets a
    /// new owner, size or content is the caller's part (a kernel does it with a change of the
    /// mode).
    ///
    /// # Errors
    /// [`Error::FileTooBig`], [`Error::IsADirectory`] or [`Error::Invalid`] for a size of what has
    /// none, [`Error::NoSpace`].
    fn setattr(&mut self, caller: &Caller, ino: Ino, changes: &SetAttr) -> Result<Attr, Error>;

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is none.
    fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>, Error>;

    /// Makes an inode and names it. In a directory with setgid it takes the directory's group, and
    /// a new directory setgid.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NotADirectory`], [`Error::NameTooLong`], [`Error::NoSpace`];
    /// [`Error::NotFound`] in a directory that was removed.
    fn create(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        node: &NewNode,
    ) -> Result<Attr, Error>;

    /// Makes a symbolic link of 1 to 4095 bytes.
    ///
    /// # Errors
    /// As [`Self::create`]; [`Error::NameTooLong`] for the target.
    fn symlink(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        target: &[u8],
    ) -> Result<Attr, Error>;

    /// Gives an inode another name.
    ///
    /// # Errors
    /// As [`Self::create`]; [`Error::NotPermitted`] for a directory, [`Error::TooManyLinks`].
    fn link(&mut self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr, Error>;

    /// Removes the name of a non-directory.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::IsADirectory`].
    fn unlink(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error>;

    /// Takes away an empty directory.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotADirectory`], [`Error::NotEmpty`]; [`Error::Invalid`] for
    /// ".".
    fn rmdir(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error>;

    /// Renames, as renameat2(2) does; both names for the same inode is no change.
    ///
    /// # Errors
    /// As rename(2): [`Error::NotFound`], [`Error::Exists`] with `no_replace`, [`Error::NotEmpty`],
    /// [`Error::IsADirectory`], [`Error::NotADirectory`]; [`Error::Invalid`] for a directory that
    /// would go below itself.
    fn rename(
        &mut self,
        caller: &Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error>;

    /// Someone keeps the inode (an open file, a kernel's cache): it stays when its last name goes.
    fn hold(&mut self, ino: Ino);

    /// `count` of those who kept it have gone. With the last of them an inode without names goes.
    ///
    /// # Errors
    /// A write error of the file system.
    fn forget(&mut self, ino: Ino, count: u64) -> Result<(), Error>;

    /// Reads from byte `offset` on and returns how many bytes there were: less than asked for at
    /// the end of the file.
    ///
    /// # Errors
    /// [`Error::IsADirectory`].
    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error>;

    /// Writes all of `bytes` at byte `offset`; the file grows if need be. mtime and ctime change.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::FileTooBig`].
    fn write(&mut self, caller: &Caller, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Reserves, punches or zeroes `len` bytes (not 0) from `offset` on.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::FileTooBig`], [`Error::Unsupported`], [`Error::Invalid`].
    fn fallocate(
        &mut self,
        caller: &Caller,
        ino: Ino,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error>;

    /// The first byte at or after `offset` that is data.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`] if there is none.
    fn seek_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error>;

    /// The first byte at or after `offset` that is in a hole; the end of the file is one.
    ///
    /// # Errors
    /// [`Error::BeyondEnd`] at or beyond the end.
    fn seek_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error>;

    /// Makes the file survive a power cut; with `data_only` its content and what is needed to find
    /// it.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn fsync(&mut self, ino: Ino, data_only: bool) -> Result<(), Error>;

    /// Hands to the device what an fsync of the file would first wait for, without waiting for its
    /// flush, and says what is left to do. The caller may flush the device on its own while others
    /// use the file system.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn begin_fsync(&mut self, _ino: Ino, _data_only: bool) -> Result<FsyncRest, Error> {
        Ok(FsyncRest::Fsync)
    }

    /// As [`Self::fsync`] of each of the files, for callers who wait at the same time: what they
    /// need may be done once for all. The answers are in the same order.
    fn fsync_several(&mut self, files: &[(Ino, bool)]) -> Vec<Result<(), Error>> {
        files.iter().map(|&(ino, data_only)| self.fsync(ino, data_only)).collect()
    }

    /// Begins the fsync of several files for callers who flush the device on their own, while others
    /// use the file system. The caller goes on as the answer says: after each
    /// [`FsyncRest::Flush`] it calls [`Self::go_on_after_flush`], and all files survive a power cut
    /// at [`FsyncRest::Nothing`]. Another call may end before what was begun here.
    ///
    /// # Errors
    /// That of one of the files, and then [`Self::fsync_several`] tells of which; an error that
    /// leaves the file system without more changes.
    fn begin_fsyncs(&mut self, _files: &[(Ino, bool)]) -> Result<FsyncRest, Error> {
        Ok(FsyncRest::Fsync)
    }

    /// Goes on with what [`Self::begin_fsyncs`] began, when the device was flushed or could not be:
    /// then the file system takes no more changes.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn go_on_after_flush(&mut self, flushed: Result<(), String>) -> Result<FsyncRest, Error> {
        flushed.map(|()| FsyncRest::Nothing).map_err(Error::Io)
    }

    /// Makes everything survive a power cut.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn sync(&mut self) -> Result<(), Error>;

    /// Lists a directory, "." and ".." included, from `cookie` on (0: from the start) until `entry`
    /// returns `false`: that entry comes again when the listing goes on at its predecessor's
    /// cookie. An entry that is there all the time comes once, whatever is added and removed in
    /// between. Of a damaged directory what is whole is listed; [`Self::left_out`] tells the rest.
    ///
    /// # Errors
    /// [`Error::NotADirectory`].
    fn readdir(
        &mut self,
        dir: Ino,
        cookie: u64,
        entry: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), Error>;

    /// Reports what a listing leaves out because the directory is damaged.
    ///
    /// # Errors
    /// As [`Self::readdir`].
    fn left_out(&mut self, _dir: Ino) -> Result<LeftOut, Error> {
        Ok(LeftOut::default())
    }

    /// The value of an extended attribute, called "user.comment" and the like; ACLs in the system's
    /// form.
    ///
    /// # Errors
    /// [`Error::NoAttribute`], [`Error::Unsupported`] for a name space that there is not.
    fn getxattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error>;

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NoAttribute`] by `flags`; [`Error::NoSpace`] or
    /// [`Error::TooBig`]; [`Error::Unsupported`] for a name space that there is not.
    fn setxattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<(), Error>;

    /// The names of all extended attributes.
    ///
    /// # Errors
    /// None of its own.
    fn listxattr(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>, Error>;

    /// Takes an extended attribute away.
    ///
    /// # Errors
    /// [`Error::NoAttribute`].
    fn removexattr(&mut self, caller: &Caller, ino: Ino, name: &[u8]) -> Result<(), Error>;

    /// Time at which [`Self::wake`] has something to do; `None` for never.
    fn next_wake(&self) -> Option<SimTime>;

    /// Sets the time of the calls from now on, [`Self::wake`] among them. Whoever holds the file
    /// system sets it before each call; it never goes back.
    fn set_now(&mut self, now: Moment);

    /// Does what a kernel would have done in the background by now.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn wake(&mut self) -> Result<(), Error>;

    /// The file system as one whose pointers can lead to the device's own addresses; `None` for one
    /// that has no such pointers.
    fn devirtualizer(&mut self) -> Option<&mut dyn Devirtualize> {
        None
    }

    /// The file system as one that several callers may ask at the same time; `None` for one that
    /// every call changes.
    fn shared(&self) -> Option<&dyn SharedCalls> {
        None
    }

    /// Brings into memory what [`SharedCalls::read`] of these bytes needs beside the content itself;
    /// `false` if all of it was there.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn prepare_shared_read(&mut self, _ino: Ino, _bytes: Range<u64>) -> Result<bool, Error> {
        Ok(false)
    }

    /// The end of the mount: everything survives a power cut, and what was still held without a
    /// name goes.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn unmount(self: Box<Self>) -> Result<(), Error>;
}

impl<F: FileSystem + ?Sized> FileSystem for Box<F> {
    fn root(&self) -> Ino {
        (**self).root()
    }

    fn statfs(&mut self) -> Result<StatFs, Error> {
        (**self).statfs()
    }

    fn lookup(&mut self, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        (**self).lookup(dir, name)
    }

    fn getattr(&mut self, ino: Ino) -> Result<Attr, Error> {
        (**self).getattr(ino)
    }

    fn attr_of_handle(&mut self, ino: Ino) -> Result<Attr, Error> {
        (**self).attr_of_handle(ino)
    }

    fn setattr(&mut self, caller: &Caller, ino: Ino, changes: &SetAttr) -> Result<Attr, Error> {
        (**self).setattr(caller, ino, changes)
    }

    fn readlink(&mut self, ino: Ino) -> Result<Vec<u8>, Error> {
        (**self).readlink(ino)
    }

    fn create(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        node: &NewNode,
    ) -> Result<Attr, Error> {
        (**self).create(caller, dir, name, node)
    }

    fn symlink(
        &mut self,
        caller: &Caller,
        dir: Ino,
        name: &[u8],
        target: &[u8],
    ) -> Result<Attr, Error> {
        (**self).symlink(caller, dir, name, target)
    }

    fn link(&mut self, caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr, Error> {
        (**self).link(caller, ino, dir, name)
    }

    fn unlink(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        (**self).unlink(caller, dir, name)
    }

    fn rmdir(&mut self, caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error> {
        (**self).rmdir(caller, dir, name)
    }

    fn rename(
        &mut self,
        caller: &Caller,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<(), Error> {
        (**self).rename(caller, from, to, flags)
    }

    fn hold(&mut self, ino: Ino) {
        (**self).hold(ino);
    }

    fn forget(&mut self, ino: Ino, count: u64) -> Result<(), Error> {
        (**self).forget(ino, count)
    }

    fn read(&mut self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        (**self).read(ino, offset, into)
    }

    fn write(&mut self, caller: &Caller, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        (**self).write(caller, ino, offset, bytes)
    }

    fn fallocate(
        &mut self,
        caller: &Caller,
        ino: Ino,
        how: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<(), Error> {
        (**self).fallocate(caller, ino, how, offset, len)
    }

    fn seek_data(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        (**self).seek_data(ino, offset)
    }

    fn seek_hole(&mut self, ino: Ino, offset: u64) -> Result<u64, Error> {
        (**self).seek_hole(ino, offset)
    }

    fn fsync(&mut self, ino: Ino, data_only: bool) -> Result<(), Error> {
        (**self).fsync(ino, data_only)
    }

    fn begin_fsync(&mut self, ino: Ino, data_only: bool) -> Result<FsyncRest, Error> {
        (**self).begin_fsync(ino, data_only)
    }

    fn fsync_several(&mut self, files: &[(Ino, bool)]) -> Vec<Result<(), Error>> {
        (**self).fsync_several(files)
    }

    fn begin_fsyncs(&mut self, files: &[(Ino, bool)]) -> Result<FsyncRest, Error> {
        (**self).begin_fsyncs(files)
    }

    fn go_on_after_flush(&mut self, flushed: Result<(), String>) -> Result<FsyncRest, Error> {
        (**self).go_on_after_flush(flushed)
    }

    fn sync(&mut self) -> Result<(), Error> {
        (**self).sync()
    }

    fn readdir(
        &mut self,
        dir: Ino,
        cookie: u64,
        entry: &mut dyn FnMut(DirEntry) -> bool,
    ) -> Result<(), Error> {
        (**self).readdir(dir, cookie, entry)
    }

    fn left_out(&mut self, dir: Ino) -> Result<LeftOut, Error> {
        (**self).left_out(dir)
    }

    fn getxattr(&mut self, ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error> {
        (**self).getxattr(ino, name)
    }

    fn setxattr(
        &mut self,
        caller: &Caller,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        flags: XattrFlags,
    ) -> Result<(), Error> {
        (**self).setxattr(caller, ino, name, value, flags)
    }

    fn listxattr(&mut self, ino: Ino) -> Result<Vec<Vec<u8>>, Error> {
        (**self).listxattr(ino)
    }

    fn removexattr(&mut self, caller: &Caller, ino: Ino, name: &[u8]) -> Result<(), Error> {
        (**self).removexattr(caller, ino, name)
    }

    fn next_wake(&self) -> Option<SimTime> {
        (**self).next_wake()
    }

    fn set_now(&mut self, now: Moment) {
        (**self).set_now(now);
    }

    fn wake(&mut self) -> Result<(), Error> {
        (**self).wake()
    }

    fn devirtualizer(&mut self) -> Option<&mut dyn Devirtualize> {
        (**self).devirtualizer()
    }

    fn prepare_shared_read(&mut self, ino: Ino, bytes: Range<u64>) -> Result<bool, Error> {
        (**self).prepare_shared_read(ino, bytes)
    }

    fn shared(&self) -> Option<&dyn SharedCalls> {
        (**self).shared()
    }

    fn unmount(self: Box<Self>) -> Result<(), Error> {
        (*self).unmount()
    }
}
