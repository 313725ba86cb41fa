//! Pauses between calls: think time and rates.

use dovetail_time::SimTime;

use super::{Thread, later};
use crate::call::Step;
use crate::fio::pattern::Direction;

impl Thread {
    /// `thinktime`, once the calls before it have ended; as in fio also after the last call, and
    /// beyond `runtime`.
    pub(super) fn think(&mut self, now: SimTime) -> Option<Step> {
        if self.settings.thinktime_ns == 0 || self.calls_to_think > 0 {
            return None;
        }
        if self.in_flight > 0 {
            return Some(Step::Wait);
        }
        self.calls_to_think = self.settings.thinktime_blocks;
        let until = later(now, self.settings.thinktime_ns);
        self.wake = Some(until);
        Some(Step::Sleep(until))
    }

    fn sleep(&mut self, until: SimTime) -> Step {
        let until = self.deadline().map_or(until, |deadline| until.min(deadline));
        self.wake = Some(until);
        Step::Sleep(until)
    }

    pub(super) fn hold_rate(&mut self, direction: Direction, now: SimTime) -> Option<Step> {
        let rate = self.rate.as_ref()?;
        let mut due = rate.due(direction);
        if self.settings.pattern.is_mixed() && due > now {
            // The other direction may be behind its rate.
            let other =
                if direction == Direction::Read { Direction::Write } else { Direction::Read };
            if rate.due(other) < due {
                due = rate.due(other);
                self.direction = Some(other);
            }
        }
        if due <= now {
            return None;
        }
        Some(if self.in_flight > 0 { Step::Wait } else { self.sleep(due) })
    }
}
