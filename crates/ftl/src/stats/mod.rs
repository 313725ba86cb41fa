//! Counters of a drive, and latencies.

mod counters;
mod latency;
mod values;

pub use counters::{Cause, Counters, MapUse, ReadCause};
pub use latency::{CommandKind, Latencies, Percentiles};
pub use values::Values;
