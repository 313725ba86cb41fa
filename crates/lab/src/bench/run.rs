//! One workload on one stack: actors are asked for their next steps, the machine plays what they
//! issue, and what happens is recorded.

use std::ops::Range;

use dovetail_block::{BLOCK_SIZE, BlockDevice};
use dovetail_host::Event;
use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::{Call, Step, ThreadId, Workload};
use tracing::info;

use super::devirtualizer::{Devirtualizer, Held, Trigger};
use super::files::{Effect, Files};
use super::fio_record::Submission;
use super::read_ahead::{BufferedRead, Later, Readers};
use super::system::System;
use super::threads::{InFlight, ThreadState, Threads, kind_of};
use super::{BenchError, Job, View};
use crate::lane::{Alarm, Lane, seen};
use crate::progress::{Progress, Stage};
use crate::record::{Recorder, Rhythm, Scatter, Seen};
use crate::results::PreconditionResult;

/// Calls between two reports of progress.
const REPORT_EVERY: u64 = 1 << 12;
/// The same of calls that make files, which are larger.
const REPORT_PREPARED_EVERY: u64 = 1 << 6;

/// Parts in which a workload says how far it has come.
const SHARES: u64 = 1_000_000;

/// Bytes that a call writes.
const fn written_by(call: &Call) -> u64 {
    match *call {
        Call::Write { len, .. } | Call::Append { len, .. } => len,
        _ => 0,
    }
}

/// A stack with a workload on it.
pub(super) struct Session<'w> {
    pub(super) system: System,
    pub(super) threads: Threads<'w>,
    pub(super) devirtualizer: Option<Devirtualizer>,
    /// Readers ahead; `None` where nobody reads ahead.
    readers: Option<Readers>,
    /// The preparation of the drive.
    pub(super) prepared: Option<PreconditionResult>,
    pub(super) recorder: Recorder,
    pub(super) scatter: Scatter,
    /// The names of the threads' jobs.
    pub(super) jobs: Vec<String>,
    stop: &'w dyn Fn() -> bool,
    progress: &'w dyn Fn(Progress),
    /// Is shown the run from time to time.
    pub(super) view: Option<&'w dyn Fn(&View<'_>)>,
    /// Calls that have ended.
    ended: u64,
    /// Bytes written while files were laid out.
    prepared_bytes: u64,
    /// The first call that counts has begun.
    is_measuring: bool,
    /// A thread was done during the last event.
    thread_ended: bool,
}

impl<'w> Session<'w> {
    pub(super) fn new(system: System, job: &Job<'w>, workload: &'w mut dyn Workload) -> Self {
        let drive_bytes = system.planner.info().capacity() * BLOCK_SIZE;
        let jobs = (0..workload.threads()).map(|thread| workload.job(ThreadId(thread)).into());
        let jobs = jobs.collect();
        let files = Files::on_drive_of(if job.stack.is_raw() { drive_bytes } else { 0 });
        let threads = Threads::new(workload, files);
        Self {
            recorder: Recorder::new(threads.all().count(), Rhythm::Calls),
            scatter: Scatter::new(job.seed),
            readers: Readers::new(&job.stack.host),
            system,
            threads,
            devirtualizer: None,
            prepared: None,
            jobs,
            stop: job.stop,
            progress: job.progress,
            view: None,
            ended: 0,
            prepared_bytes: 0,
            is_measuring: false,
            thread_ended: false,
        }
    }

    /// Plays what making and mounting the volume issued, then the calls that prepare the workload,
    /// and syncs.
    pub(super) fn prepare(&mut self) -> Result<(), BenchError> {
        self.play_alone(self.system.machine.now(), Effect::default())?;
        while let Some(call) = self.threads.workload.prepare() {
            if (self.stop)() {
                return Err(BenchError::Stopped);
            }
            self.call_alone(&call)?;
            self.prepared_bytes += written_by(&call);
            self.report(Stage::Prepare);
        }
        self.ended = 0;
        self.call_alone(&Call::SyncAll)
    }

