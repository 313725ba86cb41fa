//! The machine that plays what calls issue.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-host --test all machine::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod machine;
mod order;
mod zone_log;
mod zones;
