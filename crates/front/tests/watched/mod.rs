//! The reference model, with a look at every call: is the thread that mounts and unmounts waiting
//! for its answer?

use std::fs;
use std::sync::{Arc, Mutex};

use dovetail_testkit::Model;
use dovetail_time::SimTime;
use dovetail_vfs::{
    Attr, Caller, DirEntry, Error, Fallocate, FileSystem, Ino, Limits, Moment, NewNode,
    RenameFlags, SetAttr, StatFs, Timestamp, XattrFlags,
};
use nix::libc;

/// System calls that may ask a file system something, and wait for it.
const WAITING: [i64; 8] = [
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_openat,
    libc::SYS_syncfs,
    libc::SYS_sync,
    libc::SYS_fsync,
    libc::SYS_umount2,
    libc::SYS_statfs,
];

/// Calls to a mount's file system; true for those that the watched thread waited for.
pub(crate) type Calls = Arc<Mutex<Vec<(&'static str, bool)>>>;

pub(crate) struct Watched {
    model: Model,
    thread: i32,
    calls: Calls,
}

impl Watched {
    /// Watches the thread that calls this.
    pub(crate) fn new(caller: &Caller) -> (Self, Calls) {
        let calls = Calls::default();
        let thread = nix::unistd::gettid().as_raw();
        (
            Self {
                model: Model::new(Limits::default(), caller),
                thread,
                calls: Arc::clone(&calls),
            },
            calls,
        )
    }

    fn note(&self, call: &'static str) {
        let now = fs::read_to_string(format!("/proc/self/task/{}/syscall", self.thread)).unwrap();
        let number = now.split(' ').next().and_then(|number| number.parse().ok());
        let waits = number.is_some_and(|number: i64| WAITING.contains(&number));
        self.calls.lock().unwrap().push((call, waits));
    }
}

macro_rules! pass_on {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(fn $name(&mut self, $($argument: $type),*) $(-> $result)? {
            self.note(stringify!($name));
            self.model.$name($($argument),*)
        })*
    };
}

impl FileSystem for Watched {
    pass_on! {
        fn statfs() -> Result<StatFs, Error>;
        fn lookup(dir: Ino, name: &[u8]) -> Result<Attr, Error>;
        fn getattr(ino: Ino) -> Result<Attr, Error>;
        fn setattr(caller: &Caller, ino: Ino, changes: &SetAttr) -> Result<Attr, Error>;
        fn readlink(ino: Ino) -> Result<Vec<u8>, Error>;
        fn create(caller: &Caller, dir: Ino, name: &[u8], node: &NewNode) -> Result<Attr, Error>;
        fn symlink(caller: &Caller, dir: Ino, name: &[u8], target: &[u8]) -> Result<Attr, Error>;
        fn link(caller: &Caller, ino: Ino, dir: Ino, name: &[u8]) -> Result<Attr, Error>;
        fn unlink(caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error>;
        fn rmdir(caller: &Caller, dir: Ino, name: &[u8]) -> Result<(), Error>;
        fn rename(c: &Caller, from: (Ino, &[u8]), to: (Ino, &[u8]), how: RenameFlags) -> Result<(), Error>;
        fn hold(ino: Ino);
        fn forget(ino: Ino, count: u64) -> Result<(), Error>;
        fn read(ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Error>;
        fn write(caller: &Caller, ino: Ino, offset: u64, bytes: &[u8]) -> Result<(), Error>;
        fn fallocate(c: &Caller, ino: Ino, how: Fallocate, offset: u64, len: u64) -> Result<(), Error>;
        fn seek_data(ino: Ino, offset: u64) -> Result<u64, Error>;
        fn seek_hole(ino: Ino, offset: u64) -> Result<u64, Error>;
        fn fsync(ino: Ino, data_only: bool) -> Result<(), Error>;
        fn sync() -> Result<(), Error>;
        fn readdir(dir: Ino, cookie: u64, entry: &mut dyn FnMut(DirEntry) -> bool) -> Result<(), Error>;
        fn getxattr(ino: Ino, name: &[u8]) -> Result<Vec<u8>, Error>;
        fn setxattr(c: &Caller, i: Ino, name: &[u8], value: &[u8], how: XattrFlags) -> Result<(), Error>;
        fn listxattr(ino: Ino) -> Result<Vec<Vec<u8>>, Error>;
        fn removexattr(caller: &Caller, ino: Ino, name: &[u8]) -> Result<(), Error>;
        fn wake() -> Result<(), Error>;
    }

    fn set_now(&mut self, now: Moment) {
        self.model.set_now(now);
    }

    fn root(&self) -> Ino {
        self.model.root()
    }

    fn next_wake(&self) -> Option<SimTime> {
        None
    }

    fn unmount(self: Box<Self>) -> Result<(), Error> {
        Ok(())
    }
}

/// Of the watched thread's user.
pub(crate) fn own_caller() -> Caller {
    Caller { uid: nix::unistd::getuid().as_raw(), gid: 0, now: Timestamp::default() }
}
