//! The tool over file systems and drives.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-devirt --test all crash::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod crash;
mod drive;
mod model;
mod support;
