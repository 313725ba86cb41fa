//! A real kernel on a modelled drive.
//!
//! `dovetail linux build` makes the kernel; without one these tests say that they are skipped.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

mod bad_input;
mod common;
mod cuts;
mod repeats;
mod zones;
