//! Recorder of a run: latencies of calls, and figures over time.

use dovetail_ftl::DieUse;
use dovetail_ftl::stats::{CommandKind, Latencies};
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::Simulated;

use super::snapshot::{Seen, Snapshot, Work};
use super::spans;
use super::window::Window;

/// Intervals at most; when there are more, their length doubles.
const MAX_INTERVALS: usize = 512;
const FIRST_INTERVAL: SimSpan = SimSpan::from_us(100);

/// Calls that are reported together: those of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadRecord {
    /// By kind: a sync counts as a flush, a punched hole as a discard.
    pub(crate) latencies: Latencies,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    /// Begin of its first call and end of its last one.
    pub(crate) span: Option<(SimTime, SimTime)>,
    /// The same of calls that are not counted: its warming up.
    pub(crate) ramp: Option<(SimTime, SimTime)>,
}

/// The lengths of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rhythm {
    /// All have the same length, and those in which nothing happens are shown. `None` chooses a
    /// length that gives 256 to 512 of them.
    Even(Option<SimSpan>),
    /// An interval ends with the first call that ends after its time.
    Calls,
}

impl Rhythm {
    /// The length of the first interval.
    const fn first_length(self) -> SimSpan {
        match self {
            Self::Even(Some(length)) => length,
            Self::Even(None) | Self::Calls => FIRST_INTERVAL,
        }
    }
}

/// A snapshot, and what happened since the one before.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) end: Snapshot,
    pub(crate) window: Window,
}

#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(crate) threads: Vec<ThreadRecord>,
    pub(crate) first: Snapshot,
    /// The dies' work when the measurement began.
    pub(crate) dies: Vec<DieUse>,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) rhythm: Rhythm,
    /// The length of an interval.
    pub(crate) length: SimSpan,
    next: SimTime,
    window: Window,
    work: Work,
    /// Calls under way at arrivals: their number, the sum and the maximum.
    arrivals: u64,
    in_flight_sum: u64,
    pub(crate) in_flight_max: u64,
    pub(crate) map_bytes_max: u64,
}

impl Recorder {
    /// A recorder of so many threads, before anything is measured.
    pub(crate) fn new(threads: usize, rhythm: Rhythm) -> Self {
        Self {
            threads: vec![ThreadRecord::default(); threads],
            first: Snapshot::default(),
            dies: Vec::new(),
            intervals: Vec::new(),
            rhythm,
            length: rhythm.first_length(),
            next: SimTime::ZERO,
            window: Window::default(),
            work: Work::default(),
            arrivals: 0,
            in_flight_sum: 0,
            in_flight_max: 0,
            map_bytes_max: 0,
        }
    }

    /// Begins the measurement now.
    pub(crate) fn begin(&mut self, fs: Option<&dyn Simulated>, seen: &Seen<'_>) {
        self.first = self.snapshot(fs, seen);
        self.dies = seen.drive.die_use(seen.at);
        // a ramp may have made it longer
        self.length = self.rhythm.first_length();
        self.next = seen.at + self.length;
        self.intervals.clear();
        self.window = Window::default();
        (self.arrivals, self.in_flight_sum, self.in_flight_max) = (0, 0, 0);
        self.map_bytes_max = self.first.map_bytes;
    }

    fn snapshot(&self, fs: Option<&dyn Simulated>, seen: &Seen<'_>) -> Snapshot {
        Snapshot { work: self.work, ..Snapshot::of(fs, seen) }
    }

    /// Notes a call that arrives; `in_flight` counts it.
    pub(crate) fn arrive(&mut self, in_flight: u64) {
        self.arrivals += 1;
        self.in_flight_sum += in_flight;
        self.in_flight_max = self.in_flight_max.max(in_flight);
        self.window.arrive(in_flight);
    }

    /// Takes over threads that were recorded elsewhere, when the measurement has ended: when in it
    /// their calls ended is not known.
    pub(crate) fn adopt(&mut self, threads: Vec<ThreadRecord>) {
        for thread in &threads {
            self.work.calls += thread.latencies.count();
            self.work.read_bytes += thread.read_bytes;
            self.work.written_bytes += thread.written_bytes;
        }
        self.threads = threads;
        if let Some(last) = self.intervals.last_mut() {
            last.end.work = self.work;
        }
    }

    /// Counts a call and its bytes.
    pub(crate) fn count(&mut self, thread: usize, kind: CommandKind, bytes: u64) {
        self.work.calls += 1;
        let record = &mut self.threads[thread];
        match kind {
            CommandKind::Read => {
                self.work.read_bytes += bytes;
                record.read_bytes += bytes;
            }
            CommandKind::Write => {
                self.work.written_bytes += bytes;
                record.written_bytes += bytes;
            }
            CommandKind::Flush | CommandKind::Discard => {}
        }
    }

    /// Notes the latency of a call.
    pub(crate) fn latency(
        &mut self,
        thread: usize,
        kind: CommandKind,
        begin: SimTime,
        end: SimTime,
    ) {
        let latency = end.since(begin);
        let record = &mut self.threads[thread];
        record.latencies.record(kind, latency);
        record.span = Some((record.span.map_or(begin, |(first, _)| first), end));
        self.window.latency(kind, latency);
    }