    fn report(&mut self, stage: Stage) {
        self.ended += 1;
        let every = if stage == Stage::Prepare { REPORT_PREPARED_EVERY } else { REPORT_EVERY };
        if self.ended.is_multiple_of(every) {
            let (done, total) = self.how_far(stage);
            let progress = Progress { stage, done, total, requests: self.ended };
            (self.progress)(progress);
            self.show(progress, false);
        }
    }

    fn show(&self, progress: Progress, is_last: bool) {
        let Some(view) = self.view else { return };
        let (system, recorder, jobs) = (&self.system, &self.recorder, &self.jobs[..]);
        view(&View { progress, is_last, system, recorder, jobs });
    }

    /// Shows the run as it has ended.
    pub(super) fn show_end(&self) {
        let (done, total) = self.how_far(Stage::Run);
        self.show(Progress { stage: Stage::Run, done, total, requests: self.ended }, true);
    }

    /// The part that is done and the whole, as [`Progress`] has them.
    fn how_far(&self, stage: Stage) -> (u64, u64) {
        let workload = &self.threads.workload;
        match stage {
            Stage::Prepare => (self.prepared_bytes, workload.prepared_bytes()),
            _ => workload
                .share_done(self.system.machine.now())
                .map_or((0, 0), |share| ((share * SHARES as f64) as u64, SHARES)),
        }
    }

    /// Makes a call and plays its plan to the end, with the background at work meanwhile.
    pub(super) fn call_alone(&mut self, call: &Call) -> Result<(), BenchError> {
        let now = self.system.machine.now();
        let effect = self.threads.perform_alone(&mut self.system, now, call)?;
        self.play_alone(now, effect)
    }

    /// Programs what flushes leave in the drive's write buffer, so that all of it counts; returns
    /// when that is done.
    pub(super) fn write_out(&mut self) -> Result<SimTime, BenchError> {
        let at = self.system.machine.now();
        Ok(self.system.machine.device_mut().write_out(at)?)
    }

    /// Lets time pass, with the background at work.
    pub(super) fn wait_until(&mut self, at: SimTime) -> Result<(), BenchError> {
        if at <= self.system.machine.now() {
            return Ok(());
        }
        self.system.machine.wake_at(at, Lane::Alone);
        self.play()
    }

    fn play_alone(&mut self, now: SimTime, effect: Effect) -> Result<(), BenchError> {
        self.system.start(now, (Lane::Alone, Lane::Alone), (1, effect.blocks));
        self.play()
    }

    /// Plays what was started alone to its end.
    fn play(&mut self) -> Result<(), BenchError> {
        loop {
            match self.system.machine.advance()? {
                Some(
                    Event::Ended { lane: Lane::Alone, .. } | Event::Timer { lane: Lane::Alone, .. },
                )
                | None => return Ok(()),
                Some(Event::Ended { lane: Lane::Background(thread), .. }) => {
                    self.system.background_ended(thread);
                }
                Some(Event::Timer { lane: Lane::Background(thread), at }) => {
                    self.system.wake_background(thread, at)?;
                }
                Some(_) => {} // of a run that was ended early
            }
        }
    }

    /// Forgets what was measured: it was to set up, or to warm up.
    pub(super) fn begin_measuring(&mut self) {
        let drive = self.system.machine.device();
        self.recorder.begin(Some(self.system.fs.as_ref()), &seen(&self.system.machine, &drive));
        drop(drive);
        self.scatter.begin(&mut self.system.machine);
        self.system.cpu = SimSpan::ZERO;
    }

    /// Runs the threads to their end.
    pub(super) fn run(&mut self) -> Result<(), BenchError> {
        let now = self.system.machine.now();
        if (self.stop)() {
            return Ok(());
        }
        self.set_interval(now);
        for thread in self.threads.all() {
            self.go_on(thread, now)?;
        }
        while self.is_left()? && !(self.stop)() {
            if let Some(devirtualizer) = &mut self.devirtualizer {
                devirtualizer.prepare(&mut self.system)?;
            }
            match self.system.machine.advance()? {
                Some(Event::Ended { lane, at }) => self.plan_ended(lane, at)?,
                Some(Event::Worked { lane, at }) => self.handed_over(lane, at)?,
                Some(Event::Timer { lane, at }) => self.timer(lane, at)?,
                None => return Err(self.asleep()),
            }
            while std::mem::take(&mut self.thread_ended) {
                self.wake_those_cut_short()?;
            }
        }
        Ok(())
    }

