//! A flash translation layer: NAND flash as a [`dovetail_block::BlockDevice`].
//!
//! The drive is made of parts that each know one thing: a mapping scheme ([`mapping`]) where each
//! logical page is, [`lines`] what is filled and free, a victim policy ([`victim`]) what to clean
//! next, the write buffer what is not on flash yet, the discard journal what must stay forgotten.
//! [`Drive`] carries their decisions out.
//!
//! After a power cut a drive is an [`UnrecoveredDrive`]; recovery yields a [`Drive`] again. See
//! `docs/drive-model.md` for the model and `docs/fault-model.md` for what is assumed of the medium.

#![cfg_attr(
    not(unix),
    allow(dead_code, unused_imports, reason = "drives in files are on Unix alone, and use more")
)]

mod bits;
mod buffer;
pub mod cache;
mod cleaner;
mod config;
mod controller;
mod drive;
#[cfg(unix)]
mod emulated;
mod fdp;
mod log_block;
pub mod mapping;
mod medium;
mod metadata;
mod ownership;
mod profile;
mod remap;
mod sequences;
mod single;
pub mod stats;
mod storage;
mod translation;
pub mod victim;
mod zoned;

pub use config::{BufferOrder, ConfigError, DriveConfig, MOST_STREAMS, MapCacheConfig, StreamsBy};
pub use dovetail_nand::DieUse;
pub use drive::{Drive, RecoveryReport, UnrecoveredDrive};
#[cfg(unix)]
pub use emulated::{EmulatedDrive, EmulatedError, SwitchedOn};
pub use log_block::{LogBlockConfig, LogScheme};
pub use medium::lines;

pub use profile::{Overrides, Profile, ProfileError, Variant, builtin_profiles};
pub use remap::{RemapConfig, RemapStore};
pub use single::{SingleCache, WhenFull};
pub use storage::{PowerCycle, Storage};
pub use zoned::{UnrecoveredZonedDrive, ZoneConfig, ZoneTimes, ZonedDrive, ZonedRecovery};
