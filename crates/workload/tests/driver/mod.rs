//! Runs a workload against a file system in memory whose calls take fixed virtual times, and checks
//! what every workload has to keep to: reads, writes and syncs go to files that the thread has
//! open, names that are taken away are there, what is asked of the host can end, and the same run
//! twice makes the same calls.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::{Call, FileId, Outcome, Step, ThreadId, Workload};

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) thread: ThreadId,
    pub(crate) call: Call,
    pub(crate) outcome: Outcome,
}

/// A run, in the order in which calls were made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Calls of [`Workload::prepare`].
    pub(crate) prepared: Vec<Call>,
    pub(crate) calls: Vec<Ended>,
    /// Time at which the last thread was done.
    pub(crate) end: SimTime,
    /// The driver stopped it: threads had more to do.
    pub(crate) cut_off: bool,
    /// Sizes of the files that there are at the end.
    pub(crate) files: BTreeMap<FileId, u64>,
    /// Files that an open made, prepare aside.
    pub(crate) created: u64,
    /// Times that a thread was asked for its step.
    pub(crate) asked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// It will be asked when a time has come, or never.
    No,
    Own,
    Others,
    Done,
}

/// Event at a time; the number keeps the order of events at the same time.
type Event = Reverse<(SimTime, u64, usize)>;

struct Driver<'a, W: Workload> {
    workload: &'a mut W,
    now: SimTime,
    number: u64,
    events: BinaryHeap<Event>,
    /// By number: the call that ends then; an event without one wakes its thread.
    under_way: BTreeMap<u64, Ended>,
    waiting: Vec<Waiting>,
    files: BTreeMap<FileId, u64>,
    /// Number of times that a thread has a file open. Prepare is the thread `None`.
    open: BTreeMap<(Option<ThreadId>, FileId), u32>,
    report: Report,
    most_calls: usize,
}

/// Runs the workload until every thread is done, or `most_calls` were made.
pub(crate) fn run(workload: &mut impl Workload, most_calls: usize) -> Report {
    let threads = workload.threads() as usize;
    let mut driver = Driver {
        workload,
        now: SimTime::ZERO,
        number: 0,
        events: BinaryHeap::new(),
        under_way: BTreeMap::new(),
        waiting: vec![Waiting::No; threads],
        files: BTreeMap::new(),
        open: BTreeMap::new(),
        report: Report::default(),
        most_calls,
    };
    driver.prepare();
    driver.run();
    driver.report.files = driver.files;
    driver.report
}

