//! Figures of fio's own results for each thread, recorded while it runs.

use dovetail_ftl::stats::Values;
use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::fio::Direction;
use dovetail_workload::fio::ThreadInfo;
use dovetail_workload::fio::output::{Depths, Latency, Samples, Spread};
use dovetail_workload::{Call, Outcome, ThreadId, Workload};

use super::fio_log::Entry;

/// Length of the windows of fio's averages (`bwavgtime` and `iopsavgtime`: 500 ms).
const WINDOW: SimSpan = SimSpan::from_ms(500);

/// Circumstances in which a call was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submission {
    /// Time at which the thread had handed it over.
    pub(super) handed_over: SimTime,
    /// Calls of the thread under way, with this one.
    pub(super) under_way: u64,
}

/// Records of all threads of a fio job; none of other workloads.
#[derive(Debug)]
pub(super) struct FioRecords(Vec<FioThread>);

#[derive(Debug)]
struct FioThread {
    record: FioRecord,
    kept: Kept,
}

/// Facts of a thread that decide what is recorded of its calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Calls that it may have under way.
    depth: u64,
    /// Its calls are kept for logs.
    is_logged: bool,
    /// Percentiles are shown of the time until a call was taken up.
    submissions: bool,
    /// Percentiles are shown of the whole time.
    totals: bool,
}

impl Kept {
    fn of(info: &ThreadInfo<'_>) -> Self {
        let percentiles = info.percentiles();
        Self {
            depth: info.depth(),
            is_logged: info.logs().is_on(),
            submissions: percentiles.submission,
            totals: percentiles.total,
        }
    }
}

impl FioRecords {
    pub(super) fn of(workload: &dyn Workload) -> Self {
        let Some(fio) = workload.fio() else { return Self(Vec::new()) };
        let of_thread = |thread| {
            let kept = Kept::of(&fio.info(ThreadId(thread)));
            FioThread { record: FioRecord::default(), kept }
        };
        Self((0..workload.threads()).map(of_thread).collect())
    }

    /// Notes a call that has ended.
    pub(super) fn call(
        &mut self,
        thread: ThreadId,
        call: &Call,
        outcome: &Outcome,
        submission: Submission,
    ) {
        if let Some(FioThread { record, kept }) = self.0.get_mut(thread.0 as usize) {
            record.call(call, outcome, submission, *kept);
        }
    }

    /// The records by thread.
    pub(super) fn finish(self) -> Vec<FioRecord> {
        self.0.into_iter().map(|thread| thread.record).collect()
    }
}

/// Whole numbers, as far as their mean and deviation need them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    fn record_n(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.squares =
            self.squares.saturating_add(u128::from(value).pow(2).saturating_mul(times.into()));
    }

    fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }

    fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Of a sample, as fio computes it: over one less than there are.
    fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let around_mean = self.squares as f64 - self.mean() * self.sum as f64;
        (around_mean.max(0.0) / (self.count - 1) as f64).sqrt()
    }
}

/// Latencies of calls.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    moments: Moments,
    values: Values<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { moments: Moments::default(), values: Values::new(3) }
    }
}

impl Latencies {
    fn record(&mut self, ns: u64) {
        self.record_if(true, ns);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.moments.add(&other.moments);
        self.values.add(&other.values);
    }

    /// For percentiles, too, if they are `asked` for.
    fn record_if(&mut self, asked: bool, ns: u64) {
        self.moments.record(ns);
        if asked {
            self.values.record(ns);
        }
    }

    /// With the percentiles of a list.
    pub(super) fn result(&self, percentiles: &[f64]) -> Latency {
        if self.values.is_empty() {
            return latency(&self.moments);
        }
        let histogram = self.values.histogram();
        let value = |percent: &f64| (*percent, histogram.value_at_percentile(*percent));
        let percentiles_ns = percentiles.iter().map(value).collect();
        Latency { percentiles_ns, ..latency(&self.moments) }
    }
}

fn latency(moments: &Moments) -> Latency {
    Latency {
        calls: moments.count,
        min_ns: moments.min,
        max_ns: moments.max,
        mean_ns: moments.mean(),
        stddev_ns: moments.deviation(),
        ..Latency::default()
    }
}

/// A rate, sampled once a window.
#[derive(Clone, Copy, Debug, Default)]
struct Sampler {
    /// Windows that are over.
    windows: u64,
    /// Amount counted since then.
    counted: u64,
    rates: Moments,
}

impl Sampler {
    /// So much was done, `since_start` after the thread began.
    fn record(&mut self, since_start: SimSpan, amount: u64) {
        let windows = since_start.as_ns() / WINDOW.as_ns();
        if windows > self.windows {
            let rate = u128::from(self.counted) * 1_000_000_000 / u128::from(WINDOW.as_ns());
            self.rates.record(rate as u64);
            self.rates.record_n(0, windows - self.windows - 1);
            (self.windows, self.counted) = (windows, 0);
        }
        self.counted += amount;
    }
}

/// Samples of several threads together: fio adds up their rates.
pub(super) fn add_samples(sum: &mut Samples, other: &Samples) {
    sum.count += other.count;
    sum.min += other.min;
    sum.max += other.max;
    sum.mean += other.mean;
    sum.deviation = sum.deviation.hypot(other.deviation);
}

fn samples(rates: &Moments, unit: u64) -> Samples {
    Samples {
        count: rates.count,
        min: rates.min / unit,
        max: rates.max / unit,
        mean: rates.mean() / unit as f64,
        deviation: rates.deviation() / unit as f64,
    }
}

