//! Locks that plans share, granted in the order in which the plans were made: the order of the
//! state that they came from.

use std::collections::VecDeque;

use dovetail_block::LockId;
use rustc_hash::FxHashMap;

/// A place in a lock's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) lock: LockId,
    number: u64,
    shared: bool,
}

#[derive(Debug, Default)]
struct Queue {
    /// The number of the first ticket in `released`.
    base: u64,
    /// Of each ticket drawn: whether it was given back.
    released: VecDeque<bool>,
    /// Tickets of those who want it alone, not given back.
    alone: VecDeque<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Locks(FxHashMap<LockId, Queue>);

impl Locks {
    /// Queues up.
    pub(crate) fn draw(&mut self, lock: LockId, shared: bool) -> Ticket {
        let queue = self.0.entry(lock).or_default();
        let number = queue.base + queue.released.len() as u64;
        queue.released.push_back(false);
        if !shared {
            queue.alone.push_back(number);
        }
        Ticket { lock, number, shared }
    }

    /// Nobody before in the queue stands in the way.
    pub(crate) fn is_granted(&self, ticket: Ticket) -> bool {
        let Some(queue) = self.0.get(&ticket.lock) else { return true };
        if ticket.shared {
            queue.alone.front().is_none_or(|&first| first > ticket.number)
        } else {
            queue.base == ticket.number
        }
    }

    /// Gives the lock, or the place in its queue, back.
    pub(crate) fn release(&mut self, ticket: Ticket) {
        let Some(queue) = self.0.get_mut(&ticket.lock) else { return };
        if let Some(released) = queue.released.get_mut((ticket.number - queue.base) as usize) {
            *released = true;
        }
        queue.alone.retain(|&number| number != ticket.number);
        while queue.released.front() == Some(&true) {
            queue.released.pop_front();
            queue.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_share_go_together_and_who_wants_it_alone_waits_for_those_before() {
        let (mut locks, lock) = (Locks::default(), LockId(1));
        let tickets = [true, true, false, true].map(|shared| locks.draw(lock, shared));
        assert_eq!(tickets.map(|ticket| locks.is_granted(ticket)), [true, true, false, false]);
        locks.release(tickets[1]);
        assert!(!locks.is_granted(tickets[2]));
        locks.release(tickets[0]);
        assert!(locks.is_granted(tickets[2]) && !locks.is_granted(tickets[3]));
        locks.release(tickets[2]);
        assert!(locks.is_granted(tickets[3]));
    }
}
