//! The clock of a guest in virtual time: the controller's side of user-mode Linux' time travel.
//!
//! Source: `include/uapi/linux/um_timetravel.h` of Linux 6.12, whose comments describe the protocol.
//! The guest runs until it sends WAIT; its wish, the time at which it wants to run again, stands in
//! memory that both sides share. RUN lets it go on. While it runs it moves the time on by itself,
//! as far as `free_until`.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

use dovetail_serve::vhost::send_with_files;
use dovetail_time::SimTime;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::LinuxError;

/// The number of the guest; ours is 0.
const GUEST: u16 = 1;
/// Guests and we.
const CLIENTS: u16 = 2;
/// A time that never comes.
const NEVER: u64 = i64::MAX as u64;

/// Operations of messages.
mod op {
    pub(super) const ACK: u32 = 0;
    pub(super) const START: u32 = 1;
    pub(super) const WAIT: u32 = 3;
    pub(super) const RUN: u32 = 6;
    pub(super) const GET_TOD: u32 = 8;
}

/// Places in the memory that both sides share.
mod place {
    pub(super) const VERSION: usize = 0;
    pub(super) const LEN: usize = 4;
    pub(super) const FREE_UNTIL: usize = 8;
    pub(super) const NOW: usize = 16;
    pub(super) const RUNNING: usize = 24;
    pub(super) const MAX_CLIENTS: usize = 26;
    pub(super) const CLIENTS: usize = 4096;
    pub(super) const CLIENT_BYTES: usize = 128;
    /// Within a client: what it can, what it asks for, the time that it asks for.
    pub(super) const CAN: usize = 0;
    pub(super) const FLAGS: usize = 4;
    pub(super) const WISH: usize = 8;
    pub(super) const NAME: usize = 16;
}

/// The version of the shared memory.
const VERSION: u32 = 2;
const BYTES: usize = place::CLIENTS + CLIENTS as usize * place::CLIENT_BYTES;
/// We share the clock.
const CAN_SHARE: u32 = 1;
/// A client's wish is valid.
const HAS_WISH: u32 = 1;

/// The wall clock at virtual time 0: 2023-11-14, so that dates are the same in every run.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Message {
    op: u32,
    seq: u32,
    time: u64,
}

/// The clock of one guest.
#[derive(Debug)]
pub(crate) struct Calendar {
    socket: UnixStream,
    shared: MmapRegion,
    /// The shared memory and a log, as the guest gets them.
    files: [OwnedFd; 2],
    seq: u32,
    waits: bool,
}

impl Calendar {
    /// A clock at 0 for the guest at the other end of the socket.
    pub(crate) fn new(socket: UnixStream) -> Result<Self, LinuxError> {
        let failed = LinuxError::io("memory for the guest's clock");
        let (memory, log) = shared_memory().map_err(failed)?;
        let copy = File::from(memory.try_clone().map_err(LinuxError::io("the guest's clock"))?);
        let shared = MmapRegion::from_file(FileOffset::new(copy, 0), BYTES)
            .map_err(|error| LinuxError::Protocol(error.to_string()))?;
        let clock = Self { socket, shared, files: [memory, log], seq: 0, waits: false };
        clock.set(place::VERSION, VERSION);
        clock.set(place::LEN, BYTES as u32);
        clock.set(place::FREE_UNTIL, NEVER);
        clock.set(place::NOW, 0_u64);
        clock.set(place::RUNNING, GUEST);
        clock.set(place::MAX_CLIENTS, CLIENTS);
        clock.set(place::CLIENTS + place::CAN, CAN_SHARE);
        Ok(clock)
    }

