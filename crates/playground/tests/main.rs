//! The page in a browser.
//!
//! All tests of this folder are modules of this one program.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod browser;
mod devtools;
