//! The wall clock.

use std::time::Instant;

use dovetail_time::SimTime;
use dovetail_vfs::Timestamp;
use nix::time::{ClockId, clock_gettime};

/// The time of day as the kernel stamps files: its coarse clock, so that our stamps and its own keep their order.
pub(crate) fn now() -> Timestamp {
    clock_gettime(ClockId::CLOCK_REALTIME_COARSE).map_or_else(
        |_| Timestamp::default(),
        |time| Timestamp { seconds: time.tv_sec(), nanoseconds: time.tv_nsec() as u32 },
    )
}

/// Counts the nanoseconds since the mount.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MountClock {
    start: Instant,
}

impl MountClock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> SimTime {
        SimTime::from_ns(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
