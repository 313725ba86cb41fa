//! The scheduler: it plays the plans of all actors, always the earliest step first.

use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

use dovetail_block::{BlockDevice, BlockRange};
use dovetail_time::{SimSpan, SimTime};
use rustc_hash::FxHashMap;

use crate::agenda::{Agenda, Due};
use crate::checked::CheckedDevice;
use crate::costs::HostCosts;
use crate::cpus::{Cpus, Granted, Wish};
use crate::device_queue::DeviceQueue;
use crate::error::HostError;
use crate::events::Events;
use crate::hazards::{CommandId, Hazards};
use crate::locks::Locks;
use crate::plan::{Plan, PlanStep};
use crate::queue::{FlushTurn, Request, Traffic};
use crate::running::{FirstWork, Obstacle, Outcome, Progress, Running};

/// Something that an actor reacts to. `L` names the lane: whose plan or timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<L> {
    /// A plan has been played to its end.
    Ended {
        /// The plan's lane.
        lane: L,
        /// The time.
        at: SimTime,
    },
    /// The work of a CPU that a plan began with is done; see [`Machine::start_after`].
    Worked {
        /// The plan's lane.
        lane: L,
        /// The time.
        at: SimTime,
    },
    /// A timer has fired.
    Timer {
        /// The timer's lane.
        lane: L,
        /// The time.
        at: SimTime,
    },
}

/// Sees each command that reaches the drive and has blocks.
pub type Observer = Box<dyn FnMut(&Request)>;

/// A plan that is blocked for so long will not be unblocked if no other one is under way.
const STUCK: SimSpan = SimSpan::from_ms(600_000);

/// The drive, the block layer before it, and what the actors on it have under way.
///
/// An actor is whoever issues commands: a thread of a workload, a file system's background, a
/// trace. The machine knows an actor by the lane of its plans and timers alone.
pub struct Machine<D, L> {
    queue: Rc<RefCell<DeviceQueue<D>>>,
    costs: HostCosts,
    cpus: Cpus<L>,
    agenda: Agenda<L>,
    /// Nothing is played beyond this time.
    horizon: SimTime,
    now: SimTime,
    plans: Vec<Option<Box<Running<L>>>>,
    free: Vec<usize>,
    /// Plans that have ended, kept for their memory.
    spare: Vec<Box<Running<L>>>,
    spare_plans: Vec<Plan>,
    blocked: FxHashMap<Obstacle, Vec<usize>>,
    /// Lists of blocked plans that are empty, kept for their memory.
    spare_slots: Vec<Vec<usize>>,
    locks: Locks,
    hazards: Rc<RefCell<Hazards>>,
    events: Events,
}

impl<D, L> std::fmt::Debug for Machine<D, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<D: BlockDevice, L: Copy + PartialEq + std::fmt::Debug> Machine<D, L> {
    /// A machine at time `now` with an empty drive. `events` are those of the planner whose plans
    /// it plays.
    pub fn new(device: D, costs: HostCosts, now: SimTime, events: Events) -> Self {
        Self::over(CheckedDevice::new(device), costs, now, events)
    }

