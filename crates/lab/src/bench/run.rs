//! One workload on one stack: the threads' calls become plans, the machine plays them, and what happens is recorded.

use dovetail_ftl::stats::CommandKind;
use dovetail_host::{Event, HostCosts, Planner};
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::{Moment, Simulated};
use dovetail_workload::{Call, Outcome, Step, ThreadId, Workload};

use super::devirtualize::{Cause, Held, Tool};
use super::files::{CallError, Effect, Files};
use super::fio_record::{FioRecords, Submission};
use super::{BenchError, Job};
use crate::lane::{Alarm, Lane, Machine};
use crate::record::{Recorder, Rhythm, Scatter};

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
    Sleeping(SimTime),
    /// Its call waits for the tool.
    Held,
    Waiting,
    WaitingForOthers,
    Done,
}

/// The file system's background thread.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// When it is to be woken.
    pub(super) due: Option<SimTime>,
    pub(super) running: bool,
}

/// A stack with a workload on it.
pub(super) struct Run<'w> {
    pub(super) machine: Machine,
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
    pub(super) background: Background,
    pub(super) tool: Option<Tool>,
    pub(super) recorder: Recorder,
    pub(super) fio: FioRecords,
    pub(super) scatter: Scatter,
    /// CPU time of calls.
    pub(super) cpu: SimSpan,
    stop: &'w dyn Fn() -> bool,
    /// The first call that counts has begun.
    measuring: bool,
}

impl<'w> Run<'w> {
    pub(super) fn new(
        machine: Machine,
        planner: Planner,
        fs: Box<dyn Simulated>,
        job: &Job<'w>,
        workload: &'w mut dyn Workload,
    ) -> Self {
        let threads = vec![State::Ready; workload.threads() as usize];
        Self {
            recorder: Recorder::new(threads.len(), Rhythm::Calls),
            fio: FioRecords::of(&*workload),
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
            tool: None,
            cpu: SimSpan::ZERO,
            stop: job.stop,
            measuring: false,
        }
    }

