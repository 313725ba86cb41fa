//! The controller: how many commands it takes, and how long its map and the requests to its
//! hardware keep it busy.

use dovetail_block::{BlockRange, Command};
use dovetail_time::{SimSpan, SimTime};

use crate::config::DriveConfig;

/// Cores that take commands, one after the other each.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    first: SimTime,
    /// The times when the other cores are free.
    others: Vec<SimTime>,
}

impl Controller {
    /// All idle; `cores` is at least 1.
    pub(crate) fn new(cores: u32) -> Self {
        let others = vec![SimTime::ZERO; cores.saturating_sub(1) as usize];
        Self { first: SimTime::ZERO, others }
    }

    /// Returns when a core has looked at a command: each core takes one after the other.
    #[inline]
    pub(crate) fn take_command(
        &mut self,
        at: SimTime,
        command: &Command<'_>,
        config: &DriveConfig,
    ) -> SimTime {
        let (more, handling) = match command {
            Command::Write { range: BlockRange { blocks, .. }, .. }
            | Command::Append { blocks, .. } => {
                (config.write_serial_4k * *blocks, config.write_command.unwrap_or(config.command))
            }
            _ => (SimSpan::ZERO, config.command),
        };
        self.take(at, config.command_serial + more) + handling
    }

    /// Hands `count` requests to the hardware, `each` of which takes a core so long; returns when
    /// the last one is handed over. None is before its data is there, at `ready`. As the host link,
    /// a core is kept as a backlog of work from the time of issue, `at`: a request whose data comes
    /// later does not hold it until then.
    #[inline]
    pub(crate) fn hand_over(
        &mut self,
        at: SimTime,
        ready: SimTime,
        count: u64,
        each: SimSpan,
    ) -> SimTime {
        if each == SimSpan::ZERO {
            return ready;
        }
        let work = each * count;
        (self.take(at, work) + work).max(ready + each)
    }

    /// Keeps the core that is free first busy for `span`, from `at` at the earliest; returns when
    /// that begins.
    #[inline]
    pub(crate) fn take(&mut self, at: SimTime, span: SimSpan) -> SimTime {
        let core = match self.others.iter_mut().min() {
            Some(other) if *other < self.first => other,
            _ => &mut self.first,
        };
        let begins = at.max(*core);
        *core = begins + span;
        begins
    }

    /// Returns when no core has anything to do.
    pub(crate) fn idle_from(&self) -> SimTime {
        self.others.iter().copied().fold(self.first, SimTime::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_work_side_by_side() {
        let us = |n: u64| SimTime::from_ns(n * 1000);
        let mut two = Controller::new(2);
        let begins = [0, 0, 0, 5, 30].map(|at| two.take(us(at), SimSpan::from_us(10)));
        assert_eq!(begins, [us(0), us(0), us(10), us(10), us(30)]);
        assert_eq!(two.idle_from(), us(40));
    }

    #[test]
    fn requests_wait_for_the_core_and_for_their_data() {
        let us = |n: u64| SimTime::from_ns(n * 1000);
        let mut core = Controller::new(1);
        let mut hand_over =
            |at, ready, count| core.hand_over(us(at), us(ready), count, SimSpan::from_us(10));
        assert_eq!(hand_over(0, 0, 3), us(30), "one after the other");
        assert_eq!(hand_over(0, 100, 1), us(110), "its data is there at 100");
        assert_eq!(hand_over(0, 0, 1), us(50), "the core did not wait for that");
    }
}
