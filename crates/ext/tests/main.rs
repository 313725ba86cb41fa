//! ext3 and ext4, against referees, models and power cuts.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-ext --test all crash::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod common;
mod crash;
mod damage;
mod damage_mounted;
mod encode;
mod foreign;
mod fsck;
mod fsx;
mod full;
mod hints;
mod host_kernel;
mod kernel_images;
mod large_changes;
mod mke2fs;
mod mkfs;
mod model;
mod mounted;
mod past_cache;
mod recovery_reads;
mod simulated;
mod truth;
mod walk;
