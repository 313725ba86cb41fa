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

/// Exact sum, least and greatest value of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Exact {
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Exact {
    #[inline]
    fn record(&mut self, ns: u64, is_first: bool) {
        self.sum_ns += u128::from(ns);
        self.min_ns = if is_first { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
    }

    fn add(&mut self, other: &Self, is_first: bool) {
        self.sum_ns += other.sum_ns;
        self.min_ns = if is_first { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// One histogram for each [`CommandKind`], three significant digits, up to an hour; longer counts
/// as an hour. Means and the ends are exact.
#[derive(Clone, Debug)]
pub struct Latencies {
    histograms: [Values<u64>; CommandKind::ALL.len()],
    exact: [Exact; CommandKind::ALL.len()],
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
        Self {
            histograms: std::array::from_fn(|_| Values::new(3)),
            exact: [Exact::default(); CommandKind::ALL.len()],
        }
    }

    /// Notes one command.
    pub fn record(&mut self, kind: CommandKind, latency: SimSpan) {
        let (ns, histogram) =
            (latency.as_ns().min(LONGEST_NS), &mut self.histograms[kind as usize]);
        self.exact[kind as usize].record(ns, histogram.is_empty());
        histogram.record(ns);
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
        for kind in CommandKind::ALL.map(|kind| kind as usize) {
            let (mine, theirs) = (&mut self.histograms[kind], &others.histograms[kind]);
            if !theirs.is_empty() {
                self.exact[kind].add(&others.exact[kind], mine.is_empty());
                mine.add(theirs);
            }
        }
    }

    /// The figures of one kind.
    pub fn percentiles(&self, kind: CommandKind) -> Percentiles {
        if self.histograms[kind as usize].is_empty() {
            return Percentiles::default();
        }
        let h = self.histograms[kind as usize].histogram();
        let Exact { sum_ns, min_ns, max_ns } = self.exact[kind as usize];
        let at = |quantile| h.value_at_quantile(quantile).min(max_ns);
        Percentiles {
            count: h.len(),
            mean_ns: sum_ns as f64 / h.len() as f64,
            min_ns,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            p9999_ns: at(0.9999),
            max_ns,
        }
    }

    /// The cumulative distribution of one kind: (latency in ns, share of commands at or below it),
    /// about `points` of them, none when it is empty.
    pub fn cdf(&self, kind: CommandKind, points: usize) -> Vec<(u64, f64)> {
        if self.histograms[kind as usize].is_empty() {
            return Vec::new();
        }
        let h = self.histograms[kind as usize].histogram();
        let Exact { min_ns, max_ns, .. } = self.exact[kind as usize];
        let mut curve = Vec::with_capacity(points);
        for quantile in quantiles(points) {
            let value = h.value_at_quantile(quantile).clamp(min_ns, max_ns);
            if curve.last().is_none_or(|&(last, _)| value > last) {
                curve.push((value, h.quantile_below(value)));
            }
        }
        if curve.last().is_none_or(|&(last, _)| max_ns > last) {
            curve.push((max_ns, 1.0));
        }
        curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_ends_are_exact_and_no_percentile_lies_beyond() {
        let (mut all, mut other) = (Latencies::new(), Latencies::new());
        (0..500).for_each(|_| all.record(CommandKind::Write, SimSpan::from_ns(511_780)));
        let found = all.percentiles(CommandKind::Write);
        assert_eq!((found.mean_ns, found.min_ns, found.max_ns), (511_780.0, 511_780, 511_780));
        assert_eq!([found.p50_ns, found.p9999_ns], [511_780; 2]);
        other.record(CommandKind::Write, SimSpan::from_ns(1_000_003));
        other.add(&all);
        let both = other.percentiles(CommandKind::Write);
        assert_eq!((both.count, both.min_ns, both.max_ns), (501, 511_780, 1_000_003));
        assert_eq!(both.mean_ns, (500.0 * 511_780.0 + 1_000_003.0) / 501.0);
        let mut empty = Latencies::new();
        other.add(&empty);
        empty.add(&other);
        assert_eq!([&other, &empty].map(|l| l.percentiles(CommandKind::Write)), [both; 2]);
        let curve = other.cdf(CommandKind::Write, 10);
        assert_eq!((curve[0].0, curve.last()), (511_780, Some(&(1_000_003, 1.0))));
        assert_eq!(other.percentiles(CommandKind::Read), Percentiles::default());
    }
}
