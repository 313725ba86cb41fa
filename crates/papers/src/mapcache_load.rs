//! Latencies of cache policies over the load: a trace replayed open loop on a drive that does one
//! request after another, as FlashSim's queue does.
//!
//! The choices of a policy follow from the order of the requests alone. So each trace is replayed once
//! with each policy, one request at a time, and the waiting at any load is arithmetic (Lindley's
//! recursion over service times and gaps between arrivals).

use std::cell::RefCell;
use std::rc::Rc;

use dovetail_block::{BlockDevice, BlockRange, Command, Data, Hints, Pattern};
use dovetail_ftl::Drive;
use dovetail_host::{Request, RequestKind};
use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::ReadAndWrite;
use dovetail_time::{Ratio, SimTime};

use super::Setting;
use super::iplfs::watched;

/// A read or write.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: SimTime,
    is_write: bool,
    range: BlockRange,
}

/// Requests of a workload to its drive. Discards are left out: FlashSim has none.
pub(crate) struct Trace {
    arrivals: Vec<Arrival>,
    /// Those before are the making of the volume and of its files.
    measured_from: usize,
}

impl Trace {
    /// The trace of a workload on a stack whose drive has its whole map in memory.
    pub(crate) fn record(
        setting: &Setting<'_>,
        stack: &Stack,
        source: &Source,
    ) -> Result<Self, BenchError> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let sees = Rc::clone(&seen);
        let whole = Setting { scale: Ratio::ONE, ..*setting };
        let run = watched(&whole, stack, source, move |request: &Request| {
            let is_write = request.kind == RequestKind::Write;
            if is_write || request.kind == RequestKind::Read {
                let (at, range) = (request.at, request.range);
                sees.borrow_mut().push(Arrival { at, is_write, range });
            }
        })?;
        let mut arrivals = seen.take();
        arrivals.sort_by_key(|arrival: &Arrival| arrival.at);
        let by_kind = &run.requests.by_kind;
        let measured = (by_kind.read.count + by_kind.write.count) as usize;
        Ok(Self { measured_from: arrivals.len().saturating_sub(measured), arrivals })
    }

    /// Seconds of service of each request that is measured, with the stack's drive.
    pub(crate) fn service_s(&self, stack: &Stack, seed: u64) -> Result<Vec<f64>, BenchError> {
        let failed = |error: &dyn std::fmt::Display| BenchError::Drive(error.to_string());
        let mut drive =
            Drive::new(stack.drive_config(Ratio::ONE, seed)?).map_err(|error| failed(&error))?;
        let (mut now, mut service) = (SimTime::ZERO, Vec::new());
        for arrival in &self.arrivals {
            let done = drive.submit(now, arrival.command()).map_err(|error| failed(&error))?.done;
            service.push(done.since(now).as_secs_f64());
            now = done;
        }
        Ok(service.split_off(self.measured_from))
    }

    fn measured(&self) -> &[Arrival] {
        &self.arrivals[self.measured_from..]
    }

    /// Mean latencies if the requests come so much faster than recorded; all at once for an
    /// infinite speed.
    fn latencies(&self, service_s: &[f64], speed: f64) -> ReadAndWrite {
        let (mut wait, mut sums, mut counts) = (0.0, [0.0; 2], [0.0; 2]);
        let mut last = self.measured().first().map_or(SimTime::ZERO, |first| first.at);
        let mut before = 0.0;
        for (arrival, service) in self.measured().iter().zip(service_s) {
            let gap = arrival.at.since(last).as_secs_f64() / speed;
            wait = f64::max(0.0, wait + before - gap);
            let side = usize::from(arrival.is_write);
            sums[side] += wait + service;
            counts[side] += 1.0;
            (last, before) = (arrival.at, *service);
        }
        let mean = |side: usize| (counts[side] > 0.0).then(|| sums[side] / counts[side]);
        ReadAndWrite { read: mean(0), write: mean(1) }
    }

    /// Latencies with a policy over those with another, where the first keeps the drive busy for
    /// this part of the time.
    pub(crate) fn ratio_at(&self, load: f64, service_s: [&[f64]; 2]) -> ReadAndWrite {
        let busy: f64 = service_s[0].iter().sum();
        let span = match self.measured() {
            [first, .., last] => last.at.since(first.at).as_secs_f64(),
            _ => 0.0,
        };
        let [one, other] = service_s.map(|times| self.latencies(times, load * span / busy));
        one.over(other)
    }
}

impl Arrival {
    fn command(&self) -> Command<'static> {
        let range = self.range;
        if self.is_write {
            let data = Data::Patterns(Pattern::new(0));
            return Command::Write { range, data, hints: Hints::default(), fua: false };
        }
        Command::Read { range, into: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_block::Lba;

    #[test]
    fn requests_wait_for_those_before_them() {
        let arrival = |seconds: u64, is_write| Arrival {
            at: SimTime::from_ns(seconds * 1_000_000_000),
            is_write,
            range: BlockRange::new(Lba(0), 1),
        };
        let arrivals = vec![arrival(9, true), arrival(10, false), arrival(11, true)];
        let trace = Trace { arrivals, measured_from: 1 };
        let mean = |speed| trace.latencies(&[3.0, 1.0], speed);
        assert_eq!((mean(0.1).read, mean(0.1).write), (Some(3.0), Some(1.0)));
        assert_eq!(mean(1.0).write, Some(3.0), "2 of waiting, 1 of service");
        assert_eq!(mean(f64::INFINITY).write, Some(4.0));
        let ratio = trace.ratio_at(f64::INFINITY, [&[3.0, 1.0], &[6.0, 2.0]]);
        assert_eq!((ratio.read, ratio.write), (Some(0.5), Some(0.5)));
    }
}
