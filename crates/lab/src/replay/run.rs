//! One replay from the first request to its results.

use dovetail_block::{BLOCK_SIZE, BlockRange, ByteRange, Hints, Lba, SectorRange};
use dovetail_ftl::stats::{CommandKind, Latencies};
use dovetail_ftl::{Drive, DriveConfig};
use dovetail_host::{CheckedDevice, Event, Events, InFlight, Step as Command};
use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::trace::TraceReader;
use dovetail_workload::{Op, Request};

use super::precondition::precondition;
use super::recorder::Recorder;
use super::{Pacing, Progress, ReplayError, ReplayJob, Stage, summary};
use crate::lane::{Lane, Machine, Part};
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

/// The end of virtual time.
const FOREVER: SimTime = SimTime::from_ns(u64::MAX);

/// A request of which something is yet to be issued, or has an end that is not known.
#[derive(Clone, Copy, Debug)]
struct Pending {
    arrived: SimTime,
    /// The write that is issued when everything before it is done.
    write: Option<(BlockRange, bool)>,
    /// Commands that wait in the block layer.
    open: u32,
    /// When the others are done.
    done: SimTime,
}

/// Pending requests by their slots.
#[derive(Debug, Default)]
struct Slots {
    pending: Vec<Option<Pending>>,
    free: Vec<usize>,
}

impl Slots {
    /// The slot that the next one will have.
    fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.pending.len())
    }

    fn put(&mut self, slot: usize, pending: Pending) {
        if self.free.last() == Some(&slot) {
            self.free.pop();
        }
        if slot == self.pending.len() {
            self.pending.push(None);
        }
        self.pending[slot] = Some(pending);
    }

    fn take(&mut self, slot: usize) -> Option<Pending> {
        let pending = self.pending.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(pending)
    }

    fn len(&self) -> usize {
        self.pending.len() - self.free.len()
    }
}

