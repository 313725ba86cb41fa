//! Test benches of the layers: the models that file systems and devices are compared with, random
//! operations, and power cuts.
//!
//! Tests use it, and the explorer of power cuts. No layer does.

pub mod crash;
mod device;
pub mod exercise;
mod model;

pub use device::{
    Crash, Crashes, Event, Mismatch, PlacesDevice, Recording, RecordingDevice, ReferenceDevice,
    Survivors,
};
pub use model::Model;
