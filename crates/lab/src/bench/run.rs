//! One workload on one stack: the threads' calls become plans, the machine plays them, and what happens is recorded.

use dovetail_ftl::Drive;
use dovetail_host::{Happening, HostCosts, Machine, Planner, Tag};
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::Simulated;
use dovetail_workload::{Call, Outcome, Step, ThreadId, Workload};

use super::files::{CallError, Effect, Files};
use super::fio_record::Submission;
use super::recorder::Recorder;
use super::scatter::Scatter;
use super::{BenchError, Job};

/// Tags from here on are threads that sleep; below are calls.
const THREADS: u64 = 1 << 32;
const BACKGROUND: Tag = Tag(u64::MAX);

/// A call under way.
#[derive(Debug)]
struct InFlight {
    thread: ThreadId,
    call: Call,
    begin: SimTime,
    bytes: u64,
    submission: Submission,
    /// What it waited for is done, and it is to be made again.
    again: bool,
}

/// What a thread that makes no call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Sleeping,
    Waiting,
    WaitingForOthers,
    Done,
}

/// The file system's background thread.
#[derive(Debug, Default)]
struct Background {
    /// When it is to be woken.
    due: Option<SimTime>,
    running: bool,
}

/// A stack with a workload on it.
pub(super) struct Run<'w> {
    pub(super) machine: Machine<Drive>,
    pub(super) planner: Planner,
    pub(super) fs: Box<dyn Simulated>,
    costs: HostCosts,
    pub(super) workload: &'w mut dyn Workload,
    pub(super) files: Files,
    calls: Vec<Option<InFlight>>,
    free: Vec<usize>,
    threads: Vec<State>,
    /// Calls under way, by thread.
    under_way: Vec<u64>,
    background: Background,
    pub(super) recorder: Recorder,
    pub(super) scatter: Scatter,
    /// CPU time of calls.
    pub(super) cpu: SimSpan,
    stop: &'w dyn Fn() -> bool,
    /// The first call that counts has begun.
    measuring: bool,
}

impl<'w> Run<'w> {
    pub(super) fn new(
        machine: Machine<Drive>,
        planner: Planner,
        fs: Box<dyn Simulated>,
        job: &Job<'w>,
        workload: &'w mut dyn Workload,
    ) -> Self {
        let threads = vec![State::Ready; workload.threads() as usize];
        Self {
            recorder: Recorder::new(&*workload),
            scatter: Scatter::new(job.seed),
            under_way: vec![0; threads.len()],
            machine,
            planner,
            fs,
            costs: job.stack.host,
            workload,
            files: Files::default(),
            calls: Vec::new(),
            free: Vec::new(),
            threads,
            background: Background::default(),
            cpu: SimSpan::ZERO,
            stop: job.stop,
            measuring: false,
        }
    }

    /// Plays what making and mounting the volume issued, then the calls that prepare the workload, and syncs.
    pub(super) fn prepare(&mut self) -> Result<(), BenchError> {
        self.play_alone(self.machine.now(), Effect::default())?;
        while let Some(call) = self.workload.prepare().filter(|_| !(self.stop)()) {
            self.call_alone(&call)?;
        }
        self.call_alone(&Call::SyncAll)
    }

    /// Makes a call and plays its plan to the end, with the background at work meanwhile.
    pub(super) fn call_alone(&mut self, call: &Call) -> Result<(), BenchError> {
        let now = self.machine.now();
        let effect = self.perform(now, ThreadId(0), call)?;
        self.play_alone(now, effect)
    }

    fn play_alone(&mut self, now: SimTime, effect: Effect) -> Result<(), BenchError> {
        let alone = Tag(THREADS - 1);
        self.start(now, alone, effect);
        loop {
            match self.machine.advance()? {
                Some(Happening::Ended { tag, .. }) if tag == alone => return Ok(()),
                Some(Happening::Ended { tag, .. }) if tag == BACKGROUND => self.background_ended(),
                Some(Happening::Timer { tag, at }) if tag == BACKGROUND => self.wake_background(at)?,
                Some(_) => {} // of a run that was ended early
                None => return Ok(()),
            }
        }
    }

