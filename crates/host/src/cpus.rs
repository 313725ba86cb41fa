//! The CPUs of the host, on which the work of calls and requests takes its turn.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dovetail_time::{SimSpan, SimTime};

/// CPUs of which each does one thing at a time, in the order in which work comes.
#[derive(Debug)]
pub(crate) struct Cpus {
    /// Times at which each becomes free; `None` for as many CPUs as there is work.
    free: Option<BinaryHeap<Reverse<SimTime>>>,
}

impl Cpus {
    /// So many CPUs; 0 for any number.
    pub(crate) fn new(count: u32) -> Self {
        let all = (0..count).map(|_| Reverse(SimTime::ZERO));
        Self { free: (count > 0).then(|| all.collect()) }
    }

    /// Work waits for others' work.
    pub(crate) fn are_limited(&self) -> bool {
        self.free.is_some()
    }

    /// Does work that comes at `at` and takes so long; returns its end.
    pub(crate) fn work(&mut self, at: SimTime, takes: SimSpan) -> SimTime {
        let Some(mut first) = self.free.as_mut().and_then(BinaryHeap::peek_mut) else {
            return at + takes;
        };
        let end = first.0.max(at) + takes;
        first.0 = end;
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_a_cpu_that_is_free() {
        let at = |us| SimTime::ZERO + SimSpan::from_us(us);
        let ends = |count, work: &[(u64, u64)]| {
            let mut cpus = Cpus::new(count);
            let end = |&(us, takes)| cpus.work(at(us), SimSpan::from_us(takes));
            work.iter().map(end).collect::<Vec<_>>()
        };
        let work = [(0, 10), (0, 10), (5, 10), (40, 1)];
        assert_eq!(ends(0, &work), [10, 10, 15, 41].map(at));
        assert_eq!(ends(1, &work), [10, 20, 30, 41].map(at));
        assert_eq!(ends(2, &work), [10, 10, 20, 41].map(at));
    }
}
