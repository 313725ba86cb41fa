//! Suspension: a read stops the program or erase that is under way.

use dovetail_time::SimSpan;

/// Times and limits of suspension. An operation whose span is as long as itself is never suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// From the read's arrival until a program has stopped; it takes as much longer.
    pub program: SimSpan,
    /// From the read's arrival until an erase has stopped; it takes as much longer.
    pub erase: SimSpan,
    /// Suspensions of one operation; then reads wait for its end.
    pub most_times: u32,
}

impl Suspend {
    /// Decides whether an operation is suspended for a read: if that is sooner than its end.
    pub(crate) fn is_worth(self, latency: SimSpan, left: SimSpan, times: u32) -> bool {
        times < self.most_times && left > latency
    }
}
