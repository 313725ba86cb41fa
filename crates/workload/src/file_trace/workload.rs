//! A file-level trace as a workload.

use dovetail_time::SimTime;

use super::error::FileTraceError;
use super::pace::{Pace, Pacer};
use super::passes::Passes;
use super::recorded::{FileTrace, RecordedCall};
use super::scaled::Sizes;
use super::thread::{Planned, Thread};
use crate::call::{Call, FileId, Outcome, Step, ThreadId, Workload};
use crate::lay_out::{Filling, LayOut};

/// Options of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileTraceOptions {
    /// Time between the calls of each thread.
    pub pace: Pace,
    /// Repetitions, parts included: 2.5 is two passes and half of one; above 0, at most a million.
    pub loops: f64,
    /// By how much files and number of calls are shrunk: above 0, at most 1.
    pub scale: f64,
}

impl Default for FileTraceOptions {
    fn default() -> Self {
        Self { pace: Pace::Gaps(1.0), loops: 1.0, scale: 1.0 }
    }
}

impl FileTraceOptions {
    /// Checks the ranges, and whether the trace has what the pace needs.
    ///
    /// # Errors
    /// [`FileTraceError::Option`], [`FileTraceError::NoCpuTimes`].
    pub fn check(&self, trace: &FileTrace) -> Result<(), FileTraceError> {
        let wrong = |option, value, allowed| Err(FileTraceError::Option { option, value, allowed });
        self.pace.check(trace)?;
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
    pacer: Pacer,
    passes: Passes,
    pass: u64,
    /// Threads that are not through with this pass.
    left: usize,
}

impl FileTraceWorkload {
    /// Plans a replay. The files are made first, at the sizes with which they begin.
    ///
    /// # Errors
    /// See [`FileTraceOptions::check`].
    pub fn new(trace: &FileTrace, options: &FileTraceOptions) -> Result<Self, FileTraceError> {
        options.check(trace)?;
        let sizes = Sizes::new(trace, options.scale);
        let fillings = (0..trace.files.len()).map(|file| Filling {
            file: FileId(file as u32),
            size: sizes.begin(file),
            drop_cache: true,
        });
        let call = |recorded: &RecordedCall| Planned {
            number: recorded.number,
            pause: options.pace.pause(recorded),
            call: sizes.fold(recorded.call),
        };
        let threads =
            trace.threads.iter().map(|calls| Thread::new(calls.iter().map(call).collect()));
        Ok(Self {
            job: trace.name().into(),
            paths: trace.files.iter().map(|file| file.path.clone()).collect(),
            layout: LayOut::new(fillings.collect()),
            threads: threads.collect(),
            pacer: Pacer::new(options.pace),
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
        self.pacer.begin_pass();
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
        runs.next(now, limit, &mut self.pacer).unwrap_or_else(|| self.end_pass(thread, now))
    }

    fn ended(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome) {
        self.threads[thread.0 as usize].ended(call, outcome.end, &mut self.pacer);
    }
}
