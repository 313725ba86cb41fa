//! Workloads, against what fio and people write.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-workload --test all file_trace::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod common;
mod driver;
mod file_trace;
mod fileset;
mod fio_calls;
mod fio_docs;
mod fio_drawn;
mod fio_examples;
mod fio_output;
mod fio_referee;
mod fio_threads;
mod personality;
mod reading;
mod shared_traces;
