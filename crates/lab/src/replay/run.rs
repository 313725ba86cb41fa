//! One replay from the first request to its results.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dovetail_block::{BLOCK_SIZE, BlockRange, ByteRange, Hints, Lba, SectorRange};
use dovetail_ftl::stats::{CommandKind, Latencies};
use dovetail_ftl::{Drive, DriveConfig};
use dovetail_host::CheckedDevice;
use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::trace::TraceReader;
use dovetail_workload::{Op, Request};

use super::precondition::precondition;
use super::recorder::Recorder;
use super::{Pacing, Progress, ReplayError, ReplayJob, Stage, summary};
use crate::results::{ByKind, RunResult, ScatterPoint};
use crate::sample::Sample;

/// Requests between two reports of progress.
const REPORT_EVERY: u64 = 1 << 14;

/// The longest replay: a hundred years. What comes on top still fits into virtual time.
const LONGEST_NS: f64 = 100.0 * 365.25 * 86_400.0 * 1e9;

/// Replays a trace on a drive of its own. The same job gives the same result.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(job: &ReplayJob, progress: &mut dyn FnMut(Progress)) -> Result<RunResult, ReplayError> {
    replay_until(job, &|| false, progress)
}

/// The same, until `stop` says that it is to end: the result then holds what was replayed by then.
///
/// # Errors
/// See [`ReplayError`]; [`ReplayError::Stopped`] if the end came before the first request.
pub fn replay_until(
    job: &ReplayJob,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<RunResult, ReplayError> {
    let mut trace = TraceReader::open(&job.trace, &job.trace_options)?;
    let drive = Drive::new(job.drive.clone())
        .map_err(|source| ReplayError::Config { name: job.drive.name.clone(), source })?;
    let mut drive = CheckedDevice::new(drive);
    let prepared = match job.precondition {
        true => Some(precondition(&mut drive, job.drive.seed, stop, progress)?),
        false => None,
    };
    let mut replayer = Replayer::new(job, drive);
    let mut stopped = stop();
    while !stopped && let Some(request) = trace.next() {
        replayer.request(request?)?;
        stopped = stop();
        let requests = replayer.tally.number;
        if requests.is_multiple_of(REPORT_EVERY) {
            let (done, total) = trace.progress();
            progress(Progress { stage: Stage::Replay, done, total, requests });
        }
        if job.limit.is_some_and(|limit| requests >= limit) {
            break;
        }
    }
    if replayer.tally.number == 0 && stopped {
        return Err(ReplayError::Stopped);
    }
    if replayer.tally.number == 0 {
        return Err(ReplayError::NoRequest(job.trace.display().to_string()));
    }
    let mut result = replayer.finish()?;
    result.trace.name = job.trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    result.precondition = prepared;
    result.trace.format = trace.format().to_string();
    result.trace.skipped_lines = trace.skipped();
    result.trace.reordered = trace.reordered();
    Ok(result)
}

/// Counts of the requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) number: u64,
    pub(super) requests: ByKind<u64>,
    pub(super) bytes: ByKind<u64>,
    pub(super) wrapped: u64,
    pub(super) partial_blocks: u64,
    pub(super) in_flight_sum: u64,
    pub(super) in_flight_max: u64,
    pub(super) span: SimSpan,
}

/// A write that is issued only when what it depends on is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    ready: SimTime,
    /// The number of its request: the order of those ready at the same time.
    number: u64,
    arrived: SimTime,
    start: u64,
    blocks: u64,
    fua: bool,
}

struct Replayer<'a> {
    job: &'a ReplayJob,
    drive: CheckedDevice<Drive>,
    /// Virtual time of the first request: after preconditioning.
    start: SimTime,
    before: summary::Baseline,
    /// Completions that have not been reached yet.
    in_flight: BinaryHeap<Reverse<SimTime>>,
    /// Writes that wait for a flush or a read of their own.
    waiting: BinaryHeap<Reverse<Waiting>>,
    now: SimTime,
    last_done: SimTime,
    tally: Tally,
    latencies: Latencies,
    recorder: Recorder,
    sample: Sample,
}