    /// The same with a drive that was written to before.
    pub fn over(device: CheckedDevice<D>, costs: HostCosts, now: SimTime, events: Events) -> Self {
        let hazards = Hazards::new(device.device().info().capabilities.zones);
        Self {
            queue: Rc::new(RefCell::new(DeviceQueue::new(device, costs))),
            costs,
            cpus: Cpus::new(costs.cpus),
            agenda: Agenda::default(),
            horizon: SimTime::from_ns(u64::MAX),
            now,
            plans: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            spare_plans: Vec::new(),
            blocked: FxHashMap::default(),
            spare_slots: Vec::new(),
            locks: Locks::default(),
            hazards: Rc::new(RefCell::new(hazards)),
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

    /// The same, to be changed but for what its blocks hold.
    pub fn device_mut(&self) -> RefMut<'_, D> {
        RefMut::map(self.queue.borrow_mut(), |queue| queue.device.device_mut())
    }

    /// The drive, with what its blocks must hold; `None` while a planner that is connected can reach
    /// it.
    pub fn into_device(self) -> Option<CheckedDevice<D>> {
        Rc::into_inner(self.queue).map(|queue| queue.into_inner().device)
    }

    /// The way to the drive past the plans.
    pub(crate) fn queue(&self) -> Rc<RefCell<DeviceQueue<D>>> {
        Rc::clone(&self.queue)
    }

    /// Commands that are planned and not issued.
    pub(crate) fn hazards(&self) -> Rc<RefCell<Hazards>> {
        Rc::clone(&self.hazards)
    }

    /// Tells the drive that a range will be read or written soon; see [`BlockDevice::expect`].
    pub fn expect(&self, range: BlockRange) {
        self.queue.borrow().device.expect(range);
    }

    /// Time at which the drive takes one more command; `None` for now.
    pub fn room_from(&self) -> Option<SimTime> {
        self.queue.borrow_mut().depth.room_from(self.now)
    }

    /// The time.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Traffic that reached the drive so far.
    pub fn traffic(&self) -> Traffic {
        self.queue.borrow().traffic
    }

    /// A plan of an earlier call whose memory can be used again.
    pub fn spare(&mut self) -> Plan {
        self.spare_plans.pop().unwrap_or_default()
    }

    /// Starts to play a plan at `at`, which is not before now.
    pub fn start(&mut self, at: SimTime, lane: L, plan: Plan) {
        if plan.steps.is_empty() {
            self.spare_plans.push(plan);
            return self.agenda.enter(at, Due::End(lane));
        }
        let mut running = self.begin(at, lane, plan);
        self.plan_commands(&mut running.progress);
        self.enter(at, running);
    }

    /// Starts to play a plan at `at` after a CPU has worked for so long, for `owner`: it keeps that
    /// CPU for what it asks for at once when the work is done. Returns when that is; `None` where
    /// work waits for others' work: then [`Event::Worked`] tells it.
    pub fn start_after(
        &mut self,
        at: SimTime,
        takes: SimSpan,
        (lane, owner): (L, L),
        plan: Plan,
    ) -> Option<SimTime> {
        if !self.cpus.are_limited() {
            self.start(at + takes, lane, plan);
            return Some(at + takes);
        }
        let mut running = self.begin(at, lane, plan);
        running.owner = owner;
        running.progress.first_work = FirstWork::Due(takes);
        self.plan_commands(&mut running.progress);
        self.enter(at, running);
        None
    }

    fn begin(&mut self, at: SimTime, lane: L, plan: Plan) -> Box<Running<L>> {
        let fresh = || Box::new(Running { lane, owner: lane, progress: Progress::default() });
        let mut running = self.spare.pop().unwrap_or_else(fresh);
        (running.lane, running.owner) = (lane, lane);
        let progress = &mut running.progress;
        for step in &plan.steps {
            if let PlanStep::Lock { lock, shared } = step {
                progress.tickets.push_back(self.locks.draw(*lock, *shared));
            }
        }
        (progress.reads_done, progress.all_done) = (at, at);
        progress.plan = plan;
        running
    }

    fn enter(&mut self, at: SimTime, running: Box<Running<L>>) {
        let slot = self.free.pop().unwrap_or(self.plans.len());
        if slot == self.plans.len() {
            self.plans.push(None);
        }
        self.plans[slot] = Some(running);
        self.agenda.enter(at, Due::Plan(slot));
    }

    /// Sends one command at `at`, to which the machine has been played. It belongs to no plan and
    /// may overtake those of plans, as requests to different blocks of a raw device may. Returns
    /// when it is done and whoever waits for it has been woken; `None` if the queue is full or a
    /// flush is under way: then it waits, and [`Event::Ended`] tells its end.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn request(
        &mut self,
        at: SimTime,
        lane: L,
        command: PlanStep,
    ) -> Result<Option<SimTime>, HostError> {
        self.now = self.now.max(at);
        let done = {
            let mut queue = self.queue.borrow_mut();
            // on CPUs that are counted it is handed over first, as a plan's commands are
            if !self.cpus.are_limited() && queue.is_free(self.now, &command) {
                let done = queue.issue(self.now, &command)?;
                let handed_over = self.now + queue.charge();
                Some((done, handed_over))
            } else {
                None
            }
        };
        let Some((done, handed_over)) = done else {
            let plan = Plan { steps: vec![command, PlanStep::WaitAll] };
            let running = self.begin(self.now, lane, plan);
            self.enter(self.now, running);
            return Ok(None);
        };
        Ok(Some(self.woken(handed_over, done)))
    }

