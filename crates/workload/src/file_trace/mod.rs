//! File-level traces: the calls that a program's threads made on its files, made again.
//!
//! Threads depend on each other in ways that no trace holds (a commit waits for what another thread
//! writes). A replay keeps each thread's order, and either its gaps between the end of a call and
//! the start of the next, scaled by a factor, or the CPU time that it spent there; then it also
//! follows the order of the trace loosely. `docs/workloads.md` has the format.

mod builder;
mod error;
mod line;
mod order;
mod pace;
mod passes;
mod recorded;
mod scaled;
mod thread;
mod workload;

pub use error::FileTraceError;
pub use pace::{ClosedLoop, Pace};
pub use recorded::FileTrace;
pub use workload::{FileTraceOptions, FileTraceWorkload};
