//! Workloads of a device or a file system.
//!
//! Block traces in the formats people have are iterators of [`Request`]s in order of time, streamed
//! ([`trace::TraceReader`]) and never loaded whole. Workloads on files are threads that make
//! [`Call`]s ([`Workload`]): [`fio`] job files, Filebench's [`personality`], a [`file_trace`] made
//! again, and the [`fileset`] that a file system has before another workload starts. Nothing here
//! knows a device or a file system.
//!
//! ```
//! use dovetail_time::{SimSpan, SimTime};
//! use dovetail_workload::fio::{FioError, FioWorkload, JobFile, Variables};
//! use dovetail_workload::{Call, FileId, Outcome, Step, ThreadId, Workload};
//!
//! # fn main() -> Result<(), FioError> {
//! let job = "[log]\nrw=write\nbs=64k\nsize=1m\nfsync=4\n";
//! let mut workload = FioWorkload::new(JobFile::parse(job, "log.fio", &Variables::new())?, 1)?;
//! assert_eq!(workload.path(FileId(0)), "log.0.0");
//!
//! // The job's thread makes a call, hears how it ended, and makes the next.
//! let (thread, mut now, mut calls) = (ThreadId(0), SimTime::ZERO, Vec::new());
//! while let Step::Call(call) = workload.next(thread, now) {
//!     let end = now + SimSpan::from_us(100); // as long as each call takes here
//!     let bytes = if let Call::Write { len, .. } = call { len } else { 0 };
//!     workload.ended(thread, &call, &Outcome { begin: now, end, bytes });
//!     calls.push(call);
//!     now = end;
//! }
//! let writes = calls.iter().filter(|call| matches!(call, Call::Write { .. })).count();
//! let syncs = calls.iter().filter(|call| matches!(call, Call::Sync { .. })).count();
//! assert_eq!((writes, syncs), (16, 3)); // 1 MiB by 64 KiB; an fsync after 4, 8 and 12 of them
//! # Ok(())
//! # }
//! ```

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
