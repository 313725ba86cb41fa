//! Readers of block traces: one file a format, each a pure parser of one line.
//!
//! A trace is a text file, plain or compressed with gzip or zstd (told by its first bytes, not by
//! its name), and is streamed: memory does not grow with its length, nor with that of a line. The
//! formats, their columns and their sources stand in `docs/traces.md`.
//!
//! A parser decides only the meaning of a line without the lines before it. The reader does the
//! rest: relative time, its order, the device filter, and what happens to lines that are bad.
//!
//! Left out: completion times (a replay measures its own), processes, CPUs, and file system calls.

mod alibaba;
mod blkparse;
mod detect;
mod error;
mod field;
mod fio;
mod foreign;
mod format;
mod gzip;
mod lines;
mod mqsim;
mod msr;
mod reader;
mod source;
mod tencent;
mod zstd;

pub use blkparse::{BlkEvent, UnknownEvent};
pub use error::TraceError;
pub(crate) use field::{Bad, number};
pub use format::{Format, UnknownFormat};
pub(crate) use lines::Lines;
pub use reader::{TraceOptions, TraceReader};
