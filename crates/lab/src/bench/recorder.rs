//! What is noted while a workload runs: latencies of calls, and figures over time.

use dovetail_ftl::cache::Occupancy;
use dovetail_ftl::stats::{CommandKind, Latencies};
use dovetail_ftl::{Drive, stats::Counters};
use dovetail_host::{Machine, Traffic};
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::{Count, Simulated};
use dovetail_workload::{Call, Outcome, ThreadId, Workload};

use super::fio_record::{FioRecord, Submission};

/// Samples kept at most; when there are more, the interval doubles.
const MAX_SAMPLES: usize = 512;
const FIRST_INTERVAL: SimSpan = SimSpan::from_us(100);

/// Calls of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadRecord {
    /// By kind: a sync counts as a flush, a punched hole as a discard.
    pub(super) latencies: Latencies,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// Begin of its first call and end of its last one.
    pub(super) span: Option<(SimTime, SimTime)>,
    /// For fio's own layout, if the workload is a fio job.
    pub(super) fio: Option<Box<FioRecord>>,
    /// Calls that the thread's fio job may have under way.
    depth: u64,
}

impl ThreadRecord {
    fn new(workload: &dyn Workload, thread: ThreadId) -> Self {
        let info = workload.fio().map(|fio| fio.info(thread));
        Self {
            fio: info.map(|_| Box::default()),
            depth: info.map_or(1, |info| info.depth()),
            ..Self::default()
        }
    }
}

/// What was counted until a point in time.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) at: SimTime,
    pub(super) calls: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) written: Vec<Count>,
    pub(super) events: Vec<Count>,
    pub(super) drive: Counters,
    pub(super) traffic: Traffic,
    pub(super) map_cache: Occupancy,
    pub(super) map_bytes: u64,
}

#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) threads: Vec<ThreadRecord>,
    pub(super) first: Sample,
    pub(super) samples: Vec<Sample>,
    interval: SimSpan,
    next: SimTime,
    calls: u64,
    read_bytes: u64,
    written_bytes: u64,
}

impl Recorder {
    pub(super) fn new(workload: &dyn Workload) -> Self {
        Self {
            threads: (0..workload.threads())
                .map(|thread| ThreadRecord::new(workload, ThreadId(thread)))
                .collect(),
            first: Sample::default(),
            samples: Vec::new(),
            interval: FIRST_INTERVAL,
            next: SimTime::ZERO,
            calls: 0,
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// The measurement begins now.
    pub(super) fn begin(&mut self, fs: &dyn Simulated, machine: &Machine<Drive>) {
        self.first = self.state(machine.now(), fs, machine);
        self.next = machine.now() + self.interval;
        self.samples.clear();
    }

    fn state(&self, at: SimTime, fs: &dyn Simulated, machine: &Machine<Drive>) -> Sample {
        Sample {
            at,
            calls: self.calls,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
            written: fs.written(),
            events: fs.events(),
            drive: machine.device().counters(),
            traffic: machine.traffic(),
            map_cache: machine.device().map_cache().unwrap_or_default(),
            map_bytes: machine.device().mapping_memory_bytes(),
        }
    }

    /// A call has ended.
    pub(super) fn call(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome, submission: Submission) {
        let record = &mut self.threads[thread.0 as usize];
        if let Some(fio) = &mut record.fio {
            fio.call(call, outcome, submission, record.depth);
        }
        let kind = match call {
            Call::Read { .. } => CommandKind::Read,
            Call::Write { .. } | Call::Append { .. } => CommandKind::Write,
            Call::Sync { .. } | Call::SyncAll => CommandKind::Flush,
            Call::PunchHole { .. } => CommandKind::Discard,
            _ => return,
        };
        self.calls += 1;
        let bytes = outcome.bytes;
        match kind {
            CommandKind::Read => {
                self.read_bytes += bytes;
                record.read_bytes += bytes;
            }
            CommandKind::Write => {
                self.written_bytes += bytes;
                record.written_bytes += bytes;
            }
            CommandKind::Flush | CommandKind::Discard => {}
        }
        record.latencies.record(kind, outcome.end.since(outcome.begin));
        let begin = record.span.map_or(outcome.begin, |(begin, _)| begin);
        record.span = Some((begin, outcome.end));
    }

    /// What fio's own layout needs, by thread; none if the workload is no fio job.
    pub(super) fn fio_records(&mut self) -> Vec<FioRecord> {
        self.threads.iter_mut().filter_map(|thread| thread.fio.take()).map(|record| *record).collect()
    }

    pub(super) fn is_due(&self, at: SimTime) -> bool {
        at >= self.next
    }

    /// Notes the state at `at`.
    pub(super) fn sample(&mut self, at: SimTime, fs: &dyn Simulated, machine: &Machine<Drive>) {
        let state = self.state(at, fs, machine);
        self.samples.push(state);
        while self.samples.len() > MAX_SAMPLES {
            self.interval = SimSpan::from_ns(self.interval.as_ns() * 2);
            thin(&mut self.samples, self.first.at, self.interval);
        }
        let next = cell(at, self.first.at, self.interval) + 1;
        self.next = self.first.at + SimSpan::from_ns(next * self.interval.as_ns());
    }

    /// The measurement ends.
    pub(super) fn end(&mut self, fs: &dyn Simulated, machine: &Machine<Drive>) -> Sample {
        let state = self.state(machine.now(), fs, machine);
        self.samples.push(state.clone());
        state
    }
}

/// The number of the interval in which `at` lies, counted from `begin`.
fn cell(at: SimTime, begin: SimTime, interval: SimSpan) -> u64 {
    at.since(begin).as_ns() / interval.as_ns()
}

/// Keeps the first sample of each interval but the first one, which `begin` stands for. Samples that were far apart stay
/// as far apart: to drop every second one would make a slow start ever coarser.
fn thin(samples: &mut Vec<Sample>, begin: SimTime, interval: SimSpan) {
    let mut last = 0;
    samples.retain(|sample| {
        let cell = cell(sample.at, begin, interval);
        let is_first = cell > last;
        last = cell;
        is_first
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_leaves_samples_that_are_far_apart() {
        let begin = SimTime::ZERO + SimSpan::from_us(5);
        let at = |us| begin + SimSpan::from_us(us);
        let mut samples: Vec<Sample> = [100, 500, 900, 1000, 1100, 1200, 1300]
            .map(|us| Sample { at: at(us), ..Sample::default() })
            .into();
        thin(&mut samples, begin, SimSpan::from_us(200));
        let kept: Vec<SimTime> = samples.iter().map(|sample| sample.at).collect();
        assert_eq!(kept, [500, 900, 1000, 1200].map(at));
    }
}