impl<'a> Replayer<'a> {
    fn new(job: &'a ReplayJob, drive: CheckedDevice<Drive>) -> Self {
        let start = drive.device().idle_from();
        Self {
            job,
            start,
            before: summary::Baseline::of(drive.device()),
            in_flight: BinaryHeap::new(),
            waiting: BinaryHeap::new(),
            now: start,
            last_done: start,
            tally: Tally::default(),
            latencies: Latencies::new(),
            recorder: Recorder::new(start, job.interval, drive.device()),
            sample: Sample::new(job.drive.seed),
            drive,
        }
    }

    fn request(&mut self, request: Request) -> Result<(), ReplayError> {
        self.tally.number += 1;
        self.tally.span = request.at.since(SimTime::ZERO);
        let at = self.arrival(&request)?;
        self.now = at;
        let in_flight = (self.in_flight.len() + self.waiting.len()) as u64 + 1;
        self.tally.in_flight_sum += in_flight;
        self.tally.in_flight_max = self.tally.in_flight_max.max(in_flight);
        self.recorder.arrive(at, in_flight, self.drive.device())?;
        if let Some(done) = self.perform(at, &request)? {
            self.complete(done);
        }
        Ok(())
    }

    fn complete(&mut self, done: SimTime) {
        self.in_flight.push(Reverse(done));
        self.last_done = self.last_done.max(done);
    }

    /// Issues the write that waits and is ready first, if it is ready by `until`.
    fn issue_waiting(&mut self, until: SimTime) -> Result<bool, ReplayError> {
        let Some(Reverse(next)) = self.waiting.peek().copied() else { return Ok(false) };
        if next.ready > until {
            return Ok(false);
        }
        self.waiting.pop();
        let done = self.drive.write(
            next.ready,
            BlockRange::new(Lba(next.start), next.blocks),
            Hints::default(),
            next.fua,
        )?;
        self.note(CommandKind::Write, next.arrived, done);
        self.complete(done);
        Ok(true)
    }

    /// When the request is issued; forgets what has completed by then.
    fn arrival(&mut self, request: &Request) -> Result<SimTime, ReplayError> {
        match self.job.pacing {
            Pacing::Timed { speed } => {
                let offset = (request.at.as_ns() as f64 / speed).round();
                if offset > LONGEST_NS {
                    let trace = self.job.trace.display().to_string();
                    return Err(ReplayError::TooLong { trace, number: self.tally.number });
                }
                let at = (self.start + SimSpan::from_ns(offset as u64)).max(self.now);
                while self.issue_waiting(at)? {}
                while self.in_flight.peek().is_some_and(|Reverse(done)| *done <= at) {
                    self.in_flight.pop();
                }
                Ok(at)
            }
            Pacing::Closed { depth } => {
                if self.in_flight.len() + self.waiting.len() < depth as usize {
                    return Ok(self.now);
                }
                self.next_completion().map(|done| done.max(self.now))
            }
        }
    }

    /// The first completion; writes that are ready before it are issued on the way.
    fn next_completion(&mut self) -> Result<SimTime, ReplayError> {
        loop {
            let first = self.in_flight.peek().map(|Reverse(done)| *done);
            if !self.issue_waiting(first.unwrap_or(SimTime::from_ns(u64::MAX)))? {
                self.in_flight.pop();
                return Ok(first.unwrap_or(self.now));
            }
        }
    }

    /// Issues a request; returns when it completes, `None` where its write has to wait first.
    fn perform(&mut self, at: SimTime, request: &Request) -> Result<Option<SimTime>, ReplayError> {
        let mut done = at;
        if request.preflush || request.op == Op::Flush {
            self.tally.requests.flush += 1;
            let flushed = self.drive.flush(at)?;
            self.note(CommandKind::Flush, at, flushed);
            done = flushed;
        }
        let range = self.fold(request)?;
        match request.op {
            Op::Flush => {}
            Op::Read => {
                self.count(at, request, range, 'r');
                let read = self.drive.read(at, range.blocks_touched())?;
                self.note(CommandKind::Read, at, read);
                done = done.max(read);
            }
            Op::Write => {
                self.count(at, request, range, 'w');
                return self.write(at, done, range, request.fua);
            }
            Op::Discard => {
                self.count(at, request, range, 'd');
                let discarded = self.drive.discard(at, &[SectorRange::inside(range)])?;
                self.note(CommandKind::Discard, at, discarded);
                done = done.max(discarded);
            }
        }
        Ok(Some(done))
    }

