//! Measurements between two snapshots.

use dovetail_ftl::stats::{CommandKind, Values};
use dovetail_time::SimSpan;

/// Significant digits of a window's latencies.
const DIGITS: u8 = 2;

/// Arrivals and latencies of an interval.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    arrivals: u64,
    /// Calls under way, summed over arrivals.
    in_flight: u64,
    /// One for each kind of command, in the order of [`CommandKind::ALL`].
    latencies: [Values<u32>; CommandKind::ALL.len()],
}

impl Default for Window {
    fn default() -> Self {
        Self { arrivals: 0, in_flight: 0, latencies: std::array::from_fn(|_| Values::new(DIGITS)) }
    }
}

impl Window {
    /// Notes a call that arrives; `in_flight` counts it.
    pub(crate) fn arrive(&mut self, in_flight: u64) {
        self.arrivals += 1;
        self.in_flight += in_flight;
    }

    /// Notes a latency.
    pub(crate) fn latency(&mut self, kind: CommandKind, latency: SimSpan) {
        self.latencies[kind as usize].record(latency.as_ns());
    }

    /// Adds what happened in a later one.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.arrivals += later.arrivals;
        self.in_flight += later.in_flight;
        self.latencies.iter_mut().zip(&later.latencies).for_each(|(mine, theirs)| mine.add(theirs));
    }

    /// Calls under way, mean over arrivals.
    pub(crate) fn queue_depth(&self) -> Option<f64> {
        (self.arrivals > 0).then(|| self.in_flight as f64 / self.arrivals as f64)
    }

    /// A quantile of the latencies of a kind in microseconds.
    pub(crate) fn quantile_us(&self, kind: CommandKind, quantile: f64) -> Option<f64> {
        let values = &self.latencies[kind as usize];
        (!values.is_empty()).then(|| values.histogram().value_at_quantile(quantile) as f64 / 1e3)
    }
}
