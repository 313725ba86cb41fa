//! Experiments and their results.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-lab --test all bench::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod bench;
mod common;
mod cut;
mod docs;
mod fio_json;
mod fio_runs;
mod iplfs_crash;
mod raw;
mod read_ahead;
mod remap_crash;
mod replay;
mod restart;
mod scales;
mod truth;
mod write_path;
mod zone_log;
mod zoned;
mod zoned_crash;
