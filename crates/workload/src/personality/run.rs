//! A personality at work: the threads and what they share.

use std::sync::Arc;

use dovetail_time::{Rng, SimSpan, SimTime};

use super::Personality;
use super::ending::Ending;
use super::error::PersonalityError;
use super::events::Events;
use super::model::Plan;
use super::namespace::Namespace;
use super::semaphores::Semaphores;
use super::tally::{FlowopTally, Tally};
use super::thread::{Standing, Thread};
use super::turn::Turn;
use crate::call::{Call, FileId, Outcome, Step, ThreadId, Workload};
use crate::lay_out::LayOut;

/// A thread whose list of flowops does nothing at all pauses after this many of them, so that time
/// goes on.
const IDLE_FLOWOPS: u32 = 1000;
const IDLE_PAUSE: SimSpan = SimSpan::from_us(1);
/// The shortest time: after all that happens now.
const INSTANT: SimSpan = SimSpan::from_ns(1);

/// A personality as a [`Workload`]: each thread repeats its flowops until the run time or the
/// number of operations is reached, or Filebench would stop.
#[derive(Clone, Debug)]
pub struct PersonalityWorkload {
    pub(super) plan: Arc<Plan>,
    pub(super) namespace: Namespace,
    pub(super) threads: Vec<Thread>,
    pub(super) semaphores: Semaphores,
    pub(super) events: Option<Events>,
    /// Flowops that do I/O, of all threads.
    pub(super) total: Tally,
    /// Counts whatever may let a waiting thread go on.
    pub(super) changes: u64,
    prepare: LayOut,
    begin: Option<SimTime>,
    ending: Option<Ending>,
    under_way: u64,
}

impl PersonalityWorkload {
    /// The workload with its parameters as they stand; the same seed gives the same trees, sizes
    /// and choices.
    ///
    /// # Errors
    /// A value that is not allowed.
    pub fn new(personality: &Personality, seed: u64) -> Result<Self, PersonalityError> {
        let plan = Arc::new(personality.plan()?);
        let root = Rng::new(seed);
        let (namespace, prepare) = Namespace::new(&plan.sets, &root.fork(0));
        let threads = threads(&plan, &root.fork(1));
        Ok(Self {
            semaphores: Semaphores::new(&plan, &threads),
            plan,
            namespace,
            threads,
            events: None,
            total: Tally::default(),
            changes: 0,
            prepare,
            begin: None,
            ending: None,
            under_way: 0,
        })
    }

    /// Reason for the end of the run; none before it has ended.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Tallies of the flowops, in the file's order.
    pub fn tallies(&self) -> Vec<FlowopTally> {
        let specs = self.plan.threads.iter().enumerate();
        specs
            .flat_map(|(number, spec)| (0..spec.flowops.len()).map(move |at| (number, at)))
            .map(|place| self.tally(place))
            .collect()
    }

    fn tally(&self, (spec, at): (usize, usize)) -> FlowopTally {
        let mine = self
            .threads
            .iter()
            .filter(|thread| thread.spec == spec)
            .map(|thread| thread.tallies[at]);
        let (count, bytes) = mine
            .fold((0, 0), |(count, bytes), tally| (count + tally.operations, bytes + tally.bytes));
        let spec = &self.plan.threads[spec];
        FlowopTally {
            process: spec.process.clone(),
            name: spec.flowops[at].name.clone(),
            count,
            bytes,
        }
    }

    fn deadline(&self) -> Option<SimTime> {
        Some(self.begin? + self.plan.runtime?)
    }

    fn is_over(&mut self, now: SimTime) -> bool {
        if self.ending.is_none() && self.deadline().is_some_and(|deadline| now >= deadline) {
            self.ending = Some(Ending::Runtime);
        }
        if self.ending.is_none()
            && self.plan.operations.is_some_and(|most| self.total.operations >= most)
        {
            self.ending = Some(Ending::Operations);
        }
        self.ending.is_some()
    }

    /// Decides the thread's next step, its present call aside.
    fn decide(&mut self, t: usize, now: SimTime) -> Step {
        for _ in 0..IDLE_FLOWOPS {
            if self.is_over(now) {
                self.threads[t].standing = Standing::Done;
                return Step::Done;
            }
            match self.turn(t, now) {
                Turn::Over => self.complete(t),
                Turn::Sleep(until) if until <= now => {}
                Turn::End(ending) => self.ending = Some(ending),
                turn => return self.step(t, turn, now),
            }
        }
        self.sleep(t, now + IDLE_PAUSE)
    }

    fn step(&mut self, t: usize, turn: Turn, now: SimTime) -> Step {
        match turn {
            Turn::Call(call, effect) => {
                self.threads[t].pending = Some((call, effect));
                self.submit(t, call)
            }
            Turn::Background { call, last } => {
                if last {
                    self.threads[t].aio.push(call);
                }
                self.submit(t, call)
            }
            Turn::Sleep(until) => self.sleep(t, until),
            Turn::Own => self.wait(t),
            Turn::Others | Turn::Over | Turn::End(_) => self.wait_for_others(t, now),
        }
    }

    fn submit(&mut self, t: usize, call: Call) -> Step {
        self.under_way += 1;
        self.threads[t].under_way += 1;
        self.threads[t].standing = Standing::Asked;
        Step::Call(call)
    }

