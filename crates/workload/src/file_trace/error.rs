//! What can be wrong with a file-level trace.

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
        /// What should stand there.
        expected: &'static str,
        /// What stands there, in quotes and cut to a readable length.
        found: String,
    },
    /// There is not a single call.
    #[error("{file} has no calls: there is nothing to replay in it")]
    Empty {
        /// The trace.
        file: String,
    },
    /// An option out of its range.
    #[error("{option} is {value}: give {allowed}")]
    Option {
        /// Which.
        option: &'static str,
        /// What it was.
        value: f64,
        /// What it may be.
        allowed: &'static str,
    },
}
