//! What a drive counts, and latencies.

mod counters;
mod latency;

pub use counters::{Cause, Counters, MapUse, ReadCause};
pub use latency::{CommandKind, Latencies, Percentiles};
