//! A file-level trace in memory.

use std::io::Read;
use std::path::Path;

use dovetail_time::SimSpan;

use super::builder::Builder;
use super::error::FileTraceError;
use super::line::{Line, parse};
use crate::call::Call;
use crate::trace::Lines;

/// A file of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedFile {
    pub(super) path: String,
    /// The size with which it began.
    pub(super) begin: u64,
    /// The size that it reached.
    pub(super) bytes: u64,
}

/// A call of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedCall {
    /// Its place in the trace, from 0.
    pub(super) number: u64,
    /// Between the end of the thread's call before, or the start of the trace, and its start.
    pub(super) gap: SimSpan,
    /// CPU time that the thread spent there; absent in a trace without.
    pub(super) cpu: Option<SimSpan>,
    pub(super) call: Call,
}

/// Files and calls of a trace, by thread.
#[derive(Clone, Debug)]
pub struct FileTrace {
    pub(super) name: String,
    pub(super) files: Vec<RecordedFile>,
    pub(super) threads: Vec<Vec<RecordedCall>>,
    pub(super) calls: u64,
}

impl FileTrace {
    /// Returns whether the file at `path` looks like a file-level trace: its first line with
    /// content names a file.
    pub fn is_one(path: &Path) -> bool {
        let Ok(mut lines) = Lines::open(path) else { return false };
        while let Ok(Some(line)) = lines.next_line() {
            match parse(line) {
                Ok(None) => {}
                first => return matches!(first, Ok(Some(Line::File(_)))),
            }
        }
        false
    }

    /// Returns whether a text begins as a file-level trace does.
    pub(crate) fn begins(sample: &[u8]) -> bool {
        let lines = sample.split(|b| *b == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let first = lines.map(parse).find(|line| !matches!(line, Ok(None)));
        matches!(first, Some(Ok(Some(Line::File(_)))))
    }

    /// Reads the trace at `path`: plain text, gzip or zstd, whatever its name.
    ///
    /// # Errors
    /// See [`FileTraceError`].
    pub fn open(path: &Path) -> Result<Self, FileTraceError> {
        Self::of(Lines::open(path).map_err(FileTraceError::Read)?)
    }

    /// Reads a trace as [`FileTrace::open`] does; `name` is what it is called.
    ///
    /// # Errors
    /// See [`FileTraceError`].
    pub fn read(name: &str, reader: impl Read + Send + 'static) -> Result<Self, FileTraceError> {
        Self::of(Lines::read(Path::new(name), reader).map_err(FileTraceError::Read)?)
    }

    fn of(mut lines: Lines) -> Result<Self, FileTraceError> {
        let mut builder = Builder::default();
        loop {
            match builder.take(&mut lines) {
                Ok(true) => {}
                Ok(false) => return builder.finish(lines.path().display().to_string()),
                Err(fault) => return Err(fault.at(&lines)),
            }
        }
    }

    /// Name of the trace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of calls.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns whether each call has the CPU time that its thread spent before it.
    pub fn has_cpu_times(&self) -> bool {
        self.threads.iter().flatten().all(|call| call.cpu.is_some())
    }

    /// Bytes of its files together, at the sizes that they reached.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }
}
