//! The file system's background thread as an actor: write-back, checkpoints, cleaning, discards.

use dovetail_time::SimTime;
use dovetail_vfs::Simulated;

/// The next step of the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It works now.
    Act,
    /// Nothing before this time.
    Sleep(SimTime),
    /// Nothing before its work is done, or the file system asks for it.
    Wait,
}

/// The background thread: it sleeps, or its plan is being played.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// The time for which a timer is set.
    due: Option<SimTime>,
    is_running: bool,
}

impl Background {
    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// The time at which it is woken.
    #[cfg(test)]
    pub(super) fn due(&self) -> Option<SimTime> {
        self.due
    }

    /// Its next step at `now`.
    pub(super) fn next(&self, now: SimTime, fs: &dyn Simulated) -> Next {
        match fs.next_wake() {
            Some(due) if !self.is_running && due <= now => Next::Act,
            Some(due) if !self.is_running => Next::Sleep(due),
            _ => Next::Wait,
        }
    }

    /// Sleeps until `due`; false if an earlier timer is set.
    pub(super) fn sleep_until(&mut self, due: SimTime) -> bool {
        let is_first = self.due.is_none_or(|earlier| due < earlier);
        if is_first {
            self.due = Some(due);
        }
        is_first
    }

    /// Wakes up; false if the timer that fired at `at` was one of earlier, or work is under way. (A
    /// batch of the devirtualizer may have let its time pass.)
    pub(super) fn wake(&mut self, at: SimTime) -> bool {
        let is_awake = self.due.is_some_and(|due| due <= at) && !self.is_running;
        if is_awake {
            self.due = None;
        }
        is_awake
    }

    pub(super) fn begin(&mut self) {
        self.is_running = true;
    }

    pub(super) fn end(&mut self) {
        self.is_running = false;
    }
}