    /// A thread that ends may end others, which are not to sleep until then.
    fn wake_those_cut_short(&mut self) -> Result<(), BenchError> {
        let now = self.system.machine.now();
        for thread in self.threads.all() {
            let sleeps = self.threads.state(thread) == ThreadState::Sleeping;
            if sleeps && self.threads.workload.is_cut_short(thread) {
                self.woken(thread, now)?;
            }
        }
        Ok(())
    }

    fn plan_ended(&mut self, lane: Lane, at: SimTime) -> Result<(), BenchError> {
        match lane {
            Lane::Call(slot) => self.call_ended(slot, at)?,
            Lane::Background(thread) => self.system.background_ended(thread),
            Lane::Batch => self.batch_played(at)?,
            Lane::ReadAhead(slot) => self.readers.iter_mut().for_each(|all| all.end(slot)),
            _ => {}
        }
        Ok(())
    }

    fn timer(&mut self, lane: Lane, at: SimTime) -> Result<(), BenchError> {
        match lane {
            Lane::Background(thread) => self.system.wake_background(thread, at)?,
            // a thread that was cut short may be awake by now
            Lane::Thread(thread) if self.threads.state(thread) == ThreadState::Sleeping => {
                self.threads.set(thread, ThreadState::Ready);
                self.go_on(thread, at)?;
            }
            Lane::Devirtualizer(Alarm::Room) => self.batch_played(at)?,
            Lane::Devirtualizer(alarm) => self.alarm(alarm, at),
            _ => {}
        }
        Ok(())
    }

    fn alarm(&mut self, alarm: Alarm, at: SimTime) {
        let (is_quiet, map_bytes) = (!self.threads.is_busy(), self.system.map_bytes());
        if alarm == Alarm::Interval {
            self.set_interval(at);
        }
        let Some(devirtualizer) = &mut self.devirtualizer else { return };
        match alarm {
            Alarm::Interval => devirtualizer.begin(at, Trigger::Interval, map_bytes),
            Alarm::Idle => {
                let again = devirtualizer.idle_timer(at, is_quiet, map_bytes);
                again.into_iter().for_each(|again| self.set_idle(again));
            }
            Alarm::Room => {}
        }
    }

    fn set_interval(&mut self, now: SimTime) {
        if let Some(every) = self.devirtualizer.as_ref().and_then(Devirtualizer::every) {
            self.system.machine.wake_at(now + every, Lane::Devirtualizer(Alarm::Interval));
        }
    }

    fn set_idle(&mut self, at: SimTime) {
        self.system.machine.wake_at(at, Lane::Devirtualizer(Alarm::Idle));
    }

    /// Goes on with a batch when its commands have been played. At its end, calls that waited for
    /// its blocks begin.
    fn batch_played(&mut self, now: SimTime) -> Result<(), BenchError> {
        let Some(devirtualizer) = &mut self.devirtualizer else { return Ok(()) };
        let Some(held) = devirtualizer.go_on(&mut self.system)? else { return Ok(()) };
        for Held { thread, asked, call } in held {
            let from = now.max(asked).max(self.threads.free_from(thread));
            if let Some(handed_over) = self.begin(thread, asked, from, call)? {
                self.go_on(thread, handed_over)?;
            }
        }
        let (is_quiet, map_bytes) = (!self.threads.is_busy(), self.system.map_bytes());
        if let Some(devirtualizer) = &mut self.devirtualizer {
            devirtualizer.acted(now, map_bytes, is_quiet);
        }
        self.sample_if_due(now);
        Ok(())
    }

    /// The call is about blocks that the devirtualizer has in work.
    fn must_wait(&self, call: &Call) -> bool {
        let in_work = self.devirtualizer.as_ref().map(Devirtualizer::in_work);
        in_work.is_some_and(|in_work| {
            let blocks = self.threads.files.blocks_of(call);
            blocks.is_some_and(|(ino, blocks)| in_work.has(ino, &blocks))
        })
    }