    fn sleep(&mut self, t: usize, until: SimTime) -> Step {
        let until = self.deadline().map_or(until, |deadline| until.min(deadline));
        self.threads[t].standing = Standing::Sleeping(until);
        Step::Sleep(until)
    }

    fn wait(&mut self, t: usize) -> Step {
        self.threads[t].standing = Standing::Own;
        Step::Wait
    }

    /// The thread cannot go on before others have done something. [`Step::WaitForOthers`] ends with
    /// a call alone, so where no call is under way the thread looks again when the next sleeper has
    /// woken.
    fn wait_for_others(&mut self, t: usize, now: SimTime) -> Step {
        self.threads[t].standing = Standing::Others { seen: self.changes };
        if self.under_way > self.threads[t].under_way {
            return Step::WaitForOthers;
        }
        let others = || {
            self.threads
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != t)
                .map(|(_, it)| it.standing)
        };
        let soon = others().any(|standing| match standing {
            Standing::Asked => true,
            Standing::Others { seen } => seen != self.changes,
            _ => false,
        });
        let wakes = others().filter_map(|standing| match standing {
            Standing::Sleeping(until) => Some(until),
            _ => None,
        });
        match wakes.min() {
            _ if soon => Step::Sleep(now + INSTANT),
            Some(until) => Step::Sleep(until + INSTANT),
            None => {
                self.ending = Some(Ending::Deadlock);
                self.threads[t].standing = Standing::Done;
                Step::Done
            }
        }
    }

    /// The flowop is over: counted, and on to the next one.
    fn complete(&mut self, t: usize) {
        let thread = &mut self.threads[t];
        let spec = &self.plan.threads[thread.spec];
        let flowop = &spec.flowops[thread.at];
        thread.tallies[thread.at].add(&flowop.action, thread.moved);
        if flowop.action.is_io() {
            self.total.add(&flowop.action, thread.moved);
        }
        thread.advance(flowop.iters, spec.flowops.len());
    }

    /// Decides at once what the thread does after its call, so that threads that are asked before
    /// it see it done.
    fn plan_ahead(&mut self, t: usize, now: SimTime) {
        if self.threads[t].standing != Standing::Own || self.threads[t].pending.is_some() {
            return;
        }
        let step = self.decide(t, now);
        if matches!(step, Step::Call(_) | Step::Sleep(_) | Step::Done) {
            self.threads[t].planned = Some(step);
        }
    }
}

fn threads(plan: &Plan, rng: &Rng) -> Vec<Thread> {
    let specs = plan.threads.iter().enumerate();
    let all = specs
        .flat_map(|(number, spec)| (0..spec.instances).map(move |_| (number, spec.flowops.len())));
    all.enumerate()
        .map(|(label, (number, flowops))| Thread::new(number, flowops, rng.fork(label as u64)))
        .collect()
}

impl Workload for PersonalityWorkload {
    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    fn job(&self, thread: ThreadId) -> &str {
        &self.plan.threads[self.threads[thread.0 as usize].spec].process
    }

    fn path(&self, file: FileId) -> &str {
        self.namespace.path(file)
    }

    fn prepare(&mut self) -> Option<Call> {
        self.prepare.next()
    }

    fn next(&mut self, thread: ThreadId, now: SimTime) -> Step {
        if self.begin.is_none() {
            self.begin = Some(now);
            self.events = self.plan.event_rate.map(|rate| Events::new(rate, now));
        }
        let t = thread.0 as usize;
        if let Some(step) = self.threads[t].planned.take() {
            return step;
        }
        if self.threads[t].pending.is_some() {
            return self.wait(t);
        }
        self.decide(t, now)
    }

    /// Of its runtime or of its operations, whichever ends it first; `finishoncount` and
    /// `finishonbytes` are not considered.
    fn share_done(&self, now: SimTime) -> Option<f64> {
        let part = |done: f64, whole: f64| if whole > 0.0 { (done / whole).min(1.0) } else { 1.0 };
        let time = self.begin.zip(self.plan.runtime).map(|(begin, runtime)| {
            part(now.since(begin.min(now)).as_secs_f64(), runtime.as_secs_f64())
        });
        let operations = self.plan.operations;
        let operations = operations.map(|most| part(self.total.operations as f64, most as f64));
        time.into_iter().chain(operations).reduce(f64::max)
    }

    fn problem(&self) -> Option<String> {
        self.ending().filter(|ending| ending.is_early()).map(ToString::to_string)
    }

    fn ended(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome) {
        let t = thread.0 as usize;
        self.under_way = self.under_way.saturating_sub(1);
        self.threads[t].under_way = self.threads[t].under_way.saturating_sub(1);
        match self.threads[t].pending {
            Some((pending, effect)) if pending == *call => {
                self.threads[t].pending = None;
                self.apply(t, effect, outcome);
            }
            _ => {
                let aio = &mut self.threads[t].aio;
                if let Some(place) = aio.iter().position(|under_way| under_way == call) {
                    aio.swap_remove(place);
                }
            }
        }
        self.plan_ahead(t, outcome.end);
    }

    fn is_cut_short(&self, thread: ThreadId) -> bool {
        self.ending.is_some() && self.threads[thread.0 as usize].standing != Standing::Done
    }
}
