//! Experiments: configuration and seed in, results out. Prints nothing; progress goes through a
//! callback.

mod below;
pub mod bench;
mod lane;
pub mod linux;
mod map_cache;
mod parallel;
mod precondition;
mod progress;
mod record;
pub mod replay;
pub mod results;

pub use dovetail_host::HostCosts;
pub use parallel::run_all;
pub use progress::{Progress, Stage};