    fn sample_if_due(&mut self, at: SimTime) {
        if self.recorder.is_due(at) {
            let drive = self.system.machine.device();
            let seen = Seen { at, ..seen(&self.system.machine, &drive) };
            self.recorder.sample(Some(self.system.fs.as_ref()), &seen);
        }
    }

    /// There is something left to do: calls under way, or threads that will go on by themselves.
    fn is_left(&self) -> Result<bool, BenchError> {
        if self.threads.is_busy() || self.threads.goes_on() {
            return Ok(true);
        }
        if self.threads.left() > 0 { Err(self.asleep()) } else { Ok(false) }
    }

    fn asleep(&self) -> BenchError {
        BenchError::Asleep { at: self.system.machine.now(), waiting: self.threads.left() }
    }

    /// Asks a thread for its calls until it waits for something.
    fn go_on(&mut self, thread: ThreadId, mut now: SimTime) -> Result<(), BenchError> {
        loop {
            let state = match self.threads.workload.next(thread, now) {
                Step::Call(call) if self.must_wait(&call) => {
                    if let Some(devirtualizer) = &mut self.devirtualizer {
                        devirtualizer.hold(Held { thread, asked: now, call });
                    }
                    ThreadState::Held
                }
                Step::Call(call) => match self.begin(thread, now, now, call)? {
                    Some(handed_over) => {
                        now = handed_over;
                        continue;
                    }
                    None => return Ok(()),
                },
                Step::Sleep(until) if until <= now => continue,
                Step::Sleep(until) => {
                    self.system.machine.wake_at(until, Lane::Thread(thread));
                    ThreadState::Sleeping
                }
                Step::Wait => ThreadState::Waiting,
                Step::WaitForOthers => ThreadState::WaitingForOthers,
                Step::Done => {
                    self.thread_ended = true;
                    ThreadState::Done
                }
            };
            self.threads.set(thread, state);
            return Ok(());
        }
    }

    /// A thread whose calls wait for a CPU has handed one over.
    fn handed_over(&mut self, lane: Lane, at: SimTime) -> Result<(), BenchError> {
        let Lane::Call(slot) = lane else { return Ok(()) };
        let Some(thread) = self.threads.handed_over(slot, at) else { return Ok(()) };
        match self.threads.state(thread) {
            ThreadState::Working { slot: own } if own == slot => self.go_on(thread, at),
            _ => Ok(()),
        }
    }

    /// Makes a call that a thread asked for at `asked`; returns when the thread has handed it over.
    /// `None` where that waits for a CPU: then the thread works until [`Self::handed_over`].
    fn begin(
        &mut self,
        thread: ThreadId,
        asked: SimTime,
        now: SimTime,
        call: Call,
    ) -> Result<Option<SimTime>, BenchError> {
        if !self.is_measuring && self.threads.workload.measured(thread, now) {
            self.is_measuring = true;
            info!(at = %now, "measuring");
            self.begin_measuring();
        }
        if let Some(devirtualizer) = self.devirtualizer.as_mut().filter(|_| asked < now) {
            devirtualizer.stalled(now.since(asked));
        }
        let ahead = self.read_ahead(thread, now, &call)?;
        let effect = self.threads.perform(&mut self.system, now, thread, &call)?;
        let (slot, under_way) = self.threads.take_slot(thread);
        if kind_of(&call).is_some() && self.threads.workload.measured(thread, asked) {
            self.recorder.arrive(self.threads.busy());
        }
        let work = (self.threads.workload.system_calls(thread), effect.blocks);
        let lanes = (Lane::Call(slot), Lane::Thread(thread));
        let handed_over = self.system.start(now, lanes, work);
        match handed_over {
            Some(then) => self.threads.hands_over_until(thread, then),
            None => self.threads.set(thread, ThreadState::Working { slot }),
        }
        ahead.map_or(Ok(()), |later| self.fetch_later(now, later))?;
        let submission = Submission { handed_over: handed_over.unwrap_or(now), under_way };
        let Effect { bytes, again, .. } = effect;
        self.threads.put(slot, InFlight { thread, call, begin: asked, bytes, submission, again });
        Ok(handed_over)
    }

