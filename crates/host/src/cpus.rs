//! The CPUs of the host, on which the work of calls and requests takes its turn.
//!
//! A thread keeps its CPU until it has nothing to do at the moment, as in Linux: who was woken
//! meanwhile waits. Only after a time slice another one takes over.

use std::collections::VecDeque;

use dovetail_time::{SimSpan, SimTime};

/// The time slice of Linux 6.12 on one CPU (`base_slice_ns`); with more CPUs it is longer.
const SLICE: SimSpan = SimSpan::from_us(750);

/// A plan that wants a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish<L> {
    /// The plan's slot.
    pub(crate) slot: usize,
    /// The thread or other actor that works.
    pub(crate) owner: L,
    /// Time that the work takes.
    pub(crate) takes: SimSpan,
}

/// A turn on a CPU, without a break since `since`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn<L> {
    owner: L,
    since: SimTime,
}

/// Work that has a CPU from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted<L> {
    pub(crate) wish: Wish<L>,
    pub(crate) turn: Turn<L>,
}

/// CPUs of which each does one thing at a time.
#[derive(Debug)]
pub(crate) struct Cpus<L> {
    /// CPUs that do nothing; `None` for as many as there is work.
    idle: Option<u32>,
    slice: SimSpan,
    waiting: VecDeque<Wish<L>>,
}

impl<L: Copy + PartialEq> Cpus<L> {
    /// So many CPUs; 0 for any number.
    pub(crate) fn new(count: u32) -> Self {
        let doublings = count.clamp(1, 8).ilog2();
        Self {
            idle: (count > 0).then_some(count),
            slice: SLICE * u64::from(1 + doublings),
            waiting: VecDeque::new(),
        }
    }

    /// Work waits for others' work.
    pub(crate) fn are_limited(&self) -> bool {
        self.idle.is_some()
    }

    /// A plan wants a CPU now. `None` if it has to wait: [`Cpus::ended`] will name it.
    pub(crate) fn ask(&mut self, now: SimTime, wish: Wish<L>) -> Option<Granted<L>> {
        match &mut self.idle {
            Some(0) => {
                self.waiting.push_back(wish);
                None
            }
            idle => {
                idle.iter_mut().for_each(|idle| *idle -= 1);
                Some(Granted { wish, turn: Turn { owner: wish.owner, since: now } })
            }
        }
    }

    /// The work of a turn has ended, and all who want a CPU now have asked. Returns who gets it:
    /// the owner of the turn goes on before others if its slice has not ended.
    pub(crate) fn ended(&mut self, now: SimTime, turn: Turn<L>) -> Option<Granted<L>> {
        let goes_on = self.waiting.iter().position(|wish| wish.owner == turn.owner);
        let in_slice = now.since(turn.since) < self.slice;
        let next = goes_on.filter(|_| in_slice).unwrap_or(0);
        let Some(wish) = self.waiting.remove(next) else {
            self.idle.iter_mut().for_each(|idle| *idle += 1);
            return None;
        };
        let keeps = wish.owner == turn.owner && in_slice;
        let since = if keeps { turn.since } else { now };
        Some(Granted { wish, turn: Turn { owner: wish.owner, since } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_us(us)
    }

    fn wish(slot: usize, owner: char) -> Wish<char> {
        Wish { slot, owner, takes: SimSpan::from_us(10) }
    }

    #[test]
    fn work_waits_for_a_cpu_that_is_idle() {
        let mut cpus = Cpus::new(2);
        let turns = [wish(0, 'a'), wish(1, 'b')].map(|wish| cpus.ask(at(0), wish).unwrap().turn);
        assert_eq!(cpus.ask(at(1), wish(2, 'c')), None);
        assert_eq!(cpus.ended(at(10), turns[0]).map(|next| next.wish), Some(wish(2, 'c')));
        assert_eq!(cpus.ended(at(10), turns[1]), None);
        assert!(cpus.ask(at(11), wish(3, 'd')).is_some());
        assert!((0..100).all(|slot| Cpus::new(0).ask(at(0), wish(slot, 'a')).is_some()));
    }

    #[test]
    fn a_thread_keeps_its_cpu_until_it_has_nothing_to_do_or_its_slice_ends() {
        let mut cpus = Cpus::new(1);
        let mut turn = cpus.ask(at(0), wish(0, 'a')).unwrap().turn;
        assert_eq!(cpus.ask(at(1), wish(1, 'b')), None);
        for piece in 1..75 {
            assert_eq!(cpus.ask(at(10 * piece), wish(0, 'a')), None);
            let next = cpus.ended(at(10 * piece), turn).unwrap();
            assert_eq!(next.wish.owner, 'a', "{piece}");
            turn = next.turn;
        }
        assert_eq!(cpus.ask(at(750), wish(0, 'a')), None);
        assert_eq!(cpus.ended(at(750), turn).map(|next| next.wish.owner), Some('b'));
    }
}
