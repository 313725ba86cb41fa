//! Requests of a trace that wait: for a part of their own, or in the block layer.

use dovetail_block::BlockRange;
use dovetail_time::SimTime;

/// A request of which something is yet to be issued, or has an end that is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) arrived: SimTime,
    /// The write that is issued when everything before it is done.
    pub(super) write: Option<(BlockRange, bool)>,
    /// Commands that wait in the block layer.
    pub(super) open: u32,
    /// Time at which the other commands are done.
    pub(super) done: SimTime,
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

    pub(super) fn len(&self) -> usize {
        self.pending.len() - self.free.len()
    }
}
