//! Test benches of the layers: the models that file systems and devices are compared with, random
//! operations, and power cuts.
//!
//! Tests use it, and the explorer of power cuts. No layer does.

#![allow(clippy::print_stdout, reason = "tests say what they saw")]

mod campaign;
pub mod crash;
mod device;
pub mod exercise;
mod model;
mod truth;

pub use campaign::campaign;
pub use device::{
    CountingDevice, Crash, Crashes, Event, Mismatch, PlacesDevice, Recording, RecordingDevice,
    ReferenceDevice, Requests, Survivors,
};
pub use model::Model;
pub use truth::{assert_near, shuffled};
