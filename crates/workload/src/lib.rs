//! Workloads of a device or a file system.
//!
//! Block traces in the formats people have are iterators of [`Request`]s in order of time, streamed
//! ([`trace::TraceReader`]) and never loaded whole. Workloads on files are threads that make
//! [`Call`]s ([`Workload`]): [`fio`] job files, Filebench's [`personality`], a [`file_trace`] made
//! again, and the [`fileset`] that a file system has before another workload starts. Nothing here
//! knows a device or a file system.

mod call;
mod draw;
pub mod file_trace;
pub mod fileset;
pub mod fio;
mod lay_out;
pub mod personality;
mod request;
pub mod trace;

pub use call::{Call, FileId, Outcome, Step, ThreadId, Workload};
pub use request::{Op, Request};
