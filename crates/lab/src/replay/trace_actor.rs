//! A block trace as an actor: its requests on a raw drive.

use dovetail_block::{
    BLOCK_SIZE, BlockDevice, BlockRange, ByteRange, Hints, Lba, SectorRange, ZoneTable,
};
use dovetail_ftl::stats::CommandKind;
use dovetail_host::{CheckedDevice, Event, Events, InFlight, PlanStep as Command, ZoneLogCounts};
use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::{Op, Request};

use super::pending::{Pending, Slots, ZoneQueues};
use super::{Pacing, ReplayError, ReplayJob};
use crate::below::Below;
use crate::lane::{Lane, Machine, Part, seen};
use crate::record::{Recorder, Rhythm, Sample, Seen, summarize};
use crate::results::{ReplayResult, RunResult, ScatterPoint, StackResult, TraceResult};

/// Points of a series with a given interval, at most.
pub(super) const MAX_FIXED_POINTS: u64 = 100_000;

/// The longest replay: a hundred years. What comes on top still fits into virtual time.
const LONGEST_NS: f64 = 100.0 * 365.25 * 86_400.0 * 1e9;

/// The end of virtual time.
const FOREVER: SimTime = SimTime::from_ns(u64::MAX);

/// A block trace as an actor: it issues requests at their times, and the writes that had to wait.
pub(super) struct TraceActor<'a> {
    job: &'a ReplayJob,
    machine: Machine,
    capacity: u64,
    /// Virtual time of the first request: after preconditioning.
    start: SimTime,
    in_flight: InFlight,
    slots: Slots,
    now: SimTime,
    last_done: SimTime,
    /// Requests so far.
    number: u64,
    /// Figures of the trace as replayed so far.
    trace: TraceResult,
    /// The time of the last request, as recorded.
    span: SimSpan,
    recorder: Recorder,
    sample: Sample,
    /// The zones of a drive that is written as it is, as the trace leaves them.
    zones: Option<ZoneTable>,
    zone_queues: ZoneQueues,
    /// Counts of the host's log when the replay began.
    log_before: ZoneLogCounts,
}

impl<'a> TraceActor<'a> {
    pub(super) fn new(job: &'a ReplayJob, drive: CheckedDevice<Below>) -> Self {
        let start = drive.device().idle_from();
        // the addresses of IPLFS are more than bytes can be counted
        let capacity = drive.blocks().saturating_mul(BLOCK_SIZE);
        let zones = drive.device().info().capabilities.zones.map(ZoneTable::new);
        let log_before = drive.device().log_counts();
        let machine = Machine::over(drive, job.host, start, Events::default());
        let mut recorder = Recorder::new(1, Rhythm::Even(job.interval));
        recorder.begin(None, &seen(&machine, &machine.device()));
        Self {
            job,
            machine,
            capacity,
            start,
            in_flight: InFlight::default(),
            slots: Slots::default(),
            now: start,
            last_done: start,
            number: 0,
            trace: TraceResult::default(),
            span: SimSpan::ZERO,
            recorder,
            sample: Sample::new(job.drive.seed),
            zones,
            zone_queues: ZoneQueues::default(),
            log_before,
        }
    }

    /// Tells that a request for these blocks comes soon.
    pub(super) fn expect(&self, range: BlockRange) {
        self.machine.expect(range);
    }

    /// Issues the next request of the trace; what is due before happens.
    pub(super) fn request(&mut self, request: Request) -> Result<(), ReplayError> {
        self.number += 1;
        self.span = request.at.since(SimTime::ZERO);
        let at = self.arrival(&request)?;
        self.now = at;
        if self.recorder.is_due(at) {
            self.end_interval(at)?;
        }
        self.recorder.arrive(self.under_way() + 1);
        self.perform(at, &request)
    }

    fn end_interval(&mut self, at: SimTime) -> Result<(), ReplayError> {
        // before its entry is made: there may be very many
        if let Some(interval) = self.job.interval
            && self.recorder.cell(at) >= MAX_FIXED_POINTS
        {
            return Err(ReplayError::IntervalTooShort(interval));
        }
        let drive = self.machine.device();
        let seen = Seen { at, ..seen(&self.machine, &drive) };
        self.recorder.sample(None, &seen);
        Ok(())
    }

