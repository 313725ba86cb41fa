//! Errors of a trace.

use std::io;
use std::path::PathBuf;

use super::format;
use super::lines::LINE_BYTES_MAX;

/// Reason why a trace cannot be read, or not further. Every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("cannot open {}: {source}; give the path of a trace file", path.display())]
    Open {
        /// The trace.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file cannot be read on, or its compressed data is damaged.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The trace.
        path: PathBuf,
        /// Error of the system or of the decompressor.
        source: io::Error,
    },
    /// The compressed data ends in the middle: a download or a copy that was cut short.
    #[error("{} is cut short: its compressed data ends too early", path.display())]
    Truncated {
        /// The trace.
        path: PathBuf,
    },
    /// There is not a single line to tell the format from.
    #[error("{} is empty: there is nothing to replay in it", path.display())]
    Empty {
        /// The trace.
        path: PathBuf,
    },
    /// Another kind of file.
    #[error("{} is {kind}, not a trace of blocks; {instead}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Kind of the file, with its article.
        kind: &'static str,
        /// Advice, as a clause.
        instead: &'static str,
    },
    /// The first lines are of no format, or could be of several.
    #[error(
        "cannot tell the format of {} from its first lines; give it with --format, one of {}",
        path.display(),
        format::names()
    )]
    UnknownFormat {
        /// The trace.
        path: PathBuf,
    },
    /// A line that the format does not allow.
    #[error(
        "{}:{line}: expected {expected}, found {found} (--skip-bad counts such lines and goes on)",
        path.display()
    )]
    BadLine {
        /// The trace.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// Description of what should stand there.
        expected: &'static str,
        /// Text that stands there, in quotes and cut to a readable length.
        found: String,
    },
    /// A line that is not UTF-8.
    #[error("{}:{line}: not UTF-8 text (--skip-bad counts such lines and goes on)", path.display())]
    NotUtf8 {
        /// The trace.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
    },
    /// A line longer than any format has: 64 KiB.
    #[error(
        "{}:{line}: a line of more than {LINE_BYTES_MAX} bytes (--skip-bad counts such lines and goes on)",
        path.display()
    )]
    LineTooLong {
        /// The trace.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
    },
    /// A line that has no end within 64 MiB: a device, or a file of another kind.
    #[error("{}:{line}: no line ends within 64 MiB: this is not a text", path.display())]
    NoText {
        /// The trace.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
    },
}

impl TraceError {
    /// Returns whether it is about one line, so that [`super::TraceOptions::skip_bad`] passes over
    /// it.
    pub const fn is_bad_line(&self) -> bool {
        matches!(self, Self::BadLine { .. } | Self::NotUtf8 { .. } | Self::LineTooLong { .. })
    }
}
