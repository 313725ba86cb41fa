//! The agenda: what comes next, by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use dovetail_time::SimTime;

use crate::cpus::Turn;

/// The bit of an entry's number that puts it behind others of its time.
const LAST: u64 = 1 << 63;

/// An entry of the agenda.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due<L> {
    /// A plan goes on, by its slot.
    Plan(usize),
    /// A plan without steps ends.
    End(L),
    /// A timer fires.
    Timer(L),
    /// So many pages have been written back.
    Written(usize),
    /// Work on a CPU has ended.
    Worked(Turn<L>),
}

#[derive(Debug)]
struct Entry<L> {
    /// The time above the number of the entry, to be compared at once. The highest bit below the
    /// time is set in entries that come last at their time.
    key: u128,
    due: Due<L>,
}

impl<L> Entry<L> {
    fn new(at: SimTime, number: u64, due: Due<L>) -> Self {
        Self { key: u128::from(at.as_ns()) << 64 | u128::from(number), due }
    }

    const fn at(&self) -> SimTime {
        SimTime::from_ns((self.key >> 64) as u64)
    }
}

impl<L> PartialEq for Entry<L> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<L> Eq for Entry<L> {}

impl<L> PartialOrd for Entry<L> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<L> Ord for Entry<L> {
    /// The earliest entry is the greatest: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// Entries in the order of their times; those of one time in the order in which they were made.
#[derive(Debug)]
pub(crate) struct Agenda<L> {
    entries: BinaryHeap<Entry<L>>,
    made: u64,
}

impl<L> Default for Agenda<L> {
    fn default() -> Self {
        Self { entries: BinaryHeap::new(), made: 0 }
    }
}

impl<L> Agenda<L> {
    /// Enters what is due at a time.
    pub(crate) fn enter(&mut self, at: SimTime, due: Due<L>) {
        self.made += 1;
        self.entries.push(Entry::new(at, self.made, due));
    }

    /// Enters what is due at a time, after all else at that time.
    pub(crate) fn enter_last(&mut self, at: SimTime, due: Due<L>) {
        self.made += 1;
        self.entries.push(Entry::new(at, self.made | LAST, due));
    }

    /// Returns whether pages are being written back.
    pub(crate) fn has_pages(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.due, Due::Written(_)))
    }

    /// The time of the first entry.
    pub(crate) fn first(&self) -> Option<SimTime> {
        self.entries.peek().map(Entry::at)
    }

    /// Takes the first entry, if it is due by `horizon`.
    pub(crate) fn take(&mut self, horizon: SimTime) -> Option<(SimTime, Due<L>)> {
        if self.first()? > horizon {
            return None;
        }
        self.entries.pop().map(|entry| (entry.at(), entry.due))
    }
}
