//! A flash translation layer: NAND flash as a [`dovetail_block::BlockDevice`].
//!
//! The drive is made of parts that each know one thing: a mapping scheme ([`mapping`]) where each
//! logical page is, [`lines`] what is filled and free, a victim policy ([`victim`]) what to clean
//! next, the write buffer what is not on flash yet, the discard journal what must stay forgotten.
//! [`Drive`] carries their decisions out.
//!
//! After a power cut a drive is an [`UnrecoveredDrive`]; recovery yields a [`Drive`] again. See
//! `docs/drive-model.md` for the model and `docs/fault-model.md` for what is assumed of the medium.
//!
//! ```
//! use dovetail_block::{BlockDevice, BlockRange, Command, Data, Lba, Pattern};
//! use dovetail_ftl::{Drive, Overrides, Profile};
//! use dovetail_time::{Rng, SimTime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A drive of 32 GiB, 64 times smaller: 512 MiB, and the same ratios.
//! let small = Overrides { scale: Some("1/64".parse()?), ..Overrides::default() };
//! let mut drive = Drive::new(Profile::load("femu-32g")?.resolve(&small)?)?;
//! let blocks = drive.config().user_blocks;
//!
//! // Random writes, twice the capacity: the drive must clean to go on.
//! let (mut rng, mut now) = (Rng::new(1), SimTime::ZERO);
//! for number in 0..2 * blocks {
//!     let range = BlockRange::new(Lba(rng.below(blocks)), 1);
//!     let write = Command::write(range, Data::Patterns(Pattern::new(number)));
//!     now = drive.submit(now, write)?.done;
//! }
//! let waf = drive.counters().waf(drive.geometry().subpages_per_page());
//! assert!(waf.is_some_and(|waf| waf > 1.5), "cleaning moves pages: {waf:?}");
//! assert!(now.as_secs_f64() > 1.0, "in virtual time");
//! # Ok(())
//! # }
//! ```

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
mod durability;
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
