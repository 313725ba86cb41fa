//! The clocks of a mount.

use std::time::Instant;

use dovetail_time::SimTime;
use dovetail_vfs::{Moment, Timestamp};
use nix::time::{ClockId, clock_gettime};

/// A source of the time: the real one, or a test's.
pub(crate) type Clock = Box<dyn Fn() -> Moment + Send + Sync>;

/// The time of day as the kernel stamps files: its coarse clock, so that our stamps and its own
/// keep their order.
pub(crate) fn now() -> Timestamp {
    clock_gettime(ClockId::CLOCK_REALTIME_COARSE).map_or_else(
        |_| Timestamp::default(),
        |time| Timestamp { seconds: time.tv_sec(), nanoseconds: time.tv_nsec() as u32 },
    )
}

/// The clock of a mount that begins now: nanoseconds since then, and the time of day.
pub(crate) fn start() -> Clock {
    let start = Instant::now();
    Box::new(move || Moment { time: SimTime::from_ns(elapsed_ns(start)), date: now() })
}

fn elapsed_ns(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
