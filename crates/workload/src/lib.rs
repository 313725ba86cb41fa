//! What a device or file system is asked to do.
//!
//! Block traces in the formats people have are iterators of [`Request`]s in order of time, streamed ([`trace::TraceReader`]) and never loaded
//! whole. Workloads on files are threads that make [`Call`]s ([`Workload`]), such as fio job files ([`fio`]). Nothing here knows a device or a file system.

mod call;
pub mod fio;
mod request;
pub mod trace;

pub use call::{Call, FileId, Outcome, Step, ThreadId, Workload};
pub use request::{Op, Request};
