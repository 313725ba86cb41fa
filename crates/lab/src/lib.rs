//! Experiments: configuration and seed in, results out. Prints nothing; progress goes through a
//! callback.

#![cfg_attr(
    not(unix),
    allow(dead_code, unused_imports, reason = "guests are on Unix alone, and use more")
)]

mod below;
pub mod bench;
mod lane;
#[cfg(unix)]
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
