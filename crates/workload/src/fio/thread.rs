//! One thread of a job: what it calls next.
//!
//! A pass goes over the files once: it ends when every file gives nothing more, or enough bytes
//! were issued for all passes. Then the files are closed, and what was written is read back if
//! `verify` says so. `loops`, `io_size` and `time_based` ask for further passes.

use std::collections::VecDeque;

use dovetail_block::BLOCK_SIZE;
use dovetail_time::{Rng, SimTime};

use super::cursor::{Context, Cursor, Target};
use super::layout::WRITE_BYTES;
use super::pattern::Direction;
use super::plan::{Region, ThreadPlan};
use super::rate::Rate;
use super::service::FileService;
use super::settings::{Settings, SyncWrites};
use super::streams::Streams;
use crate::call::{Call, FileId, Step};

/// A thread and all that it keeps in mind.
#[derive(Debug)]
pub(super) struct Thread {
    number: u32,
    plan: ThreadPlan,
    settings: Settings,
    root: Rng,
    streams: Streams,
    cursors: Vec<Cursor>,
    /// By file: opened and not closed.
    is_open: Vec<bool>,
    service: FileService,

    stage: Stage,
    /// Calls that are decided, in their order.
    pending: VecDeque<Call>,
    /// Reads, writes and trims under way; a write with a sync of its own until that has ended.
    in_flight: u64,
    /// It had as many under way as it may, and waits until few enough are left.
    draining: bool,
    /// Another call is under way, and nothing goes beside it.
    blocked: bool,
    /// Syncs of writes that have ended, with `sync` and more than one call at a time.
    syncs: VecDeque<Call>,
    /// Those that are under way.
    syncing: u32,
    wake: Option<SimTime>,
    begin: SimTime,
    rate: Option<Rate>,
    direction: Option<Direction>,

    pass: u64,
    loops_left: u64,
    pass_bytes: u64,
    total_bytes: u64,
    calls: u64,
    calls_to_offset: u64,
    calls_to_think: u64,
    writes: u64,
    last: Last,
    /// Calls that verify, and their bytes.
    verifying_calls: u64,
    verified_bytes: u64,
    terminated: bool,
    /// Parts of files that the pass wrote, to be read back.
    written: Vec<(usize, Target)>,
    reading_back: std::vec::IntoIter<(usize, Target)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not asked yet since it may start.
    New,
    /// Its files are read into the page cache, which is not measured.
    PreReading,
    Running,
    /// The calls of the pass are issued; its files are closed next.
    Closing,
    ReadingBack,
    /// The last calls are pending.
    Ending,
    Done,
}

/// The last act of a thread that a sync depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Write,
    Sync,
    Other,
}

impl Thread {
    pub(super) fn new(number: u32, plan: ThreadPlan, settings: Settings, root: Rng) -> Self {
        let files = plan.files.len();
        let service =
            FileService::new(files, settings.service, settings.openfiles.unwrap_or(u64::MAX));
        Self {
            number,
            streams: Streams::new(&root, &settings, number, 0),
            cursors: plan.files.iter().copied().map(Cursor::new).collect(),
            is_open: vec![false; files],
            service,
            stage: Stage::New,
            pending: VecDeque::new(),
            in_flight: 0,
            draining: false,
            blocked: false,
            syncs: VecDeque::new(),
            syncing: 0,
            wake: None,
            begin: SimTime::ZERO,
            rate: None,
            direction: None,
            pass: 0,
            loops_left: settings.passes() - 1,
            pass_bytes: 0,
            total_bytes: 0,
            calls: 0,
            calls_to_offset: settings.calls_an_offset(),
            calls_to_think: settings.thinktime_blocks,
            writes: 0,
            last: Last::Other,
            verifying_calls: 0,
            verified_bytes: 0,
            terminated: false,
            written: Vec::new(),
            reading_back: Vec::new().into_iter(),
            root,
            plan,
            settings,
        }
    }

