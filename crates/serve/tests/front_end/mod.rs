//! A front end of vhost-user-blk whose guest has 4 MiB of memory: rings of 16 requests, written by
//! hand.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use dovetail_serve::vhost::send_with_files;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

pub(crate) const MEMORY: u64 = 4 << 20;
/// The guest's memory in the front end's own addresses.
pub(crate) const USER: u64 = 0x7000_0000_0000;
pub(crate) const RING: u16 = 16;
pub(crate) const READ: u32 = 0;
pub(crate) const WRITE: u32 = 1;
pub(crate) const FLUSH: u32 = 4;
pub(crate) const GET_ID: u32 = 8;
pub(crate) const DISCARD: u32 = 11;
pub(crate) const WRITE_ZEROES: u32 = 13;
pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITABLE: u16 = 2;

/// Guest addresses of a queue's parts: descriptors, available, used, and of its buffers.
pub(crate) const fn parts(queue: u32) -> [u64; 4] {
    let base = queue as u64 * 0x1_0000;
    [base, base + 0x1000, base + 0x2000, 0x20_0000 + queue as u64 * 0x8_0000]
}

/// A queue as the driver sees it.
struct Driver {
    kick: OwnedFd,
    call: OwnedFd,
    made: u16,
    seen: u16,
}

pub(crate) struct FrontEnd {
    pub(crate) socket: UnixStream,
    pub(crate) memory: File,
    drivers: Vec<Driver>,
}

fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

/// A message.
pub(crate) fn message(request: u32, payload: &[u8]) -> Vec<u8> {
    let header = [request, 1, payload.len() as u32];
    [&header.map(u32::to_ne_bytes).concat()[..], payload].concat()
}

/// Numbers of 32 bits in a row.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Numbers of 64 bits in a row.
pub(crate) fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_ne_bytes()).collect()
}

pub(crate) fn addresses(queue: u32, [descriptors, available, used, _]: [u64; 4]) -> Vec<u8> {
    let rest = longs(&[USER + descriptors, USER + used, USER + available, 0]);
    [words(&[queue, 0]), rest].concat()
}