    /// Plays what making and mounting the volume issued, then the calls that prepare the workload, and syncs.
    pub(super) fn prepare(&mut self) -> Result<(), BenchError> {
        self.play_alone(self.machine.now(), Effect::default())?;
        while let Some(call) = self.workload.prepare() {
            if (self.stop)() {
                return Err(BenchError::Stopped);
            }
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
        self.start(now, Lane::Alone, effect);
        loop {
            match self.machine.advance()? {
                Some(Event::Ended { lane: Lane::Alone, .. }) => return Ok(()),
                Some(Event::Ended { lane: Lane::Background, .. }) => self.background_ended(),
                Some(Event::Timer { lane: Lane::Background, at }) => self.wake_background(at)?,
                Some(_) => {} // of a run that was ended early
                None => return Ok(()),
            }
        }
    }

    /// Forgets what was measured: it was to set up, or to warm up.
    pub(super) fn begin_measuring(&mut self) {
        self.recorder.begin(Some(self.fs.as_ref()), &self.machine);
        self.scatter.begin(&mut self.machine);
        self.cpu = SimSpan::ZERO;
    }

    /// Runs the threads to their end.
    pub(super) fn run(&mut self) -> Result<(), BenchError> {
        let now = self.machine.now();
        if (self.stop)() {
            return Ok(());
        }
        self.schedule_tool(now);
        for thread in 0..self.threads.len() as u32 {
            self.go_on(ThreadId(thread), now)?;
        }
        while self.is_left()? && !(self.stop)() {
            if self.is_tools_turn() {
                self.devirtualize()?;
                continue;
            }
            match self.machine.advance()? {
                Some(Event::Ended { lane, at }) => self.plan_ended(lane, at)?,
                Some(Event::Timer { lane, at }) => self.timer(lane, at)?,
                None => return Err(self.asleep()),
            }
        }
        Ok(())
    }

    fn plan_ended(&mut self, lane: Lane, at: SimTime) -> Result<(), BenchError> {
        match lane {
            Lane::Call(slot) => self.ended(slot, at)?,
            Lane::Background => self.background_ended(),
            _ => {}
        }
        Ok(())
    }

    fn timer(&mut self, lane: Lane, at: SimTime) -> Result<(), BenchError> {
        match lane {
            Lane::Background => self.wake_background(at)?,
            Lane::Devirtualizer(Alarm::Interval) => {
                self.schedule_tool(at);
                let map_bytes = self.map_bytes();
                if let Some(tool) = &mut self.tool {
                    tool.begin(at, Cause::Interval, map_bytes);
                }
            }
            Lane::Devirtualizer(Alarm::Idle) => {
                let (is_quiet, map_bytes) = (!self.is_busy(), self.map_bytes());
                let again = self.tool.as_mut().and_then(|tool| tool.idle_timer(at, is_quiet, map_bytes));
                if let Some(again) = again {
                    self.machine.wake_at(again, Lane::Devirtualizer(Alarm::Idle));
                }
            }
            Lane::Thread(thread) => {
                let state = std::mem::replace(&mut self.threads[thread.0 as usize], State::Ready);
                let due = if let State::Sleeping(until) = state { until } else { at };
                self.go_on_since(thread, due, at)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn map_bytes(&self) -> u64 {
        self.machine.device().mapping_memory_bytes()
    }

    fn schedule_tool(&mut self, now: SimTime) {
        if let Some(every) = self.tool.as_ref().and_then(Tool::every) {
            self.machine.wake_at(now + every, Lane::Devirtualizer(Alarm::Interval));
        }
    }

    fn is_tools_turn(&self) -> bool {
        self.tool.as_ref().is_some_and(Tool::wants_turn) && !self.is_busy() && !self.background.running
    }

    /// A batch of the tool while nothing else is under way, then the calls that waited for it.
    fn devirtualize(&mut self) -> Result<(), BenchError> {
        let at = self.machine.now();
        self.fs.set_now(Moment::at(at));
        let (Some(tool), Some(fs)) = (&mut self.tool, self.fs.devirtualizer()) else { return Ok(()) };
        self.planner.begin_direct();
        let stepped = tool.step(fs);
        self.planner.end_direct()?;
        stepped.map_err(|source| BenchError::Devirtualize { at, source })?;
        self.machine.skip_to(fs.now());
        let (now, held) = (self.machine.now(), std::mem::take(&mut tool.held));
        for Held { thread, asked, call } in held {
            let handed_over = self.begin(thread, asked, now, call)?;
            self.go_on(thread, handed_over)?;
        }
        let (is_quiet, map_bytes) = (!self.is_busy(), self.map_bytes());
        if let Some(tool) = &mut self.tool {
            tool.stepped(now, map_bytes, is_quiet);
        }
        self.sample_if_due(now);
        self.look_at_background(now);
        Ok(())
    }

    fn sample_if_due(&mut self, at: SimTime) {
        if self.recorder.is_due(at) {
            self.recorder.sample(at, Some(self.fs.as_ref()), &self.machine);
        }
    }

    /// Whether there is anything left to do: calls under way, or threads that will go on by themselves.
    fn is_left(&self) -> Result<bool, BenchError> {
        let waits = |state: &&State| matches!(state, State::Waiting | State::WaitingForOthers);
        let goes_on = |state: &State| matches!(state, State::Sleeping(_) | State::Held);
        if self.is_busy() || self.threads.iter().any(goes_on) {
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
    fn go_on(&mut self, thread: ThreadId, now: SimTime) -> Result<(), BenchError> {
        self.go_on_since(thread, now, now)
    }

    /// The same of a thread that would have made its next call at `asked`, but for the tool.
    fn go_on_since(
        &mut self,
        thread: ThreadId,
        mut asked: SimTime,
        mut now: SimTime,
    ) -> Result<(), BenchError> {
        loop {
            let state = match self.workload.next(thread, now) {
                Step::Call(call) => match &mut self.tool {
                    Some(tool) if tool.wants_turn() => {
                        tool.held.push(Held { thread, asked, call });
                        State::Held
                    }
                    _ => {
                        now = self.begin(thread, asked, now, call)?;
                        asked = now;
                        continue;
                    }
                },
                Step::Sleep(until) if until <= now => continue,
                Step::Sleep(until) => {
                    self.machine.wake_at(until, Lane::Thread(thread));
                    State::Sleeping(until)
                }
                Step::Wait => State::Waiting,
                Step::WaitForOthers => State::WaitingForOthers,
                Step::Done => State::Done,
            };
            self.threads[thread.0 as usize] = state;
            return Ok(());
        }
    }

    /// Makes a call that a thread asked for at `asked`; returns when the thread has handed it over.
    fn begin(
        &mut self,
        thread: ThreadId,
        asked: SimTime,
        now: SimTime,
        call: Call,
    ) -> Result<SimTime, BenchError> {
        if !self.measuring && self.workload.measured(thread, now) {
            self.measuring = true;
            self.begin_measuring();
        }
        if let Some(tool) = self.tool.as_mut().filter(|_| asked < now) {
            tool.stalled(now.since(asked));
        }
        let effect = self.perform(now, thread, &call)?;
        let slot = self.free.pop().unwrap_or(self.calls.len());
        if slot == self.calls.len() {
            self.calls.push(None);
        }
        self.under_way[thread.0 as usize] += 1;
        if kind_of(&call).is_some() && self.workload.measured(thread, asked) {
            self.recorder.arrive((self.calls.len() - self.free.len()) as u64);
        }
        let handed_over = self.start(now, Lane::Call(slot), effect);
        let submission = Submission { handed_over, under_way: self.under_way[thread.0 as usize] };
        self.calls[slot] = Some(InFlight {
            thread,
            call,
            begin: asked,
            bytes: effect.bytes,
            submission,
            again: effect.again,
        });
        Ok(handed_over)
    }

    fn perform(&mut self, now: SimTime, thread: ThreadId, call: &Call) -> Result<Effect, BenchError> {
        self.fs.set_now(Moment::at(now));
        let path = call.file().map_or("", |file| self.workload.path(file));
        self.files.perform(self.fs.as_mut(), now, call, path).map_err(|error| match error {
            CallError::Refused(source) => {
                BenchError::Call { at: now, thread: thread.0, call: name_of(call), path: path.into(), source }
            }
            CallError::WrongData { block } => BenchError::WrongData { at: now, path: path.into(), block },
        })
    }

    /// Starts the plan of the call that was just made, after its CPU time; returns when that is over.
    fn start(&mut self, now: SimTime, lane: Lane, effect: Effect) -> SimTime {
        let cost = self.costs.call(effect.blocks);
        self.cpu = SimSpan::from_ns(self.cpu.as_ns() + cost.as_ns());
        let plan = self.planner.take(self.machine.spare());
        self.machine.start(now + cost, lane, plan);
        self.look_at_background(now);
        now + cost
    }

    fn ended(&mut self, slot: usize, at: SimTime) -> Result<(), BenchError> {
        let Some(mut call) = self.calls[slot].take() else { return Ok(()) };
        if call.again {
            let effect = self.perform(at, call.thread, &call.call)?;
            call.again = effect.again;
            self.calls[slot] = Some(call);
            self.start(at, Lane::Call(slot), effect);
            return Ok(());
        }
        self.free.push(slot);
        self.under_way[call.thread.0 as usize] -= 1;
        let outcome = Outcome { begin: call.begin, end: at, bytes: call.bytes };
        self.workload.ended(call.thread, &call.call, &outcome);
        if self.workload.measured(call.thread, call.begin) {
            self.record(&call, &outcome);
        }
        self.sample_if_due(at);
        self.look_at_tool(at);
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

    fn record(&mut self, call: &InFlight, outcome: &Outcome) {
        self.fio.call(call.thread, &call.call, outcome, call.submission);
        if let Some(kind) = kind_of(&call.call) {
            let thread = call.thread.0 as usize;
            self.recorder.count(thread, kind, outcome.bytes);
            self.recorder.latency(thread, kind, outcome.begin, outcome.end);
        }
    }

    /// A call has ended: there may be reason for the tool to run, now or when no other follows for some time.
    fn look_at_tool(&mut self, now: SimTime) {
        if self.tool.is_none() {
            return;
        }
        let (is_quiet, map_bytes) = (!self.is_busy(), self.map_bytes());
        let Some(tool) = &mut self.tool else { return };
        tool.look_at_map(now, map_bytes);
        let ask = is_quiet.then(|| tool.quiet_from(now)).flatten();
        if let Some(at) = ask {
            self.machine.wake_at(at, Lane::Devirtualizer(Alarm::Idle));
        }
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
            self.machine.wake_at(due, Lane::Background);
        }
    }

    fn wake_background(&mut self, at: SimTime) -> Result<(), BenchError> {
        // a batch of the tool may have let its time pass
        if self.background.due.is_none_or(|due| due > at) || self.background.running {
            return Ok(());
        }
        self.background.due = None;
        if self.fs.next_wake().is_none_or(|due| due > at) {
            self.look_at_background(at);
            return Ok(());
        }
        self.fs.set_now(Moment::at(at));
        self.fs.wake().map_err(|source| BenchError::Background { at, source })?;
        self.background.running = true;
        let plan = self.planner.take(self.machine.spare());
        self.machine.start(at, Lane::Background, plan);
        Ok(())
    }

    fn background_ended(&mut self) {
        self.background.running = false;
        self.look_at_background(self.machine.now());
    }
}

/// As what a call counts in the results; `None` for one that does not.
const fn kind_of(call: &Call) -> Option<CommandKind> {
    match call {
        Call::Read { .. } => Some(CommandKind::Read),
        Call::Write { .. } | Call::Append { .. } => Some(CommandKind::Write),
        Call::Sync { .. } | Call::SyncAll => Some(CommandKind::Flush),
        Call::PunchHole { .. } => Some(CommandKind::Discard),
        _ => None,
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
