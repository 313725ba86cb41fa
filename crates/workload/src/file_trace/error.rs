//! Errors of a file-level trace.

use crate::trace::TraceError;

/// A trace that cannot be replayed; every message names the file, and the line where that helps.
#[derive(Debug, thiserror::Error)]
pub enum FileTraceError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Read(TraceError),
    /// A line that the format does not allow.
    #[error("{file}:{line}: expected {expected}, found {found}")]
    BadLine {
        /// The trace.
        file: String,
        /// The number of the line, from 1.
        line: u64,
        /// Description of what should stand there.
        expected: &'static str,
        /// Text that stands there, in quotes and cut to a readable length.
        found: String,
    },
    /// There is not a single call.
    #[error("{file} has no calls: there is nothing to replay in it")]
    Empty {
        /// The trace.
        file: String,
    },
    /// There is a call without the CPU time before it.
    #[error("{file} has no CPU times, the last column of a call: record it anew, or give gaps")]
    NoCpuTimes {
        /// The trace.
        file: String,
    },
    /// An option out of its range.
    #[error("{option} is {value}: give {allowed}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Value that was given.
        value: f64,
        /// Values that are allowed.
        allowed: &'static str,
    },
}
