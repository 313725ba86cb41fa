//! The extent of a thread's work: what ends it, what is done, and the room that it takes.

use dovetail_block::BLOCK_SIZE;
use dovetail_time::SimTime;

use super::{Stage, Thread, later};
use crate::fio::pattern::Direction;
use crate::fio::plan::Region;
use crate::fio::settings::Settings;

impl Thread {
    pub(super) fn is_time_up(&self, now: SimTime) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// The ramp comes on top of the runtime.
    pub(super) fn deadline(&self) -> Option<SimTime> {
        let runtime = self.settings.runtime_ns;
        (runtime > 0).then(|| later(self.begin, runtime.saturating_add(self.settings.ramp_ns)))
    }

    /// Part of its work that is done at `now`, from 0 to 1: of what ends it first, time or bytes.
    pub(in crate::fio) fn share_done(&self, now: SimTime) -> f64 {
        match self.stage {
            Stage::New | Stage::PreReading => return 0.0,
            Stage::Done => return 1.0,
            _ => {}
        }
        let of_time = self.deadline().map_or(0.0, |end| {
            now.since(self.begin).as_secs_f64() / end.since(self.begin).as_secs_f64().max(1e-9)
        });
        let loops = self.settings.passes() as f64;
        let bytes = self.total_bytes.saturating_add(self.verified_bytes);
        let of_bytes = bytes as f64 / (self.limit() as f64 * loops).max(1.0);
        let of_calls = self.settings.number_ios.map_or(0.0, |calls| {
            self.counted_calls() as f64
                / (calls as f64 * loops * self.bytes_factor() as f64).max(1.0)
        });
        let of_work = if self.settings.time_based { 0.0 } else { of_bytes.max(of_calls) };
        of_time.max(of_work).clamp(0.0, 1.0)
    }

    pub(super) fn is_pass_over(&self) -> bool {
        (self.is_work_done() || self.is_queue_through()) && !self.settings.time_based
    }

    /// A pass of an asynchronous engine ends after as many bytes as `size` says, wherever they
    /// were: fio counts for this what it has queued, and synchronous engines queue nothing.
    fn is_queue_through(&self) -> bool {
        let Settings { engine, pattern, norandommap, .. } = self.settings;
        let anywhere = pattern.random && norandommap && pattern.does(Direction::Write);
        let more = self.plan.io_size.filter(|_| anywhere).unwrap_or(0);
        let bytes = self.plan.size.max(more).saturating_mul(self.bytes_factor());
        engine.is_async() && self.pass_bytes >= bytes
    }

    /// All passes together have done what is to be done.
    pub(super) fn is_work_done(&self) -> bool {
        self.total_bytes >= self.limit().saturating_mul(self.settings.passes())
            || self.are_calls_used_up()
    }

    /// A job that trims and then writes does both with every byte.
    const fn bytes_factor(&self) -> u64 {
        if self.settings.pattern.is_trim_write() { 2 } else { 1 }
    }

    pub(super) fn limit(&self) -> u64 {
        self.plan.io_size.unwrap_or(self.plan.size).saturating_mul(self.bytes_factor())
    }

    pub(super) fn are_calls_used_up(&self) -> bool {
        let allowed = |calls: u64| {
            calls.saturating_mul(self.settings.passes()).saturating_mul(self.bytes_factor())
        };
        self.settings.number_ios.is_some_and(|calls| self.counted_calls() >= allowed(calls))
    }

    /// Calls as `number_ios` counts them.
    const fn counted_calls(&self) -> u64 {
        self.calls + self.verifying_calls - self.ramp_calls
    }

    /// Blocks of 4 KiB that its writes touch at most; `None` where time alone ends it.
    pub(in crate::fio) fn written_blocks(&self) -> Option<u64> {
        let settings = &self.settings;
        if !settings.pattern.does(Direction::Write) {
            return Some(0);
        }
        if settings.time_based {
            return None;
        }
        let sizes = || self.sizes_of_writes().map(|direction| &settings.blocks[direction.index()]);
        let smallest = sizes().map(|sizes| sizes.min).min().unwrap_or(1).max(1);
        let largest = sizes().map(|sizes| sizes.max).max().unwrap_or(1).max(1);
        // the last call goes beyond
        let limit = self.limit().saturating_mul(settings.passes());
        let bytes = match smallest == largest {
            true => limit.div_ceil(smallest).saturating_mul(smallest),
            false => limit.saturating_add(largest - 1),
        };
        // a call that is not of whole blocks touches one more at most
        let is_whole = !settings.unaligned && self.places().all(|at| at.is_multiple_of(BLOCK_SIZE));
        let more = if is_whole { 0 } else { bytes.div_ceil(smallest) };
        Some(bytes.div_ceil(BLOCK_SIZE).saturating_add(more))
    }

    /// Directions whose block sizes its writes have.
    fn sizes_of_writes(&self) -> impl Iterator<Item = Direction> {
        let settings = &self.settings;
        let also = [
            (Direction::Read, settings.sequential_random_sizes),
            (Direction::Trim, settings.pattern.is_trim_write()),
        ];
        let also = also.into_iter().filter(|(_, is_so)| *is_so).map(|(direction, _)| direction);
        also.chain([Direction::Write])
    }

    /// Numbers of bytes of which the offsets and lengths of its writes are sums.
    fn places(&self) -> impl Iterator<Item = u64> {
        let settings = &self.settings;
        let sizes = |direction: Direction| {
            [settings.blocks[direction.index()].min, settings.align_of(direction)]
        };
        let skip = settings.skip();
        let from_end = move |region: &Region| if skip < 0 { region.len } else { 0 };
        (self.sizes_of_writes().flat_map(sizes))
            .chain([skip.unsigned_abs()])
            .chain(self.plan.files.iter().flat_map(move |region| [region.start, from_end(region)]))
    }
}
