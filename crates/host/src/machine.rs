//! The scheduler: it plays the plans of all threads, always the earliest step first.

use std::cell::{Ref, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use dovetail_block::{BlockDevice, EventId, LockId};
use dovetail_time::{SimSpan, SimTime};
use rustc_hash::FxHashMap;

use crate::costs::HostCosts;
use crate::device_queue::DeviceQueue;
use crate::error::HostError;
use crate::events::Events;
use crate::hazards::{CommandId, Hazards};
use crate::locks::{Locks, Ticket};
use crate::plan::{Plan, Step};
use crate::queue::{FlushTurn, Request, Traffic};

/// What the owner knows a plan or a timer by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// What the owner reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A plan has been played to its end.
    Ended {
        /// Whose.
        tag: Tag,
        /// When.
        at: SimTime,
    },
    /// The time of a timer has come.
    Timer {
        /// Whose.
        tag: Tag,
        /// When.
        at: SimTime,
    },
}

/// What a plan waits for, other than a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Obstacle {
    Lock(LockId),
    Command(CommandId),
    Event(EventId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Plan(usize),
    /// A plan without steps ends.
    End(Tag),
    Timer(Tag),
}

/// A plan that is being played.
#[derive(Debug, Default)]
struct Running {
    tag: Tag,
    plan: Plan,
    next: usize,
    /// When its reads so far are done, and when all its commands are.
    reads_done: SimTime,
    all_done: SimTime,
    /// Tickets for the locks it has yet to take, in order; then those that it holds.
    tickets: VecDeque<Ticket>,
    held: Vec<Ticket>,
    /// For each command not yet issued: its number and what must be issued before.
    planned: VecDeque<(CommandId, Vec<CommandId>)>,
    /// When it asked for the flush that is its next step.
    asked: Option<SimTime>,
    /// Since when something stands in its way.
    blocked_since: Option<SimTime>,
}

/// What comes of a step.
enum Turn {
    /// The next step at this time.
    At(SimTime),
    /// The same step again at this time.
    Again(SimTime),
    Blocked(Obstacle),
}

/// Sees each command that reaches the drive and has blocks.
pub type Observer = Box<dyn FnMut(&Request)>;

/// A plan that is blocked for so long will not be unblocked.
const STUCK: SimSpan = SimSpan::from_ms(600_000);

/// The drive, the block layer before it, and the plans under way.
pub struct Machine<D> {
    queue: Rc<RefCell<DeviceQueue<D>>>,
    costs: HostCosts,
    due: BinaryHeap<Reverse<(SimTime, u64, Due)>>,
    order: u64,
    now: SimTime,
    plans: Vec<Option<Running>>,
    free: Vec<usize>,
    /// What has ended, for its memory.
    spare: Vec<Running>,
    spare_plans: Vec<Plan>,
    blocked: FxHashMap<Obstacle, Vec<usize>>,
    locks: Locks,
    hazards: Hazards,
    events: Events,
}

impl<D> std::fmt::Debug for Machine<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<D: BlockDevice> Machine<D> {
    /// A machine at time `now` with an empty drive. `events` are those of the planner whose plans it plays.
    pub fn new(device: D, costs: HostCosts, now: SimTime, events: Events) -> Self {
        Self {
            queue: Rc::new(RefCell::new(DeviceQueue::new(device, costs))),
            costs,
            due: BinaryHeap::new(),
            order: 0,
            now,
            plans: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            spare_plans: Vec::new(),
            blocked: FxHashMap::default(),
            locks: Locks::default(),
            hazards: Hazards::default(),
            events,
        }
    }

    /// Shows each command from now on to `observer`.
    pub fn observe(&mut self, observer: Observer) {
        self.queue.borrow_mut().observer = Some(observer);
    }

