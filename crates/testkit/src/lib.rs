//! Test benches of the layers: the models that file systems and devices are compared with, random
//! operations, and power cuts.
//!
//! Tests use it, and the explorer of power cuts. No layer does.
//!
//! ```
//! use dovetail_block::{BlockDevice, BlockRange, Command, Content, Data, DeviceError, Lba};
//! use dovetail_block::{MemoryDevice, Pattern};
//! use dovetail_testkit::{RecordingDevice, Survivors};
//! use dovetail_time::{Rng, SimTime};
//!
//! # fn main() -> Result<(), DeviceError> {
//! let mut device = RecordingDevice::new(MemoryDevice::new(16));
//! let now = SimTime::ZERO;
//! let [old, new] = [1, 2].map(Pattern::new);
//! let range = BlockRange::new(Lba(3), 1);
//! device.submit(now, Command::write(range, Data::Patterns(old)))?;
//! device.submit(now, Command::Flush)?;
//! device.submit(now, Command::write(range, Data::Patterns(new)))?;
//!
//! // The power is cut after the third event: only what was flushed is sure to be there.
//! let mut rng = Rng::new(1);
//! let mut left = |survivors| {
//!     let image = device.recording().image_at(3, survivors, &mut rng);
//!     image.get(Lba(3)).clone()
//! };
//! assert_eq!(left(Survivors::None), Content::Pattern(old));
//! assert_eq!(left(Survivors::All), Content::Pattern(new));
//! # Ok(())
//! # }
//! ```

#![allow(clippy::print_stdout, reason = "tests say what they saw")]

mod campaign;
pub mod crash;
mod device;
pub mod exercise;
mod model;
mod program;
mod truth;

pub use campaign::campaign;
pub use device::{
    CountingDevice, Crash, Crashes, Event, Mismatch, PlacesDevice, ReadLog, Recording,
    RecordingDevice, ReferenceDevice, Requests, Survivors,
};
pub use model::Model;
pub use program::program;
pub use truth::{assert_near, shuffled};
