//! Reports in a browser.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-report --test all browser::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod browser;
#[path = "../../lab/tests/common/mod.rs"]
mod common;
