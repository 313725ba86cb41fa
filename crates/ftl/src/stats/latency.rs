//! Latency histograms, one for each kind of command.

use dovetail_time::SimSpan;
use serde::{Deserialize, Serialize};

use super::Values;

/// The kinds of command that are timed apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes.
    Flush,
    /// Discards.
    Discard,
}

impl CommandKind {
    /// All kinds, in the order in which results list them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        }
    }
}

/// The figures of one histogram, in nanoseconds; all 0 when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Commands.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Least.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// 99.99th percentile.
    pub p9999_ns: u64,
    /// Greatest.
    pub max_ns: u64,
}

/// Shares from 0 ever closer to 1: as many steps from 0 to 0.9 as from 0.9 to 0.99, and so on to
/// 0.99999. Only operations that are exact to the last bit on every machine.
fn quantiles(points: usize) -> impl Iterator<Item = f64> {
    const DECADES: usize = 5;
    let steps = (points / DECADES).max(1);
    (0..DECADES * steps).map(move |i| {
        let above = (0..i / steps).fold(1.0, |above, _| above / 10.0);
        1.0 - above * (1.0 - 0.9 * (i % steps) as f64 / steps as f64)
    })
}

/// One histogram for each [`CommandKind`], three significant digits, up to an hour; longer counts
/// as an hour.
#[derive(Clone, Debug)]
pub struct Latencies {
    histograms: [Values<u64>; CommandKind::ALL.len()],
}

const LONGEST_NS: u64 = 3_600_000_000_000;

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// Empty histograms.
    pub fn new() -> Self {
        Self { histograms: std::array::from_fn(|_| Values::new(3)) }
    }

    /// Notes one command.
    pub fn record(&mut self, kind: CommandKind, latency: SimSpan) {
        self.histograms[kind as usize].record(latency.as_ns().min(LONGEST_NS));
    }

    /// Notes `times` commands of one latency.
    pub fn record_n(&mut self, kind: CommandKind, latency: SimSpan, times: u64) {
        (0..times).for_each(|_| self.record(kind, latency));
    }

    /// Commands of every kind.
    pub fn count(&self) -> u64 {
        CommandKind::ALL.into_iter().map(|kind| self.percentiles(kind).count).sum()
    }

    /// Takes in what `others` noted.
    pub fn add(&mut self, others: &Self) {
        self.histograms
            .iter_mut()
            .zip(&others.histograms)
            .for_each(|(mine, theirs)| mine.add(theirs));
    }

    /// The figures of one kind.
    pub fn percentiles(&self, kind: CommandKind) -> Percentiles {
        if self.histograms[kind as usize].is_empty() {
            return Percentiles::default();
        }
        let h = self.histograms[kind as usize].histogram();
        Percentiles {
            count: h.len(),
            mean_ns: h.mean(),
            min_ns: h.min(),
            p50_ns: h.value_at_quantile(0.5),
            p90_ns: h.value_at_quantile(0.9),
            p99_ns: h.value_at_quantile(0.99),
            p999_ns: h.value_at_quantile(0.999),
            p9999_ns: h.value_at_quantile(0.9999),
            max_ns: h.max(),
        }
    }

    /// The cumulative distribution of one kind: (latency in ns, share of commands at or below it),
    /// about `points` of them, none when it is empty.
    pub fn cdf(&self, kind: CommandKind, points: usize) -> Vec<(u64, f64)> {
        if self.histograms[kind as usize].is_empty() {
            return Vec::new();
        }
        let h = self.histograms[kind as usize].histogram();
        let mut curve = Vec::with_capacity(points);
        for quantile in quantiles(points) {
            let value = h.value_at_quantile(quantile);
            if curve.last().is_none_or(|&(last, _)| value > last) {
                curve.push((value, h.quantile_below(value)));
            }
        }
        if curve.last().is_none_or(|&(last, _)| h.max() > last) {
            curve.push((h.max(), 1.0));
        }
        curve
    }
}
