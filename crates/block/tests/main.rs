//! Commands and answers between a file system and a device, as a recorder sees them.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-block --test all gather::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod gather;
mod query;
