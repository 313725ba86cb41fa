//! The order of a trace, which its threads follow loosely.

use std::collections::VecDeque;

/// Calls of a pass that have ended, from the first one on that has not.
#[derive(Debug)]
pub(super) struct Order {
    lead: u64,
    /// The first call that has not ended.
    first: u64,
    /// Of the calls from `first` on: whether they have ended.
    ended: VecDeque<bool>,
}

impl Order {
    /// No call may begin before all that stand `lead` places before it have ended.
    pub(super) fn new(lead: u32) -> Self {
        Self { lead: lead.into(), first: 0, ended: VecDeque::new() }
    }

    pub(super) fn may_begin(&self, call: u64) -> bool {
        call < self.first + self.lead
    }

    /// Notes the end of a call.
    pub(super) fn end(&mut self, call: u64) {
        let Some(place) = call.checked_sub(self.first) else { return };
        let place = place as usize;
        if self.ended.len() <= place {
            self.ended.resize(place + 1, false);
        }
        self.ended[place] = true;
        while self.ended.front() == Some(&true) {
            self.ended.pop_front();
            self.first += 1;
        }
    }

    /// Begins the trace anew.
    pub(super) fn begin_pass(&mut self) {
        self.first = 0;
        self.ended.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_for_those_that_stand_far_before_it() {
        let mut order = Order::new(2);
        assert_eq!([0, 1, 2].map(|call| order.may_begin(call)), [true, true, false]);
        order.end(1);
        assert!(!order.may_begin(2), "the first has not ended");
        order.end(0);
        assert_eq!([2, 3, 4].map(|call| order.may_begin(call)), [true, true, false]);
        order.begin_pass();
        assert!(order.may_begin(1) && !order.may_begin(2));
    }
}
