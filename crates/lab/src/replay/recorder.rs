//! Figures over time: what arrived and what the drive did in each interval.
//!
//! Without a given interval the recorder starts with a short one and doubles it whenever 512 are full, so that
//! a trace of unknown length gets 256 to 512 points.

use dovetail_block::BLOCK_SIZE;
use dovetail_ftl::Drive;
use dovetail_ftl::cache::Occupancy;
use dovetail_ftl::stats::{Cause, CommandKind, Counters, Values};
use dovetail_time::{SimSpan, SimTime};

use super::ReplayError;
use crate::results::Series;

/// Most points of a series with a given interval.
pub(super) const MAX_FIXED_POINTS: usize = 100_000;
const MAX_POINTS: usize = 512;
const FIRST_INTERVAL: SimSpan = SimSpan::from_us(100);

/// The state of the drive at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct DriveState {
    counters: Counters,
    die_busy: SimSpan,
    free_lines: u32,
    map_bytes: u64,
    map_cache: Occupancy,
}

#[derive(Clone, Debug)]
struct Interval {
    requests: u64,
    in_flight: u64,
    /// One for each kind of command, in the order of [`CommandKind::ALL`].
    latencies: [Values<u32>; CommandKind::ALL.len()],
    end: DriveState,
}

impl Interval {
    fn new(end: DriveState) -> Self {
        Self { requests: 0, in_flight: 0, latencies: std::array::from_fn(|_| Values::new(2)), end }
    }

    fn merge(&mut self, later: &Self) {
        self.requests += later.requests;
        self.in_flight += later.in_flight;
        self.latencies.iter_mut().zip(&later.latencies).for_each(|(mine, theirs)| mine.add(theirs));
        self.end = later.end;
    }
}

/// Collects a series.
#[derive(Debug)]
pub(super) struct Recorder {
    start: SimTime,
    interval: SimSpan,
    fixed: bool,
    intervals: Vec<Interval>,
    first: DriveState,
    map_bytes_max: u64,
}

impl Recorder {
    pub(super) fn new(start: SimTime, interval: Option<SimSpan>, drive: &Drive) -> Self {
        let first = state_of(drive);
        Self {
            start,
            interval: interval.unwrap_or(FIRST_INTERVAL),
            fixed: interval.is_some(),
            intervals: vec![Interval::new(first)],
            first,
            map_bytes_max: first.map_bytes,
        }
    }

    /// Notes a request that arrives at `at`. Must be called before the drive performs it.
    pub(super) fn arrive(&mut self, at: SimTime, in_flight: u64, drive: &Drive) -> Result<(), ReplayError> {
        self.advance(at, drive)?;
        if let Some(now) = self.intervals.last_mut() {
            now.requests += 1;
            now.in_flight += in_flight;
        }
        Ok(())
    }

    /// Notes the latency of a command that was issued in the current interval.
    pub(super) fn latency(&mut self, kind: CommandKind, latency: SimSpan) {
        let Some(now) = self.intervals.last_mut() else { return };
        now.latencies[kind as usize].record(latency.as_ns());
    }

    /// The map's bytes at most, as seen at the ends of intervals.
    pub(super) fn map_bytes_max(&self) -> u64 {
        self.map_bytes_max
    }

    /// Opens intervals up to the one of `at`.
    fn advance(&mut self, at: SimTime, drive: &Drive) -> Result<(), ReplayError> {
        if self.index_of(at) < self.intervals.len() {
            return Ok(());
        }
        // before any of them is made: they may be very many
        if self.fixed && self.index_of(at) >= MAX_FIXED_POINTS {
            return Err(ReplayError::IntervalTooShort(self.interval));
        }
        self.close(drive);
        let state = state_of(drive);
        while self.index_of(at) >= self.intervals.len() {
            if !self.fixed && self.index_of(at) >= MAX_POINTS {
                self.double();
            } else {
                self.intervals.push(Interval::new(state));
            }
        }
        Ok(())
    }

