//! A connected socket, and what has come over it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags};
use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, send};

use crate::pace::Awake;
use crate::wait;

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
    wait::until(Some(due), awake, |there| *there, |within| is_readable(socket, within))
}

/// Tells whether there is something to read, or will be so soon.
///
/// # Errors
/// Those of the system.
pub(crate) fn is_readable(socket: &OwnedFd, within: Option<Duration>) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    wait::poll(&mut fds, within)?;
    Ok(!fds[0].revents().is_empty())
}