impl FrontEnd {
    /// Connects, with its memory made and nothing said.
    pub(crate) fn connect(path: &Path) -> Self {
        let socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let memory = rustix::fs::memfd_create("guest", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let memory = File::from(memory);
        memory.set_len(MEMORY).unwrap();
        Self { socket, memory, drivers: Vec::new() }
    }

    /// Sends a message, whatever becomes of it.
    pub(crate) fn say(&self, message: &[u8], files: &[BorrowedFd<'_>]) {
        // the server may have closed the connection
        let _ = send_with_files(self.socket.as_fd(), message, files);
    }

    /// Sends a message, and returns the payload of its reply.
    pub(crate) fn ask(&mut self, request: u32, payload: &[u8]) -> Vec<u8> {
        self.say(&message(request, payload), &[]);
        let mut header = [0; 12];
        self.socket.read_exact(&mut header).unwrap();
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), word(4)), (request, 5));
        let mut payload = vec![0; word(8) as usize];
        self.socket.read_exact(&mut payload).unwrap();
        payload
    }

    pub(crate) fn share_memory(&self) {
        let table = longs(&[1, 0, MEMORY, USER, 0]);
        self.say(&message(5, &table), &[self.memory.as_fd()]);
    }

    /// The handshake, with so many queues.
    pub(crate) fn begin(&mut self, queues: u32) {
        self.say(&message(3, &[]), &[]);
        let features = self.ask(1, &[]);
        self.say(&message(2, &features), &[]);
        let protocol = self.ask(15, &[]);
        self.say(&message(16, &protocol), &[]);
        self.share_memory();
        (0..queues).for_each(|queue| self.add_queue(queue));
    }

    pub(crate) fn add_queue(&mut self, queue: u32) {
        let driver = Driver { kick: event(), call: event(), made: 0, seen: 0 };
        self.say(&message(8, &words(&[queue, RING.into()])), &[]);
        self.say(&message(10, &words(&[queue, 0])), &[]);
        self.say(&message(9, &addresses(queue, parts(queue))), &[]);
        self.say(&message(13, &longs(&[queue.into()])), &[driver.call.as_fd()]);
        self.say(&message(12, &longs(&[queue.into()])), &[driver.kick.as_fd()]);
        self.say(&message(18, &words(&[queue, 1])), &[]);
        self.drivers.push(driver);
    }

    /// Writes a descriptor: address, length, flags, the next one.
    pub(crate) fn describe(
        &self,
        queue: u32,
        index: u16,
        at: u64,
        len: u32,
        flags: u16,
        next: u16,
    ) {
        let bytes = [&longs(&[at])[..], &words(&[len]), &flags.to_le_bytes(), &next.to_le_bytes()];
        let place = parts(queue)[0] + u64::from(index) * 16;
        self.memory.write_all_at(&bytes.concat(), place).unwrap();
    }

    /// Makes the chain that begins with descriptor `head` available, and kicks.
    pub(crate) fn kick(&mut self, queue: u32, head: u16) {
        let driver = &mut self.drivers[queue as usize];
        let available = parts(queue)[1];
        let slot = available + 4 + u64::from(driver.made % RING) * 2;
        self.memory.write_all_at(&head.to_le_bytes(), slot).unwrap();
        driver.made = driver.made.wrapping_add(1);
        self.memory.write_all_at(&driver.made.to_le_bytes(), available + 2).unwrap();
        rustix::io::write(&driver.kick, &1_u64.to_ne_bytes()).unwrap();
    }

    /// Describes a request without kicking: head, data, status.
    pub(crate) fn prepare(&self, queue: u32, kind: u32, sector: u64, data: &[u8]) {
        let [_, _, _, buffers] = parts(queue);
        let head = [words(&[kind, 0]), longs(&[sector])].concat();
        self.memory.write_all_at(&head, buffers).unwrap();
        self.memory.write_all_at(&[0xEE], buffers + 16).unwrap();
        self.memory.write_all_at(data, buffers + 4096).unwrap();
        self.describe(queue, 0, buffers, 16, NEXT, if data.is_empty() { 2 } else { 1 });
        let flags = if matches!(kind, READ | GET_ID) { NEXT | WRITABLE } else { NEXT };
        self.describe(queue, 1, buffers + 4096, data.len() as u32, flags, 2);
        self.describe(queue, 2, buffers + 16, 1, WRITABLE, 0);
    }

    /// Waits for the next request of a queue to come back; returns its status.
    pub(crate) fn finish(&mut self, queue: u32) -> u8 {
        let [_, _, used, buffers] = parts(queue);
        let driver = &mut self.drivers[queue as usize];
        loop {
            let mut index = [0; 2];
            self.memory.read_exact_at(&mut index, used + 2).unwrap();
            if u16::from_le_bytes(index) != driver.seen {
                break;
            }
            let mut fds = [PollFd::new(&driver.call, PollFlags::IN)];
            let wait = Timespec { tv_sec: 20, tv_nsec: 0 };
            assert!(poll(&mut fds, Some(&wait)).unwrap() > 0, "the guest is not told");
            rustix::io::read(&driver.call, &mut [0; 8]).unwrap();
        }
        driver.seen = driver.seen.wrapping_add(1);
        let mut status = [0];
        self.memory.read_exact_at(&mut status, buffers + 16).unwrap();
        status[0]
    }

    pub(crate) fn request(&mut self, queue: u32, kind: u32, sector: u64, data: &[u8]) -> u8 {
        self.prepare(queue, kind, sector, data);
        self.kick(queue, 0);
        self.finish(queue)
    }

    pub(crate) fn read(&mut self, queue: u32, sector: u64, len: usize) -> Vec<u8> {
        let mut data = vec![0xAA; len];
        assert_eq!(self.request(queue, READ, sector, &data), 0);
        self.memory.read_exact_at(&mut data, parts(queue)[3] + 4096).unwrap();
        data
    }

    /// The server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    /// Breaks off in the middle of what it says, and waits until the server knows.
    pub(crate) fn leave(mut self, bytes: &[u8]) {
        // the server may have closed it
        let _ = self.socket.write_all(bytes);
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        assert!(self.is_closed());
    }
}
