//! Virtual time, units and seeded randomness; how small text files are read.
//!
//! Nothing here reads a clock or the machine's randomness: a simulation is a function of its
//! configuration and its seed. The crate has no dependencies, so that everything may stand on it.

mod clock;
mod floor;
mod nearest;
mod rng;
mod text;
mod units;

pub use clock::{SimSpan, SimTime};
pub use floor::AtFloor;
pub use nearest::{did_you_mean, nearest};
pub use rng::Rng;
pub use text::read_text;
pub use units::{Ratio, UnitError, format_bytes, format_count, parse_bytes, parse_span};