    /// A write that covers its first or last block only in part needs the rest of it: read, then write. It waits
    /// for that, and for its flush to be done at `ready`.
    fn write(
        &mut self,
        at: SimTime,
        mut ready: SimTime,
        range: ByteRange,
        fua: bool,
    ) -> Result<Option<SimTime>, ReplayError> {
        let touched = range.blocks_touched();
        let first_is_partial = !range.start.is_multiple_of(BLOCK_SIZE);
        let last_is_partial = !range.end().is_multiple_of(BLOCK_SIZE);
        let last = Lba(touched.end().0.saturating_sub(1));
        if first_is_partial {
            ready = ready.max(self.read_rest(at, touched.start)?);
        }
        if last_is_partial && !(first_is_partial && last == touched.start) {
            ready = ready.max(self.read_rest(at, last)?);
        }
        if ready > at {
            let BlockRange { start, blocks } = touched;
            let number = self.tally.number;
            self.waiting.push(Reverse(Waiting { ready, number, arrived: at, start: start.0, blocks, fua }));
            return Ok(None);
        }
        let done = self.drive.write(at, touched, Hints::default(), fua)?;
        self.note(CommandKind::Write, at, done);
        Ok(Some(done))
    }

    fn read_rest(&mut self, at: SimTime, block: Lba) -> Result<SimTime, ReplayError> {
        self.tally.partial_blocks += 1;
        Ok(self.drive.read(at, BlockRange::new(block, 1))?)
    }

    /// The request's range, folded into the drive if that is allowed.
    fn fold(&mut self, request: &Request) -> Result<ByteRange, ReplayError> {
        let range = request.range;
        let capacity = self.drive.blocks() * BLOCK_SIZE;
        if range.end() <= capacity {
            return Ok(range);
        }
        if !self.job.wrap {
            let trace = self.job.trace.display().to_string();
            return Err(ReplayError::BeyondEnd {
                trace,
                number: self.tally.number,
                end: range.end(),
                capacity,
            });
        }
        self.tally.wrapped += 1;
        let len = range.len.min(capacity);
        let start = range.start % capacity;
        // What would stick out at the end moves down as a whole, so that a request stays one request.
        Ok(ByteRange::new(start.min(capacity - len), len))
    }

    /// Counts a request as the trace has it, and samples it where it goes.
    fn count(&mut self, at: SimTime, request: &Request, range: ByteRange, op: char) {
        let kind = match op {
            'r' => (&mut self.tally.requests.read, &mut self.tally.bytes.read),
            'w' => (&mut self.tally.requests.write, &mut self.tally.bytes.write),
            _ => (&mut self.tally.requests.discard, &mut self.tally.bytes.discard),
        };
        *kind.0 += 1;
        *kind.1 += request.range.len;
        let t = at.since(self.start).as_secs_f64();
        self.sample.offer(ScatterPoint { t, at: range.start, len: range.len, op });
    }

    fn note(&mut self, kind: CommandKind, issued: SimTime, done: SimTime) {
        let latency = done.since(issued);
        self.latencies.record(kind, latency);
        self.recorder.latency(kind, latency);
    }

    /// Empties the write buffer, so that all that was written counts, and sums up.
    fn finish(mut self) -> Result<RunResult, ReplayError> {
        while self.issue_waiting(SimTime::from_ns(u64::MAX))? {}
        let elapsed = self.last_done.since(self.start);
        let end = self.last_done.max(self.now);
        self.drive.flush(end)?;
        let drive = self.drive.device();
        let map_bytes_max = self.recorder.map_bytes_max();
        let config: &DriveConfig = &self.job.drive;
        let mut result = RunResult {
            label: self.job.label.clone(),
            series: self.recorder.finish(drive),
            scatter: self.sample.finish(),
            ..RunResult::default()
        };
        summary::fill(&mut result, self.job, config, drive, &self.before);
        summary::fill_requests(&mut result, &self.tally, &self.latencies, elapsed);
        result.memory.map_bytes_max = map_bytes_max.max(result.memory.map_bytes);
        Ok(result)
    }
}
