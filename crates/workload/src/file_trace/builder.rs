//! A file-level trace line by line.

use std::collections::{HashMap, HashSet};

use dovetail_time::SimSpan;

use super::error::FileTraceError;
use super::line::{Line, LoggedCall, LoggedFile, LoggedOp, parse};
use super::recorded::{FileTrace, RecordedCall, RecordedFile};
use crate::call::{Call, FileId};
use crate::trace::{Bad, Lines, TraceError};

/// Assumed: as many histograms of latencies fit into memory.
pub(super) const THREADS_MAX: usize = 1024;

/// Reason why a line cannot be taken in.
#[derive(Debug)]
pub(super) enum Fault {
    Bad(Bad),
    Read(TraceError),
}

impl From<Bad> for Fault {
    fn from(bad: Bad) -> Self {
        Self::Bad(bad)
    }
}

impl From<TraceError> for Fault {
    fn from(error: TraceError) -> Self {
        if error.is_bad_line() {
            let expected = "a line of UTF-8 text, at most 64 KiB long";
            return Self::Bad(Bad { expected, found: "something else".into() });
        }
        Self::Read(error)
    }
}

impl Fault {
    /// The error, at the line last read.
    pub(super) fn at(self, lines: &Lines) -> FileTraceError {
        match self {
            Self::Read(error) => FileTraceError::Read(error),
            Self::Bad(Bad { expected, found }) => FileTraceError::BadLine {
                file: lines.path().display().to_string(),
                line: lines.number(),
                expected,
                found,
            },
        }
    }
}

/// Trace as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Builder {
    files: Vec<RecordedFile>,
    /// Bytes of each file after the calls so far.
    sizes: Vec<u64>,
    names: HashSet<String>,
    ids: HashMap<u64, FileId>,
    threads: Vec<Thread>,
    numbers: HashMap<u64, usize>,
    begin_us: Option<u64>,
    calls: u64,
}

#[derive(Debug, Default)]
struct Thread {
    calls: Vec<RecordedCall>,
    /// Time at which its last call ended.
    end_us: u64,
}

impl Builder {
    /// Takes the next line in; whether there was one.
    pub(super) fn take(&mut self, lines: &mut Lines) -> Result<bool, Fault> {
        let Some(line) = lines.next_line()? else { return Ok(false) };
        if let Some(line) = parse(line)? {
            self.add(line)?;
        }
        Ok(true)
    }

    fn add(&mut self, line: Line<'_>) -> Result<(), Bad> {
        match line {
            Line::File(file) => self.file(file),
            Line::Call(call) => self.call(call),
        }
    }

    fn file(&mut self, LoggedFile { id, bytes, name, begin }: LoggedFile<'_>) -> Result<(), Bad> {
        let new = FileId(self.files.len() as u32);
        if self.ids.insert(id, new).is_some() {
            return Err(Bad::new("a number that no other file has", &id.to_string()));
        }
        if !self.names.insert(name.into()) {
            return Err(Bad::new("a name that no other file has", name));
        }
        let begin = begin.unwrap_or(bytes);
        self.files.push(RecordedFile { path: name.into(), begin, bytes });
        self.sizes.push(begin);
        Ok(())
    }

    fn call(&mut self, logged: LoggedCall) -> Result<(), Bad> {
        let id = logged.file;
        let file =
            *self.ids.get(&id).ok_or_else(|| Bad::new("the number of a file", &id.to_string()))?;
        let call = self.as_call(file, logged)?;
        self.grow(&call);
        let begin_us = *self.begin_us.get_or_insert(logged.start_us);
        let next = self.threads.len();
        let thread = *self.numbers.entry(logged.thread).or_insert(next);
        if thread == THREADS_MAX {
            return Err(Bad::new("one of 1024 threads at most", &logged.thread.to_string()));
        }
        if thread == next {
            self.threads.push(Thread { calls: Vec::new(), end_us: begin_us });
        }
        let thread = &mut self.threads[thread];
        let gap = SimSpan::from_us(logged.start_us.saturating_sub(thread.end_us));
        thread.end_us = thread.end_us.max(logged.start_us) + logged.duration_us;
        let cpu = logged.cpu_us.map(SimSpan::from_us);
        thread.calls.push(RecordedCall { number: self.calls, gap, cpu, call });
        self.calls += 1;
        Ok(())
    }

    fn as_call(&self, file: FileId, logged: LoggedCall) -> Result<Call, Bad> {
        let len = logged.bytes;
        Ok(match (logged.op, logged.offset) {
            (LoggedOp::Read, offset) => {
                Call::Read { file, offset: offset.unwrap_or(0), len, direct: false }
            }
            (LoggedOp::Write, Some(offset)) => {
                self.check_within(file, offset, len)?;
                Call::Write { file, offset, len, direct: false }
            }
            (LoggedOp::Write, None) => Call::Append { file, len },
            (LoggedOp::Datasync, _) => Call::Sync { file, data_only: true },
            (LoggedOp::Sync, _) => Call::Sync { file, data_only: false },
            (LoggedOp::Allocate, offset) => {
                let start = offset.unwrap_or(self.sizes[file.0 as usize]);
                Call::Allocate { file, len: start.saturating_add(len), keep_size: false }
            }
        })
    }

    fn check_within(&self, file: FileId, offset: u64, len: u64) -> Result<(), Bad> {
        if offset.saturating_add(len) <= self.files[file.0 as usize].bytes {
            return Ok(());
        }
        let found = format!("{offset} + {len}");
        Err(Bad::new("a write that ends within the size of its file", &found))
    }

    /// Takes the call into the size of its file.
    fn grow(&mut self, call: &Call) {
        let Some(file) = call.file() else { return };
        let size = &mut self.sizes[file.0 as usize];
        *size = match *call {
            Call::Write { offset, len, .. } => offset.saturating_add(len).max(*size),
            Call::Append { len, .. } => size.saturating_add(len),
            Call::Allocate { len, .. } => len.max(*size),
            _ => *size,
        };
    }

    pub(super) fn finish(self, name: String) -> Result<FileTrace, FileTraceError> {
        if self.calls == 0 {
            return Err(FileTraceError::Empty { file: name });
        }
        let threads = self.threads.into_iter().map(|thread| thread.calls).collect();
        Ok(FileTrace { name, files: self.files, threads, calls: self.calls })
    }
}
