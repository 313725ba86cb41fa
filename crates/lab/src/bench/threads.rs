//! The threads of a workload as actors: their calls, and what they wait for.

use std::ops::Range;

use dovetail_block::Lifetime;
use dovetail_ftl::stats::CommandKind;
use dovetail_time::SimTime;
use dovetail_vfs::Moment;
use dovetail_workload::{Call, Outcome, ThreadId, Workload};

use super::BenchError;
use super::files::{CallError, Effect, Files};
use super::fio_record::{FioRecords, Submission};
use super::read_ahead::BufferedRead;
use super::system::System;
use crate::record::Recorder;

/// A call under way.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) thread: ThreadId,
    pub(super) call: Call,
    pub(super) begin: SimTime,
    pub(super) bytes: u64,
    pub(super) submission: Submission,
    /// Is true for a call that waits for another call's work and is to be made again then.
    pub(super) again: bool,
}

/// The state of a thread that makes no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    Ready,
    Sleeping,
    /// Its call waits for the devirtualizer.
    Held,
    /// It makes the call of a slot, on a CPU or waiting for one.
    Working {
        slot: usize,
    },
    Waiting,
    WaitingForOthers,
    Done,
}

/// The threads of a workload.
pub(super) struct Threads<'w> {
    pub(super) workload: &'w mut dyn Workload,
    pub(super) files: Files,
    pub(super) fio: FioRecords,
    states: Vec<ThreadState>,
    /// Time at which each thread has handed over its last call.
    free_from: Vec<SimTime>,
    /// Calls under way by their slots.
    calls: Vec<Option<InFlight>>,
    free: Vec<usize>,
    /// Number of calls under way of each thread.
    under_way: Vec<u64>,
}

impl<'w> Threads<'w> {
    pub(super) fn new(workload: &'w mut dyn Workload, files: Files) -> Self {
        let threads = workload.threads() as usize;
        Self {
            fio: FioRecords::of(&*workload),
            workload,
            files,
            states: vec![ThreadState::Ready; threads],
            free_from: vec![SimTime::ZERO; threads],
            calls: Vec::new(),
            free: Vec::new(),
            under_way: vec![0; threads],
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.states.len() as u32).map(ThreadId)
    }

    pub(super) fn state(&self, thread: ThreadId) -> ThreadState {
        self.states[thread.0 as usize]
    }

    pub(super) fn set(&mut self, thread: ThreadId, state: ThreadState) {
        self.states[thread.0 as usize] = state;
    }

    /// Time from which on a thread has no call to hand over.
    pub(super) fn free_from(&self, thread: ThreadId) -> SimTime {
        self.free_from[thread.0 as usize]
    }

    /// Notes that a thread hands over a call until `then`.
    pub(super) fn hands_over_until(&mut self, thread: ThreadId, then: SimTime) {
        self.free_from[thread.0 as usize] = then;
    }

    /// Calls under way.
    pub(super) fn busy(&self) -> u64 {
        (self.calls.len() - self.free.len()) as u64
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy() > 0
    }

    /// Threads that are not done.
    pub(super) fn left(&self) -> usize {
        self.states.iter().filter(|state| **state != ThreadState::Done).count()
    }

    /// Some thread goes on by itself.
    pub(super) fn goes_on(&self) -> bool {
        let goes_on =
            |state: &ThreadState| matches!(state, ThreadState::Sleeping | ThreadState::Held);
        self.states.iter().any(goes_on)
    }

    /// Carries out a call of a thread on the file system, which then has issued what it takes.
    pub(super) fn perform(
        &mut self,
        system: &mut System,
        now: SimTime,
        thread: ThreadId,
        call: &Call,
    ) -> Result<Effect, BenchError> {
        self.files.set_lifetime(self.workload.lifetime(thread));
        self.carry_out(system, now, thread, call)
    }

    /// Carries out a call that no thread makes.
    pub(super) fn perform_alone(
        &mut self,
        system: &mut System,
        now: SimTime,
        call: &Call,
    ) -> Result<Effect, BenchError> {
        self.files.set_lifetime(Lifetime::NotSet);
        self.carry_out(system, now, ThreadId(0), call)
    }

    fn carry_out(
        &mut self,
        system: &mut System,
        now: SimTime,
        thread: ThreadId,
        call: &Call,
    ) -> Result<Effect, BenchError> {
        system.fs.set_now(Moment::at(now));
        let path = call.file().map_or("", |file| self.workload.path(file));
        let performed = self.files.perform(system.fs.as_mut(), now, call, path);
        performed.map_err(|error| failed(error, now, (thread, name_of(call)), path))
    }

