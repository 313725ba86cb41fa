//! Test benches of the layers: the model that a file system is compared with, random operations, and power cuts.
//!
//! Tests use it, and the explorer of power cuts. No layer does.

pub mod crash;
pub mod exercise;
mod model;

pub use model::Model;
