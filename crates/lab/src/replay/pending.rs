//! Requests of a trace that wait: for a part of their own, or in the block layer.

use std::collections::{BTreeMap, VecDeque};

use dovetail_block::BlockRange;
use dovetail_time::SimTime;

/// A request of which something is yet to be issued, or has an end that is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) arrived: SimTime,
    /// The write that is issued when everything before it is done.
    pub(super) write: Option<(BlockRange, bool)>,
    /// A timer is set for its write.
    pub(super) wakes: bool,
    /// Commands that wait in the block layer.
    pub(super) open: u32,
    /// Time at which the other commands are done.
    pub(super) done: SimTime,
}

impl Pending {
    /// Its write waits for nothing but those before it in its zone.
    pub(super) fn only_waits(&self) -> bool {
        self.open == 0 && !self.wakes
    }
}

/// Pending requests by their slots.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pending: Vec<Option<Pending>>,
    free: Vec<usize>,
}

impl Slots {
    /// The slot that the next one will have.
    pub(super) fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.pending.len())
    }

    pub(super) fn put(&mut self, slot: usize, pending: Pending) {
        if self.free.last() == Some(&slot) {
            self.free.pop();
        }
        if slot == self.pending.len() {
            self.pending.push(None);
        }
        self.pending[slot] = Some(pending);
    }

    pub(super) fn take(&mut self, slot: usize) -> Option<Pending> {
        let pending = self.pending.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(pending)
    }

    /// Takes a request of which this holds.
    pub(super) fn take_if(&mut self, slot: usize, holds: fn(&Pending) -> bool) -> Option<Pending> {
        self.pending.get(slot)?.as_ref().filter(|pending| holds(pending))?;
        self.take(slot)
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len() - self.free.len()
    }
}

/// Writes that wait, by their zones: those to one zone are issued in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct ZoneQueues {
    waiting: BTreeMap<u32, VecDeque<usize>>,
}

impl ZoneQueues {
    /// No write to the zone came before that of this slot and still waits.
    pub(super) fn is_first(&self, zone: u32, slot: usize) -> bool {
        self.first(zone).is_none_or(|first| first == slot)
    }

    /// The slot of the first write that waits.
    pub(super) fn first(&self, zone: u32) -> Option<usize> {
        self.waiting.get(&zone)?.front().copied()
    }

    /// The write of a slot waits, behind those that do already.
    pub(super) fn enter(&mut self, zone: u32, slot: usize) {
        let waiting = self.waiting.entry(zone).or_default();
        if !waiting.contains(&slot) {
            waiting.push_back(slot);
        }
    }

    /// The write of a slot, the first one of its zone, is issued.
    pub(super) fn leave(&mut self, zone: u32) {
        let Some(waiting) = self.waiting.get_mut(&zone) else { return };
        waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&zone);
        }
    }
}
