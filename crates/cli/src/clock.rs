//! The calendar, for volumes and files that the command line changes.

use std::time::{SystemTime, UNIX_EPOCH};

use dovetail_time::SimTime;
use dovetail_vfs::{Moment, Timestamp};

/// The date of now.
pub(crate) fn date() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
}

/// The moment of a mount that begins now: its virtual time begins at `time`.
pub(crate) fn mounting_at(time: SimTime) -> Moment {
    Moment { time, date: date() }
}