    /// Sets a timer.
    pub fn wake_at(&mut self, at: SimTime, lane: L) {
        self.agenda.enter(at, Due::Timer(lane));
    }

    /// Plays until something happens that an actor reacts to; `None` when nothing is left to do.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn advance(&mut self) -> Result<Option<Event<L>>, HostError> {
        let event = self.advance_until(SimTime::from_ns(u64::MAX))?;
        if event.is_some() || self.blocked.is_empty() { Ok(event) } else { Err(self.deadlock()) }
    }

    /// The same, but nothing that is due after `horizon`.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn advance_until(&mut self, horizon: SimTime) -> Result<Option<Event<L>>, HostError> {
        self.horizon = horizon;
        while let Some((at, due)) = self.agenda.take(horizon) {
            self.now = self.now.max(at);
            let event = match due {
                Due::Timer(_) if self.is_stuck() => return Err(self.deadlock()),
                Due::Timer(lane) => Some(Event::Timer { lane, at: self.now }),
                Due::Plan(slot) => self.play(slot)?,
                Due::End(lane) => Some(Event::Ended { lane, at: self.now }),
                Due::Written(pages) => {
                    self.events.written(pages);
                    self.unblock(Obstacle::Room);
                    None
                }
                Due::Worked(turn) => {
                    let next = self.cpus.ended(self.now, turn);
                    next.into_iter().for_each(|granted| self.work(granted));
                    None
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Timers alone go on, and have for long. A plan may wait for hours of virtual time for one that
    /// writes to a slow drive.
    fn is_stuck(&self) -> bool {
        let blocked = || self.blocked.values().flatten();
        let mut since =
            blocked().filter_map(|&slot| self.plans[slot].as_ref()?.progress.blocked_since);
        since.any(|since| self.now.since(since) > STUCK)
            && self.plans.iter().flatten().count() == blocked().count()
            && !self.agenda.has_pages()
    }

    fn deadlock(&self) -> HostError {
        let waits = |(obstacle, slots): (&Obstacle, &Vec<usize>)| {
            let lanes =
                slots.iter().filter_map(|&slot| self.plans[slot].as_ref().map(|plan| plan.lane));
            lanes.map(|lane| format!("{lane:?} waits for {obstacle:?}")).collect::<Vec<_>>()
        };
        let mut waiting: Vec<String> = self.blocked.iter().flat_map(waits).collect();
        waiting.sort();
        HostError::Deadlock { at: self.now, waiting: waiting.join(", ") }
    }

    /// Plays the steps of a plan as far as time allows.
    fn play(&mut self, slot: usize) -> Result<Option<Event<L>>, HostError> {
        let Some(mut running) = self.plans[slot].take() else { return Ok(None) };
        match running.progress.first_work {
            FirstWork::None => {}
            FirstWork::Due(takes) => {
                running.progress.first_work = FirstWork::UnderWay;
                self.ask_for_cpu(slot, running, takes);
                return Ok(None);
            }
            FirstWork::UnderWay => {
                let lane = running.lane;
                running.progress.first_work = FirstWork::None;
                self.plans[slot] = Some(running);
                self.agenda.enter(self.now, Due::Plan(slot));
                return Ok(Some(Event::Worked { lane, at: self.now }));
            }
        }
        loop {
            let Some(outcome) = self.step(&mut running.progress)? else {
                return Ok(Some(self.end(slot, running)));
            };
            let at = match outcome {
                Outcome::At(at) => {
                    running.progress.next += 1;
                    running.progress.blocked_since = None;
                    at
                }
                Outcome::Again(at) => at,
                Outcome::Work(takes) => {
                    self.ask_for_cpu(slot, running, takes);
                    return Ok(None);
                }
                Outcome::Blocked(obstacle) => {
                    let spare = &mut self.spare_slots;
                    let waiting = self.blocked.entry(obstacle);
                    waiting.or_insert_with(|| spare.pop().unwrap_or_default()).push(slot);
                    running.progress.blocked_since.get_or_insert(self.now);
                    self.plans[slot] = Some(running);
                    return Ok(None);
                }
            };
            if at > self.now
                && (at > self.horizon || self.agenda.first().is_some_and(|next| next <= at))
            {
                self.plans[slot] = Some(running);
                self.agenda.enter(at, Due::Plan(slot));
                return Ok(None);
            }
            self.now = self.now.max(at);
        }
    }

    fn ask_for_cpu(&mut self, slot: usize, running: Box<Running<L>>, takes: SimSpan) {
        let wish = Wish { slot, owner: running.owner, takes };
        self.plans[slot] = Some(running);
        let granted = self.cpus.ask(self.now, wish);
        granted.into_iter().for_each(|granted| self.work(granted));
    }

    /// Lets a CPU work. The plan goes on when that is done, and has asked for more by the time at
    /// which the CPU is given to others.
    fn work(&mut self, Granted { wish, turn }: Granted<L>) {
        let done = self.now + wish.takes;
        self.agenda.enter(done, Due::Plan(wish.slot));
        self.agenda.enter_last(done, Due::Worked(turn));
    }

    fn end(&mut self, slot: usize, mut running: Box<Running<L>>) -> Event<L> {
        let progress = &mut running.progress;
        for ticket in progress.held.drain(..).chain(progress.tickets.drain(..)) {
            self.locks.release(ticket);
            self.unblock(Obstacle::Lock(ticket.lock));
        }
        self.free.push(slot);
        self.spare_plans.push(progress.clear());
        let lane = running.lane;
        self.spare.push(running);
        Event::Ended { lane, at: self.now }
    }

    /// Numbers the commands of a plan and finds which of other plans' they must not overtake.
    fn plan_commands(&mut self, progress: &mut Progress) {
        let mut hazards = self.hazards.borrow_mut();
        let mut before = Vec::new();
        let is_alone = hazards.is_empty();
        for step in &progress.plan.steps {
            if let PlanStep::ZoneTurn(turn) = step {
                hazards.before_turn(*turn, &mut before);
            }
            if step.is_command() {
                if !is_alone {
                    hazards.conflicts(step, &mut before);
                }
                progress.planned.push_back((CommandId(0), std::mem::take(&mut before)));
            }
        }
        let (mut planned, mut turns) = (progress.planned.iter_mut(), Vec::new());
        for step in &progress.plan.steps {
            if let PlanStep::ZoneTurn(turn) = step {
                turns.push(*turn);
            }
            if step.is_command()
                && let Some(planned) = planned.next()
            {
                planned.0 = hazards.plan(step);
                turns.drain(..).for_each(|turn| hazards.take_part(planned.0, turn));
            }
        }
    }

    fn unblock(&mut self, obstacle: Obstacle) {
        if self.blocked.is_empty() {
            return;
        }
        let Some(mut waiting) = self.blocked.remove(&obstacle) else { return };
        for slot in waiting.drain(..) {
            self.agenda.enter(self.now, Due::Plan(slot));
        }
        self.spare_slots.push(waiting);
    }

    /// Plays the next step of a plan; `None` at its end.
    fn step(&mut self, progress: &mut Progress) -> Result<Option<Outcome>, HostError> {
        let now = self.now;
        let Some(step) = progress.plan.steps.get(progress.next) else { return Ok(None) };
        Ok(Some(match step {
            PlanStep::WaitReads => Outcome::At(self.woken(now, progress.reads_done)),
            PlanStep::WaitAll => Outcome::At(self.woken(now, progress.all_done)),
            PlanStep::Until(at) => Outcome::At(now.max(*at)),
            PlanStep::Lock { lock, .. } => match progress.tickets.front() {
                Some(&ticket) if self.locks.is_granted(ticket) => {
                    progress.held.extend(progress.tickets.pop_front());
                    Outcome::At(now)
                }
                _ => Outcome::Blocked(Obstacle::Lock(*lock)),
            },
            PlanStep::Unlock(lock) => {
                if let Some(at) = progress.held.iter().rposition(|ticket| ticket.lock == *lock) {
                    self.locks.release(progress.held.remove(at));
                    self.unblock(Obstacle::Lock(*lock));
                }
                Outcome::At(now)
            }
            PlanStep::Signal(event) => {
                self.events.signal(*event);
                self.unblock(Obstacle::Event(*event));
                Outcome::At(now)
            }
            PlanStep::Written(pages) => {
                self.agenda.enter(now.max(progress.all_done), Due::Written(*pages));
                Outcome::At(now)
            }
            PlanStep::AwaitRoom(pages) if self.events.has_room(*pages) => Outcome::At(now),
            PlanStep::AwaitRoom(_) => Outcome::Blocked(Obstacle::Room),
            PlanStep::Await(event) if self.events.is_signalled(*event) => Outcome::At(now),
            PlanStep::ZoneTurn(_) => Outcome::At(now),
            PlanStep::Await(event) => Outcome::Blocked(Obstacle::Event(*event)),
            PlanStep::Read(_)
            | PlanStep::Write { .. }
            | PlanStep::Flush
            | PlanStep::Discard(_)
            | PlanStep::Zone(..)
            | PlanStep::Remap(_)
            | PlanStep::EndRenames(_) => self.command(progress)?,
        }))
    }

    /// Time at which a thread goes on that waits at `now` for what is over at `done`.
    fn woken(&self, now: SimTime, done: SimTime) -> SimTime {
        if done <= now { now } else { done + SimSpan::from_ns(self.costs.wake_ns) }
    }

    fn command(&mut self, progress: &mut Progress) -> Result<Outcome, HostError> {
        if let Some((_, before)) = progress.planned.front_mut() {
            while let Some(&first) = before.last() {
                if self.hazards.borrow().is_pending(first) {
                    return Ok(Outcome::Blocked(Obstacle::Command(first)));
                }
                before.pop();
            }
        }
        let step = &progress.plan.steps[progress.next];
        let queue = Rc::clone(&self.queue);
        let mut queue = queue.borrow_mut();
        if self.cpus.are_limited() && !progress.handed_over {
            progress.handed_over = true;
            return Ok(Outcome::Work(queue.charge()));
        }
        if *step == PlanStep::Flush {
            let asked = *progress.asked.get_or_insert(self.now);
            match queue.flushes.turn(asked, self.now) {
                FlushTurn::Later(at) => return Ok(Outcome::Again(at)),
                FlushTurn::Served(done) => {
                    queue.traffic.merged_flushes += 1;
                    self.issued(progress, done);
                    return Ok(Outcome::At(self.now));
                }
                FlushTurn::Now => {}
            }
        }
        if let Some(later) = queue.depth.room_from(self.now) {
            return Ok(Outcome::Again(later));
        }
        let done = queue.issue(self.now, step)?;
        self.issued(progress, done);
        let cost = if self.cpus.are_limited() { SimSpan::ZERO } else { queue.charge() };
        Ok(Outcome::At(self.now + cost))
    }

    fn issued(&mut self, progress: &mut Progress, done: SimTime) {
        progress.issued(done);
        if let Some((id, _)) = progress.planned.pop_front() {
            self.hazards.borrow_mut().issued(&progress.plan.steps[progress.next], id);
            self.unblock(Obstacle::Command(id));
        }
    }
}
