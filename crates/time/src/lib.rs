//! Virtual time, units and seeded randomness; how small text files are read.
//!
//! Nothing here reads a clock or the machine's randomness: a simulation is a function of its
//! configuration and its seed. The crate has no dependencies, so that everything may stand on it.
//!
//! ```
//! use dovetail_time::{Rng, SimSpan, SimTime, UnitError, parse_bytes, parse_span};
//!
//! # fn main() -> Result<(), UnitError> {
//! // A read that is issued at 2 ms and takes 50 us.
//! let issued = SimTime::ZERO + parse_span("2ms")?;
//! let done = issued + SimSpan::from_us(50);
//! assert_eq!(done.as_ns(), 2_050_000);
//! assert_eq!(done.since(issued).to_string(), "50.0 us");
//!
//! // Sizes as fio reads them: K is 1024.
//! assert_eq!(parse_bytes("64k")?, 65_536);
//!
//! // The same seed draws the same numbers, on every machine.
//! let (mut one, mut other) = (Rng::new(7), Rng::new(7));
//! assert_eq!([one.below(100), one.below(100)], [other.below(100), other.below(100)]);
//! # Ok(())
//! # }
//! ```

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