    /// Notes the bytes of a call that is not counted.
    pub(crate) fn count_warm_up(&mut self, kind: CommandKind, bytes: u64) {
        match kind {
            CommandKind::Read => self.work.ramp_read_bytes += bytes,
            CommandKind::Write => self.work.ramp_written_bytes += bytes,
            CommandKind::Flush | CommandKind::Discard => {}
        }
    }

    /// Notes a call that is not counted: its thread warms up.
    pub(crate) fn warm_up(&mut self, thread: usize, begin: SimTime, end: SimTime) {
        let ramp = &mut self.threads[thread].ramp;
        *ramp = Some((ramp.map_or(begin, |(first, _)| first), end));
    }

    /// Time since the measurement began in which threads warmed up and no call was counted.
    pub(crate) fn warming_up(&self) -> SimSpan {
        let start = self.first.at;
        let of_thread = |thread: &ThreadRecord| {
            let (begin, end) = thread.ramp?;
            let end = thread.span.map_or(end, |(first, _)| first.max(end));
            (end > start).then(|| (begin.max(start), end))
        };
        let ramps = self.threads.iter().filter_map(of_thread).collect();
        let counted = self.threads.iter().filter_map(|thread| thread.span).collect();
        spans::only_in(ramps, counted)
    }

    /// Calls under way, mean over arrivals.
    pub(crate) fn queue_depth(&self) -> f64 {
        self.in_flight_sum as f64 / self.arrivals.max(1) as f64
    }

    /// The present interval is over at `at`.
    pub(crate) fn is_due(&self, at: SimTime) -> bool {
        at >= self.next
    }

    /// The number of the interval in which `at` lies, were all of one length.
    pub(crate) fn cell(&self, at: SimTime) -> u64 {
        at.since(self.first.at).as_ns() / self.length.as_ns().max(1)
    }

    /// Ends the present interval.
    pub(crate) fn sample(&mut self, fs: Option<&dyn Simulated>, seen: &Seen<'_>) {
        self.close(fs, seen);
        while self.has_too_many(seen.at) {
            self.length = self.length * 2;
            self.thin();
        }
        self.next = self.first.at + self.length * (self.cell(seen.at) + 1);
    }

    fn close(&mut self, fs: Option<&dyn Simulated>, seen: &Seen<'_>) {
        let end = self.snapshot(fs, seen);
        self.map_bytes_max = self.map_bytes_max.max(end.map_bytes);
        self.intervals.push(Interval { end, window: std::mem::take(&mut self.window) });
    }

    fn has_too_many(&self, at: SimTime) -> bool {
        match self.rhythm {
            Rhythm::Even(Some(_)) => false,
            Rhythm::Even(None) => self.cell(at) >= MAX_INTERVALS as u64,
            Rhythm::Calls => self.intervals.len() > MAX_INTERVALS,
        }
    }

    /// Keeps the first end in each cell but the first one, which the begin stands for. Ends that
    /// were far apart stay as far apart: to drop every second one would make a slow start ever
    /// coarser.
    fn thin(&mut self) {
        let (mut last, mut dropped) = (0, None::<Window>);
        for mut interval in std::mem::take(&mut self.intervals) {
            if let Some(mut before) = dropped.take() {
                before.merge(&interval.window);
                interval.window = before;
            }
            let cell = self.cell(interval.end.at);
            if cell > last {
                self.intervals.push(interval);
            } else {
                dropped = Some(interval.window);
            }
            last = cell;
        }
        if let Some(mut before) = dropped {
            before.merge(&self.window);
            self.window = before;
        }
    }

    /// Ends the measurement.
    pub(crate) fn end(&mut self, fs: Option<&dyn Simulated>, seen: &Seen<'_>) {
        self.close(fs, seen);
    }

    /// The counts at the end.
    pub(crate) fn last(&self) -> &Snapshot {
        self.intervals.last().map_or(&self.first, |interval| &interval.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_leaves_ends_that_are_far_apart_and_loses_no_arrival() {
        let mut recorder = Recorder::new(1, Rhythm::Calls);
        recorder.first.at = SimTime::ZERO + SimSpan::from_us(5);
        let at = |us| SimTime::ZERO + SimSpan::from_us(5 + us);
        recorder.intervals = [100, 500, 900, 1000, 1100, 1200, 1300]
            .map(|us| {
                let mut window = Window::default();
                window.arrive(us);
                Interval { end: Snapshot { at: at(us), ..Snapshot::default() }, window }
            })
            .into();
        recorder.length = SimSpan::from_us(200);
        recorder.thin();
        let kept: Vec<SimTime> =
            recorder.intervals.iter().map(|interval| interval.end.at).collect();
        assert_eq!(kept, [500, 900, 1000, 1200].map(at));
        let depths: Vec<_> =
            recorder.intervals.iter().map(|interval| interval.window.queue_depth()).collect();
        assert_eq!(depths, [300.0, 900.0, 1000.0, 1150.0].map(Some));
        assert_eq!(recorder.window.queue_depth(), Some(1300.0), "of an end that was dropped last");
    }
}
