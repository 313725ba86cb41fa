//! File-level traces: the calls that a program's threads made on its files, made again.
//!
//! Threads depend on each other in ways that no trace holds (a commit waits for what another thread
//! writes). A replay keeps each thread's order, and its gaps between the end of a call and the
//! start of the next, scaled by a factor. `docs/workloads.md` has the format.

mod builder;
mod error;
mod line;
mod passes;
mod recorded;
mod scaled;
mod thread;
mod workload;

pub use error::FileTraceError;
pub use recorded::FileTrace;
pub use workload::{FileTraceOptions, FileTraceWorkload};
