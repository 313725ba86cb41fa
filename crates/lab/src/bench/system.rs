//! A stack at work: drive, host and file system, and the file system's background.

use dovetail_block::{EventId, Scheduler, SchedulingHint};
use dovetail_host::{HostCosts, Planner};
use dovetail_time::{Rng, SimSpan, SimTime};
use dovetail_vfs::{BackgroundThread, Moment, Simulated};

use super::BenchError;
use super::background::{Background, Next};
use crate::lane::{Lane, Machine};

/// Label of the jitter's random numbers.
const JITTER: u64 = 0x4a;

/// Parts of a stack that the actors of a bench work with.
pub(super) struct System {
    pub(super) machine: Machine,
    pub(super) planner: Planner,
    pub(super) fs: Box<dyn Simulated>,
    pub(super) background: Background,
    /// CPU time of calls.
    pub(super) cpu: SimSpan,
    costs: HostCosts,
    jitter: Rng,
}

impl System {
    pub(super) fn new(
        machine: Machine,
        planner: Planner,
        fs: Box<dyn Simulated>,
        costs: HostCosts,
        seed: u64,
    ) -> Self {
        let (background, jitter) = (Background::default(), Rng::new(seed).fork(JITTER));
        Self { machine, planner, fs, background, cpu: SimSpan::ZERO, costs, jitter }
    }

    /// Bytes of the drive's memory that its map takes.
    pub(super) fn map_bytes(&self) -> u64 {
        self.machine.device().mapping_memory_bytes()
    }

    /// Starts the plan of the call that was just made, after its CPU time on behalf of `owner`;
    /// returns when that is over, as [`Machine::start_after`].
    pub(super) fn start(
        &mut self,
        now: SimTime,
        (lane, owner): (Lane, Lane),
        (system_calls, blocks): (u32, u64),
    ) -> Option<SimTime> {
        let cost = self.costs.call_by_chance(system_calls, blocks, &mut self.jitter);
        self.cpu = SimSpan::from_ns(self.cpu.as_ns() + cost.as_ns());
        let plan = self.planner.take(self.machine.spare());
        let worked = self.machine.start_after(now, cost, (lane, owner), plan);
        self.look_at_background(now);
        worked
    }

    /// Starts the plan of what the devirtualizer just did.
    pub(super) fn start_batch(&mut self, now: SimTime) {
        self.play(now, Lane::Batch);
        self.look_at_background(now);
    }

    /// Has the call that is being planned wait for an event.
    pub(super) fn wait_for(&mut self, event: EventId) {
        self.planner.hint(SchedulingHint::Await(event));
    }

    /// Starts the plan of pages that are read ahead, which tells their arrival.
    pub(super) fn start_read_ahead(&mut self, now: SimTime, slot: usize, event: EventId) {
        self.planner.hint(SchedulingHint::Signal(event));
        self.play(now, Lane::ReadAhead(slot));
    }

    /// Plays what the file system has issued, from `at` on.
    fn play(&mut self, at: SimTime, lane: Lane) {
        let plan = self.planner.take(self.machine.spare());
        self.machine.start(at, lane, plan);
    }

    /// Sees to it that the background's threads are woken when the file system asks for it.
    pub(super) fn look_at_background(&mut self, now: SimTime) {
        for thread in BackgroundThread::ALL {
            let due = match self.background.next(thread, now, &*self.fs) {
                Next::Wait => continue,
                Next::Act => now,
                Next::Sleep(due) => due,
            };
            if self.background.sleep_until(thread, due) {
                self.machine.wake_at(due, Lane::Background(thread));
            }
        }
    }

    /// A timer of the background has fired.
    pub(super) fn wake_background(
        &mut self,
        thread: BackgroundThread,
        at: SimTime,
    ) -> Result<(), BenchError> {
        if !self.background.wake(thread, at) {
            return Ok(());
        }
        if self.background.next(thread, at, &*self.fs) != Next::Act {
            self.look_at_background(at);
            return Ok(());
        }
        self.fs.set_now(Moment::at(at));
        self.fs.wake_thread(thread).map_err(|source| BenchError::Background { at, source })?;
        self.background.begin(thread);
        self.play(at, Lane::Background(thread));
        Ok(())
    }

    /// The work of a thread of the background is done.
    pub(super) fn background_ended(&mut self, thread: BackgroundThread) {
        self.background.end(thread);
        self.look_at_background(self.machine.now());
    }
}
