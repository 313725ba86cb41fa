//! F2FS and IPLFS, against referees, models and power cuts.
//!
//! All tests of this folder are modules of this one program: a program each would take far longer
//! to build. To run one of them: `cargo test -p dovetail-f2fs --test all crash::`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

mod cleaning;
mod common;
mod crash;
mod damage;
mod damage_mounted;
mod encode;
mod failing;
mod fsck;
mod fsck_docs;
mod fsck_iplfs;
mod fsck_mutations;
mod fsck_random;
mod fsync_order;
mod full;
mod hazards;
mod hints;
mod iplfs;
mod iplfs_damage;
mod iplfs_headroom;
mod kernel_images;
mod marks;
mod mkfs;
mod model;
mod mount_options;
mod mounted;
mod past_cache;
mod recovery_reads;
mod remap;
mod salvage;
mod tools;
mod truth;
mod unreadable;
mod wide_registers;
mod write_back;
mod zoned;
mod zoned_images;
mod zoned_mkfs;
mod zoned_pointers;
mod zoned_truth;
