//! A queue of a ublk device: a thread that takes requests, and commits each when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dovetail_block::SECTOR_SIZE;
use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;
use vm_memory::{FileOffset, MmapRegion, VolatileMemory};

use super::wire::{DESCRIPTOR, RequestCommand, data_of, descriptors_of, operation, request};
use crate::export::ExportError;
use crate::pace::Awake;
use crate::served::{Kind, Served};
use crate::wait;

/// Longest time until a queue sees that its disk ends.
const GRACE: Duration = Duration::from_secs(1);
/// Of `mmap`, on every Linux.
const PROT_READ: i32 = 1;
const MAP_SHARED: i32 = 1;

/// A request as the kernel describes it.
#[derive(Clone, Copy, Debug)]
struct Request {
    operation: u8,
    flags: u32,
    offset: u64,
    len: u64,
}

impl Request {
    /// The request whose descriptor begins with these words.
    fn of(head: u64, sector: u64) -> Self {
        Self {
            operation: head as u8,
            flags: head as u32,
            // a flush has no sector, which is the largest number
            offset: sector.saturating_mul(SECTOR_SIZE),
            len: (head >> 32) * SECTOR_SIZE,
        }
    }
}

/// An answer under way; the earliest is first, of those at one time the one that came first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    number: u64,
    tag: u16,
    result: i32,
}

/// A queue with its descriptors, of which the kernel writes and we read.
pub(super) struct Queue {
    /// Before the device: it goes first.
    ring: IoUring,
    descriptors: MmapRegion,
    device: Arc<File>,
    number: u16,
    served: Arc<Served>,
    due: BinaryHeap<Reverse<Due>>,
    /// Answers wait for their time no more.
    ending: Arc<AtomicBool>,
    taken: u64,
    /// Requests that the kernel may still send.
    open: u16,
    buffer: Vec<u8>,
}

impl Queue {
    /// A queue that is ready for requests. It belongs to the thread that makes it.
    pub(super) fn new(
        served: Arc<Served>,
        device: Arc<File>,
        number: u16,
        depth: u16,
        ending: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let file = FileOffset::from_arc(Arc::clone(&device), descriptors_of(number));
        let bytes = usize::from(depth) * DESCRIPTOR;
        let descriptors = MmapRegion::build(Some(file), bytes, PROT_READ, MAP_SHARED);
        let descriptors = descriptors.map_err(io::Error::other)?;
        let ring = IoUring::new(depth.next_power_of_two().into())?;
        let (due, buffer) = (BinaryHeap::new(), Vec::new());
        let mut queue = Self {
            ring,
            descriptors,
            device,
            number,
            served,
            due,
            ending,
            taken: 0,
            open: 0,
            buffer,
        };
        for tag in 0..depth {
            queue.push(request::FETCH, tag, 0)?;
            queue.open += 1;
        }
        queue.ring.submit()?;
        Ok(queue)
    }

    /// Serves requests until the kernel has stopped the device.
    pub(super) fn run(mut self) -> io::Result<()> {
        if self.served.is_paced() {
            wait::end_waits_exactly();
        }
        // its memory must not be waited for by those who wait for it; without it only less is safe
        let _ = rustix::process::configure_io_flusher_behavior(true);
        let served = Arc::clone(&self.served);
        while self.open > 0 {
            self.commit(Instant::now())?;
            for tag in self.wait(served.awake())? {
                self.take(tag)?;
            }
        }
        Ok(())
    }

    /// Waits for requests, or until an answer is due.
    fn wait(&mut self, awake: &Awake) -> io::Result<Vec<u16>> {
        let latest = Instant::now() + GRACE;
        let due = self.due.peek().map(|Reverse(due)| due.at.min(latest));
        let is_something = |tags: &Vec<u16>| !tags.is_empty();
        wait::until(due, awake, is_something, |within| self.look(within))
    }

    /// The requests that have come, after a wait of at most `within`.
    fn look(&mut self, within: Option<Duration>) -> io::Result<Vec<u16>> {
        let entered = match within {
            None => self.ring.submit_and_wait(1),
            Some(Duration::ZERO) => self.ring.submit(),
            Some(within) => {
                let within = types::Timespec::from(within);
                let arguments = types::SubmitArgs::new().timespec(&within);
                self.ring.submitter().submit_with_args(1, &arguments)
            }
        };
        match entered.map_err(|error| Errno::from_io_error(&error).ok_or(error)) {
            Ok(_) | Err(Ok(Errno::INTR | Errno::TIME | Errno::AGAIN | Errno::BUSY)) => {}
            Err(Ok(error)) => return Err(error.into()),
            Err(Err(error)) => return Err(error),
        }
        let mut tags = Vec::new();
        for ended in self.ring.completion() {
            match ended.result() {
                0 => tags.push(ended.user_data() as u16),
                // the device is stopped: this one does not come back
                _ => self.open -= 1,
            }
        }
        Ok(tags)
    }

