//! The times of the background's write-back: of what is old, and of what is too much.

use dovetail_time::{SimSpan, SimTime};

/// Time between two looks for old files (Linux: `dirty_writeback_centisecs`).
pub const WRITE_BACK_EVERY: SimSpan = SimSpan::from_ms(5_000);
/// Age at which content, or committed metadata, is written back (Linux:
/// `dirty_expire_centisecs`).
const OLD: SimSpan = SimSpan::from_ms(30_000);
/// The background looks whether still too much is dirty after each file has had its turn, or after
/// this time (Linux: `writeback_sb_inodes` bails out after a tenth of a second).
const LONGEST: SimSpan = SimSpan::from_ms(100);

/// The time since when, or longer, something is dirty that is old at `now`; `None` if nothing can be.
pub fn old_since(now: SimTime) -> Option<SimTime> {
    now.as_ns().checked_sub(OLD.as_ns()).map(SimTime::from_ns)
}

/// A round of turns in which dirty files are written back.
#[derive(Debug, Default)]
pub struct Rounds {
    began: SimTime,
    turns: usize,
}

impl Rounds {
    /// A round has begun and is not over.
    pub fn goes_on(&self, now: SimTime) -> bool {
        self.turns > 0 && now.since(self.began) < LONGEST
    }

    /// Begins a round of so many files, unless one goes on.
    pub fn begin(&mut self, now: SimTime, files: usize) {
        if !self.goes_on(now) {
            (self.began, self.turns) = (now, files);
        }
    }

    /// Takes one of the turns that are left.
    pub fn take_turn(&mut self) -> bool {
        let left = self.turns.checked_sub(1);
        self.turns = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_old_in_the_first_half_minute() {
        let at = |ms: u64| SimTime::ZERO + SimSpan::from_ms(ms);
        assert_eq!(
            [29_999, 30_000, 31_000].map(|ms| old_since(at(ms))),
            [None, Some(at(0)), Some(at(1000))]
        );
    }

    #[test]
    fn a_round_ends_with_its_turns_or_with_its_time() {
        let at = |ms: u64| SimTime::ZERO + SimSpan::from_ms(ms);
        let mut rounds = Rounds::default();
        assert!(!rounds.goes_on(at(0)) && !rounds.take_turn());
        rounds.begin(at(5), 2);
        assert!(rounds.goes_on(at(104)) && !rounds.goes_on(at(105)));
        assert!(rounds.take_turn());
        rounds.begin(at(50), 7);
        assert!(rounds.take_turn() && !rounds.goes_on(at(50)), "the first round went on");
        rounds.begin(at(50), 7);
        rounds.begin(at(150), 1);
        assert!(rounds.take_turn() && !rounds.take_turn());
    }
}
