//! The phases of a channel: commands, and data in the order in which they are ready.
//!
//! Without them a channel is a backlog of work (`timing.rs`). With them each transfer and each
//! command has a time of its own on the channel: the first that is free when it is ready. And a die
//! holds what it has sensed until that is moved, before which it senses nothing else.

use std::collections::VecDeque;

use dovetail_time::{SimSpan, SimTime};

/// Times of a channel beside those of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusPhases {
    /// Command and address cycles before a read.
    pub read_command: SimSpan,
    /// Those before the data of a program.
    pub program_command: SimSpan,
    /// Bytes of parity moved with 1,000 bytes of data.
    pub parity_per_mille: u32,
}

impl BusPhases {
    /// The time of a transfer whose data alone take `data`.
    pub(crate) fn with_parity(&self, data: SimSpan) -> SimSpan {
        SimSpan::from_ns(data.as_ns() * u64::from(1000 + self.parity_per_mille) / 1000)
    }
}

/// Spans that a channel remembers: those before the last ones are over (assumed).
const REMEMBERED: usize = 256;

/// The times at which a channel is taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bus {
    /// Start and end, in order; spans that touch are one.
    taken: VecDeque<(SimTime, SimTime)>,
}

impl Bus {
    /// Takes the channel for `span` from `ready` on, as soon as it is free that long; returns the
    /// end.
    pub(crate) fn take(&mut self, ready: SimTime, span: SimSpan) -> SimTime {
        let mut place = self.taken.partition_point(|(_, end)| *end <= ready);
        let mut start = ready;
        while let Some(&(from, until)) = self.taken.get(place)
            && from < start + span
        {
            start = until;
            place += 1;
        }
        let end = start + span;
        self.insert(place, (start, end));
        end
    }

    fn insert(&mut self, place: usize, (start, end): (SimTime, SimTime)) {
        let touches_next = self.taken.get(place).is_some_and(|(from, _)| *from == end);
        let before = place.checked_sub(1).filter(|&before| self.taken[before].1 == start);
        match (before, touches_next) {
            (Some(before), false) => self.taken[before].1 = end,
            (None, true) => self.taken[place].0 = start,
            (Some(before), true) => {
                self.taken[before].1 = self.taken[place].1;
                self.taken.remove(place);
            }
            (None, false) => self.taken.insert(place, (start, end)),
        }
        if self.taken.len() > REMEMBERED {
            self.taken.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_takes_the_first_gap_that_it_fits() {
        let mut bus = Bus::default();
        let mut take = |ready, span| {
            let end = bus.take(SimTime::from_ns(ready), SimSpan::from_ns(span));
            end.as_ns()
        };
        assert_eq!(take(100, 10), 110);
        assert_eq!(take(50, 10), 60, "issued later, ready earlier");
        assert_eq!(take(55, 40), 100, "from 60 to 100");
        assert_eq!(take(55, 1), 111, "no gap is left before");
        assert_eq!(take(0, 51), 162, "the gap before 50 is too short");
        assert_eq!(take(0, 50), 50);
        assert_eq!(bus.taken.len(), 1);
    }
}