    /// The drive.
    pub fn device(&self) -> Ref<'_, D> {
        Ref::map(self.queue.borrow(), |queue| queue.device.device())
    }

    /// The way to the drive past the plans.
    pub(crate) fn queue(&self) -> Rc<RefCell<DeviceQueue<D>>> {
        Rc::clone(&self.queue)
    }

    /// Time goes on to `at`, and to the last command that was sent directly: the owner did something else than to play plans.
    pub fn skip_to(&mut self, at: SimTime) {
        self.now = self.now.max(at).max(self.queue.borrow().last_direct);
    }

    /// The time.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// What reached the drive so far.
    pub fn traffic(&self) -> Traffic {
        self.queue.borrow().traffic
    }

    /// A plan of an earlier call whose memory can be used again.
    pub fn spare(&mut self) -> Plan {
        self.spare_plans.pop().unwrap_or_default()
    }

    /// Starts to play a plan at `at`, which is not before now.
    pub fn start(&mut self, at: SimTime, tag: Tag, plan: Plan) {
        if plan.steps.is_empty() {
            self.spare_plans.push(plan);
            return self.schedule(at, Due::End(tag));
        }
        let mut running = self.spare.pop().unwrap_or_default();
        for step in &plan.steps {
            if let Step::Lock { lock, shared } = step {
                running.tickets.push_back(self.locks.draw(*lock, *shared));
            }
        }
        (running.tag, running.plan) = (tag, plan);
        (running.reads_done, running.all_done) = (at, at);
        self.plan_commands(&mut running);
        let slot = self.free.pop().unwrap_or(self.plans.len());
        if slot == self.plans.len() {
            self.plans.push(None);
        }
        self.plans[slot] = Some(running);
        self.schedule(at, Due::Plan(slot));
    }

    /// Wakes the owner at a time.
    pub fn wake_at(&mut self, at: SimTime, tag: Tag) {
        self.schedule(at, Due::Timer(tag));
    }

    fn schedule(&mut self, at: SimTime, due: Due) {
        self.order += 1;
        self.due.push(Reverse((at, self.order, due)));
    }

    /// Plays until something happens that the owner reacts to; `None` when nothing is left to do.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn advance(&mut self) -> Result<Option<Happening>, HostError> {
        while let Some(Reverse((at, _, due))) = self.due.pop() {
            self.now = self.now.max(at);
            let happening = match due {
                Due::Timer(_) if self.is_stuck() => return Err(self.deadlock()),
                Due::Timer(tag) => Some(Happening::Timer { tag, at: self.now }),
                Due::Plan(slot) => self.play(slot)?,
                Due::End(tag) => Some(Happening::Ended { tag, at: self.now }),
            };
            if happening.is_some() {
                return Ok(happening);
            }
        }
        if self.blocked.is_empty() { Ok(None) } else { Err(self.deadlock()) }
    }

    fn is_stuck(&self) -> bool {
        let blocked = self.blocked.values().flatten();
        let mut since = blocked.filter_map(|&slot| self.plans[slot].as_ref()?.blocked_since);
        since.any(|since| self.now.since(since) > STUCK)
    }

    fn deadlock(&self) -> HostError {
        let waits = |(obstacle, slots): (&Obstacle, &Vec<usize>)| {
            let tags = slots.iter().filter_map(|&slot| self.plans[slot].as_ref().map(|plan| plan.tag.0));
            tags.map(|tag| format!("call {tag} waits for {obstacle:?}")).collect::<Vec<_>>()
        };
        let mut waiting: Vec<String> = self.blocked.iter().flat_map(waits).collect();
        waiting.sort();
        HostError::Deadlock { at: self.now, waiting: waiting.join(", ") }
    }

    /// Plays the steps of a plan as far as time allows.
    fn play(&mut self, slot: usize) -> Result<Option<Happening>, HostError> {
        let Some(mut running) = self.plans[slot].take() else { return Ok(None) };
        loop {
            if running.next == running.plan.steps.len() {
                return Ok(Some(self.end(slot, running)));
            }
            let at = match self.step(&mut running)? {
                Turn::At(at) => {
                    running.next += 1;
                    running.blocked_since = None;
                    at
                }
                Turn::Again(at) => at,
                Turn::Blocked(obstacle) => {
                    self.blocked.entry(obstacle).or_default().push(slot);
                    running.blocked_since.get_or_insert(self.now);
                    self.plans[slot] = Some(running);
                    return Ok(None);
                }
            };
            if self.due.peek().is_some_and(|Reverse((next, ..))| *next <= at) && at > self.now {
                self.plans[slot] = Some(running);
                self.schedule(at, Due::Plan(slot));
                return Ok(None);
            }
            self.now = self.now.max(at);
        }
    }

    fn end(&mut self, slot: usize, mut running: Running) -> Happening {
        for ticket in running.held.drain(..).chain(running.tickets.drain(..)) {
            self.locks.release(ticket);
            self.unblock(Obstacle::Lock(ticket.lock));
        }
        self.free.push(slot);
        let tag = running.tag;
        (running.next, running.asked) = (0, None);
        running.planned.clear();
        self.spare_plans.push(std::mem::take(&mut running.plan));
        self.spare.push(running);
        Happening::Ended { tag, at: self.now }
    }

    /// Numbers the commands of a plan and finds which of other plans' they must not overtake.
    fn plan_commands(&mut self, running: &mut Running) {
        for step in running.plan.steps.iter().filter(|step| step.is_command()) {
            let mut before = Vec::new();
            self.hazards.conflicts(step, &mut before);
            running.planned.push_back((CommandId(0), before));
        }
        let commands = running.plan.steps.iter().filter(|step| step.is_command());
        for (step, planned) in commands.zip(&mut running.planned) {
            planned.0 = self.hazards.plan(step);
        }
    }

    fn unblock(&mut self, obstacle: Obstacle) {
        for slot in self.blocked.remove(&obstacle).unwrap_or_default() {
            self.schedule(self.now, Due::Plan(slot));
        }
    }

    fn step(&mut self, running: &mut Running) -> Result<Turn, HostError> {
        let now = self.now;
        Ok(match &running.plan.steps[running.next] {
            Step::WaitReads => Turn::At(self.woken(running.reads_done)),
            Step::WaitAll => Turn::At(self.woken(running.all_done)),
            Step::Lock { lock, .. } => match running.tickets.front() {
                Some(&ticket) if self.locks.is_granted(ticket) => {
                    running.held.extend(running.tickets.pop_front());
                    Turn::At(now)
                }
                _ => Turn::Blocked(Obstacle::Lock(*lock)),
            },
            Step::Unlock(lock) => {
                if let Some(at) = running.held.iter().rposition(|ticket| ticket.lock == *lock) {
                    self.locks.release(running.held.remove(at));
                    self.unblock(Obstacle::Lock(*lock));
                }
                Turn::At(now)
            }
            Step::Signal(event) => {
                self.events.signal(*event);
                self.unblock(Obstacle::Event(*event));
                Turn::At(now)
            }
            Step::Await(event) if self.events.is_signalled(*event) => Turn::At(now),
            Step::Await(event) => Turn::Blocked(Obstacle::Event(*event)),
            Step::Read(_) | Step::Write { .. } | Step::Flush | Step::Discard(_) | Step::Remap(_) => {
                return self.command(running);
            }
        })
    }

    /// When a thread that waits for `done` goes on.
    fn woken(&self, done: SimTime) -> SimTime {
        if done <= self.now { self.now } else { done + SimSpan::from_ns(self.costs.wake_ns) }
    }

    fn command(&mut self, running: &mut Running) -> Result<Turn, HostError> {
        if let Some((_, before)) = running.planned.front_mut() {
            while let Some(&first) = before.last() {
                if self.hazards.is_pending(first) {
                    return Ok(Turn::Blocked(Obstacle::Command(first)));
                }
                before.pop();
            }
        }
        let step = &running.plan.steps[running.next];
        let queue = Rc::clone(&self.queue);
        let mut queue = queue.borrow_mut();
        if *step == Step::Flush {
            let asked = *running.asked.get_or_insert(self.now);
            match queue.flushes.turn(asked, self.now) {
                FlushTurn::Later(at) => return Ok(Turn::Again(at)),
                FlushTurn::Served(done) => {
                    queue.traffic.merged_flushes += 1;
                    self.issued(running, done);
                    return Ok(Turn::At(self.now));
                }
                FlushTurn::Now => {}
            }
        }
        if let Some(later) = queue.depth.room_from(self.now, self.costs.queue_depth) {
            return Ok(Turn::Again(later));
        }
        let done = queue.issue(self.now, step)?;
        self.issued(running, done);
        Ok(Turn::At(self.now + queue.charge()))
    }

    fn issued(&mut self, running: &mut Running, done: SimTime) {
        if matches!(running.plan.steps[running.next], Step::Read(_)) {
            running.reads_done = running.reads_done.max(done);
        }
        running.all_done = running.all_done.max(done);
        running.asked = None;
        if let Some((id, _)) = running.planned.pop_front() {
            self.hazards.issued(&running.plan.steps[running.next], id);
            self.unblock(Obstacle::Command(id));
        }
    }
}
