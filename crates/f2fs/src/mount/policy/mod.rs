//! What the file system decides, as pure functions: state in, choice out. Mechanisms elsewhere carry the choices out.

mod fsync;
mod log;
mod place;
mod space;
mod victim;

pub(crate) use fsync::{FsyncFacts, must_checkpoint};
pub(crate) use log::{DataFacts, Log, Logs, data_log, matches_extension, node_log};
pub(crate) use place::{PlaceFacts, in_place};
pub use place::IpuPolicy;
pub(crate) use space::{SpaceFacts, enough_free, need_ssr};
pub(crate) use victim::{Age, cost_benefit};