    fn take(&mut self, tag: u16) -> io::Result<()> {
        let request = self.request(tag)?;
        let (at, result) = match self.carry_out(tag, request) {
            Ok((due, moved)) => (due, moved as i32),
            Err(error) => (None, -error.raw_os_error()),
        };
        match at {
            None => self.push(request::COMMIT_AND_FETCH, tag, result),
            Some(at) => {
                self.taken += 1;
                self.due.push(Reverse(Due { at, number: self.taken, tag, result }));
                Ok(())
            }
        }
    }

    /// The request of a tag, as its descriptor has it.
    fn request(&self, tag: u16) -> io::Result<Request> {
        let at = usize::from(tag) * DESCRIPTOR;
        let word = |offset: usize| -> io::Result<u64> {
            let word = self.descriptors.get_ref::<u64>(at + offset).map_err(io::Error::other)?;
            Ok(word.load())
        };
        let (head, sector) = (word(0)?, word(8)?);
        Ok(Request::of(head, sector))
    }

    /// Carries a request out. Returns when its answer is due and how many bytes it moved.
    fn carry_out(&mut self, tag: u16, request: Request) -> Result<(Option<Instant>, u64), Errno> {
        let Request { operation, flags, offset, len } = request;
        let errno = |error: ExportError| error.errno();
        let io = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let fua = flags & operation::FUA != 0;
        let range = offset..offset.saturating_add(len);
        let place = data_of(self.number, tag);
        let served = &self.served;
        match operation {
            operation::READ => {
                self.buffer.resize(len as usize, 0);
                let into = &mut self.buffer;
                let due = served.request(Kind::Read, |export, at| export.read(at, offset, into));
                let due = due.map_err(errno)?;
                self.device.write_all_at(&self.buffer, place).map_err(io)?;
                Ok((due, len))
            }
            operation::WRITE => {
                self.buffer.resize(len as usize, 0);
                self.device.read_exact_at(&mut self.buffer, place).map_err(io)?;
                let data = &self.buffer;
                let due =
                    served.request(Kind::Write, |export, at| export.write(at, offset, data, fua));
                Ok((due.map_err(errno)?, len))
            }
            operation::FLUSH => {
                let due = served.request(Kind::Flush, |export, at| export.flush(at));
                Ok((due.map_err(errno)?, 0))
            }
            operation::DISCARD => {
                let due = served.request(Kind::Discard, |export, at| {
                    export.discard(at, std::slice::from_ref(&range), fua)
                });
                Ok((due.map_err(errno)?, 0))
            }
            operation::WRITE_ZEROES => {
                let may_discard = flags & operation::NO_UNMAP == 0;
                let due = served.request(Kind::WriteZeroes, |export, at| {
                    export.write_zeroes(at, range, may_discard, fua)
                });
                Ok((due.map_err(errno)?, 0))
            }
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// Commits every answer that is due by `now`; all of them when the disk ends.
    fn commit(&mut self, now: Instant) -> io::Result<()> {
        let is_ending = self.ending.load(Ordering::Relaxed);
        while self.due.peek().is_some_and(|Reverse(due)| is_ending || due.at <= now) {
            let Some(Reverse(due)) = self.due.pop() else { break };
            self.push(request::COMMIT_AND_FETCH, due.tag, due.result)?;
        }
        Ok(())
    }

    /// Puts a command about a tag where the next wait submits it.
    fn push(&mut self, number: u32, tag: u16, result: i32) -> io::Result<()> {
        let command = RequestCommand { queue: self.number, tag, result, address: 0 };
        let device = types::Fd(self.device.as_raw_fd());
        let command = zerocopy::transmute!(command);
        let entry = opcode::UringCmd16::new(device, number).cmd(command).build();
        // SAFETY: the command holds no address, and the device stays open as long as the ring.
        #[allow(unsafe_code, reason = "io_uring may take addresses")]
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(tag.into())) };
        pushed.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_its_descriptor_says() {
        let written = Request::of(8 << 32 | 1 << 13 | 1, 80);
        assert_eq!((written.operation, written.offset, written.len), (1, 40_960, 4096));
        assert!(written.flags & operation::FUA != 0);
        let flush = Request::of(2, u64::MAX);
        assert_eq!((flush.operation, flush.len), (operation::FLUSH, 0));
    }
}