/// A block trace as an actor: it issues requests at their times, and the writes that had to wait.
struct Replayer<'a> {
    job: &'a ReplayJob,
    machine: Machine,
    capacity: u64,
    /// Virtual time of the first request: after preconditioning.
    start: SimTime,
    before: summary::Baseline,
    in_flight: InFlight,
    slots: Slots,
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
            in_flight: InFlight::default(),
            slots: Slots::default(),
            now: start,
            last_done: start,
            tally: Tally::default(),
            latencies: Latencies::new(),
            recorder: Recorder::new(start, job.interval, drive.device()),
            sample: Sample::new(job.drive.seed),
            capacity: drive.blocks() * BLOCK_SIZE,
            machine: Machine::over(drive, job.host, start, Events::default()),
        }
    }

    fn request(&mut self, request: Request) -> Result<(), ReplayError> {
        self.tally.number += 1;
        self.tally.span = request.at.since(SimTime::ZERO);
        let at = self.arrival(&request)?;
        self.now = at;
        let in_flight = self.under_way() + 1;
        self.tally.in_flight_sum += in_flight;
        self.tally.in_flight_max = self.tally.in_flight_max.max(in_flight);
        self.recorder.arrive(at, in_flight, &self.machine.device())?;
        self.perform(at, &request)
    }

    fn under_way(&self) -> u64 {
        (self.in_flight.len() + self.slots.len()) as u64
    }

    /// When the request is issued; what is due before happens.
    fn arrival(&mut self, request: &Request) -> Result<SimTime, ReplayError> {
        match self.job.pacing {
            Pacing::Timed { speed } => {
                let offset = (request.at.as_ns() as f64 / speed).round();
                if offset > LONGEST_NS {
                    let trace = self.job.trace.display().to_string();
                    return Err(ReplayError::TooLong { trace, number: self.tally.number });
                }
                let at = (self.start + SimSpan::from_ns(offset as u64)).max(self.now);
                self.play_until(at)?;
                self.in_flight.complete(at);
                Ok(at)
            }
            Pacing::Closed { depth } => {
                let mut at = self.now;
                while self.under_way() >= u64::from(depth) {
                    at = self.next_completion()?.max(self.now);
                }
                Ok(at)
            }
        }
    }

    fn play_until(&mut self, horizon: SimTime) -> Result<(), ReplayError> {
        while let Some(event) = self.machine.advance_until(horizon)? {
            self.react(event)?;
        }
        Ok(())
    }

    /// The first completion; what is due before it happens.
    fn next_completion(&mut self) -> Result<SimTime, ReplayError> {
        loop {
            let first = self.in_flight.first();
            match self.machine.advance_until(first.unwrap_or(FOREVER))? {
                Some(event) => self.react(event)?,
                None => return Ok(self.in_flight.pop().unwrap_or(self.now)),
            }
        }
    }

    /// A request goes on: its write no longer has to wait, or a command of its is done.
    fn react(&mut self, event: Event<Lane>) -> Result<(), ReplayError> {
        let (Event::Ended { lane, at } | Event::Timer { lane, at }) = event;
        let Lane::Request { slot, part } = lane else { return Ok(()) };
        let Some(mut pending) = self.slots.take(slot) else { return Ok(()) };
        if matches!(event, Event::Ended { .. }) {
            pending.open -= 1;
            self.end_part(&mut pending, part, at);
        }
        self.go_on(at, pending)
    }

    fn perform(&mut self, at: SimTime, request: &Request) -> Result<(), ReplayError> {
        let mut pending = Pending { arrived: at, write: None, open: 0, done: at };
        if request.preflush || request.op == Op::Flush {
            self.tally.requests.flush += 1;
            self.issue(at, &mut pending, Part::Flush, Command::Flush)?;
        }
        let range = self.fold(request)?;
        match request.op {
            Op::Flush => {}
            Op::Read => {
                self.count(at, request, range, 'r');
                self.issue(at, &mut pending, Part::Read, Command::Read(range.blocks_touched()))?;
            }
            Op::Write => {
                self.count(at, request, range, 'w');
                self.read_rests(at, &mut pending, range)?;
                pending.write = Some((range.blocks_touched(), request.fua));
            }
            Op::Discard => {
                self.count(at, request, range, 'd');
                let ranges = vec![SectorRange::inside(range)];
                self.issue(at, &mut pending, Part::Discard, Command::Discard(ranges))?;
            }
        }
        self.go_on(at, pending)
    }

    /// A write that covers its first or last block only in part needs the rest of it.
    fn read_rests(
        &mut self,
        at: SimTime,
        pending: &mut Pending,
        range: ByteRange,
    ) -> Result<(), ReplayError> {
        let touched = range.blocks_touched();
        let first_is_partial = !range.start.is_multiple_of(BLOCK_SIZE);
        let last_is_partial = !range.end().is_multiple_of(BLOCK_SIZE);
        let last = Lba(touched.end().0.saturating_sub(1));
        if first_is_partial {
            self.read_rest(at, pending, touched.start)?;
        }
        if last_is_partial && !(first_is_partial && last == touched.start) {
            self.read_rest(at, pending, last)?;
        }
        Ok(())
    }

    fn read_rest(&mut self, at: SimTime, pending: &mut Pending, block: Lba) -> Result<(), ReplayError> {
        self.tally.partial_blocks += 1;
        self.issue(at, pending, Part::Rest, Command::Read(BlockRange::new(block, 1)))
    }

    fn issue(
        &mut self,
        at: SimTime,
        pending: &mut Pending,
        part: Part,
        command: Command,
    ) -> Result<(), ReplayError> {
        let lane = Lane::Request { slot: self.slots.next(), part };
        match self.machine.request(at, lane, command)? {
            Some(done) => self.end_part(pending, part, done),
            None => pending.open += 1,
        }
        Ok(())
    }

    fn end_part(&mut self, pending: &mut Pending, part: Part, done: SimTime) {
        pending.done = pending.done.max(done);
        let kind = match part {
            Part::Rest => return,
            Part::Flush => CommandKind::Flush,
            Part::Read => CommandKind::Read,
            Part::Write => CommandKind::Write,
            Part::Discard => CommandKind::Discard,
        };
        let latency = done.since(pending.arrived);
        self.latencies.record(kind, latency);
        self.recorder.latency(kind, latency);
    }

    /// Issues the write if nothing before it is under way; ends the request if nothing of it is.
    fn go_on(&mut self, at: SimTime, mut pending: Pending) -> Result<(), ReplayError> {
        if pending.open == 0
            && let Some((range, fua)) = pending.write
        {
            let slot = self.slots.next();
            if pending.done > at {
                self.machine.wake_at(pending.done, Lane::Request { slot, part: Part::Write });
                self.slots.put(slot, pending);
                return Ok(());
            }
            pending.write = None;
            let write = Command::Write { range, hints: Hints::default(), fua };
            self.issue(at, &mut pending, Part::Write, write)?;
        }
        if pending.open > 0 {
            self.slots.put(self.slots.next(), pending);
            return Ok(());
        }
        self.in_flight.enter(pending.done);
        self.last_done = self.last_done.max(pending.done);
        Ok(())
    }

    /// The request's range, folded into the drive if that is allowed.
    fn fold(&mut self, request: &Request) -> Result<ByteRange, ReplayError> {
        let range = request.range;
        let capacity = self.capacity;
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

    /// Empties the write buffer, so that all that was written counts, and sums up.
    fn finish(mut self) -> Result<RunResult, ReplayError> {
        while let Some(event) = self.machine.advance()? {
            self.react(event)?;
        }
        let elapsed = self.last_done.since(self.start);
        let end = self.last_done.max(self.now);
        self.machine.request(end, Lane::Alone, Command::Flush)?;
        let drive = &*self.machine.device();
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
