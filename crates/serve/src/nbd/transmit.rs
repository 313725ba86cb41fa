//! Requests and replies of one connection.
//!
//! One thread takes requests as they come, and sends replies as they get due, those of later
//! requests first if the drive was done with them first. Requests that came together are answered
//! together.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use super::MAX_REQUEST;
use super::answer::answer;
use super::handshake::{Agreed, nonsense};
use super::socket::{Input, send_all, wait_until};
use super::wire::{REQUEST, Request, command, parse};
use crate::served::Served;
use crate::wait;

/// Replies that wait for their time: beyond so many, or so many bytes of them, no more requests are
/// taken. Assumed; more than a kernel's queue has.
const MOST_WAITING: usize = 1024;
const MOST_BYTES_WAITING: usize = 64 << 20;
/// Bytes of replies that leave together.
const TOGETHER: usize = 256 << 10;

/// A connection whose client sends requests.
pub(super) struct Transmission<'a> {
    served: &'a Served,
    socket: &'a OwnedFd,
    input: Input,
    agreed: Agreed,
    /// Replies that may leave now.
    output: Vec<u8>,
    /// Replies by the time at which they may leave, and the order in which they were made.
    waiting: BTreeMap<(Instant, u64), Vec<u8>>,
    waiting_bytes: usize,
    made: u64,
    /// Bytes of a refused write that are still to come.
    unwanted: u64,
}

/// The outcome of looking for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    One,
    /// It is not there yet as a whole: so many bytes of it are.
    Incomplete(usize),
    /// Too many replies wait for their time.
    Full,
    /// The client says goodbye.
    Goodbye,
}

impl<'a> Transmission<'a> {
    pub(super) fn new(
        served: &'a Served,
        socket: &'a OwnedFd,
        input: Input,
        agreed: Agreed,
    ) -> Self {
        Self {
            served,
            socket,
            input,
            agreed,
            output: Vec::new(),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            made: 0,
            unwanted: 0,
        }
    }

    /// Serves until the client goes away.
    ///
    /// # Errors
    /// Those of the socket, and [`io::ErrorKind::InvalidData`] for a client that talks nonsense.
    pub(super) fn run(mut self) -> io::Result<()> {
        if self.served.is_paced() {
            wait::end_waits_exactly();
        }
        let ended = self.serve();
        match ended {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        // what was performed is answered, for one who has only stopped sending
        while !self.waiting.is_empty() {
            self.sleep();
            self.send_what_is_due()?;
        }
        Ok(())
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            let taken = self.take_requests()?;
            self.send_what_is_due()?;
            match taken {
                Taken::One => {}
                Taken::Full => self.sleep(),
                Taken::Goodbye => return Ok(()),
                Taken::Incomplete(wanted) => self.await_more(wanted)?,
            }
        }
    }

    /// Takes requests while there are any, and while there is room for their replies.
    fn take_requests(&mut self) -> io::Result<Taken> {
        let mut taken = Taken::One;
        while taken == Taken::One && self.output.len() < TOGETHER {
            taken = self.take_one()?;
        }
        Ok(taken)
    }

    fn take_one(&mut self) -> io::Result<Taken> {
        if self.waiting.len() >= MOST_WAITING || self.waiting_bytes >= MOST_BYTES_WAITING {
            return Ok(Taken::Full);
        }
        if self.unwanted > 0 {
            let there = self.unwanted.min(self.input.bytes().len() as u64);
            self.input.consume(there as usize);
            self.unwanted -= there;
            return Ok(if self.unwanted > 0 { Taken::Incomplete(1) } else { Taken::One });
        }
        let bytes = self.input.bytes();
        let size = size_of::<Request>();
        let Some(request) = parse::<Request>(bytes) else { return Ok(Taken::Incomplete(size)) };
        if request.magic.get() != REQUEST {
            return Err(nonsense());
        }
        let (command, len) = (request.command.get(), request.len.get());
        let is_write = command == command::WRITE;
        if command == command::DISC {
            return Ok(Taken::Goodbye);
        }
        let with_data = is_write && len <= MAX_REQUEST;
        let whole = size + if with_data { len as usize } else { 0 };
        if bytes.len() < whole {
            return Ok(Taken::Incomplete(whole));
        }
        self.perform(&request, size, whole);
        self.input.consume(whole);
        if is_write && !with_data {
            self.unwanted = len.into();
        }
        Ok(Taken::One)
    }

    /// Performs the request whose data lies in the input from `start` to `end`.
    fn perform(&mut self, request: &Request, start: usize, end: usize) {
        let data = &self.input.bytes()[start..end];
        if !self.served.is_paced() {
            answer(self.served, &self.agreed, request, data, &mut self.output);
            return;
        }
        let mut reply = Vec::new();
        match answer(self.served, &self.agreed, request, data, &mut reply) {
            None => self.output.append(&mut reply),
            Some(due) => {
                self.waiting_bytes += reply.len();
                self.made += 1;
                self.waiting.insert((due, self.made), reply);
            }
        }
    }

    fn send_what_is_due(&mut self) -> io::Result<()> {
        let now = if self.waiting.is_empty() { None } else { Some(Instant::now()) };
        while let Some(first) = self.waiting.first_entry()
            && now.is_some_and(|now| first.key().0 <= now)
        {
            let reply = first.remove();
            self.waiting_bytes -= reply.len();
            if self.output.is_empty() {
                self.output = reply;
            } else {
                self.output.extend(reply);
            }
        }
        send_all(self.socket, &self.output)?;
        self.output.clear();
        self.output.shrink_to(4 * TOGETHER);
        Ok(())
    }

    /// Waits until a reply is due.
    fn sleep(&self) {
        if let Some((&(due, _), _)) = self.waiting.first_key_value() {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }

    /// Waits for more bytes, up to `wanted` at once, or until a reply is due.
    fn await_more(&mut self, wanted: usize) -> io::Result<()> {
        match self.waiting.first_key_value() {
            Some((&(due, _), _)) if !wait_until(self.socket, due, self.served.awake())? => Ok(()),
            _ => self.input.fill(self.socket, wanted),
        }
    }
}
