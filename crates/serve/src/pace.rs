//! The wall clock kept to the drive's service times.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dovetail_time::SimTime;

/// The times at which requests come to the drive, and at which their answers may leave.
///
/// With a speed, the drive's time is the time since the start, so many times as fast. At speed 0
/// answers leave at once, and the drive's time moves on with its requests alone: each comes when
/// the one before is done.
#[derive(Debug)]
pub struct Pace {
    speed: f64,
    stays_awake: bool,
    begun: Instant,
    /// The latest end of a request so far; at speed 0.
    end: SimTime,
}

impl Pace {
    /// A pace that begins now. `speed` is 1 for a drive as it is, 2 for one twice as fast, 0 for
    /// answers at once.
    pub fn new(speed: f64) -> Self {
        Self { speed, stays_awake: false, begun: Instant::now(), end: SimTime::ZERO }
    }

    /// The same with waits that end awake if `stay`: exact where a processor is free for it.
    #[must_use]
    pub fn staying_awake(self, stay: bool) -> Self {
        Self { stays_awake: stay, ..self }
    }

    pub(crate) fn stays_awake(&self) -> bool {
        self.stays_awake
    }

    /// Tells whether answers wait for their time.
    pub(crate) fn is_kept(&self) -> bool {
        self.speed > 0.0
    }

    /// The drive's time of a request that comes now.
    pub(crate) fn now(&self) -> SimTime {
        if self.is_kept() { self.at(self.begun.elapsed()) } else { self.end }
    }

    /// The time at which the answer of a request that is done at `done` may leave; `None` for at
    /// once.
    pub(crate) fn due(&mut self, done: SimTime) -> Option<Instant> {
        if !self.is_kept() {
            self.end = self.end.max(done);
            return None;
        }
        let after = Duration::from_secs_f64(done.as_ns() as f64 / self.speed * 1e-9);
        self.begun.checked_add(after)
    }

    fn at(&self, elapsed: Duration) -> SimTime {
        SimTime::from_ns((elapsed.as_nanos() as f64 * self.speed) as u64)
    }
}

/// The part of a wait that may be spent awake: a processor that has fallen asleep takes about so
/// long to come back (30 to 55 us were seen on a virtual machine).
const LAST_PART: Duration = Duration::from_micros(50);

/// Threads that may stay awake at the end of a wait: none, or half as many as there are processors,
/// since clients need the others.
#[derive(Debug)]
pub(crate) struct Awake {
    last_part: Duration,
    free: AtomicUsize,
}

/// Leave to stay awake, for as long as it is kept.
#[derive(Debug)]
pub(crate) struct Leave<'a>(&'a Awake);

impl Awake {
    pub(crate) fn new(allowed: bool) -> Self {
        if !allowed {
            return Self { last_part: Duration::ZERO, free: AtomicUsize::new(0) };
        }
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        Self { last_part: LAST_PART, free: AtomicUsize::new((processors / 2).max(1)) }
    }

    /// The part of a wait that may be spent awake.
    pub(crate) const fn last_part(&self) -> Duration {
        self.last_part
    }

    /// `None` if as many are awake as may be.
    pub(crate) fn leave(&self) -> Option<Leave<'_>> {
        let one_less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).ok()?;
        Some(Leave(self))
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_when_the_drive_is_done() {
        for speed in [0.5, 1.0, 2.0] {
            let mut pace = Pace::new(speed);
            let second = Duration::from_secs_f64(1.0 / speed);
            assert_eq!(pace.at(second).as_ns(), 1_000_000_000);
            let due = pace.due(SimTime::from_ns(1_000_000_000)).unwrap();
            assert_eq!(due, pace.begun + second);
        }
    }

    #[test]
    fn as_many_as_may_stay_awake() {
        let awake = Awake { last_part: LAST_PART, free: AtomicUsize::new(2) };
        let (first, _second) = (awake.leave().unwrap(), awake.leave().unwrap());
        assert!(awake.leave().is_none());
        drop(first);
        assert!(awake.leave().is_some());
        assert!(Awake::new(true).leave().is_some() && Awake::new(false).leave().is_none());
    }

    #[test]
    fn time_moves_on_with_requests_where_answers_leave_at_once() {
        let mut pace = Pace::new(0.0);
        assert_eq!(pace.now(), SimTime::ZERO);
        assert_eq!(pace.due(SimTime::from_ns(700)), None);
        assert_eq!(pace.due(SimTime::from_ns(300)), None);
        assert_eq!(pace.now(), SimTime::from_ns(700));
    }
}