    /// Forgets what was measured: it was to set up, or to warm up.
    pub(super) fn begin_measuring(&mut self) {
        self.recorder.begin(self.fs.as_ref(), &self.machine);
        self.scatter.begin(&mut self.machine);
        self.cpu = SimSpan::ZERO;
    }

    /// Runs the threads to their end.
    pub(super) fn run(&mut self) -> Result<(), BenchError> {
        let now = self.machine.now();
        if (self.stop)() {
            return Ok(());
        }
        for thread in 0..self.threads.len() as u32 {
            self.go_on(ThreadId(thread), now)?;
        }
        while self.is_left()? && !(self.stop)() {
            match self.machine.advance()? {
                Some(Happening::Ended { tag, .. }) if tag == BACKGROUND => self.background_ended(),
                Some(Happening::Ended { tag, at }) => self.ended(tag.0 as usize, at)?,
                Some(Happening::Timer { tag, at }) if tag == BACKGROUND => self.wake_background(at)?,
                Some(Happening::Timer { tag, at }) => {
                    let thread = ThreadId((tag.0 - THREADS) as u32);
                    self.threads[thread.0 as usize] = State::Ready;
                    self.go_on(thread, at)?;
                }
                None => return Err(self.asleep()),
            }
        }
        Ok(())
    }

    /// Whether there is anything left to do: calls under way, or threads that will go on by themselves.
    fn is_left(&self) -> Result<bool, BenchError> {
        let waits = |state: &&State| matches!(state, State::Waiting | State::WaitingForOthers);
        if self.is_busy() || self.threads.contains(&State::Sleeping) {
            return Ok(true);
        }
        if self.threads.iter().any(|state| waits(&state)) { Err(self.asleep()) } else { Ok(false) }
    }

    fn asleep(&self) -> BenchError {
        let waiting = self.threads.iter().filter(|state| **state != State::Done).count();
        BenchError::Asleep { at: self.machine.now(), waiting }
    }

    fn is_busy(&self) -> bool {
        self.free.len() < self.calls.len()
    }

    /// Asks a thread for its calls until it waits for something.
    fn go_on(&mut self, thread: ThreadId, mut now: SimTime) -> Result<(), BenchError> {
        loop {
            let state = match self.workload.next(thread, now) {
                Step::Call(call) => {
                    now = self.begin(thread, now, call)?;
                    continue;
                }
                Step::Sleep(until) if until <= now => continue,
                Step::Sleep(until) => {
                    self.machine.wake_at(until, Tag(THREADS + u64::from(thread.0)));
                    State::Sleeping
                }
                Step::Wait => State::Waiting,
                Step::WaitForOthers => State::WaitingForOthers,
                Step::Done => State::Done,
            };
            self.threads[thread.0 as usize] = state;
            return Ok(());
        }
    }

    /// Makes a call; returns when the thread has handed it over.
    fn begin(&mut self, thread: ThreadId, now: SimTime, call: Call) -> Result<SimTime, BenchError> {
        if !self.measuring && self.workload.measured(thread, now) {
            self.measuring = true;
            self.begin_measuring();
        }
        let effect = self.perform(now, thread, &call)?;
        let slot = self.free.pop().unwrap_or(self.calls.len());
        if slot == self.calls.len() {
            self.calls.push(None);
        }
        self.under_way[thread.0 as usize] += 1;
        let handed_over = self.start(now, Tag(slot as u64), effect);
        let submission = Submission { handed_over, under_way: self.under_way[thread.0 as usize] };
        self.calls[slot] =
            Some(InFlight { thread, call, begin: now, bytes: effect.bytes, submission, again: effect.again });
        Ok(handed_over)
    }

