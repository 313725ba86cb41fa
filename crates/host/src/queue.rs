//! The block layer: a limited number of requests at the drive, flushes of several threads in one,
//! and counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dovetail_block::BlockRange;
use dovetail_time::{SimSpan, SimTime};

/// Classes of request sizes: class `n` has requests of 2^n to 2^(n+1) - 1 blocks.
pub const SIZE_CLASSES: usize = 12;

/// The kinds of command that reach the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes.
    Flush,
    /// Discards.
    Discard,
    /// Remaps.
    Remap,
    /// Commands on zones.
    Zone,
}

/// A command with blocks as it reached the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Time at which it reached the drive.
    pub at: SimTime,
    /// Time at which it was done.
    pub done: SimTime,
    /// Kind of command.
    pub kind: RequestKind,
    /// Blocks of the command. A discard of several ranges is shown once for each, a remap once for
    /// each address.
    pub range: BlockRange,
}

/// Commands that reached the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Issued {
    /// Number of commands.
    pub requests: u64,
    /// Blocks of 4 KiB; pairs of a remap.
    pub blocks: u64,
    /// Time from issue to completion, summed.
    pub time: SimSpan,
    /// Number of commands in each class of sizes.
    pub sizes: [u64; SIZE_CLASSES],
}

/// Traffic that reached the drive, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads.
    pub read: Issued,
    /// Writes.
    pub write: Issued,
    /// Flushes.
    pub flush: Issued,
    /// Discards.
    pub discard: Issued,
    /// Remaps.
    pub remap: Issued,
    /// Commands on zones.
    pub zone: Issued,
    /// Flushes that another thread's flush did as well.
    pub merged_flushes: u64,
    /// CPU time spent on requests.
    pub cpu: SimSpan,
}

impl Traffic {
    /// Counts a command of so many blocks that took so long.
    pub fn count(&mut self, kind: RequestKind, blocks: u64, time: SimSpan) {
        let issued = match kind {
            RequestKind::Read => &mut self.read,
            RequestKind::Write => &mut self.write,
            RequestKind::Flush => &mut self.flush,
            RequestKind::Discard => &mut self.discard,
            RequestKind::Remap => &mut self.remap,
            RequestKind::Zone => &mut self.zone,
        };
        issued.requests += 1;
        issued.blocks += blocks;
        if let Some(class) = blocks.checked_ilog2() {
            issued.sizes[(class as usize).min(SIZE_CLASSES - 1)] += 1;
        }
        issued.time = SimSpan::from_ns(issued.time.as_ns() + time.as_ns());
    }
}

/// The requests at the drive, as many as it takes at a time.
#[derive(Debug)]
pub(crate) struct Depth {
    in_flight: InFlight,
    /// `None` for no limit: then nothing is counted.
    limit: Option<usize>,
}

impl Depth {
    /// A queue of so many requests; [`u32::MAX`] is no limit.
    pub(crate) fn new(limit: u32) -> Self {
        let limit = (limit < u32::MAX).then_some(limit.max(1) as usize);
        Self { in_flight: InFlight::default(), limit }
    }

    /// Time at which there is room for one more; `None` for now.
    pub(crate) fn room_from(&mut self, now: SimTime) -> Option<SimTime> {
        let limit = self.limit?;
        if self.in_flight.len() < limit {
            return None;
        }
        self.in_flight.complete(now);
        self.in_flight.first().filter(|_| self.in_flight.len() >= limit)
    }

    pub(crate) fn enter(&mut self, done: SimTime) {
        if self.limit.is_some() {
            self.in_flight.enter(done);
        }
    }
}

/// Requests whose end is known and has not been reached.
#[derive(Debug, Default)]
pub struct InFlight(BinaryHeap<Reverse<SimTime>>);

impl InFlight {
    /// Number of requests.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Time at which the first of them is done.
    pub fn first(&self) -> Option<SimTime> {
        self.0.peek().map(|Reverse(done)| *done)
    }

    /// Adds one that will be done at `done`.
    pub fn enter(&mut self, done: SimTime) {
        self.0.push(Reverse(done));
    }

    /// Takes the first of them away.
    pub fn pop(&mut self) -> Option<SimTime> {
        self.0.pop().map(|Reverse(done)| done)
    }

    /// Takes away what is done at `now`.
    pub fn complete(&mut self, now: SimTime) {
        while self.first().is_some_and(|done| done <= now) {
            self.0.pop();
        }
    }
}

/// The last flush. One that was issued after a thread asked for it serves that thread as well
/// (Linux: at most one flush at the device, those that come meanwhile share the next one).
#[derive(Debug)]
pub(crate) struct FlushMerge {
    last: Option<(SimTime, SimTime)>,
    /// Each flush goes to the drive by itself.
    is_off: bool,
}

/// Outcome of a flush request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushTurn {
    /// Another one does it, until then.
    Served(SimTime),
    /// One is under way that came too early: ask again then.
    Later(SimTime),
    /// It is to be issued now.
    Now,
}

impl FlushMerge {
    pub(crate) fn new(merges: bool) -> Self {
        Self { last: None, is_off: !merges }
    }

    pub(crate) fn turn(&self, asked: SimTime, now: SimTime) -> FlushTurn {
        match self.last {
            _ if self.is_off => FlushTurn::Now,
            Some((issued, done)) if issued > asked => FlushTurn::Served(done),
            Some((_, done)) if done > now => FlushTurn::Later(done),
            _ => FlushTurn::Now,
        }
    }

    pub(crate) fn issued(&mut self, at: SimTime, done: SimTime) {
        self.last = Some((at, done));
    }
}
