//! A workload that finds a file set when it starts.

use dovetail_block::{BLOCK_SIZE, Lifetime};
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

    fn lifetime(&self, thread: ThreadId) -> Lifetime {
        self.then.lifetime(thread)
    }

    fn system_calls(&self, thread: ThreadId) -> u32 {
        self.then.system_calls(thread)
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

    fn share_done(&self, now: SimTime) -> Option<f64> {
        self.then.share_done(now)
    }

    fn prepared_bytes(&self) -> u64 {
        self.first.bytes() + self.then.prepared_bytes()
    }

    fn wanted_bytes(&self) -> u64 {
        self.first.bytes() + self.then.wanted_bytes()
    }

    fn written_blocks(&self) -> Option<u64> {
        // the last block of a file may be a part of one
        let blocks = self.first.bytes() / BLOCK_SIZE + u64::from(self.offset());
        Some(self.then.written_blocks()?.saturating_add(blocks))
    }

    fn problem(&self) -> Option<String> {
        self.then.problem()
    }

    fn fio(&self) -> Option<&FioWorkload> {
        self.then.fio()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fileset::{Amount, FileSetConfig};
    use crate::fio::{JobFile, Variables};

    /// A job tells the same of its threads in a box, and behind a file set.
    #[test]
    fn threads_stay_what_they_are() {
        let text = "[a]\nrw=write\nsize=1m\nioengine=libaio\nwrite_hint=short\n";
        let file = || JobFile::parse(text, "a.fio", &Variables::new()).unwrap();
        let job = || FioWorkload::new(file(), 1).unwrap();
        let all = FileSetConfig::new(Amount::Bytes(1 << 20));
        let set = FileSet::generate("fill", &all, 1).unwrap();
        let boxed: Box<dyn Workload> = Box::new(job());
        let about = |workload: &dyn Workload| {
            let thread = ThreadId(0);
            let of = workload.job(thread).to_owned();
            (workload.lifetime(thread), workload.system_calls(thread), of)
        };
        let told = about(&Prepared::new(set, boxed));
        assert_eq!(told, about(&job()));
        assert_eq!(told, (Lifetime::Short, 2, "a".into()));
    }
}
