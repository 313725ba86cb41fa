//! Devices for tests: one that records, the states that power cuts leave of it, and models of what
//! devices may do.

mod counting;
mod cuts;
mod places;
mod reads;
mod recording;
mod reference;

pub use counting::{CountingDevice, Requests};
pub use cuts::{Crash, Crashes, Survivors};
pub use places::PlacesDevice;
pub use reads::ReadLog;
pub use recording::{Event, Recording, RecordingDevice};
pub use reference::{Mismatch, ReferenceDevice};
