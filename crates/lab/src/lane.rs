//! The one host of all runs: a machine, and the lanes of the actors on it.

use dovetail_vfs::BackgroundThread;
use dovetail_workload::ThreadId;

use crate::below::Below;
use crate::record::Seen;

/// The machine of a run.
pub(crate) type Machine = dovetail_host::Machine<Below, Lane>;

/// The drive of a machine as it is now, for a recorder.
pub(crate) fn seen<'a>(machine: &Machine, drive: &'a Below) -> Seen<'a> {
    Seen { at: machine.now(), drive, traffic: machine.traffic() }
}

/// Owner of a plan or a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// A call of a thread, by its slot.
    Call(usize),
    /// A thread that sleeps.
    Thread(ThreadId),
    /// A call that nobody makes but the run itself.
    Alone,
    /// A thread of the file system's background.
    Background(BackgroundThread),
    /// A timer of the devirtualizer.
    Devirtualizer(Alarm),
    /// A batch of the devirtualizer.
    Batch,
    /// Pages that are read ahead, by their slot.
    ReadAhead(usize),
    /// A request of a block trace, by its slot.
    Request {
        /// The slot.
        slot: usize,
        /// The part of it.
        part: Part,
    },
}

/// A timer of the devirtualizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// Its next run is due.
    Interval,
    /// No call may have been made for long enough.
    Idle,
    /// There is room for its command at the drive.
    Room,
}

/// A command that a request of a trace consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The flush, alone or before a write.
    Flush,
    /// A read of the rest of a block that a write covers in part.
    Rest,
    /// The read.
    Read,
    /// The write.
    Write,
    /// The discard.
    Discard,
}