impl<W: Workload> Driver<'_, W> {
    fn prepare(&mut self) {
        while let Some(call) = self.workload.prepare() {
            self.perform(None, &call);
            self.report.prepared.push(call);
        }
        let left: Vec<_> = self.open.iter().filter(|(_, count)| **count > 0).collect();
        assert!(left.is_empty(), "prepare left files open: {left:?}");
    }

    fn run(&mut self) {
        for thread in 0..self.waiting.len() {
            self.ask(thread);
        }
        while let Some(Reverse((time, number, thread))) = self.events.pop() {
            assert!(time >= self.now, "time goes backwards");
            self.now = time;
            match self.under_way.remove(&number) {
                Some(ended) => self.end(thread, &ended),
                None => self.ask(thread),
            }
            if self.report.calls.len() >= self.most_calls {
                self.report.cut_off = true;
                return;
            }
        }
        self.report.end = self.now;
        let stuck: Vec<_> = (0..self.waiting.len())
            .filter(|&thread| self.waiting[thread] != Waiting::Done)
            .collect();
        assert!(stuck.is_empty(), "nothing happens any more, and these threads wait: {stuck:?}");
    }

    fn end(&mut self, thread: usize, ended: &Ended) {
        self.workload.ended(ended.thread, &ended.call, &ended.outcome);
        for other in 0..self.waiting.len() {
            if other != thread && self.waiting[other] == Waiting::Others {
                self.ask(other);
            }
        }
        if self.waiting[thread] == Waiting::Own {
            self.ask(thread);
        }
    }

    fn ask(&mut self, thread: usize) {
        self.waiting[thread] = Waiting::No;
        for _ in 0..100_000 {
            self.report.asked += 1;
            match self.workload.next(ThreadId(thread as u32), self.now) {
                Step::Call(call) => self.submit(thread, call),
                Step::Sleep(until) => {
                    assert!(until >= self.now, "a sleep until the past");
                    return self.at(until, thread);
                }
                Step::Wait => {
                    let own = self.under_way.values().any(|it| it.thread.0 as usize == thread);
                    assert!(own, "thread {thread} waits for its calls and has none");
                    return self.waiting[thread] = Waiting::Own;
                }
                Step::WaitForOthers => return self.waiting[thread] = Waiting::Others,
                Step::Done => return self.waiting[thread] = Waiting::Done,
            }
        }
        panic!("thread {thread} makes calls without end");
    }

    fn at(&mut self, time: SimTime, thread: usize) {
        self.number += 1;
        self.events.push(Reverse((time, self.number, thread)));
    }

    fn submit(&mut self, thread: usize, call: Call) {
        let id = ThreadId(thread as u32);
        let bytes = self.perform(Some(id), &call);
        let end = self.now + duration(&call, bytes);
        let ended = Ended { thread: id, call, outcome: Outcome { begin: self.now, end, bytes } };
        self.at(end, thread);
        self.under_way.insert(self.number, ended);
        self.report.calls.push(ended);
    }

    /// Does the call to the files at once; bytes read or written.
    fn perform(&mut self, thread: Option<ThreadId>, call: &Call) -> u64 {
        match *call {
            Call::Open { file } => {
                assert!(!self.workload.path(file).is_empty(), "{file:?} has no path");
                let new =
                    self.files.insert(file, self.files.get(&file).copied().unwrap_or(0)).is_none();
                self.report.created += u64::from(new && thread.is_some());
                *self.open.entry((thread, file)).or_default() += 1;
            }
            Call::Close { file } => {
                self.must_be_open(thread, file, call);
                *self.open.entry((thread, file)).or_default() -= 1;
            }
            Call::Read { file, offset, len, direct } => {
                self.must_be_open(thread, file, call);
                must_be_aligned(call, offset, len, direct);
                let size = self.files.get(&file).copied().unwrap_or(0);
                return len.min(size.saturating_sub(offset));
            }
            Call::Write { file, offset, len, direct } => {
                self.must_be_open(thread, file, call);
                must_be_aligned(call, offset, len, direct);
                self.grow(file, offset + len);
                return len;
            }
            Call::Append { file, len } => {
                self.must_be_open(thread, file, call);
                let size = self.files.get(&file).copied().unwrap_or(0);
                self.grow(file, size + len);
                return len;
            }
            Call::Allocate { file, len, keep_size } => {
                self.must_be_open(thread, file, call);
                self.grow(file, if keep_size { 0 } else { len });
            }
            Call::Truncate { file, size } => {
                self.must_be_open(thread, file, call);
                self.files.entry(file).and_modify(|old| *old = size);
            }
            Call::PunchHole { file, .. } | Call::Sync { file, .. } | Call::DropCache { file } => {
                self.must_be_open(thread, file, call);
            }
            Call::Unlink { file } => {
                assert!(self.files.remove(&file).is_some(), "{call:?}: no such file");
            }
            Call::Stat { file } => {
                assert!(self.files.contains_key(&file), "{call:?}: no such file");
            }
            Call::SyncAll | Call::MakeDirectories { .. } => {}
        }
        0
    }

    fn must_be_open(&self, thread: Option<ThreadId>, file: FileId, call: &Call) {
        let open = self.open.get(&(thread, file)).is_some_and(|count| *count > 0);
        assert!(open, "{call:?} of {thread:?}: the file is not open");
    }

    /// A file whose name is gone has no size here.
    fn grow(&mut self, file: FileId, end: u64) {
        self.files.entry(file).and_modify(|size| *size = end.max(*size));
    }
}

fn must_be_aligned(call: &Call, offset: u64, len: u64, direct: bool) {
    let whole = offset.is_multiple_of(4096) && len.is_multiple_of(4096);
    assert!(!direct || whole, "{call:?}: direct I/O is in whole blocks");
}

/// 100 us a call, 1 ns for 4 bytes, 1 ms for a sync.
fn duration(call: &Call, bytes: u64) -> SimSpan {
    let sync = matches!(call, Call::Sync { .. } | Call::SyncAll);
    SimSpan::from_us(if sync { 1000 } else { 100 }) + SimSpan::from_ns(bytes / 4)
}