/// Record of a thread's calls in one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectionRecord {
    pub(super) bytes: u64,
    pub(super) calls: u64,
    pub(super) short_calls: u64,
    /// From the thread's first call to the end of the last one of this direction.
    pub(super) runtime: SimSpan,
    pub(super) submission: Latencies,
    pub(super) completion: Latencies,
    pub(super) total: Latencies,
    bandwidth: Sampler,
    iops: Sampler,
}

impl DirectionRecord {
    fn record(
        &mut self,
        start: SimTime,
        len: u64,
        outcome: &Outcome,
        (taken_up, kept): (SimSpan, Kept),
    ) {
        let total = outcome.end.since(outcome.begin).as_ns();
        self.bytes += outcome.bytes;
        self.calls += 1;
        self.short_calls += u64::from(outcome.bytes < len);
        self.runtime = outcome.end.since(start);
        self.submission.record_if(kept.submissions, taken_up.as_ns());
        self.completion.record(total - taken_up.as_ns());
        self.total.record_if(kept.totals, total);
        self.bandwidth.record(self.runtime, outcome.bytes);
        self.iops.record(self.runtime, 1);
    }

    /// KiB a second.
    pub(super) fn bandwidth(&self) -> Samples {
        samples(&self.bandwidth.rates, 1024)
    }

    /// Calls a second.
    pub(super) fn iops(&self) -> Samples {
        samples(&self.iops.rates, 1)
    }

    /// Takes in what another thread did, but for the samples.
    pub(super) fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.calls += other.calls;
        self.short_calls += other.short_calls;
        self.runtime = self.runtime.max(other.runtime);
        self.submission.add(&other.submission);
        self.completion.add(&other.completion);
        self.total.add(&other.total);
    }
}

/// Record of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct FioRecord {
    /// In fio's order: reads, writes, trims.
    pub(super) directions: [DirectionRecord; 3],
    pub(super) syncs: Latencies,
    pub(super) depths: Depths,
    pub(super) spread: Spread,
    /// Its calls, if they are logged.
    pub(super) log: Vec<Entry>,
    start: Option<SimTime>,
    /// From its first call to the end of its last one.
    pub(super) runtime: SimSpan,
}

/// Bytes that a call asks for.
fn asked(call: &Call) -> u64 {
    match *call {
        Call::Read { len, .. }
        | Call::Write { len, .. }
        | Call::Append { len, .. }
        | Call::PunchHole { len, .. } => len,
        _ => 0,
    }
}

/// The byte at which a call begins; 0 of those that do not say.
const fn offset(call: &Call) -> u64 {
    match *call {
        Call::Read { offset, .. } | Call::Write { offset, .. } | Call::PunchHole { offset, .. } => {
            offset
        }
        _ => 0,
    }
}

impl FioRecord {
    /// A call has ended. fio's synchronous engines know no submission: the depth is then 1.
    pub(super) fn call(
        &mut self,
        call: &Call,
        outcome: &Outcome,
        submission: Submission,
        kept: Kept,
    ) {
        let direction = Direction::of(call);
        if direction.is_none() && !matches!(call, Call::Sync { .. }) {
            return;
        }
        let start = *self.start.get_or_insert(outcome.begin);
        self.runtime = outcome.end.since(start);
        let total = outcome.end.since(outcome.begin);
        let Some(direction) = direction else {
            self.syncs.record(total.as_ns());
            return;
        };
        let len = asked(call);
        // A punched hole returns no bytes, yet fio counts what was trimmed.
        let bytes = if direction == Direction::Trim { len } else { outcome.bytes };
        let taken_up = if kept.depth > 1 {
            submission.handed_over.since(outcome.begin).min(total)
        } else {
            SimSpan::ZERO
        };
        let outcome = Outcome { bytes, ..*outcome };
        if kept.is_logged {
            let taken_up_ns = taken_up.as_ns();
            self.log.push(Entry {
                end: self.runtime,
                direction,
                bytes,
                offset: offset(call),
                taken_up_ns,
                completion_ns: total.as_ns() - taken_up_ns,
            });
        }
        self.directions[direction as usize].record(start, len, &outcome, (taken_up, kept));
        self.depths.record(submission.under_way);
        self.spread.record(total.as_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_sampled_once_in_half_a_second() {
        let mut sampler = Sampler::default();
        for (ms, amount) in [(0, 10), (499, 20), (500, 40), (1_900, 1), (2_100, 1)] {
            sampler.record(SimSpan::from_ms(ms), amount);
        }
        let samples = samples(&sampler.rates, 1);
        assert_eq!((samples.count, samples.min, samples.max), (4, 0, 80));
        assert!((samples.mean - (60.0 + 80.0 + 0.0 + 2.0) / 4.0).abs() < 1e-9);
    }

    #[test]
    fn moments_add_up() {
        let (mut all, mut first, mut second) =
            (Moments::default(), Moments::default(), Moments::default());
        for value in [2, 4, 4, 4, 5, 5, 7, 9_u64] {
            all.record(value);
            if value < 5 { first.record(value) } else { second.record(value) }
        }
        first.add(&second);
        assert_eq!((first.count, first.min, first.max), (8, 2, 9));
        assert!((first.mean() - 5.0).abs() < 1e-12);
        assert!((first.deviation() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!((all.deviation() - first.deviation()).abs() < 1e-12);
    }
}
