//! One thread of a job: what it calls next.
//!
//! A pass goes over the files once: it ends when every file gives nothing more, or enough bytes
//! were issued for all passes. Then the files are closed, and what was written is read back if
//! `verify` says so. `loops`, `io_size` and `time_based` ask for further passes.

mod extent;
mod files;
mod pace;
mod passes;
mod transfer;

use std::collections::VecDeque;

use dovetail_time::{Rng, SimTime};
pub(super) use passes::Users;

use crate::call::{Call, Step};
use crate::fio::cursor::{Cursor, Target};
use crate::fio::layout::WRITE_BYTES;
use crate::fio::pattern::Direction;
use crate::fio::plan::{Region, ThreadPlan};
use crate::fio::rate::Rate;
use crate::fio::service::FileService;
use crate::fio::settings::{Settings, SyncWrites};
use crate::fio::streams::Streams;

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
    /// Reads, writes, trims and queued syncs under way; a write with a sync of its own until that
    /// has ended.
    in_flight: u64,
    /// It had as many under way as it may, and waits until few enough are left.
    draining: bool,
    /// Another call is under way, and nothing goes beside it.
    blocked: bool,
    /// Syncs of writes that have ended, with `sync` and more than one call at a time.
    syncs: VecDeque<Call>,
    /// Those that are under way, and queued ones of `fsync`: each takes the place of a call.
    syncing: u32,
    /// Pending syncs of files that are closed: nothing goes beside them.
    closing_syncs: u32,
    /// The last sync that was called is one of those.
    synced_to_close: bool,
    wake: Option<SimTime>,
    begin: SimTime,
    in_ramp: bool,
    rate: Option<Rate>,
    direction: Option<Direction>,

    pass: u64,
    loops_left: u64,
    pass_bytes: u64,
    total_bytes: u64,
    calls: u64,
    calls_to_offset: u64,
    calls_to_think: u64,
    /// Calls that `number_ios` does not count: those of the ramp.
    ramp_calls: u64,
    /// Writes since the ramp's end: `fsync` counts them.
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
            closing_syncs: 0,
            synced_to_close: false,
            wake: None,
            begin: SimTime::ZERO,
            in_ramp: settings.ramp_ns > 0,
            rate: None,
            direction: None,
            pass: 0,
            loops_left: settings.passes() - 1,
            pass_bytes: 0,
            total_bytes: 0,
            calls: 0,
            calls_to_offset: settings.calls_an_offset(),
            calls_to_think: settings.thinktime_blocks,
            ramp_calls: 0,
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
        if self.in_ramp && self.is_measured(now) {
            self.end_ramp(now);
        }
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
        let is_sync = matches!(call, Call::Sync { .. });
        let closes = is_sync && self.closing_syncs > 0;
        let beside = if is_data || is_sync && !closes { self.settings.depth() } else { 1 };
        if self.in_flight >= beside {
            return Some(Step::Wait);
        }
        let is_queued = is_sync && beside > 1;
        if is_sync {
            self.synced_to_close = closes;
            self.closing_syncs = self.closing_syncs.saturating_sub(1);
        }
        if is_data || is_queued {
            self.in_flight += 1;
            self.syncing += u32::from(is_queued);
        } else {
            self.blocked = true;
        }
        self.pending.pop_front();
        Some(Step::Call(call))
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

    /// Begins to count anew, as fio does.
    fn end_ramp(&mut self, now: SimTime) {
        self.in_ramp = false;
        self.ramp_calls = self.calls + self.verifying_calls;
        self.writes = 0;
        if let Some(rate) = &mut self.rate {
            rate.restart(now);
        }
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

    /// Another job ended it, and it is not done.
    pub(super) fn is_cut_short(&self) -> bool {
        self.terminated && !self.is_done()
    }

    /// It reads back what it wrote.
    pub(super) fn is_reading_back(&self) -> bool {
        self.stage == Stage::ReadingBack
    }

    /// The last sync that it called is one of `end_fsync` or `fsync_on_close`.
    pub(super) const fn synced_to_close(&self) -> bool {
        self.synced_to_close
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
        if self.terminated {
            self.stage = Stage::Closing;
            return None;
        }
        if let Some(step) = self.think(now) {
            return Some(step);
        }
        if self.is_pass_over() {
            self.stage = Stage::Closing;
            return None;
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
}

fn later(time: SimTime, ns: u64) -> SimTime {
    SimTime::from_ns(time.as_ns().saturating_add(ns))
}
