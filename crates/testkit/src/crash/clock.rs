//! Clocks of the callers while a workload runs.
//!
//! A kernel's clock is coarse: many calls fall into one tick. A file system must not take "its
//! times are already now" for "it did not change", nor rely on time that goes on.

use std::fmt;

use dovetail_vfs::Timestamp;

/// Start of the generator's clock, in seconds; it moves on by one with each operation.
const BEGIN: i64 = 1_700_000_000;
/// Operations within a tick of a clock that stands still.
const TICK: i64 = 64;

/// Course of the callers' clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Each operation comes later than the one before.
    Moves,
    /// Many operations have the same time.
    StandsStill,
    /// Each operation comes earlier than the one before.
    GoesBack,
}

impl Clock {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Moves, Self::StandsStill, Self::GoesBack];

    /// The time at which operation `number` comes if the clock moves.
    pub const fn moving(number: u32) -> Timestamp {
        Timestamp { seconds: BEGIN + number as i64, nanoseconds: 0 }
    }

    /// Clock of a seed: three neighbouring seeds have all three.
    pub const fn of(seed: u64) -> Self {
        match seed % 3 {
            0 => Self::Moves,
            1 => Self::StandsStill,
            _ => Self::GoesBack,
        }
    }

    /// The time that this clock shows when one that moves shows `now`.
    pub const fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Moves => now,
            Self::StandsStill => {
                Timestamp { seconds: now.seconds - now.seconds % TICK, nanoseconds: 0 }
            }
            Self::GoesBack => Timestamp { seconds: 2 * BEGIN - now.seconds, ..now },
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Moves => "moving",
            Self::StandsStill => "still",
            Self::GoesBack => "back",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_move_stand_still_and_go_back() {
        let times = |clock: Clock| -> Vec<i64> {
            let moving = (1..=TICK).map(|step| Timestamp { seconds: BEGIN + step, nanoseconds: 5 });
            moving.map(|now| clock.at(now).seconds).collect()
        };
        assert!(times(Clock::of(3)).is_sorted_by(|a, b| a < b));
        assert!(times(Clock::of(5)).is_sorted_by(|a, b| a > b));
        let mut still = times(Clock::of(4));
        still.dedup();
        assert!(still.len() <= 2, "{still:?}");
    }
}
