//! The controller: how many commands it takes, and how long its map keeps it busy.

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

    /// Returns when a core has looked at a command: each takes one after the other.
    #[inline]
    pub(crate) fn take_command(
        &mut self,
        at: SimTime,
        command: &Command<'_>,
        config: &DriveConfig,
    ) -> SimTime {
        let (more, handling) = match command {
            Command::Write { range: BlockRange { blocks, .. }, .. }
            | Command::Append { blocks, .. } => (
                config.write_serial_4k * *blocks + config.requests_of(*blocks),
                config.write_command.unwrap_or(config.command),
            ),
            Command::Read { range, .. } => (config.requests_of(range.blocks), config.command),
            _ => (SimSpan::ZERO, config.command),
        };
        self.take(at, config.command_serial + more) + handling
    }

    /// Returns when a core has time for moving a page: one request to read it, and one to program
    /// it.
    #[inline]
    pub(crate) fn take_move(&mut self, at: SimTime, config: &DriveConfig) -> SimTime {
        match config.request_serial {
            SimSpan::ZERO => at,
            request => self.take(at, request * 2),
        }
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
    }
}
