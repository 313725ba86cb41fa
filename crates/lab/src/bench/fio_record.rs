//! Figures of fio's own results for each thread, recorded while it runs.

use dovetail_ftl::stats::Values;
use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::fio::Direction;
use dovetail_workload::fio::ThreadInfo;
use dovetail_workload::fio::output::{Depths, Latency, Samples, Spread};
use dovetail_workload::{Call, Outcome, ThreadId, Workload};

use super::fio_log::Entry;
use super::threads::InFlight;

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
    /// Its engine hands calls over: they have a submission.
    is_async: bool,
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
            is_async: info.is_async(),
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
    pub(super) fn call(&mut self, workload: &dyn Workload, ended: &InFlight, outcome: &Outcome) {
        let InFlight { thread, call, submission, .. } = ended;
        let Some(FioThread { record, kept }) = self.0.get_mut(thread.0 as usize) else { return };
        let Some(fio) = workload.fio() else { return };
        match call {
            Call::Close { .. } => record.phases.note(Phase::Io, outcome.begin),
            Call::Sync { .. } => record.sync(outcome, !fio.synced_to_close(*thread)),
            _ => {
                let is_verifying =
                    fio.is_reading_back(*thread) && matches!(call, Call::Read { .. });
                let phase = if is_verifying { Phase::Verify } else { Phase::Io };
                record.call(call, outcome, (*submission, phase), *kept);
            }
        }
    }

    /// The records by thread.
    pub(super) fn finish(self) -> Vec<FioRecord> {
        self.0.into_iter().map(|thread| thread.record.finish()).collect()
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
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        self.squares = self.squares.saturating_add(u128::from(value).pow(2));
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

/// A rate, sampled once a window; as in fio, one in which nothing was done is no sample.
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
            if self.counted > 0 {
                self.rates.record(rate as u64);
            }
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
    /// Time of the phases in which it has calls.
    pub(super) runtime: SimSpan,
    /// By phase: it has calls there.
    phases: [bool; 2],
    pub(super) submission: Latencies,
    pub(super) completion: Latencies,
    pub(super) total: Latencies,
    bandwidth: Sampler,
    iops: Sampler,
}

impl DirectionRecord {
    /// A call has ended, so long after the thread's first one began.
    fn record(
        &mut self,
        since_start: SimSpan,
        len: u64,
        outcome: &Outcome,
        (taken_up, kept): (SimSpan, Kept),
    ) {
        let total = outcome.end.since(outcome.begin).as_ns();
        self.bytes += outcome.bytes;
        self.calls += 1;
        self.short_calls += u64::from(outcome.bytes < len);
        if kept.is_async {
            self.submission.record_if(kept.submissions, taken_up.as_ns());
        }
        self.completion.record(total - taken_up.as_ns());
        self.total.record_if(kept.totals, total);
        self.bandwidth.record(since_start, outcome.bytes);
        self.iops.record(since_start, 1);
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
    phases: Phases,
    /// From its first call to its end.
    pub(super) runtime: SimSpan,
}

/// Part of a thread's run that has a time of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The calls of the job, with the syncs and the pauses between and after them.
    #[default]
    Io,
    /// Reading back what was written.
    Verify,
}

/// Time that a thread has spent in each phase.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    now: Phase,
    /// Beginning of the first phase, and of the one that goes on.
    start: Option<SimTime>,
    since: SimTime,
    /// The last time that was noted.
    last: SimTime,
    before: [SimSpan; 2],
}

impl Phases {
    /// Begins with the first call.
    fn begin(&mut self, at: SimTime) -> SimTime {
        if self.start.is_none() {
            (self.since, self.last) = (at, at);
        }
        *self.start.get_or_insert(at)
    }

    /// A phase goes on until `at`, or begins where the last one has ended.
    fn note(&mut self, phase: Phase, at: SimTime) {
        if phase != self.now {
            self.before[self.now as usize] = self.spent(self.now);
            (self.now, self.since) = (phase, self.last);
        }
        self.last = self.last.max(at);
    }

    fn spent(&self, phase: Phase) -> SimSpan {
        let before = self.before[phase as usize];
        if phase == self.now { before + self.last.since(self.since) } else { before }
    }

    fn all(&self) -> SimSpan {
        self.last.since(self.start.unwrap_or(self.last))
    }
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
    /// A read, write or trim has ended. fio's synchronous engines know no submission.
    fn call(
        &mut self,
        call: &Call,
        outcome: &Outcome,
        (submission, phase): (Submission, Phase),
        kept: Kept,
    ) {
        let Some(direction) = Direction::of(call) else { return };
        let since_start = outcome.end.since(self.phases.begin(outcome.begin));
        self.phases.note(phase, outcome.end);
        let total = outcome.end.since(outcome.begin);
        let len = asked(call);
        // A punched hole returns no bytes, yet fio counts what was trimmed.
        let bytes = if direction == Direction::Trim { len } else { outcome.bytes };
        let taken_up = if kept.is_async {
            submission.handed_over.since(outcome.begin).min(total)
        } else {
            SimSpan::ZERO
        };
        let outcome = Outcome { bytes, ..*outcome };
        let (taken_up_ns, completion_ns) = (taken_up.as_ns(), (total - taken_up).as_ns());
        if kept.is_logged {
            let offset = offset(call);
            let end = since_start;
            self.log.push(Entry { end, direction, bytes, offset, taken_up_ns, completion_ns });
        }
        let record = &mut self.directions[direction as usize];
        record.record(since_start, len, &outcome, (taken_up, kept));
        record.phases[phase as usize] = true;
        self.depths.record(submission.under_way);
        self.spread.record(completion_ns);
    }

    /// A sync has ended; fio counts those that the job asks for between its calls.
    fn sync(&mut self, outcome: &Outcome, counts: bool) {
        self.phases.begin(outcome.begin);
        self.phases.note(Phase::Io, outcome.end);
        if counts {
            self.syncs.record(outcome.end.since(outcome.begin).as_ns());
        }
    }

    /// With the times, which are known at the end.
    fn finish(mut self) -> Self {
        let spent = [Phase::Io, Phase::Verify].map(|phase| self.phases.spent(phase));
        for direction in &mut self.directions {
            let phases = direction.phases.into_iter().zip(spent);
            let mine = phases.filter(|(has_calls, _)| *has_calls);
            direction.runtime = mine.fold(SimSpan::ZERO, |sum, (_, spent)| sum + spent);
        }
        self.runtime = self.phases.all();
        self
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
        assert_eq!((samples.count, samples.min, samples.max), (3, 2, 80));
        assert!((samples.mean - (60.0 + 80.0 + 2.0) / 3.0).abs() < 1e-9);
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
