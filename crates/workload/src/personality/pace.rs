//! Flowops without I/O: pauses, semaphores, limits of rate, ends of the run.

use dovetail_time::SimTime;

use super::ending::Ending;
use super::model::Measure;
use super::run::PersonalityWorkload;
use super::thread::Stage;
use super::turn::Turn;

/// One event lets this much pass a `bwlimit`.
const EVENT_BYTES: u64 = 1 << 20;

impl PersonalityWorkload {
    pub(super) fn pause(&mut self, t: usize, until: SimTime) -> Turn {
        self.threads[t].stage = Stage::Over;
        Turn::Sleep(until)
    }

    pub(super) fn block(&mut self, t: usize, value: u64) -> Turn {
        let at = self.threads[t].at;
        let begins = self.threads[t].stage == Stage::Begin;
        let Some(semaphore) = self.semaphores.own(t, at) else { return Turn::Over };
        if begins {
            semaphore.let_in(value);
            self.changes += 1;
            self.threads[t].stage = Stage::Running;
        }
        if semaphore.take(value) { Turn::Over } else { Turn::Others }
    }

    pub(super) fn post(&mut self, t: usize, target: &str, value: u64, blocking: bool) -> Turn {
        while let Some(semaphore) = self.semaphores.target(target, self.threads[t].progress) {
            if !semaphore.post(value, blocking) {
                return Turn::Others;
            }
            self.changes += 1;
            self.threads[t].progress += 1;
        }
        Turn::Over
    }

    pub(super) fn event_limit(&mut self, t: usize, now: SimTime) -> Turn {
        self.take_events(t, 1, now)
    }

    fn take_events(&mut self, t: usize, count: u64, now: SimTime) -> Turn {
        self.threads[t].stage = Stage::Over;
        match &mut self.events {
            Some(events) => Turn::Sleep(events.take(count, now)),
            None => Turn::Over,
        }
    }

    /// Lets pass as much as there are events (`flowoplib_iopslimit` and its neighbours).
    pub(super) fn limit(
        &mut self,
        t: usize,
        what: Measure,
        target: Option<usize>,
        now: SimTime,
    ) -> Turn {
        if self.events.is_none() {
            return Turn::Over;
        }
        let measured = self.measured(t, what, target);
        let at = self.threads[t].at;
        let limiter = &mut self.threads[t].limits[at];
        let first = limiter.last == 0;
        let since = measured - limiter.last;
        limiter.last = measured;
        if first {
            return Turn::Over;
        }
        limiter.bucket -= i128::from(since);
        if limiter.bucket >= 0 {
            return Turn::Over;
        }
        let short = u64::try_from(-limiter.bucket).unwrap_or(u64::MAX);
        let (events, worth) = if what == Measure::Bytes {
            (short / EVENT_BYTES + 1, EVENT_BYTES)
        } else {
            (short, 1)
        };
        limiter.bucket += i128::from(events) * i128::from(worth);
        self.take_events(t, events, now)
    }

    fn measured(&self, t: usize, what: Measure, target: Option<usize>) -> u64 {
        let of = |place: usize| &self.threads[t].tallies[place];
        match (target.map(of), what) {
            (Some(tally), Measure::Bytes) => tally.bytes,
            (Some(tally), _) => tally.operations,
            (None, _) => self.total.measure(what),
        }
    }

    pub(super) fn finish(
        &mut self,
        t: usize,
        what: Measure,
        value: u64,
        target: Option<usize>,
    ) -> Turn {
        let measured = self.measured(t, what, target);
        let enough = if what == Measure::Bytes { measured > value } else { measured >= value };
        if enough { Turn::End(Ending::Finished(self.flowop_name(t))) } else { Turn::Over }
    }
}
