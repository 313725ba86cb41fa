//! The file system's background threads as actors: write-back and checkpoints, cleaning, discards.

use dovetail_time::SimTime;
use dovetail_vfs::{BackgroundThread, Simulated};

/// The next step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It works now.
    Act,
    /// Nothing before this time.
    Sleep(SimTime),
    /// Nothing before its work is done, or the file system asks for it.
    Wait,
}

/// A thread: it sleeps, or its plan is being played.
#[derive(Clone, Copy, Debug, Default)]
struct Actor {
    /// The time for which a timer is set.
    due: Option<SimTime>,
    is_running: bool,
}

/// The background threads. Each works beside the others.
#[derive(Debug, Default)]
pub(super) struct Background([Actor; BackgroundThread::ALL.len()]);

impl Background {
    /// Tells whether any of them works.
    #[cfg(test)]
    pub(super) fn is_running(&self) -> bool {
        self.0.iter().any(|actor| actor.is_running)
    }

    /// The time at which the first of them is woken.
    #[cfg(test)]
    pub(super) fn due(&self) -> Option<SimTime> {
        self.0.iter().filter_map(|actor| actor.due).min()
    }

    /// A thread's next step at `now`.
    pub(super) fn next(&self, thread: BackgroundThread, now: SimTime, fs: &dyn Simulated) -> Next {
        let is_running = self.0[thread as usize].is_running;
        match fs.next_wake_of(thread) {
            Some(due) if !is_running && due <= now => Next::Act,
            Some(due) if !is_running => Next::Sleep(due),
            _ => Next::Wait,
        }
    }

    /// A thread sleeps until `due`; false if an earlier timer is set.
    pub(super) fn sleep_until(&mut self, thread: BackgroundThread, due: SimTime) -> bool {
        let actor = &mut self.0[thread as usize];
        let is_first = actor.due.is_none_or(|earlier| due < earlier);
        if is_first {
            actor.due = Some(due);
        }
        is_first
    }

    /// A thread wakes up; false if the timer that fired at `at` was one of earlier, or work is
    /// under way. (A batch of the devirtualizer may have let its time pass.)
    pub(super) fn wake(&mut self, thread: BackgroundThread, at: SimTime) -> bool {
        let actor = &mut self.0[thread as usize];
        let is_awake = actor.due.is_some_and(|due| due <= at) && !actor.is_running;
        if is_awake {
            actor.due = None;
        }
        is_awake
    }

    pub(super) fn begin(&mut self, thread: BackgroundThread) {
        self.0[thread as usize].is_running = true;
    }

    pub(super) fn end(&mut self, thread: BackgroundThread) {
        self.0[thread as usize].is_running = false;
    }
}
