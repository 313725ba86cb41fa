//! A file-level trace as a workload.

use dovetail_time::{SimSpan, SimTime};

use super::error::FileTraceError;
use super::passes::Passes;
use super::recorded::{FileTrace, RecordedCall};
use super::scaled::Sizes;
use super::thread::Thread;
use crate::call::{Call, FileId, Outcome, Step, ThreadId, Workload};
use crate::lay_out::{Filling, LayOut};

/// Options of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileTraceOptions {
    /// By what the gaps of each thread are multiplied: 1 is the recorded pace, 0 as fast as calls
    /// return; at most 1000.
    pub gaps: f64,
    /// Repetitions, parts included: 2.5 is two passes and half of one; above 0, at most a million.
    pub loops: f64,
    /// By how much files and number of calls are shrunk: above 0, at most 1.
    pub scale: f64,
}

impl Default for FileTraceOptions {
    fn default() -> Self {
        Self { gaps: 1.0, loops: 1.0, scale: 1.0 }
    }
}

impl FileTraceOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`FileTraceError::Option`].
    pub fn check(&self) -> Result<(), FileTraceError> {
        let wrong = |option, value, allowed| Err(FileTraceError::Option { option, value, allowed });
        if !(0.0..=1000.0).contains(&self.gaps) {
            return wrong("gaps", self.gaps, "0 to 1000");
        }
        if !(self.loops > 0.0 && self.loops <= 1e6) {
            return wrong("loops", self.loops, "more than 0, at most 1000000");
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            return wrong("scale", self.scale, "more than 0, at most 1");
        }
        Ok(())
    }
}

/// The threads of a trace. No thread begins another pass over the trace before all have ended the
/// last one, so that the mix of calls does not depend on the stack.
#[derive(Debug)]
pub struct FileTraceWorkload {
    job: String,
    paths: Vec<String>,
    layout: LayOut,
    threads: Vec<Thread>,
    passes: Passes,
    pass: u64,
    /// Threads that are not through with this pass.
    left: usize,
}

impl FileTraceWorkload {
    /// Plans a replay. The files are made first, at the sizes that they reach.
    ///
    /// # Errors
    /// [`FileTraceError::Option`].
    pub fn new(trace: &FileTrace, options: &FileTraceOptions) -> Result<Self, FileTraceError> {
        options.check()?;
        let sizes = Sizes::new(trace, options.scale);
        let fillings = (0..trace.files.len()).map(|file| Filling {
            file: FileId(file as u32),
            size: sizes.of(file),
            drop_cache: true,
        });
        let call = |recorded: &RecordedCall| RecordedCall {
            gap: SimSpan::from_ns((recorded.gap.as_ns() as f64 * options.gaps) as u64),
            call: sizes.fold(recorded.call),
            ..*recorded
        };
        let threads =
            trace.threads.iter().map(|calls| Thread::new(calls.iter().map(call).collect()));
        Ok(Self {
            job: trace.name().into(),
            paths: trace.files.iter().map(|file| file.path.clone()).collect(),
            layout: LayOut::new(fillings.collect()),
            threads: threads.collect(),
            passes: Passes::new(trace.calls(), options.loops * options.scale),
            pass: 0,
            left: trace.threads.len(),
        })
    }

    /// The thread has made its calls of this pass.
    fn end_pass(&mut self, thread: ThreadId, now: SimTime) -> Step {
        if self.passes.is_last(self.pass) {
            return Step::Done;
        }
        self.threads[thread.0 as usize].begin_pass();
        self.left -= 1;
        if self.left > 0 {
            return Step::WaitForOthers;
        }
        self.left = self.threads.len();
        self.pass += 1;
        self.next(thread, now)
    }
}

impl Workload for FileTraceWorkload {
    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    fn job(&self, _thread: ThreadId) -> &str {
        &self.job
    }

    fn path(&self, file: FileId) -> &str {
        &self.paths[file.0 as usize]
    }

    fn prepare(&mut self) -> Option<Call> {
        self.layout.next()
    }

    fn next(&mut self, thread: ThreadId, now: SimTime) -> Step {
        let limit = self.passes.calls(self.pass);
        let runs = &mut self.threads[thread.0 as usize];
        if runs.is_busy {
            return Step::Wait;
        }
        if runs.pass > self.pass {
            return Step::WaitForOthers;
        }
        runs.next(now, limit).unwrap_or_else(|| self.end_pass(thread, now))
    }

    fn ended(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome) {
        self.threads[thread.0 as usize].ended(call, outcome.end);
    }
}
