//! The time of a call: on the clock that orders I/O, and on the calendar.

use dovetail_time::SimTime;

use crate::Timestamp;

/// Seconds from 1970 to the day on which simulations begin: midnight of 2000-01-01, UTC.
const SIMULATION_EPOCH_S: i64 = 946_684_800;

/// The time of a call on both clocks of a file system.
///
/// The ages of dirty pages, transactions and idleness follow from `time`; the volume's own dates
/// (of commits, of its superblock, of deleted inodes) are `date`. The dates of files come with
/// their [`Caller`](crate::Caller).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time since the mount or the simulation began; it never goes back.
    pub time: SimTime,
    /// Date of the calendar.
    pub date: Timestamp,
}

impl Moment {
    /// The moment of a simulation at `time`: its calendar begins at 2000-01-01 and follows the
    /// virtual time.
    pub const fn at(time: SimTime) -> Self {
        let (seconds, nanoseconds) = (time.as_ns() / 1_000_000_000, time.as_ns() % 1_000_000_000);
        let seconds = SIMULATION_EPOCH_S + seconds as i64;
        Self { time, date: Timestamp { seconds, nanoseconds: nanoseconds as u32 } }
    }
}

impl From<SimTime> for Moment {
    fn from(time: SimTime) -> Self {
        Self::at(time)
    }
}
