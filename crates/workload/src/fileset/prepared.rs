//! A workload that finds a file set when it starts.

use dovetail_time::SimTime;

use super::FileSet;
use crate::call::{Call, FileId, Outcome, Step, ThreadId, Workload};
use crate::fio::FioWorkload;

/// First the files of a set are written, then another workload runs; its files are numbered behind
/// those of the set.
#[derive(Clone, Debug)]
pub struct Prepared<W> {
    first: FileSet,
    then: W,
}

impl<W: Workload> Prepared<W> {
    /// `then`, on a file system that holds `first`.
    pub fn new(first: FileSet, then: W) -> Self {
        Self { first, then }
    }

    /// The workload that runs.
    pub fn inner(&self) -> &W {
        &self.then
    }

    fn offset(&self) -> u32 {
        self.first.files().len() as u32
    }

    fn outward(&self, call: Call) -> Call {
        let offset = self.offset();
        call.with_file(|file| FileId(file.0 + offset))
    }

    fn inward(&self, call: Call) -> Call {
        let offset = self.offset();
        call.with_file(|file| FileId(file.0.saturating_sub(offset)))
    }
}

impl<W: Workload> Workload for Prepared<W> {
    fn threads(&self) -> u32 {
        self.then.threads()
    }

    fn job(&self, thread: ThreadId) -> &str {
        self.then.job(thread)
    }

    fn path(&self, file: FileId) -> &str {
        match file.0.checked_sub(self.offset()) {
            Some(inner) => self.then.path(FileId(inner)),
            None => self.first.path(file),
        }
    }

    fn first_file(&self) -> FileId {
        FileId(self.then.first_file().0 + self.offset())
    }

    fn prepare(&mut self) -> Option<Call> {
        let first = self.first.prepare();
        first.or_else(|| self.then.prepare().map(|call| self.outward(call)))
    }

    fn next(&mut self, thread: ThreadId, now: SimTime) -> Step {
        match self.then.next(thread, now) {
            Step::Call(call) => Step::Call(self.outward(call)),
            other => other,
        }
    }

    fn ended(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome) {
        let call = self.inward(*call);
        self.then.ended(thread, &call, outcome);
    }

    fn measured(&self, thread: ThreadId, begin: SimTime) -> bool {
        self.then.measured(thread, begin)
    }

    fn problem(&self) -> Option<String> {
        self.then.problem()
    }

    fn fio(&self) -> Option<&FioWorkload> {
        self.then.fio()
    }
}
