//! A connected socket, and what has come over it.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{SendFlags, send};

use crate::pace::Awake;

/// Bytes that are asked for at least whenever something is read.
const READ_AHEAD: usize = 64 << 10;
/// A buffer that grew larger gives its memory back when it is empty.
const KEPT: usize = 4 << 20;

/// The bytes that came and were not used yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    buffer: Vec<u8>,
    used: usize,
}

impl Input {
    /// The bytes there.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// Forgets the first `len` bytes, which are there.
    pub(super) fn consume(&mut self, len: usize) {
        self.used += len;
        if self.used == self.buffer.len() {
            self.used = 0;
            self.buffer.clear();
            if self.buffer.capacity() > KEPT {
                self.buffer = Vec::new();
            }
        }
    }

    /// Waits for more bytes and takes those that came, with room for `wanted` bytes in all.
    ///
    /// # Errors
    /// Those of the socket; its end is one.
    pub(super) fn fill(&mut self, socket: &OwnedFd, wanted: usize) -> io::Result<()> {
        let there = self.buffer.len() - self.used;
        let room = wanted.saturating_sub(there).max(READ_AHEAD);
        if self.buffer.capacity() - self.buffer.len() < room {
            self.buffer.drain(..self.used);
            self.used = 0;
            self.buffer.reserve(room);
        }
        match retry_on_intr(|| rustix::io::read(socket, spare_capacity(&mut self.buffer))) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until so many bytes are there.
    ///
    /// # Errors
    /// As [`Input::fill`].
    pub(super) fn wait_for(&mut self, socket: &OwnedFd, wanted: usize) -> io::Result<()> {
        while self.bytes().len() < wanted {
            self.fill(socket, wanted)?;
        }
        Ok(())
    }
}

/// Sends all of it.
///
/// # Errors
/// Those of the socket.
pub(super) fn send_all(socket: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let sent = retry_on_intr(|| send(socket, bytes, SendFlags::NOSIGNAL))?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// Waits until there is something to read, or until `due`; tells whether there is. It may return
/// before `due` with nothing to read.
///
/// # Errors
/// Those of the system.
pub(super) fn wait_until(socket: &OwnedFd, due: Instant, awake: &Awake) -> io::Result<bool> {
    let left = due.saturating_duration_since(Instant::now());
    if left > awake.last_part() {
        return is_readable(socket, left - awake.last_part());
    }
    let Some(_leave) = awake.leave() else { return is_readable(socket, left) };
    while Instant::now() < due {
        if is_readable(socket, Duration::ZERO)? {
            return Ok(true);
        }
        thread::yield_now();
    }
    Ok(false)
}

/// Tells whether there is something to read, or will be so soon.
///
/// # Errors
/// Those of the system.
pub(crate) fn is_readable(socket: &OwnedFd, within: Duration) -> io::Result<bool> {
    let within =
        Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    match poll(&mut fds, Some(&within)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
