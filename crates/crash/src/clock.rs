//! The clock of file times, as a caller's kernel has it. Virtual time goes on whatever it shows.

use std::fmt;

use dovetail_time::SimTime;
use dovetail_vfs::Timestamp;

/// How file times go on. What a file system leaves out "because the time is the same" shows only where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// A second with each operation: every change has a time of its own.
    Moving,
    /// Virtual time in ticks of 4 ms (Linux: `CONFIG_HZ=250`).
    Ticking,
    /// It stands still: the flush of a fast drive is shorter than a tick.
    Still,
}

impl Clock {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Still, Self::Ticking, Self::Moving];

    const TICK_NS: u64 = 4_000_000;

    /// What it shows at operation `number`, at time `now`.
    pub(crate) fn at(self, number: u64, now: SimTime) -> Timestamp {
        // long after the volume was made
        const EPOCH: i64 = 1_700_000_000;
        let ns = match self {
            Self::Moving => number * 1_000_000_000,
            Self::Ticking => now.as_ns() / Self::TICK_NS * Self::TICK_NS,
            Self::Still => 0,
        };
        Timestamp { seconds: EPOCH + (ns / 1_000_000_000) as i64, nanoseconds: (ns % 1_000_000_000) as u32 }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Moving => "moving",
            Self::Ticking => "ticking",
            Self::Still => "still",
        })
    }
}
