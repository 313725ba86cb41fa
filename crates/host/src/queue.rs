//! The block layer: a limited number of requests at the drive, flushes of several threads in one, and counts.

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
}

/// A command with blocks as it reached the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When.
    pub at: SimTime,
    /// When it was done.
    pub done: SimTime,
    /// What.
    pub kind: RequestKind,
    /// Which blocks. A discard of several ranges is shown once for each, a remap once for each address.
    pub range: BlockRange,
}

/// Commands that reached the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Issued {
    /// How many.
    pub requests: u64,
    /// Blocks of 4 KiB; pairs of a remap.
    pub blocks: u64,
    /// Time from issue to completion, summed.
    pub time: SimSpan,
    /// How many of each class of sizes.
    pub sizes: [u64; SIZE_CLASSES],
}

/// What reached the drive, by kind.
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
    /// Flushes that another thread's flush did as well.
    pub merged_flushes: u64,
    /// CPU time spent on requests.
    pub cpu: SimSpan,
}

impl Traffic {
    pub(crate) fn count(&mut self, kind: RequestKind, blocks: u64, time: SimSpan) {
        let issued = match kind {
            RequestKind::Read => &mut self.read,
            RequestKind::Write => &mut self.write,
            RequestKind::Flush => &mut self.flush,
            RequestKind::Discard => &mut self.discard,
            RequestKind::Remap => &mut self.remap,
        };
        issued.requests += 1;
        issued.blocks += blocks;
        if let Some(class) = blocks.checked_ilog2() {
            issued.sizes[(class as usize).min(SIZE_CLASSES - 1)] += 1;
        }
        issued.time = SimSpan::from_ns(issued.time.as_ns() + time.as_ns());
    }
}

/// The requests at the drive.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    in_flight: BinaryHeap<Reverse<SimTime>>,
}

impl Depth {
    /// When there is room for one more; `None` for now.
    pub(crate) fn room_from(&mut self, now: SimTime, depth: u32) -> Option<SimTime> {
        if self.in_flight.len() < depth as usize {
            return None;
        }
        while self.in_flight.peek().is_some_and(|Reverse(done)| *done <= now) {
            self.in_flight.pop();
        }
        let full = self.in_flight.len() >= depth.max(1) as usize;
        self.in_flight.peek().filter(|_| full).map(|Reverse(done)| *done)
    }

    pub(crate) fn enter(&mut self, done: SimTime) {
        self.in_flight.push(Reverse(done));
    }
}

/// The last flush. One that was issued after a thread asked for it serves that thread as well (Linux: at most one flush at the
/// device, those that come meanwhile share the next one).
#[derive(Debug, Default)]
pub(crate) struct FlushMerge {
    last: Option<(SimTime, SimTime)>,
}

/// What becomes of a thread's flush.
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
    pub(crate) fn turn(&self, asked: SimTime, now: SimTime) -> FlushTurn {
        match self.last {
            Some((issued, done)) if issued >= asked => FlushTurn::Served(done),
            Some((_, done)) if done > now => FlushTurn::Later(done),
            _ => FlushTurn::Now,
        }
    }

    pub(crate) fn issued(&mut self, at: SimTime, done: SimTime) {
        self.last = Some((at, done));
    }
}
