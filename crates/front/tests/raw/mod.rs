//! System calls that the standard library does not have.

#![allow(unsafe_code, reason = "calls of the kernel with memory that this module owns")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use nix::libc;

const PAGE: usize = 4096;

fn check(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The first page of a file in memory, shared.
pub(crate) struct Mapping(*mut libc::c_void);

impl Mapping {
    /// Maps the page and stores a byte at its start, which the kernel then has to write some time.
    pub(crate) fn store(file: &File, byte: u8) -> Self {
        let (protection, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        // SAFETY: a new mapping at a place that the kernel chooses
        let at = unsafe { libc::mmap(ptr::null_mut(), PAGE, protection, libc::MAP_SHARED, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED, "{}", io::Error::last_os_error());
        // SAFETY: the page is mapped, writable and ours
        unsafe { at.cast::<u8>().write_volatile(byte) };
        Self(at)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `store`, and used by nobody any more
        unsafe { libc::munmap(self.0, PAGE) };
    }
}

/// A file handle of name_to_handle_at(2), which outlives every cache.
#[repr(C, align(8))]
#[derive(Clone)]
pub(crate) struct Handle {
    bytes: libc::c_uint,
    kind: libc::c_int,
    handle: [u8; 128],
}

impl Handle {
    pub(crate) fn of(path: &Path) -> Self {
        let mut handle = Self { bytes: 128, kind: 0, handle: [0; 128] };
        let (path, mut mount) = (CString::new(path.as_os_str().as_bytes()).unwrap(), 0);
        let number = libc::SYS_name_to_handle_at;
        // SAFETY: the handle says how much room it has, and all pointers live as long as the call
        let result = unsafe {
            libc::syscall(number, libc::AT_FDCWD, path.as_ptr(), &raw mut handle, &raw mut mount, 0)
        };
        check(result).unwrap();
        handle
    }

    /// Opens the file for reading, in the file system that `mount` lies in.
    pub(crate) fn open(&mut self, mount: &File) -> io::Result<File> {
        let number = libc::SYS_open_by_handle_at;
        // SAFETY: the handle is whole, and lives as long as the call
        let result =
            unsafe { libc::syscall(number, mount.as_raw_fd(), &raw mut *self, libc::O_RDONLY) };
        // SAFETY: a new descriptor that nobody else has
        check(result).map(|fd| unsafe { File::from_raw_fd(fd as i32) })
    }
}

/// Memory as direct I/O wants it.
#[repr(align(4096))]
#[derive(Clone, Copy)]
struct Page(#[allow(dead_code, reason = "the kernel reads it")] [u8; PAGE]);

/// A buffer of whole pages, all bytes the same.
pub(crate) struct Pages(Vec<Page>);

impl Pages {
    pub(crate) fn filled(byte: u8, bytes: usize) -> Self {
        Self(vec![Page([byte; PAGE]); bytes / PAGE])
    }
}

#[repr(C)]
#[derive(Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// Asynchronous I/O of io_submit(2), one request at a time.
pub(crate) struct Aio(u64);

impl Aio {
    pub(crate) fn new() -> Self {
        let mut context = 0_u64;
        // SAFETY: the kernel writes a context into a variable that lives as long as the call
        check(unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) }).unwrap();
        Self(context)
    }

    /// Writes at the start of a file, and returns when the kernel says that it is done.
    pub(crate) fn write(&self, file: &File, pages: &Pages) {
        const PWRITE: u16 = 1;
        let mut request = Iocb {
            opcode: PWRITE,
            fd: file.as_raw_fd().cast_unsigned(),
            buffer: pages.0.as_ptr() as u64,
            bytes: (pages.0.len() * PAGE) as u64,
            ..Iocb::default()
        };
        let mut requests = [&raw mut request];
        let mut event = [0_u64; 4];
        // SAFETY: request and buffer live until the event has come
        unsafe {
            check(libc::syscall(libc::SYS_io_submit, self.0, 1, requests.as_mut_ptr())).unwrap();
            let none = ptr::null::<libc::timespec>();
            check(libc::syscall(libc::SYS_io_getevents, self.0, 1, 1, event.as_mut_ptr(), none))
                .unwrap();
        }
        assert_eq!(event[2], (pages.0.len() * PAGE) as u64, "bytes written");
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: nothing is on its way
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}
