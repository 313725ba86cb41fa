//! A plan that is being played.

use std::collections::VecDeque;

use dovetail_block::{EventId, LockId};
use dovetail_time::{SimSpan, SimTime};

use crate::hazards::CommandId;
use crate::locks::Ticket;
use crate::plan::{Plan, PlanStep};

/// Obstacle that a plan waits for, other than a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Obstacle {
    Lock(LockId),
    Command(CommandId),
    Event(EventId),
    /// Pages that are dirty or on their way.
    Room,
}

/// Outcome of a step.
pub(crate) enum Outcome {
    /// The next step at this time.
    At(SimTime),
    /// The same step again at this time.
    Again(SimTime),
    /// The same step again, after a CPU has worked for so long.
    Work(SimSpan),
    Blocked(Obstacle),
}

/// Work of a CPU before the first step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FirstWork {
    #[default]
    None,
    /// It has yet to be asked for.
    Due(SimSpan),
    /// It is under way, and its end is told.
    UnderWay,
}

/// A plan that is being played, for the actor of its lane.
#[derive(Debug)]
pub(crate) struct Running<L> {
    pub(crate) lane: L,
    /// The actor on whose behalf CPUs work for it.
    pub(crate) owner: L,
    pub(crate) progress: Progress,
}

/// Progress of a plan.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) plan: Plan,
    pub(crate) next: usize,
    pub(crate) first_work: FirstWork,
    /// Time at which its reads so far are done, and the same of all its commands.
    pub(crate) reads_done: SimTime,
    pub(crate) all_done: SimTime,
    /// Tickets for the locks it has yet to take, in order; then those that it holds.
    pub(crate) tickets: VecDeque<Ticket>,
    pub(crate) held: Vec<Ticket>,
    /// For each command not yet issued: its number and what must be issued before.
    pub(crate) planned: VecDeque<(CommandId, Vec<CommandId>)>,
    /// A CPU has handed over the command that is its next step.
    pub(crate) handed_over: bool,
    /// Time at which it asked for the flush that is its next step.
    pub(crate) asked: Option<SimTime>,
    /// Since when something stands in its way.
    pub(crate) blocked_since: Option<SimTime>,
}

impl Progress {
    /// Its next step, if it has not come to its end.
    pub(crate) fn step(&self) -> Option<&PlanStep> {
        self.plan.steps.get(self.next)
    }

    /// Notes when the command that is its next step will be done.
    pub(crate) fn issued(&mut self, done: SimTime) {
        if matches!(self.step(), Some(PlanStep::Read(_))) {
            self.reads_done = self.reads_done.max(done);
        }
        self.all_done = self.all_done.max(done);
        (self.asked, self.handed_over) = (None, false);
    }

    /// Forgets the plan, but not the memory.
    pub(crate) fn clear(&mut self) -> Plan {
        (self.next, self.asked) = (0, None);
        self.planned.clear();
        std::mem::take(&mut self.plan)
    }
}