    /// The buffered read that a call of a thread is.
    pub(super) fn buffered_read(&self, thread: ThreadId, call: &Call) -> Option<BufferedRead> {
        let Call::Read { file, offset, len, direct: false } = *call else { return None };
        let (ino, pages, file_pages) = self.files.part_of(file, (offset, len))?;
        Some(BufferedRead { thread, file, ino, pages, file_pages })
    }

    /// Brings pages of a file into memory.
    pub(super) fn fetch(
        &mut self,
        system: &mut System,
        now: SimTime,
        read: &BufferedRead,
        pages: Range<u64>,
    ) -> Result<(), BenchError> {
        system.fs.set_now(Moment::at(now));
        let fetched = self.files.fetch(system.fs.as_mut(), read.file, pages, false);
        let path = self.workload.path(read.file);
        fetched.map_err(|error| failed(error, now, (read.thread, "read"), path))
    }

    /// A slot for a call of a thread; returns it, and the thread's calls under way with this one.
    pub(super) fn take_slot(&mut self, thread: ThreadId) -> (usize, u64) {
        let slot = self.free.pop().unwrap_or(self.calls.len());
        if slot == self.calls.len() {
            self.calls.push(None);
        }
        let under_way = &mut self.under_way[thread.0 as usize];
        *under_way += 1;
        (slot, *under_way)
    }

    pub(super) fn put(&mut self, slot: usize, call: InFlight) {
        self.calls[slot] = Some(call);
    }

    /// The thread of a slot's call, which has handed it over.
    pub(super) fn handed_over(&mut self, slot: usize, at: SimTime) -> Option<ThreadId> {
        let call = self.calls[slot].as_mut()?;
        call.submission.handed_over = at;
        Some(call.thread)
    }

    /// The call of a slot, whose plan has been played to its end.
    pub(super) fn take(&mut self, slot: usize) -> Option<InFlight> {
        self.calls[slot].take()
    }

    /// Ends a call, and counts it if it is measured.
    pub(super) fn end(
        &mut self,
        slot: usize,
        call: &InFlight,
        at: SimTime,
        recorder: &mut Recorder,
    ) {
        self.free.push(slot);
        self.under_way[call.thread.0 as usize] -= 1;
        let outcome = Outcome { begin: call.begin, end: at, bytes: call.bytes };
        self.workload.ended(call.thread, &call.call, &outcome);
        if !self.workload.measured(call.thread, call.begin) {
            recorder.warm_up(call.thread.0 as usize, call.begin, at);
            if let Some(kind) = kind_of(&call.call) {
                recorder.count_warm_up(kind, outcome.bytes);
            }
            return;
        }
        self.fio.call(&*self.workload, call, &outcome);
        if let Some(kind) = kind_of(&call.call) {
            let thread = call.thread.0 as usize;
            recorder.count(thread, kind, outcome.bytes);
            recorder.latency(thread, kind, outcome.begin, outcome.end);
        }
    }
}

/// As what a call counts in the results; `None` for one that does not.
pub(super) const fn kind_of(call: &Call) -> Option<CommandKind> {
    match call {
        Call::Read { .. } => Some(CommandKind::Read),
        Call::Write { .. } | Call::Append { .. } => Some(CommandKind::Write),
        Call::Sync { .. } | Call::SyncAll => Some(CommandKind::Flush),
        Call::PunchHole { .. } => Some(CommandKind::Discard),
        _ => None,
    }
}

fn failed(
    error: CallError,
    at: SimTime,
    (thread, call): (ThreadId, &'static str),
    path: &str,
) -> BenchError {
    let path = path.into();
    match error {
        CallError::Refused(source) => BenchError::Call { at, thread: thread.0, call, path, source },
        CallError::WrongData { block } => BenchError::WrongData { at, path, block },
    }
}

const fn name_of(call: &Call) -> &'static str {
    match call {
        Call::Open { .. } => "open",
        Call::MakeDirectories { .. } => "make the directories of",
        Call::Close { .. } => "close",
        Call::Read { .. } => "read",
        Call::Write { .. } => "write",
        Call::Append { .. } => "append to",
        Call::PunchHole { .. } => "punch a hole in",
        Call::Allocate { .. } => "allocate",
        Call::Truncate { .. } => "truncate",
        Call::Sync { .. } => "sync",
        Call::SyncAll => "sync all of",
        Call::Unlink { .. } => "unlink",
        Call::Stat { .. } => "stat",
        Call::DropCache { .. } => "drop the cache of",
    }
}
