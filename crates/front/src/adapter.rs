//! Requests of FUSE as calls of a file system.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use dovetail_vfs::mode::{S_IALLUGO, S_IFDIR, S_IFREG};
use dovetail_vfs::{
    Attr, Caller, DirEntry, Error, Fallocate, FileSystem, Ino, NewNode, RenameFlags, SetAttr,
    SharedCalls, XattrFlags,
};
use fuser::{
    BsdFileFlags, Errno, FileHandle, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};

use crate::asker::Asker;
use crate::convert::{Numbers, decode_device, file_type, no_entry, time_or_now, timestamp};
use crate::devirtualize::{ATTRIBUTE, Tool};
use crate::operation::Operation;
use crate::rules::{self, Place};
use crate::shared::Shared;

/// Time for which the kernel may keep names and attributes: nobody else changes them.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// The largest request.
const MAX_REQUEST: u32 = 1 << 20;

/// Entries that are read at a time when the kernel wants their attributes as well.
const LISTING: usize = 64;

thread_local! {
    /// Buffer of a read, so that the reply is sent without the lock.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One mounted file system. No file handles: what the kernel would open is known by its inode, so
/// open is refused as "not there", and the kernel never asks again.
#[derive(Debug)]
pub(crate) struct Adapter {
    shared: Shared,
    numbers: Numbers,
    tool: Tool,
}

impl Adapter {
    pub(crate) fn new(shared: Shared, root: Ino) -> Self {
        Self { shared, numbers: Numbers::new(root), tool: Tool::default() }
    }

    /// Calls the file system for the operation `name` on an inode.
    fn serve<T>(
        &self,
        name: &'static str,
        ino: Ino,
        work: impl FnOnce(&mut dyn FileSystem) -> Result<T, Error>,
    ) -> Result<T, Errno> {
        self.shared.serve(Operation::new(name, ino), work)
    }

    fn reply_entry(&self, result: Result<Attr, Errno>, reply: ReplyEntry) {
        match result {
            Ok(attr) => {
                let generation = Generation(attr.generation.into());
                reply.entry_with_ttls(&keep(&attr), &KEEP, &self.numbers.attr(&attr), generation);
            }
            Err(error) => reply.error(error),
        }
    }

    fn reply_attr(&self, result: Result<Attr, Errno>, reply: ReplyAttr) {
        match result {
            Ok(attr) => reply.attr(&keep(&attr), &self.numbers.attr(&attr)),
            Err(error) => reply.error(error),
        }
    }
}

/// Time for which the kernel may keep attributes. A write clears set-id bits, and its reply does
/// not say so: a file that has some is asked for each time that it matters.
fn keep(attr: &Attr) -> Duration {
    if rules::has_set_id(attr) { Duration::ZERO } else { KEEP }
}

fn reply_empty(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Replies with a value of extended attributes, or with its size when no room was offered for it.
fn reply_xattr(result: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
    match result {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(error),
    }
}

/// The attribute by which the tool is run.
fn is_the_tools(ino: INodeNo, name: &OsStr) -> bool {
    ino == INodeNo::ROOT && name == ATTRIBUTE
}

fn caller(request: &Request) -> Caller {
    Asker::of(request).caller
}

/// The entries from `cookie` on, at most [`LISTING`], with their attributes, and how long those may
/// be kept. Of a damaged inode the name is listed as well: with what the entry says of its kind,
/// not to be kept, so that whoever uses it is told of the damage.
fn list_with_attributes(
    fs: &mut dyn FileSystem,
    dir: Ino,
    cookie: u64,
) -> Result<Vec<(DirEntry, Attr, Duration)>, Error> {
    let mut entries = Vec::with_capacity(LISTING);
    fs.readdir(dir, cookie, &mut |entry| {
        entries.push(entry);
        entries.len() < LISTING
    })?;
    let with_attributes = |entry: DirEntry| match fs.getattr(entry.ino) {
        // the name is there: a free inode behind it is damage too
        Err(Error::Corrupt(_) | Error::NotFound) => {
            let mode = if entry.kind == 0 { S_IFREG } else { entry.kind };
            let attr = Attr { ino: entry.ino, mode, links: 1, ..Attr::default() };
            Ok((entry, attr, Duration::ZERO))
        }
        attr => attr.map(|attr| (entry, attr, keep(&attr))),
    };
    entries.into_iter().map(with_attributes).collect()
}

fn is_dots(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

fn fallocate_kind(mode: i32) -> Option<Fallocate> {
    const KEEP_SIZE: i32 = 1;
    const PUNCH_HOLE: i32 = 2;
    const ZERO_RANGE: i32 = 0x10;
    match mode {
        0 | KEEP_SIZE => Some(Fallocate::Reserve { keep_size: mode == KEEP_SIZE }),
        mode if mode == PUNCH_HOLE | KEEP_SIZE => Some(Fallocate::PunchHole),
        mode if mode & !KEEP_SIZE == ZERO_RANGE => {
            Some(Fallocate::ZeroRange { keep_size: mode & KEEP_SIZE != 0 })
        }
        _ => None,
    }
}

impl fuser::Filesystem for Adapter {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_EXPORT_SUPPORT,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2, // otherwise each write asks for security.capability
            InitFlags::FUSE_POSIX_ACL | InitFlags::FUSE_DONT_MASK,
        ];
        // Left out are two that would be faster. FUSE_WRITEBACK_CACHE: write(2) succeeds on a full
        // volume. FUSE_ASYNC_DIO: nothing throws away what a read has cached while a direct write
        // of io_submit(2) was on its way.
        for flags in wanted {
            let _ = config.add_capabilities(flags); // an older kernel does without
        }
        let _ = config.set_max_write(MAX_REQUEST);
        let _ = config.set_max_background(128);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (parent, name) = (self.numbers.ino(parent), name.as_bytes());
        let find = |fs: &mut dyn FileSystem| match name {
            b"." => rules::find_by_handle(fs, parent),
            name => fs.lookup(parent, name),
        };
        match self.serve("lookup", parent, |fs| rules::held(fs, find)) {
            Err(Errno::ENOENT) => reply.entry(&KEEP, &no_entry(), Generation(0)),
            found => self.reply_entry(found, reply),
        }
    }

    fn forget(&self, _request: &Request, ino: INodeNo, count: u64) {
        let ino = self.numbers.ino(ino);
        let _ = self.serve("forget", ino, |fs| fs.forget(ino, count)); // FUSE has no reply to it
    }

    fn getattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        let ino = self.numbers.ino(ino);
        self.reply_attr(self.shared.getattr(ino), reply);
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = SetAttr {
            mode: mode.map(|mode| mode as u16 & S_IALLUGO),
            uid,
            gid,
            size,
            atime: atime.map(time_or_now),
            mtime: mtime.map(time_or_now),
            ctime: ctime.map(timestamp),
        };
        let (ino, asker) = (self.numbers.ino(ino), Asker::of(request));
        let changed =
            self.serve("setattr", ino, |fs| rules::set_attributes(fs, &asker, ino, changes));
        self.reply_attr(changed, reply);
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        let ino = self.numbers.ino(ino);
        match self.serve("readlink", ino, |fs| fs.readlink(ino)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let place = Place { dir: self.numbers.ino(parent), name: name.as_bytes(), umask };
        let node = NewNode { mode: mode as u16, rdev: decode_device(rdev) };
        let made =
            self.serve("mknod", place.dir, |fs| rules::create(fs, &caller(request), &place, node));
        self.reply_entry(made, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let place = Place { dir: self.numbers.ino(parent), name: name.as_bytes(), umask };
        let node = NewNode { mode: mode as u16 & S_IALLUGO | S_IFDIR, rdev: (0, 0) };
        let made =
            self.serve("mkdir", place.dir, |fs| rules::create(fs, &caller(request), &place, node));
        self.reply_entry(made, reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let dir = self.numbers.ino(parent);
        reply_empty(
            self.serve("unlink", dir, |fs| fs.unlink(&caller(request), dir, name.as_bytes())),
            reply,
        );
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let dir = self.numbers.ino(parent);
        reply_empty(
            self.serve("rmdir", dir, |fs| fs.rmdir(&caller(request), dir, name.as_bytes())),
            reply,
        );
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let dir = self.numbers.ino(parent);
        let (name, target) = (name.as_bytes(), target.as_os_str().as_bytes());
        let made = self.serve("symlink", dir, |fs| {
            rules::held(fs, |fs| fs.symlink(&caller(request), dir, name, target))
        });
        self.reply_entry(made, reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: fuser::RenameFlags,
        reply: ReplyEmpty,
    ) {
        if flags.contains(fuser::RenameFlags::RENAME_WHITEOUT) {
            return reply.error(Errno::EINVAL);
        }
        let from = (self.numbers.ino(parent), name.as_bytes());
        let to = (self.numbers.ino(newparent), newname.as_bytes());
        let flags = RenameFlags {
            no_replace: flags.contains(fuser::RenameFlags::RENAME_NOREPLACE),
            exchange: flags.contains(fuser::RenameFlags::RENAME_EXCHANGE),
        };
        reply_empty(
            self.serve("rename", from.0, |fs| fs.rename(&caller(request), from, to, flags)),
            reply,
        );
    }

    fn link(
        &self,
        request: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let (ino, dir) = (self.numbers.ino(ino), self.numbers.ino(newparent));
        let name = newname.as_bytes();
        let linked = self.serve("link", ino, |fs| {
            rules::held(fs, |fs| fs.link(&caller(request), ino, dir, name))
        });
        self.reply_entry(linked, reply);
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn opendir(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    /// Refused as "not there", so that the kernel makes the file with mknod and needs no release.
    fn create(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn access(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _mask: fuser::AccessFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let ino = self.numbers.ino(ino);
        BUFFER.with_borrow_mut(|buffer| {
            let size = size as usize;
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            match self.shared.read(ino, offset, &mut buffer[..size]) {
                Ok(read) => reply.data(&buffer[..read]),
                Err(error) => reply.error(error),
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let (ino, asker) = (self.numbers.ino(ino), Asker::of(request));
        let drops_set_id = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let overwrite = |fs: &dyn SharedCalls| {
            let written = (!drops_set_id).then(|| fs.write(&asker.caller, ino, offset, data))?;
            written.map(|()| data.len())
        };
        let written = self.shared.write(ino, overwrite, |fs| {
            if drops_set_id {
                rules::drop_set_id(fs, &asker, ino)?;
            }
            if write_flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
                // a mapped page: the kernel would not notice that not all of it was written
                return fs.write(&asker.caller, ino, offset, data).map(|()| data.len());
            }
            rules::write_what_fits(fs, &asker.caller, ino, offset, data)
        });
        match written {
            Ok(written) => reply.written(written as u32),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        reply_empty(self.shared.fsync(self.numbers.ino(ino), data_only), reply);
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        reply_empty(self.shared.fsync(self.numbers.ino(ino), data_only), reply);
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let ino = self.numbers.ino(ino);
        let listed = self.serve("readdir", ino, |fs| {
            fs.readdir(ino, offset, &mut |entry| {
                let node = self.numbers.node(entry.ino);
                !reply.add(
                    node,
                    entry.cookie,
                    file_type(entry.kind),
                    OsStr::from_bytes(&entry.name),
                )
            })
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn readdirplus(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let dir = self.numbers.ino(ino);
        let mut cookie = offset;
        let listed = self.serve("readdirplus", dir, |fs| {
            loop {
                let entries = match list_with_attributes(fs, dir, cookie) {
                    // the kernel must get the entries that are held for it; the error comes with
                    // its next call
                    Err(_) if cookie != offset => return Ok(()),
                    listed => listed?,
                };
                let last = entries.len() < LISTING;
                for (entry, attr, keep) in entries {
                    let (node, generation) =
                        (self.numbers.node(attr.ino), Generation(attr.generation.into()));
                    let (name, shown) = (OsStr::from_bytes(&entry.name), self.numbers.attr(&attr));
                    if reply.add(node, entry.cookie, name, &keep, &shown, generation) {
                        return Ok(());
                    }
                    if !is_dots(&entry.name) {
                        fs.hold(entry.ino);
                    }
                    cookie = entry.cookie;
                }
                if last {
                    return Ok(());
                }
            }
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn statfs(&self, _request: &Request, ino: INodeNo, reply: ReplyStatfs) {
        let ino = self.numbers.ino(ino);
        match self.serve("statfs", ino, |fs| fs.statfs()) {
            Ok(stat) => reply.statfs(
                stat.blocks,
                stat.free,
                stat.available,
                stat.files,
                stat.files_free,
                4096,
                dovetail_vfs::MAX_NAME as u32,
                4096,
            ),
            Err(error) => reply.error(error),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if is_the_tools(ino, name) {
            let ino = self.numbers.ino(ino);
            return reply_empty(
                self.serve("setxattr", ino, |fs| self.tool.written(fs, value)),
                reply,
            );
        }
        let flags = XattrFlags { create: flags & 1 != 0, replace: flags & 2 != 0 };
        let ino = self.numbers.ino(ino);
        let asker = Asker::of(request);
        let set = self.serve("setxattr", ino, |fs| {
            rules::set_xattr(fs, &asker, ino, (name.as_bytes(), value), flags)
        });
        reply_empty(set, reply);
    }

    fn getxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        if is_the_tools(ino, name) {
            return reply_xattr(Ok(self.tool.read()), size, reply);
        }
        let ino = self.numbers.ino(ino);
        let value = self.serve("getxattr", ino, |fs| fs.getxattr(ino, name.as_bytes()));
        reply_xattr(value, size, reply);
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let ino = self.numbers.ino(ino);
        let names = self.serve("listxattr", ino, |fs| fs.listxattr(ino));
        let listed = names
            .map(|names| names.iter().flat_map(|name| name.iter().copied().chain([0])).collect());
        reply_xattr(listed, size, reply);
    }

    fn removexattr(&self, request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let ino = self.numbers.ino(ino);
        reply_empty(
            self.serve("removexattr", ino, |fs| {
                fs.removexattr(&caller(request), ino, name.as_bytes())
            }),
            reply,
        );
    }

    fn fallocate(
        &self,
        request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(how) = fallocate_kind(mode) else { return reply.error(Errno::EOPNOTSUPP) };
        let (ino, asker) = (self.numbers.ino(ino), Asker::of(request));
        let done = self.serve("fallocate", ino, |fs| {
            if rules::has_set_id(&fs.getattr(ino)?) && !asker.keeps_set_id() {
                rules::drop_set_id(fs, &asker, ino)?;
            }
            fs.fallocate(&asker.caller, ino, how, offset, length)
        });
        reply_empty(done, reply);
    }

    /// Refused as "not there": the kernel asks without having sent what was stored into mapped
    /// pages, so what is data there would be told as a hole, and a copying program would leave it
    /// out. Without us it calls everything data.
    fn lseek(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _offset: i64,
        _whence: i32,
        reply: ReplyLseek,
    ) {
        reply.error(Errno::ENOSYS);
    }
}
