//! The choices of the file system, as pure functions: facts in, choice out. Mechanisms elsewhere
//! carry the choices out.

mod discards;
mod fsync;
mod iplfs;
mod ipu;
mod log;
mod space;
mod victim;
mod write_mode;
mod zoned_cleaning;

pub(crate) use discards::{
    DISCARD_BUSY_MS, DISCARD_IDLE_MS, DiscardFacts, DiscardStep, Pace, discard_step, iplfs_pace,
    segmented_pace,
};
pub(crate) use fsync::{FsyncFacts, must_checkpoint};
pub(crate) use iplfs::{HEADROOM_MARGIN, HeadroomFacts, can_carry, can_log, is_tight, log_is_due};
pub use ipu::IpuPolicy;
pub(crate) use ipu::SMALL_VOLUME_SEGMENTS;
pub(crate) use ipu::UpdateFacts;
pub use log::Logs;
pub(crate) use log::{DataFacts, Log, data_log, matches_extension, node_log};
pub(crate) use space::{SpaceFacts, enough_free, has_room_to_recover, need_ssr};
pub(crate) use victim::{Age, cost_benefit};
pub(crate) use write_mode::{RunFacts, Updates, WriteMode, adaptive_mode, is_large, write_mode};
pub(crate) use zoned_cleaning::{
    CleaningWindow, ZONED_NOTHING_MS, ZONED_SLEEP_MS, cleaning_window, is_nearly_full,
};
