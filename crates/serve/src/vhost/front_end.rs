//! One front end in real time: its messages, its kicks, and answers when they are due.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use vm_memory::GuestMemoryMmap;

use super::VhostError;
use super::config::Disk;
use super::device::{Device, Notify};
use super::message::{self, Message, request};
use super::request::{Failure, Found, Kind};
use crate::served::{self, Served};
use crate::wait;

/// Longest silence of a front end before its first message.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time for a front end to go when the next one comes.
const HANDOVER: Duration = Duration::from_secs(1);
/// Longest wait for requests under way when their queue ends; they are handed back then.
const GRACE: Duration = Duration::from_secs(1);

/// The place of the one front end that a drive has at a time.
#[derive(Debug)]
pub(crate) struct Place {
    queues: u16,
    taken: Mutex<bool>,
    free: Condvar,
}

/// The place, for as long as it is kept.
struct Seat<'a>(&'a Place);

impl Place {
    /// A place for a front end with so many queues at most.
    pub(crate) fn new(queues: u16) -> Self {
        Self { queues, taken: Mutex::new(false), free: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        // one flag is whole at all times
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Seat<'_>> {
        let waited = self.free.wait_timeout_while(self.lock(), HANDOVER, |taken| *taken);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let was_free = !std::mem::replace(&mut *taken, true);
        was_free.then(|| Seat(self))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.free.notify_one();
    }
}

/// Serves one front end until it goes away, or somebody who asks for the drive's state.
///
/// # Errors
/// The connection broke, or the front end did what none may.
pub(crate) fn serve(served: &Served, place: &Place, socket: &OwnedFd) -> Result<(), VhostError> {
    let _connected = served.connect();
    let socket = UnixStream::from(socket.try_clone()?);
    let patience = |time| set_socket_timeout(&socket, Timeout::Recv, time).map_err(io::Error::from);
    patience(Some(PATIENCE))?;
    let Some(first) = Message::receive(&socket)? else { return Ok(()) };
    if first.request == request::STATUS {
        let status = served.status().map_err(io::Error::other)?;
        let text = serde_json::to_vec(&status).map_err(io::Error::other)?;
        return Ok(message::reply(&socket, request::STATUS, &text)?);
    }
    patience(None)?;
    let _seat = place.take().ok_or(VhostError::InUse)?;
    let disk = served.look(|export| Disk::of(export, place.queues, served.is_read_only()));
    let device = Device::new(disk.map_err(io::Error::other)?, Notify::Events);
    FrontEnd { served, socket, device }.run(first)
}

struct FrontEnd<'a> {
    served: &'a Served,
    socket: UnixStream,
    device: Device<Instant>,
}

/// Signs of the guest: a message, queues with requests.
struct Ready {
    message: bool,
    kicked: Vec<usize>,
}

impl FrontEnd<'_> {
    fn run(mut self, first: Message) -> Result<(), VhostError> {
        if self.served.is_paced() {
            wait::end_waits_exactly();
        }
        self.hear(first)?;
        loop {
            self.complete(Instant::now())?;
            let ready = self.wait()?;
            // first what was kicked before the message, or before the end
            for ring in ready.kicked {
                self.device.clear_kick(ring);
                self.take(ring)?;
            }
            if ready.message {
                let Some(message) = Message::receive(&self.socket)? else { return self.settle() };
                self.hear(message)?;
            }
        }
    }

    fn hear(&mut self, message: Message) -> Result<(), VhostError> {
        if matches!(message.request, request::GET_VRING_BASE | request::SET_MEM_TABLE) {
            self.settle()?;
        }
        let handled = self.device.handle(message)?;
        message::reply_to(&self.socket, handled)?;
        // a kick may have come before its queue was ready
        (0..self.device.rings()).try_for_each(|ring| self.take(ring))
    }

    fn take(&mut self, ring: usize) -> Result<(), VhostError> {
        let served = self.served;
        self.device.take(ring, u64::MAX, |memory: &GuestMemoryMmap, chain| {
            let mut found = Found::in_chain(memory, chain)?;
            let kind = counted_as(found.kind);
            let outcome = served.request(kind, |export, at| -> Result<_, Failure> {
                found.perform(export, served.serial(), at)
            });
            let written = found.end(&outcome)?;
            Ok((outcome.ok().flatten().unwrap_or_else(Instant::now), written))
        })
    }

    /// Hands back what is done by `now`.
    fn complete(&mut self, now: Instant) -> Result<(), VhostError> {
        if self.device.next_done().is_none_or(|done| done > now) {
            return Ok(());
        }
        for ring in self.device.complete(now)? {
            self.device.call(ring, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Hands back everything that is under way.
    fn settle(&mut self) -> Result<(), VhostError> {
        let last = Instant::now() + GRACE;
        while let Some(done) = self.device.next_done() {
            thread::sleep(done.min(last).saturating_duration_since(Instant::now()));
            self.complete(done)?;
        }
        Ok(())
    }

    /// Waits for a message, a kick, or until an answer is due.
    fn wait(&self) -> io::Result<Ready> {
        let is_something = |ready: &Ready| ready.message || !ready.kicked.is_empty();
        let awake = self.served.awake();
        wait::until(self.device.next_done(), awake, is_something, |within| self.poll(within))
    }

    fn poll(&self, within: Option<Duration>) -> io::Result<Ready> {
        let (rings, kicks): (Vec<_>, Vec<_>) = self.device.kicks().unzip();
        let files = std::iter::once(self.socket.as_fd()).chain(kicks);
        let mut polled: Vec<PollFd<'_>> =
            files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
        wait::poll(&mut polled, within)?;
        let is_ready = |polled: &PollFd<'_>| !polled.revents().is_empty();
        let kicked = rings.into_iter().zip(&polled[1..]);
        let kicked = kicked.filter(|(_, polled)| is_ready(polled)).map(|(ring, _)| ring);
        Ok(Ready { message: is_ready(&polled[0]), kicked: kicked.collect() })
    }
}

/// The kind by which a request counts.
const fn counted_as(kind: Kind) -> served::Kind {
    match kind {
        Kind::Read => served::Kind::Read,
        Kind::Write => served::Kind::Write,
        Kind::Flush => served::Kind::Flush,
        Kind::Discard => served::Kind::Discard,
        Kind::WriteZeroes => served::Kind::WriteZeroes,
        Kind::Append => served::Kind::Append,
        Kind::Zone => served::Kind::Zone,
        Kind::ZoneReport => served::Kind::ZoneReport,
        Kind::Identify | Kind::Unknown => served::Kind::Other,
    }
}
