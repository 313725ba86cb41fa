//! Time between the calls of a thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dovetail_time::{SimSpan, SimTime};

use super::builder::THREADS_MAX;
use super::error::FileTraceError;
use super::order::Order;
use super::recorded::{FileTrace, RecordedCall};

/// Time that a thread lets pass between the end of a call and the start of the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// The recorded gaps times this: 1 is the recorded pace, 0 as fast as calls return; at most
    /// 1000.
    Gaps(f64),
    /// The CPU time that the thread spent there, on a host of its own.
    Closed(ClosedLoop),
}

/// Threads that work between their calls for the CPU time that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedLoop {
    /// CPUs of the host, at least one: threads that find none free wait, first come first served.
    pub cpus: u32,
    /// Calls by which a thread may be ahead of the trace's order: none begins before all that stand
    /// so many lines above it have ended; at least one.
    pub lead: u32,
}

impl ClosedLoop {
    /// Assumed: some forty transactions of TPC-C. A smaller lead takes away what the recording
    /// machine did not do at the same time; a larger one lets threads of the background, which wait
    /// for no CPU, run away from the clients that made their work.
    pub const LEAD: u32 = 1024;
}

impl Pace {
    pub(super) fn check(&self, trace: &FileTrace) -> Result<(), FileTraceError> {
        let wrong = |option, value, allowed| Err(FileTraceError::Option { option, value, allowed });
        match *self {
            Self::Gaps(factor) if !(0.0..=1000.0).contains(&factor) => {
                wrong("gaps", factor, "0 to 1000")
            }
            Self::Closed(ClosedLoop { cpus, .. }) if !(1..=THREADS_MAX as u32).contains(&cpus) => {
                wrong("cpus", cpus.into(), "1 to 1024")
            }
            Self::Closed(ClosedLoop { lead: 0, .. }) => wrong("lead", 0.0, "at least 1"),
            Self::Closed(_) if !trace.has_cpu_times() => {
                Err(FileTraceError::NoCpuTimes { file: trace.name().into() })
            }
            _ => Ok(()),
        }
    }

    /// Time before a call, at this pace.
    pub(super) fn pause(&self, call: &RecordedCall) -> SimSpan {
        match *self {
            Self::Gaps(factor) => SimSpan::from_ns((call.gap.as_ns() as f64 * factor) as u64),
            Self::Closed(_) => call.cpu.unwrap_or_default(),
        }
    }
}

/// Says when a thread's next call may begin.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Absent at the pace of gaps.
    closed: Option<(Cpus, Order)>,
}

impl Pacer {
    pub(super) fn new(pace: Pace) -> Self {
        let closed = match pace {
            Pace::Gaps(_) => None,
            Pace::Closed(closed) => Some((Cpus::new(closed.cpus), Order::new(closed.lead))),
        };
        Self { closed }
    }

    /// The end of a pause that begins at `since`.
    pub(super) fn due(&mut self, since: SimTime, pause: SimSpan) -> SimTime {
        match &mut self.closed {
            None => since + pause,
            Some((cpus, _)) => cpus.work(since, pause),
        }
    }

    /// Tells whether the order of the trace allows the call of a number.
    pub(super) fn allows(&self, call: u64) -> bool {
        self.closed.as_ref().is_none_or(|(_, order)| order.may_begin(call))
    }

    pub(super) fn call_ended(&mut self, call: u64) {
        if let Some((_, order)) = &mut self.closed {
            order.end(call);
        }
    }

    pub(super) fn begin_pass(&mut self) {
        if let Some((_, order)) = &mut self.closed {
            order.begin_pass();
        }
    }
}

/// The CPUs of the host: each works for one thread at a time, to the end of what it was given.
#[derive(Debug)]
struct Cpus {
    /// Times from which on each has nothing to do.
    free: BinaryHeap<Reverse<SimTime>>,
}

impl Cpus {
    fn new(count: u32) -> Self {
        Self { free: (0..count).map(|_| Reverse(SimTime::ZERO)).collect() }
    }

    /// The end of some work that is there from `now` on.
    fn work(&mut self, now: SimTime, work: SimSpan) -> SimTime {
        if work == SimSpan::ZERO {
            return now;
        }
        let Some(mut first) = self.free.peek_mut() else { return now + work };
        first.0 = first.0.max(now) + work;
        first.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_the_first_cpu_that_is_free() {
        let us = |us: u64| SimTime::from_ns(us * 1000);
        let mut cpus = Cpus::new(2);
        let ends = [(0, 10), (0, 30), (5, 10), (5, 0), (50, 1)]
            .map(|(now, work)| cpus.work(us(now), SimSpan::from_us(work)));
        assert_eq!(ends, [us(10), us(30), us(20), us(5), us(51)]);
    }
}
