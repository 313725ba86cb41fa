//! The reservations of a die, one by one: for dies whose operations take different times,
//! or can be suspended.

use std::collections::VecDeque;

use dovetail_time::{SimSpan, SimTime};

use crate::suspend::Suspend;

/// A program or erase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Operation {
    #[default]
    Program,
    Erase,
}

/// Start and end without the time by which later reads have moved them.
#[derive(Clone, Copy, Debug)]
struct Reserved {
    start: SimTime,
    end: SimTime,
    operation: Operation,
    suspensions: u32,
}

/// The start of a read, and the time beside its own by which it moves what is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadSlot {
    pub(crate) start: SimTime,
    pub(crate) overhead: SimSpan,
}

/// The time at which something stood before it was moved by `span`.
fn before(at: SimTime, span: SimSpan) -> SimTime {
    SimTime::from_ns(at.as_ns().saturating_sub(span.as_ns()))
}

/// The operations of a die that have not ended, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agenda {
    reserved: VecDeque<Reserved>,
    /// The time by which reads have moved all that is reserved.
    moved: SimSpan,
    /// An operation that reads wait for ends here.
    blocked_until: SimTime,
    /// The operation under way stands still until then.
    suspended_until: SimTime,
}

impl Agenda {
    /// Adds an operation behind all others, issued at `at`.
    pub(crate) fn push(
        &mut self,
        at: SimTime,
        (start, end): (SimTime, SimTime),
        operation: Operation,
    ) {
        self.forget_ended(at);
        self.reserved.push_back(Reserved {
            start: before(start, self.moved),
            end: before(end, self.moved),
            operation,
            suspensions: 0,
        });
    }

    /// The last operation begins and ends later.
    pub(crate) fn delay_last(&mut self, late: SimSpan) {
        if let Some(last) = self.reserved.back_mut() {
            (last.start, last.end) = (last.start + late, last.end + late);
        }
    }

    /// Finds when a read that is ready at `ready` can start, as far as programs and erases go.
    pub(crate) fn read_slot(&mut self, ready: SimTime, suspend: Option<Suspend>) -> ReadSlot {
        self.forget_ended(ready);
        let free = ready.max(self.blocked_until);
        let none = ReadSlot { start: free, overhead: SimSpan::ZERO };
        if ready < self.suspended_until {
            return none;
        }
        let moved = self.moved;
        let Some(front) = self.reserved.front_mut() else { return none };
        if front.start + moved >= ready && front.suspensions == 0 {
            return none;
        }
        let end = front.end + moved;
        if let Some(suspend) = suspend {
            let latency = match front.operation {
                Operation::Program => suspend.program,
                Operation::Erase => suspend.erase,
            };
            if suspend.is_worth(latency, end.since(ready), front.suspensions) {
                front.suspensions += 1;
                return ReadSlot { start: ready + latency, overhead: latency };
            }
        }
        self.blocked_until = end;
        self.reserved.pop_front();
        ReadSlot { start: end, overhead: SimSpan::ZERO }
    }

    /// A read until `until` moves all that is reserved by `by`; what it stopped goes on then.
    pub(crate) fn note_read(&mut self, until: SimTime, by: SimSpan) {
        if self.reserved.is_empty() {
            return;
        }
        self.moved += by;
        if self.reserved.front().is_some_and(|front| front.suspensions > 0) {
            self.suspended_until = until;
        }
    }

    fn forget_ended(&mut self, at: SimTime) {
        while self.reserved.front().is_some_and(|front| front.end + self.moved <= at) {
            self.reserved.pop_front();
        }
        if self.reserved.is_empty() {
            self.moved = SimSpan::ZERO;
        }
    }
}