    pub(super) const fn plan(&self) -> &ThreadPlan {
        &self.plan
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Returns whether calls that begin at `now` count in the results: after `ramp_time`.
    pub(super) fn is_measured(&self, now: SimTime) -> bool {
        !matches!(self.stage, Stage::New | Stage::PreReading)
            && now >= later(self.begin, self.settings.ramp_ns)
    }

    /// The first question after the thread may start; `genesis` is when the first thread of all
    /// did.
    pub(super) fn start(&mut self, now: SimTime, genesis: SimTime) {
        if self.stage == Stage::New && self.wake.is_none() && !self.terminated {
            let (low, high) = self.settings.startdelay_ns;
            let delay = low + self.streams.start.below(high - low + 1);
            self.wake = Some(later(genesis, delay).max(now));
        }
    }

    pub(super) fn next(&mut self, now: SimTime, users: &mut Users) -> Step {
        loop {
            if let Some(sync) = self.syncs.pop_front() {
                self.syncing += 1;
                return Step::Call(sync);
            }
            if self.blocked {
                return Step::Wait;
            }
            if let Some(wake) = self.wake.filter(|wake| now < *wake) {
                return Step::Sleep(wake);
            }
            self.wake = None;
            if let Some(step) = self.issue() {
                return step;
            }
            if let Some(step) = self.advance(now, users) {
                return step;
            }
        }
    }

    pub(super) fn ended(&mut self, call: &Call) {
        match *call {
            Call::Write { file, .. } if self.settings.syncs_beside() => {
                // through when it is synced
                let data_only = self.settings.sync == SyncWrites::Data;
                self.syncs.push_back(Call::Sync { file, data_only });
            }
            // a sync of `fsync` is not told apart from these: it is taken for the last to end
            Call::Sync { .. } if self.syncing > 0 => {
                self.syncing -= 1;
                self.in_flight = self.in_flight.saturating_sub(1);
            }
            _ if Direction::of(call).is_some() => {
                self.in_flight = self.in_flight.saturating_sub(1);
            }
            _ => self.blocked = false,
        }
        // Threads that wait for this one are asked right after its last call: it must be done by
        // then.
        if self.stage == Stage::Ending && self.pending.is_empty() && self.in_flight == 0 {
            self.stage = Stage::Done;
        }
    }

    /// The first pending call, if it may go.
    fn issue(&mut self) -> Option<Step> {
        let call = *self.pending.front()?;
        let is_data = Direction::of(&call).is_some();
        let beside =
            if is_data || self.goes_beside_data(&call) { self.settings.depth() } else { 1 };
        if self.in_flight >= beside {
            return Some(Step::Wait);
        }
        if is_data {
            self.in_flight += 1;
        } else {
            self.blocked = true;
        }
        self.pending.pop_front();
        Some(Step::Call(call))
    }

    /// fio's asynchronous engines sync without waiting for what is under way.
    fn goes_beside_data(&self, call: &Call) -> bool {
        matches!(call, Call::Sync { .. }) && self.settings.depth() > 1
    }

    /// Decides on further calls; a step if there is nothing to call now.
    fn advance(&mut self, now: SimTime, users: &mut Users) -> Option<Step> {
        match self.stage {
            Stage::New => {
                if self.settings.pre_read && !self.terminated {
                    self.pre_read();
                    self.stage = Stage::PreReading;
                } else {
                    self.begin(now);
                }
                None
            }
            Stage::PreReading if self.in_flight > 0 => Some(Step::Wait),
            Stage::PreReading => {
                self.begin(now);
                None
            }
            Stage::Running => self.run(now),
            Stage::Closing | Stage::Ending if self.in_flight > 0 => Some(Step::Wait),
            Stage::Closing => {
                self.close_pass(users);
                None
            }
            Stage::ReadingBack => self.read_back(users),
            Stage::Ending => {
                self.stage = Stage::Done;
                None
            }
            Stage::Done => Some(Step::Done),
        }
    }

    fn begin(&mut self, now: SimTime) {
        self.begin = now;
        self.rate = Some(Rate::new(&self.settings, now, &self.streams.rate));
        self.stage = Stage::Running;
    }

    /// Reads all files from their start to their end, past no cache, in calls as large as those
    /// that lay files out.
    fn pre_read(&mut self) {
        for at in 0..self.plan.files.len() {
            let Region { file, start, len, .. } = self.plan.files[at];
            self.is_open[at] = true;
            self.pending.push_back(Call::Open { file });
            self.pending.extend((0..len).step_by(WRITE_BYTES as usize).map(|done| {
                let len = WRITE_BYTES.min(len - done);
                Call::Read { file, offset: start + done, len, direct: false }
            }));
        }
    }

    /// Makes no further call: another job ended, and `exitall` is on.
    pub(super) fn terminate(&mut self) {
        self.terminated = true;
        self.wake = None;
        if self.stage == Stage::PreReading {
            self.pending.clear();
        }
    }

    /// It has begun: its first call is made, or on its way.
    pub(super) fn is_running(&self) -> bool {
        !matches!(self.stage, Stage::New | Stage::Done)
    }

    /// Returns whether calls that are under way have to end before the next one.
    fn is_full(&mut self) -> bool {
        if self.in_flight >= self.settings.depth() {
            self.draining = true;
        } else if self.in_flight <= self.settings.depth_low() {
            self.draining = false;
        }
        self.draining
    }

    fn run(&mut self, now: SimTime) -> Option<Step> {
        if self.is_full() {
            return Some(Step::Wait);
        }
        if self.is_time_up(now) {
            self.terminated = true;
        }
        if self.terminated || self.is_pass_over() {
            self.stage = Stage::Closing;
            return None;
        }
        if let Some(step) = self.think(now) {
            return Some(step);
        }
        if self.owes_sync() {
            self.sync();
            return None;
        }
        let direction = match self.direction {
            Some(direction) => direction,
            None => self.draw_direction(),
        };
        self.direction = Some(direction);
        if let Some(step) = self.hold_rate(direction, now) {
            return Some(step);
        }
        self.call_on_a_file();
        None
    }

    fn is_time_up(&self, now: SimTime) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// The ramp comes on top of the runtime.
    fn deadline(&self) -> Option<SimTime> {
        let runtime = self.settings.runtime_ns;
        (runtime > 0).then(|| later(self.begin, runtime.saturating_add(self.settings.ramp_ns)))
    }

    /// Part of its work that is done at `now`, from 0 to 1: of what ends it first, time or bytes.
    pub(super) fn share_done(&self, now: SimTime) -> f64 {
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
            (self.calls + self.verifying_calls) as f64
                / (calls as f64 * loops * self.bytes_factor() as f64).max(1.0)
        });
        let of_work = if self.settings.time_based { 0.0 } else { of_bytes.max(of_calls) };
        of_time.max(of_work).clamp(0.0, 1.0)
    }

    /// Blocks of 4 KiB that its writes touch at most; `None` where time alone ends it.
    pub(super) fn written_blocks(&self) -> Option<u64> {
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

    fn is_pass_over(&self) -> bool {
        self.is_work_done() && !self.settings.time_based
    }

    /// All passes together have done what is to be done.
    fn is_work_done(&self) -> bool {
        self.total_bytes >= self.limit().saturating_mul(self.settings.passes())
            || self.are_calls_used_up()
    }

    /// A job that trims and then writes does both with every byte.
    const fn bytes_factor(&self) -> u64 {
        if self.settings.pattern.is_trim_write() { 2 } else { 1 }
    }

    fn limit(&self) -> u64 {
        self.plan.io_size.unwrap_or(self.plan.size).saturating_mul(self.bytes_factor())
    }

    fn are_calls_used_up(&self) -> bool {
        let allowed = |calls: u64| {
            calls.saturating_mul(self.settings.passes()).saturating_mul(self.bytes_factor())
        };
        self.settings
            .number_ios
            .is_some_and(|calls| self.calls + self.verifying_calls >= allowed(calls))
    }

    /// `thinktime`, once the calls before it have ended.
    fn think(&mut self, now: SimTime) -> Option<Step> {
        if self.settings.thinktime_ns == 0 || self.calls_to_think > 0 {
            return None;
        }
        if self.in_flight > 0 {
            return Some(Step::Wait);
        }
        self.calls_to_think = self.settings.thinktime_blocks;
        Some(self.sleep(later(now, self.settings.thinktime_ns)))
    }

    fn sleep(&mut self, until: SimTime) -> Step {
        let until = self.deadline().map_or(until, |deadline| until.min(deadline));
        self.wake = Some(until);
        Step::Sleep(until)
    }

    fn hold_rate(&mut self, direction: Direction, now: SimTime) -> Option<Step> {
        let rate = self.rate.as_ref()?;
        let mut due = rate.due(direction);
        if self.settings.pattern.is_mixed() && due > now {
            // The other direction may be behind its rate.
            let other =
                if direction == Direction::Read { Direction::Write } else { Direction::Read };
            if rate.due(other) < due {
                due = rate.due(other);
                self.direction = Some(other);
            }
        }
        if due <= now {
            return None;
        }
        Some(if self.in_flight > 0 { Step::Wait } else { self.sleep(due) })
    }

    /// Returns whether `fsync` or `fdatasync` comes next: after every so many writes.
    fn owes_sync(&self) -> bool {
        let due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        self.last == Last::Write && (due(self.settings.fsync) || due(self.settings.fdatasync))
    }

    /// fio syncs the file whose turn it is, not the one that was written last.
    fn sync(&mut self) {
        let due = self.settings.fsync > 0 && self.writes.is_multiple_of(self.settings.fsync);
        let Some(at) = self.pick() else {
            self.stage = Stage::Closing;
            return;
        };
        self.pending.push_back(Call::Sync { file: self.file(at), data_only: !due });
        self.last = Last::Sync;
    }

    fn draw_direction(&mut self) -> Direction {
        let pattern = self.settings.pattern;
        if pattern.is_mixed() {
            let read = self.streams.mix.below(100) < u64::from(self.settings.read_percent);
            return if read { Direction::Read } else { Direction::Write };
        }
        Direction::ALL
            .into_iter()
            .find(|direction| pattern.does(*direction))
            .unwrap_or(Direction::Read)
    }

    fn file(&self, at: usize) -> FileId {
        self.plan.files[at].file
    }

    /// The next file; it is opened if need be.
    fn pick(&mut self) -> Option<usize> {
        let at = self.service.pick(&mut self.streams.file)?;
        self.open(at);
        Some(at)
    }

    /// Reads, writes or trims in the next file that has a place for it.
    fn call_on_a_file(&mut self) {
        self.calls_to_offset -= 1;
        let new_offset = self.calls_to_offset == 0;
        if new_offset {
            self.calls_to_offset = self.settings.calls_an_offset();
        }
        while let Some(at) = self.pick() {
            let direction = self.direction_in(at);
            if let Some(target) = self.target(at, direction, new_offset) {
                return self.call(at, direction, target);
            }
            self.service.finish(at);
            if self.service.all_done() {
                break; // it is closed with the pass
            }
            self.close_midway(at);
        }
        self.stage = Stage::Closing;
    }

    fn direction_in(&self, at: usize) -> Direction {
        let drawn = self.direction.unwrap_or(Direction::Read);
        match (self.settings.pattern.is_trim_write(), self.cursors[at].owes_write()) {
            (false, _) => drawn,
            (true, true) => Direction::Write,
            (true, false) => Direction::Trim,
        }
    }

    fn target(&mut self, at: usize, direction: Direction, new_offset: bool) -> Option<Target> {
        let settings = &self.settings;
        let wraps = settings.time_based && self.plan.files.len() == 1;
        let mut context = Context { settings, streams: &mut self.streams, new_offset, wraps };
        self.cursors[at].next(direction, &mut context)
    }

    fn call(&mut self, at: usize, direction: Direction, target: Target) {
        let file = self.file(at);
        let Target { offset, len, wrapped } = target;
        let direct = self.settings.direct;
        if wrapped && self.settings.invalidates() && !direct {
            self.pending.push_back(Call::DropCache { file });
        }
        self.pending.push_back(match direction {
            Direction::Read => Call::Read { file, offset, len, direct },
            Direction::Write => Call::Write { file, offset, len, direct },
            Direction::Trim => Call::PunchHole { file, offset, len },
        });
        self.last = Last::Other;
        if direction == Direction::Write {
            self.last = Last::Write;
            self.wrote(at, target);
        }
        self.count(direction, len);
    }

    fn wrote(&mut self, at: usize, target: Target) {
        self.writes += 1;
        if self.reads_back() {
            self.written.push((at, target));
        }
        let file = self.file(at);
        match self.settings.sync {
            _ if self.settings.syncs_beside() => {}
            SyncWrites::No => {}
            SyncWrites::All => self.pending.push_back(Call::Sync { file, data_only: false }),
            SyncWrites::Data => self.pending.push_back(Call::Sync { file, data_only: true }),
        }
    }

    fn count(&mut self, direction: Direction, bytes: u64) {
        self.direction = None;
        self.calls += 1;
        self.calls_to_think = self.calls_to_think.saturating_sub(1);
        self.pass_bytes = self.pass_bytes.saturating_add(bytes);
        self.total_bytes = self.total_bytes.saturating_add(bytes);
        if let Some(rate) = &mut self.rate {
            rate.issue(direction, bytes);
        }
    }

    /// A job whose writes take all of its time reads nothing back, as in fio.
    const fn reads_back(&self) -> bool {
        self.settings.verify && self.settings.do_verify && !self.settings.time_based
    }

    fn open(&mut self, at: usize) {
        if std::mem::replace(&mut self.is_open[at], true) {
            return;
        }
        let file = self.file(at);
        self.pending.push_back(Call::Open { file });
        if self.settings.invalidates() {
            self.pending.push_back(Call::DropCache { file });
        }
    }

    fn close(&mut self, at: usize) {
        if !std::mem::take(&mut self.is_open[at]) {
            return;
        }
        let file = self.file(at);
        self.pending.push_back(Call::Close { file });
    }

    /// Closes a file before the job ends: `fsync_on_close`.
    fn close_midway(&mut self, at: usize) {
        if self.is_open[at] && self.settings.fsync_on_close && self.may_sync() {
            self.pending.push_back(Call::Sync { file: self.file(at), data_only: false });
        }
        self.close(at);
    }

    /// As fio, it does not look whether there is something to sync.
    fn may_sync(&self) -> bool {
        self.settings.pattern.does(Direction::Write) && self.last != Last::Sync
    }

    const fn syncs_at_end(&self) -> bool {
        let is_asked = self.settings.end_fsync || self.settings.fsync_on_close;
        is_asked && self.settings.pattern.does(Direction::Write)
    }

    /// All files, those too that nothing was written to, as fio does; those that gave nothing more
    /// are closed before.
    fn sync_all(&mut self) {
        let files = 0..self.plan.files.len();
        if self.service.all_done() {
            files.clone().for_each(|at| self.close_midway(at));
        }
        for at in files {
            let was_open = self.is_open[at];
            self.open(at);
            self.pending.push_back(Call::Sync { file: self.file(at), data_only: false });
            if !was_open {
                self.close(at);
            }
        }
    }

    fn close_pass(&mut self, users: &mut Users) {
        if self.syncs_at_end() && self.calls > 0 && self.may_sync() {
            self.sync_all();
        }
        let mut written = std::mem::take(&mut self.written);
        if self.terminated {
            // its time is over, as in fio
            written.clear();
        }
        for at in 0..self.plan.files.len() {
            match written.is_empty() {
                true => self.close(at),
                false => self.close_midway(at),
            }
        }
        if !self.settings.pattern.random || self.settings.has_map() {
            written.sort_by_key(|(at, target)| (*at, target.offset));
            written.dedup_by_key(|(at, target)| (*at, target.offset));
        }
        self.reading_back = written.into_iter();
        self.stage = Stage::ReadingBack;
        if self.reading_back.as_slice().is_empty() {
            self.end_pass(users);
        }
    }

    /// Reads the next part that was written.
    fn read_back(&mut self, users: &mut Users) -> Option<Step> {
        if let Some((at, Target { offset, len, .. })) = self.reading_back.next() {
            self.open(at);
            let (file, direct) = (self.file(at), self.settings.direct);
            self.pending.push_back(Call::Read { file, offset, len, direct });
            self.last = Last::Other;
            self.verifying_calls += 1;
            self.verified_bytes += len;
            return None;
        }
        if self.in_flight > 0 {
            return Some(Step::Wait);
        }
        for at in 0..self.plan.files.len() {
            self.close_midway(at);
        }
        self.end_pass(users);
        None
    }

    fn end_pass(&mut self, users: &mut Users) {
        if self.wants_another_pass() {
            self.pass += 1;
            self.pass_bytes = 0;
            // fio forgets that it synced: a pass may begin with a sync.
            self.last = if self.writes > 0 { Last::Write } else { Last::Other };
            self.service.reset();
            self.cursors.iter_mut().for_each(Cursor::reset);
            self.streams = Streams::new(&self.root, &self.settings, self.number, self.pass);
            self.stage = Stage::Running;
        } else {
            self.end(users);
        }
    }

    fn wants_another_pass(&mut self) -> bool {
        if self.terminated || self.pass_bytes == 0 {
            return false;
        }
        if self.settings.time_based {
            return true;
        }
        if self.loops_left > 0 {
            self.loops_left -= 1;
            return !self.is_work_done() || self.syncs_at_end();
        }
        let block = self
            .settings
            .directions()
            .map(|direction| self.settings.blocks[direction.index()].max)
            .max();
        let left = self.limit().saturating_sub(self.total_bytes + self.verified_bytes);
        let files_left =
            self.plan.io_size.is_some() || self.reads_back() || !self.service.all_done();
        !self.are_calls_used_up() && left > 0 && left >= block.unwrap_or(0) && files_left
    }

    fn end(&mut self, users: &mut Users) {
        let last_used = users.leave(&self.plan);
        if self.settings.unlink {
            self.pending.extend(last_used.into_iter().map(|file| Call::Unlink { file }));
        }
        if self.pending.is_empty() {
            // A thread that made no call: those that wait for it are asked when a call ends.
            self.open(0);
            self.close(0);
        }
        self.stage = Stage::Ending;
    }
}

fn later(time: SimTime, ns: u64) -> SimTime {
    SimTime::from_ns(time.as_ns().saturating_add(ns))
}

/// Number of threads that are not done, for each file that they use.
#[derive(Debug)]
pub(super) struct Users(Vec<u32>);

impl Users {
    pub(super) fn new<'a>(files: usize, threads: impl Iterator<Item = &'a ThreadPlan>) -> Self {
        let mut users = vec![0; files];
        for region in threads.flat_map(|thread| &thread.files) {
            users[region.file.0 as usize] += 1;
        }
        Self(users)
    }

    /// The files that nobody uses any more when this thread is done.
    fn leave(&mut self, thread: &ThreadPlan) -> Vec<FileId> {
        let mut unused = Vec::new();
        for region in &thread.files {
            let users = &mut self.0[region.file.0 as usize];
            *users -= 1;
            if *users == 0 {
                unused.push(region.file);
            }
        }
        unused
    }
}