    /// Requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.number
    }

    fn under_way(&self) -> u64 {
        (self.in_flight.len() + self.slots.len()) as u64
    }

    /// Time at which the request is issued; events due before it happen first.
    fn arrival(&mut self, request: &Request) -> Result<SimTime, ReplayError> {
        match self.job.pacing {
            Pacing::Timed { speed } => {
                let offset = (request.at.as_ns() as f64 / speed).round();
                if offset > LONGEST_NS {
                    let trace = self.job.trace.display().to_string();
                    return Err(ReplayError::TooLong { trace, number: self.number });
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
        let (Event::Ended { lane, at } | Event::Timer { lane, at }) = event else {
            return Ok(()); // a request is no call
        };
        let Lane::Request { slot, part } = lane else { return Ok(()) };
        let Some(mut pending) = self.slots.take(slot) else { return Ok(()) };
        if matches!(event, Event::Ended { .. }) {
            pending.open -= 1;
            self.end_part(&mut pending, part, at);
        } else {
            pending.wakes = false;
        }
        self.go_on(at, pending)
    }

    fn perform(&mut self, at: SimTime, request: &Request) -> Result<(), ReplayError> {
        let mut pending = Pending { arrived: at, write: None, wakes: false, open: 0, done: at };
        if request.preflush || request.op == Op::Flush {
            self.trace.requests.flush += 1;
            self.issue(at, &mut pending, Part::Flush, Command::Flush)?;
        }
        let range = self.fold(request)?;
        match request.op {
            Op::Flush => self.recorder.count(0, CommandKind::Flush, 0),
            Op::Read => {
                self.count(at, request, range, CommandKind::Read);
                self.issue(at, &mut pending, Part::Read, Command::Read(range.blocks_touched()))?;
            }
            Op::Write => {
                self.count(at, request, range, CommandKind::Write);
                self.check_zones(range.blocks_touched())?;
                self.read_rests(at, &mut pending, range)?;
                pending.write = Some((range.blocks_touched(), request.fua));
            }
            Op::Discard => {
                self.count(at, request, range, CommandKind::Discard);
                let ranges = vec![SectorRange::inside(range)];
                self.issue(at, &mut pending, Part::Discard, Command::Discard(ranges))?;
            }
        }
        self.go_on(at, pending)
    }

    /// A write to a zone must keep its rules, unless a log in the host sees to that.
    fn check_zones(&mut self, range: BlockRange) -> Result<(), ReplayError> {
        let Some(table) = &mut self.zones else { return Ok(()) };
        let written = match table.zones().written_by(range) {
            Ok(Some(zone)) => table.write(zone, range),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        written.map_err(|source| ReplayError::Zones {
            trace: self.job.trace.display().to_string(),
            number: self.number,
            at: range.start.0 * BLOCK_SIZE,
            source,
        })
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

    fn read_rest(
        &mut self,
        at: SimTime,
        pending: &mut Pending,
        block: Lba,
    ) -> Result<(), ReplayError> {
        self.trace.partial_blocks += 1;
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
        self.recorder.latency(0, kind, pending.arrived, done);
    }

    /// Issues the write if nothing before it is under way, and those to its zone that waited for
    /// it; ends a request if nothing of it is under way.
    fn go_on(&mut self, at: SimTime, pending: Pending) -> Result<(), ReplayError> {
        let mut next = Some(pending);
        while let Some(mut pending) = next.take() {
            let issued = self.issue_write(at, &mut pending)?;
            if pending.open > 0 || pending.write.is_some() {
                self.slots.put(self.slots.next(), pending);
            } else {
                self.in_flight.enter(pending.done);
                self.last_done = self.last_done.max(pending.done);
            }
            let waiting = issued.and_then(|zone| self.zone_queues.first(zone));
            next = waiting.and_then(|slot| self.slots.take_if(slot, Pending::only_waits));
        }
        Ok(())
    }

    /// Issues the write of a request if its time has come; returns its zone if it was issued.
    fn issue_write(
        &mut self,
        at: SimTime,
        pending: &mut Pending,
    ) -> Result<Option<u32>, ReplayError> {
        let Some((range, fua)) = pending.write else { return Ok(None) };
        let (zone, slot) = (self.zone_of(range), self.slots.next());
        let is_first = zone.is_none_or(|zone| self.zone_queues.is_first(zone, slot));
        if pending.open > 0 || pending.done > at || !is_first {
            if pending.open == 0 && pending.done > at {
                self.machine.wake_at(pending.done, Lane::Request { slot, part: Part::Write });
                pending.wakes = true;
            }
            if let Some(zone) = zone {
                self.zone_queues.enter(zone, slot);
            }
            return Ok(None);
        }
        pending.write = None;
        let write = Command::Write { range, hints: Hints::default(), fua };
        self.issue(at, pending, Part::Write, write)?;
        if let Some(zone) = zone {
            self.zone_queues.leave(zone);
        }
        Ok(zone)
    }

    /// The zone that a write to a drive with zones as it is goes to.
    fn zone_of(&self, range: BlockRange) -> Option<u32> {
        self.zones.as_ref()?.zones().index(range.start)
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
                number: self.number,
                end: range.end(),
                capacity,
            });
        }
        self.trace.wrapped += 1;
        let len = range.len.min(capacity);
        let start = range.start % capacity;
        // What would stick out at the end moves down as a whole, so that a request stays one
        // request.
        Ok(ByteRange::new(start.min(capacity - len), len))
    }

    /// Counts a request: for the trace as it has it, for the run as it was folded.
    fn count(&mut self, at: SimTime, request: &Request, range: ByteRange, kind: CommandKind) {
        let (requests, bytes) = (&mut self.trace.requests, &mut self.trace.bytes);
        let (requests, bytes, op) = match kind {
            CommandKind::Read => (&mut requests.read, &mut bytes.read, 'r'),
            CommandKind::Write => (&mut requests.write, &mut bytes.write, 'w'),
            _ => (&mut requests.discard, &mut bytes.discard, 'd'),
        };
        *requests += 1;
        *bytes += request.range.len;
        self.recorder.count(0, kind, range.len);
        let t = at.since(self.start).as_secs_f64();
        self.sample.offer(ScatterPoint { t, at: range.start, len: range.len, op });
    }

    /// Empties the write buffer, so that all that was written counts, and sums up: the run, and
    /// what was replayed of the trace.
    pub(super) fn finish(mut self) -> Result<(RunResult, TraceResult), ReplayError> {
        while let Some(event) = self.machine.advance()? {
            self.react(event)?;
        }
        let end = self.last_done.max(self.now);
        self.machine.request(end, Lane::Alone, Command::Flush)?;
        while self.machine.advance()?.is_some() {}
        let now = self.machine.now();
        self.machine.device_mut().write_out(now)?;
        self.recorder.end(None, &seen(&self.machine, &self.machine.device()));
        let elapsed = (self.last_done.since(self.start), SimSpan::ZERO);
        let drive = &*self.machine.device();
        let job = self.job;
        let result = RunResult {
            label: job.label.clone(),
            seed: job.drive.seed,
            stack: StackResult {
                name: job.drive.name.clone(),
                filesystem: "none".into(),
                partition_bytes: self.capacity,
                host: job.host,
                ..StackResult::default()
            },
            replay: Some(pacing(job.pacing)),
            zone_log: drive.log_result(self.log_before),
            scatter: self.sample.finish(),
            ..summarize(&self.recorder, drive, elapsed, &[job.trace_name()])
        };
        Ok((result, TraceResult { span_s: self.span.as_secs_f64(), ..self.trace }))
    }
}

fn pacing(pacing: Pacing) -> ReplayResult {
    let (mode, speed, queue_depth) = match pacing {
        Pacing::Timed { speed } => ("timed", Some(speed), None),
        Pacing::Closed { depth } => ("closed", None, Some(depth)),
    };
    ReplayResult { mode: mode.into(), speed, queue_depth }
}
