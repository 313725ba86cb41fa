//! The simulated drive beside the theory, and the papers' numbers beside the code.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-papers --test all gc_theory::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod gc_theory;
mod inputs;
