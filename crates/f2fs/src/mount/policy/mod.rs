//! What the file system decides, as pure functions: state in, choice out. Mechanisms elsewhere carry the choices out.

mod fsync;
mod iplfs;
mod log;
mod place;
mod space;
mod update;
mod victim;

pub(crate) use fsync::{FsyncFacts, must_checkpoint};
pub(crate) use iplfs::{
    IPLFS_PACE, Pace, ROOM_MARGIN, RoomFacts, can_carry, can_log, is_tight, log_is_due, segmented_pace,
};
pub use log::Logs;
pub(crate) use log::{DataFacts, Log, data_log, matches_extension, node_log};
pub use place::IpuPolicy;
pub(crate) use place::PlaceFacts;
pub(crate) use place::SMALL_VOLUME_SEGMENTS;
pub(crate) use space::{SpaceFacts, enough_free, need_ssr};
pub(crate) use update::{RunFacts, Updates, Way, chosen, is_large, way};
pub(crate) use victim::{Age, cost_benefit};
