//! The translation layer, from outside.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-ftl --test all devirtualize::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod cells;
mod copies;
mod devirtualize;
mod drive;
mod emulated;
mod fdp;
mod integrity;
mod interval;
mod log_block;
mod paged_full;
mod remap;
mod thin;
mod timing;
mod zoned;