    /// Lets a call that is a buffered read wait for those of its pages that are on their way, and
    /// read its window. Returns the windows that nobody waits for.
    fn read_ahead(
        &mut self,
        thread: ThreadId,
        now: SimTime,
        call: &Call,
    ) -> Result<Option<Later>, BenchError> {
        let Some(readers) = &mut self.readers else { return Ok(None) };
        let Some(read) = self.threads.buffered_read(thread, call) else { return Ok(None) };
        let windows = readers.windows(&read, self.system.fs.as_ref());
        windows.awaited.iter().for_each(|event| self.system.wait_for(*event));
        for window in windows.now {
            if !self.is_in_work(&read, &window) {
                self.threads.fetch(&mut self.system, now, &read, window)?;
            }
        }
        Ok(Some(Later { read, windows: windows.later }))
    }

    /// Reads windows ahead, each by a plan of its own.
    fn fetch_later(
        &mut self,
        now: SimTime,
        Later { read, windows }: Later,
    ) -> Result<(), BenchError> {
        for window in windows {
            if self.is_in_work(&read, &window) {
                continue;
            }
            self.threads.fetch(&mut self.system, now, &read, window.clone())?;
            let Some(readers) = &mut self.readers else { return Ok(()) };
            let (slot, event) = readers.begin(read.ino, window);
            self.system.start_read_ahead(now, slot, event);
        }
        Ok(())
    }

    /// The devirtualizer has pages of a window in work: they are not read ahead.
    fn is_in_work(&self, read: &BufferedRead, window: &Range<u64>) -> bool {
        let in_work = self.devirtualizer.as_ref().map(Devirtualizer::in_work);
        in_work.is_some_and(|in_work| in_work.has(read.ino, window))
    }

    fn call_ended(&mut self, slot: usize, at: SimTime) -> Result<(), BenchError> {
        let Some(mut call) = self.threads.take(slot) else { return Ok(()) };
        if call.again {
            let effect = self.threads.perform(&mut self.system, at, call.thread, &call.call)?;
            call.again = effect.again;
            let lanes = (Lane::Call(slot), Lane::Thread(call.thread));
            let thread = call.thread;
            self.threads.put(slot, call);
            if let Some(then) = self.system.start(at, lanes, (1, effect.blocks)) {
                let then = then.max(self.threads.free_from(thread));
                self.threads.hands_over_until(thread, then);
            }
            return Ok(());
        }
        self.threads.end(slot, &call, at, &mut self.recorder);
        self.report(Stage::Run);
        self.sample_if_due(at);
        self.look_at_devirtualizer(at);
        if self.threads.state(call.thread) == ThreadState::Waiting {
            self.woken(call.thread, at)?;
        }
        for other in self.threads.all() {
            if self.threads.state(other) == ThreadState::WaitingForOthers {
                self.woken(other, at)?;
            }
        }
        Ok(())
    }

    /// A thread goes on that waited for a call: now, or when it has handed over its own last one.
    fn woken(&mut self, thread: ThreadId, at: SimTime) -> Result<(), BenchError> {
        let free_from = self.threads.free_from(thread);
        if free_from <= at {
            return self.go_on(thread, at);
        }
        self.threads.set(thread, ThreadState::Sleeping);
        self.system.machine.wake_at(free_from, Lane::Thread(thread));
        Ok(())
    }

    /// A call has ended: there may be reason for the devirtualizer to run, now or when no other
    /// follows for some time.
    fn look_at_devirtualizer(&mut self, now: SimTime) {
        let Some(devirtualizer) = &mut self.devirtualizer else { return };
        devirtualizer.look_at_map(now, self.system.map_bytes());
        let is_quiet = !self.threads.is_busy();
        let ask = is_quiet.then(|| devirtualizer.quiet_from(now)).flatten();
        ask.into_iter().for_each(|at| self.set_idle(at));
    }
}
