//! Experiments: configuration and seed in, results out. Prints nothing; progress goes through a callback.

pub mod bench;
mod parallel;
pub mod replay;
pub mod report;
pub mod results;
pub mod theory;

pub use parallel::run_all;