    fn index_of(&self, at: SimTime) -> usize {
        (at.since(self.start).as_ns() / self.interval.as_ns().max(1)) as usize
    }

    /// The state of the drive is that of the end of the current interval.
    fn close(&mut self, drive: &Drive) {
        let state = state_of(drive);
        self.map_bytes_max = self.map_bytes_max.max(state.map_bytes);
        if let Some(now) = self.intervals.last_mut() {
            now.end = state;
        }
    }

    fn double(&mut self) {
        let mut pairs = std::mem::take(&mut self.intervals).into_iter();
        while let Some(mut first) = pairs.next() {
            if let Some(second) = pairs.next() {
                first.merge(&second);
            }
            self.intervals.push(first);
        }
        self.interval = self.interval * 2;
    }

    /// The series up to now.
    pub(super) fn finish(mut self, drive: &Drive) -> Series {
        self.close(drive);
        let dies = f64::from(drive.geometry().dies());
        let parts = drive.geometry().parts_per_page();
        let mut series = Series { interval_s: self.interval.as_secs_f64(), ..Series::default() };
        let mut before = self.first;
        for (i, interval) in self.intervals.iter().enumerate() {
            let end = self.interval * (i as u64 + 1);
            let seconds = self.interval.as_secs_f64();
            let counted = interval.end.counters - before.counters;
            push_interval(&mut series, interval, counted, seconds, parts);
            series.time_s.push(end.as_secs_f64());
            series.die_busy.push((interval.end.die_busy - before.die_busy).as_secs_f64() / (seconds * dies));
            before = interval.end;
        }
        series
    }
}

fn push_interval(series: &mut Series, interval: &Interval, counted: Counters, seconds: f64, parts: u32) {
    let mb_per_s = |blocks: u64| (blocks * BLOCK_SIZE) as f64 / 1e6 / seconds;
    series.iops.push(interval.requests as f64 / seconds);
    series.read_mb_per_s.push(mb_per_s(counted.read_blocks));
    series.write_mb_per_s.push(mb_per_s(counted.written_blocks));
    series.waf.push(counted.waf(parts));
    let mean = |sum: u64, count: u64| (count > 0).then(|| sum as f64 / count as f64);
    series.queue_depth.push(mean(interval.in_flight, interval.requests));
    let us = |kind: CommandKind, q: f64| {
        let values = &interval.latencies[kind as usize];
        (!values.is_empty()).then(|| values.histogram().value_at_quantile(q) as f64 / 1e3)
    };
    series.read_p50_us.push(us(CommandKind::Read, 0.5));
    series.read_p99_us.push(us(CommandKind::Read, 0.99));
    series.write_p50_us.push(us(CommandKind::Write, 0.5));
    series.write_p99_us.push(us(CommandKind::Write, 0.99));
    series.flush_p50_us.push(us(CommandKind::Flush, 0.5));
    series.flush_p99_us.push(us(CommandKind::Flush, 0.99));
    series.discard_p50_us.push(us(CommandKind::Discard, 0.5));
    series.discard_p99_us.push(us(CommandKind::Discard, 0.99));
    series.programmed_pages.push(counted.programmed_pages());
    series.moved_pages.push(counted.programs[Cause::Gc as usize] + counted.programs[Cause::Wear as usize]);
    series.erases.push(counted.erases);
    series.free_lines.push(interval.end.free_lines);
    series.map_bytes.push(interval.end.map_bytes);
    series.cache_write_part.push(interval.end.map_cache.write_part);
    series.cache_maht.push(interval.end.map_cache.maht);
}

fn state_of(drive: &Drive) -> DriveState {
    DriveState {
        counters: drive.counters(),
        die_busy: drive.die_use().fold(SimSpan::ZERO, |sum, die| sum + die.busy),
        free_lines: drive.lines().free(),
        map_bytes: drive.mapping_memory_bytes(),
        map_cache: drive.map_cache().unwrap_or_default(),
    }
}
