//! A plan: what a call issued, in its order.

use dovetail_block::{BlockRange, ByteRange, EventId, Hints, LockId};

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads blocks.
    Read(BlockRange),
    /// Writes blocks.
    Write {
        /// Where to.
        range: BlockRange,
        /// What the writer knows of them.
        hints: Hints,
        /// Durable when it completes.
        fua: bool,
    },
    /// Makes all that completed before durable.
    Flush,
    /// Gives ranges back.
    Discard(Vec<ByteRange>),
    /// Waits for its reads so far.
    WaitReads,
    /// Waits for all its commands.
    WaitAll,
    /// Takes a lock.
    Lock {
        /// Which.
        lock: LockId,
        /// With others.
        shared: bool,
    },
    /// Gives a lock back.
    Unlock(LockId),
    /// Brings about an event.
    Signal(EventId),
    /// Waits for an event.
    Await(EventId),
}

impl Step {
    /// It is a command to the drive.
    pub const fn is_command(&self) -> bool {
        matches!(self, Self::Read(_) | Self::Write { .. } | Self::Flush | Self::Discard(_))
    }

    /// The blocks that it touches, and whether it changes them.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (BlockRange, bool)> {
        let (one, many): (Option<(BlockRange, bool)>, &[_]) = match self {
            Self::Read(range) => (Some((*range, false)), &[]),
            Self::Write { range, .. } => (Some((*range, true)), &[]),
            Self::Discard(ranges) => (None, ranges),
            _ => (None, &[]),
        };
        one.into_iter().chain(many.iter().map(|range| (range.blocks_inside(), true)))
    }
}

/// What a call issued: steps to be played one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}
