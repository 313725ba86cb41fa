//! A workload that finds a file set when it starts.

use dovetail_time::SimTime;

use super::FileSet;
use crate::call::{Call, FileId, Outcome, Step, ThreadId, Workload};

/// First the files of a set are written, then another workload runs; its files are numbered behind those of the set.
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
        with_file(call, |file| FileId(file.0 + offset))
    }

    fn inward(&self, call: Call) -> Call {
        let offset = self.offset();
        with_file(call, |file| FileId(file.0.saturating_sub(offset)))
    }
}

impl<W: Workload> Workload for Prepared<W> {
    fn threads(&self) -> u32 {
        self.then.threads()
    }

    fn path(&self, file: FileId) -> &str {
        match file.0.checked_sub(self.offset()) {
            Some(inner) => self.then.path(FileId(inner)),
            None => self.first.path(file),
        }
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
}

fn with_file(call: Call, change: impl Fn(FileId) -> FileId) -> Call {
    match call {
        Call::Open { file } => Call::Open { file: change(file) },
        Call::Close { file } => Call::Close { file: change(file) },
        Call::Read { file, offset, len, direct } => Call::Read { file: change(file), offset, len, direct },
        Call::Write { file, offset, len, direct } => Call::Write { file: change(file), offset, len, direct },
        Call::Append { file, len } => Call::Append { file: change(file), len },
        Call::PunchHole { file, offset, len } => Call::PunchHole { file: change(file), offset, len },
        Call::Allocate { file, len, keep_size } => Call::Allocate { file: change(file), len, keep_size },
        Call::Truncate { file, size } => Call::Truncate { file: change(file), size },
        Call::Sync { file, data_only } => Call::Sync { file: change(file), data_only },
        Call::SyncAll => Call::SyncAll,
        Call::Unlink { file } => Call::Unlink { file: change(file) },
        Call::Stat { file } => Call::Stat { file: change(file) },
        Call::DropCache { file } => Call::DropCache { file: change(file) },
    }
}
