//! The controller: how many commands it takes, and how long its map keeps it busy.

use dovetail_time::{SimSpan, SimTime};

/// Cores that take commands, one after the other each.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    free_from: Vec<SimTime>,
}

impl Controller {
    /// All idle; `cores` is at least 1.
    pub(crate) fn new(cores: u32) -> Self {
        Self { free_from: vec![SimTime::ZERO; cores.max(1) as usize] }
    }

    /// Keeps the core that is free first busy for `span`, from `at` at the earliest; returns when
    /// that begins.
    #[inline]
    pub(crate) fn take(&mut self, at: SimTime, span: SimSpan) -> SimTime {
        let core = self.first_free();
        let begins = at.max(self.free_from[core]);
        self.free_from[core] = begins + span;
        begins
    }

    #[inline]
    fn first_free(&self) -> usize {
        if self.free_from.len() == 1 {
            return 0;
        }
        let cores = self.free_from.iter().enumerate();
        cores.min_by_key(|(_, free_from)| **free_from).map_or(0, |(core, _)| core)
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