    fn memory(&self) -> VolatileSlice<'_> {
        VolatileMemory::as_volatile_slice(&self.shared)
    }

    fn set<T: vm_memory::AtomicAccess>(&self, at: usize, value: T) {
        // the places are aligned and within the memory
        let stored = self.memory().store(value, at, Ordering::SeqCst);
        debug_assert!(stored.is_ok());
    }

    fn get<T: vm_memory::AtomicAccess + Default>(&self, at: usize) -> T {
        let loaded = self.memory().load(at, Ordering::SeqCst);
        debug_assert!(loaded.is_ok());
        loaded.unwrap_or_default()
    }

    /// The socket, to wait for messages.
    pub(crate) fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// The time.
    pub(crate) fn now(&self) -> SimTime {
        SimTime::from_ns(self.get(place::NOW))
    }

    /// The guest has nothing to do at present.
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// The time at which the guest wants to run again; `None` for never.
    pub(crate) fn wish(&self) -> Option<SimTime> {
        let guest = place::CLIENTS + usize::from(GUEST) * place::CLIENT_BYTES;
        let has_one = self.get::<u32>(guest + place::FLAGS) & HAS_WISH != 0;
        let wish: u64 = self.get(guest + place::WISH);
        (has_one && wish < NEVER).then(|| SimTime::from_ns(wish))
    }

    /// Answers a message of the guest; returns whether the guest is still there.
    pub(crate) fn answer(&mut self) -> Result<bool, LinuxError> {
        let mut bytes = [0; size_of::<Message>()];
        match self.socket.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if is_end(&error) => return Ok(false),
            Err(error) => return Err(LinuxError::io("the guest's clock")(error)),
        }
        let message: Message = zerocopy::transmute!(bytes);
        match message.op {
            op::ACK => Ok(true),
            op::WAIT => {
                self.waits = true;
                Ok(true)
            }
            op::START => self.start(message),
            op::GET_TOD => {
                let time = EPOCH_NS + self.now().as_ns();
                self.send(Message { op: op::ACK, time, ..message }, false)
            }
            other => Err(LinuxError::Protocol(format!("operation {other}"))),
        }
    }

    /// The guest gets its number and the shared memory.
    fn start(&mut self, message: Message) -> Result<bool, LinuxError> {
        let guest = place::CLIENTS + usize::from(GUEST) * place::CLIENT_BYTES;
        self.set(guest + place::NAME, message.time);
        self.send(Message { op: op::ACK, time: GUEST.into(), ..message }, true)
    }

    fn send(&self, message: Message, with_files: bool) -> Result<bool, LinuxError> {
        let files = self.files.each_ref().map(AsFd::as_fd);
        let files = if with_files { &files[..] } else { &[] };
        match send_with_files(self.socket.as_fd(), message.as_bytes(), files) {
            Ok(()) => Ok(true),
            Err(error) if is_end(&error) => Ok(false),
            Err(error) => Err(LinuxError::io("the guest's clock")(error)),
        }
    }

    /// The guest that runs must not move the time on to `at` or beyond.
    pub(crate) fn bound(&self, at: SimTime) {
        if at.as_ns() < self.get(place::FREE_UNTIL) {
            self.set(place::FREE_UNTIL, at.as_ns());
        }
    }

    /// It is `at`, and the guest does not run: something else happens.
    pub(crate) fn move_to(&mut self, at: SimTime) {
        self.set(place::NOW, at.as_ns());
        self.set(place::RUNNING, 0_u16);
        self.set(place::FREE_UNTIL, at.as_ns());
    }

    /// It is `at`, and the guest runs, up to `until` at most. Returns whether it is still there.
    pub(crate) fn run(&mut self, at: SimTime, until: Option<SimTime>) -> Result<bool, LinuxError> {
        self.set(place::NOW, at.as_ns());
        self.set(place::FREE_UNTIL, until.map_or(NEVER, SimTime::as_ns));
        self.set(place::RUNNING, GUEST);
        self.waits = false;
        self.seq += 1;
        self.send(Message { op: op::RUN, seq: self.seq, time: at.as_ns() }, false)
    }
}

fn shared_memory() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let memory = memfd_create("dovetail-clock", MemfdFlags::CLOEXEC)?;
    ftruncate(&memory, BYTES as u64)?;
    let log = File::options().read(true).write(true).open("/dev/null")?;
    Ok((memory, log.into()))
}

/// The other side is gone.
fn is_end(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}