    fn perform(&mut self, now: SimTime, thread: ThreadId, call: &Call) -> Result<Effect, BenchError> {
        self.fs.set_now(now);
        let path = call.file().map_or("", |file| self.workload.path(file));
        self.files.perform(self.fs.as_mut(), now, call, path).map_err(|error| match error {
            CallError::Refused(source) => {
                BenchError::Call { at: now, thread: thread.0, call: name_of(call), path: path.into(), source }
            }
            CallError::WrongData { block } => BenchError::WrongData { at: now, path: path.into(), block },
        })
    }

    /// Starts the plan of the call that was just made, after its CPU time; returns when that is over.
    fn start(&mut self, now: SimTime, tag: Tag, effect: Effect) -> SimTime {
        let cost = self.costs.call(effect.blocks);
        self.cpu = SimSpan::from_ns(self.cpu.as_ns() + cost.as_ns());
        let plan = self.planner.take(self.machine.spare());
        self.machine.start(now + cost, tag, plan);
        self.look_at_background(now);
        now + cost
    }

    fn ended(&mut self, slot: usize, at: SimTime) -> Result<(), BenchError> {
        let Some(mut call) = self.calls[slot].take() else { return Ok(()) };
        if call.again {
            let effect = self.perform(at, call.thread, &call.call)?;
            call.again = effect.again;
            self.calls[slot] = Some(call);
            self.start(at, Tag(slot as u64), effect);
            return Ok(());
        }
        self.free.push(slot);
        self.under_way[call.thread.0 as usize] -= 1;
        let outcome = Outcome { begin: call.begin, end: at, bytes: call.bytes };
        self.workload.ended(call.thread, &call.call, &outcome);
        if self.workload.measured(call.thread, call.begin) {
            self.recorder.call(call.thread, &call.call, &outcome, call.submission);
        }
        if self.recorder.is_due(at) {
            self.recorder.sample(at, self.fs.as_ref(), &self.machine);
        }
        if self.threads[call.thread.0 as usize] == State::Waiting {
            self.go_on(call.thread, at)?;
        }
        for other in 0..self.threads.len() {
            if self.threads[other] == State::WaitingForOthers {
                self.go_on(ThreadId(other as u32), at)?;
            }
        }
        Ok(())
    }

    /// Sees to it that the background is woken when the file system asks for it.
    fn look_at_background(&mut self, now: SimTime) {
        if self.background.running {
            return;
        }
        let Some(due) = self.fs.next_wake() else { return };
        let due = due.max(now);
        if self.background.due.is_none_or(|earlier| due < earlier) {
            self.background.due = Some(due);
            self.machine.wake_at(due, BACKGROUND);
        }
    }

    fn wake_background(&mut self, at: SimTime) -> Result<(), BenchError> {
        if self.background.due != Some(at) || self.background.running {
            return Ok(());
        }
        self.background.due = None;
        if self.fs.next_wake().is_none_or(|due| due > at) {
            self.look_at_background(at);
            return Ok(());
        }
        self.fs.set_now(at);
        self.fs.wake(at).map_err(|source| BenchError::Background { at, source })?;
        self.background.running = true;
        let plan = self.planner.take(self.machine.spare());
        self.machine.start(at, BACKGROUND, plan);
        Ok(())
    }

    fn background_ended(&mut self) {
        self.background.running = false;
        self.look_at_background(self.machine.now());
    }
}

fn name_of(call: &Call) -> &'static str {
    match call {
        Call::Open { .. } => "open",
        Call::Close { .. } => "close",
        Call::Read { .. } => "read",
        Call::Write { .. } => "write",
        Call::Append { .. } => "append to",
        Call::PunchHole { .. } => "punch a hole in",
        Call::Allocate { .. } => "allocate",
        Call::Truncate { .. } => "truncate",
        Call::Sync { .. } => "sync",
        Call::SyncAll => "sync all of",
        Call::Unlink { .. } => "unlink",
        Call::Stat { .. } => "stat",
        Call::DropCache { .. } => "drop the cache of",
    }
}
