//! `rate` and `rate_iops`: no more than so much in a time.

use dovetail_time::{Rng, SimTime};

use super::pattern::Direction;
use super::sampler::unit;
use super::settings::Settings;
use super::value::NS_PER_S;

/// Limits for a second by direction, and the amounts that were issued.
#[derive(Debug)]
pub(super) struct Rate {
    begin: SimTime,
    limits: [Limit; 3],
    issued: [u64; 3],
    process: Process,
}

/// `rate_process`: how calls are spread over time.
#[derive(Debug)]
enum Process {
    /// Evenly; a job that is behind catches up.
    Linear,
    /// Independently of each other, at random: the next call of each direction is due then.
    Poisson { due: [SimTime; 3], rng: Rng, mean_ns: [f64; 3] },
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    Bytes(u64),
    Calls(u64),
}

impl Rate {
    /// `rng` draws the times between calls of a Poisson process.
    pub(super) fn new(settings: &Settings, begin: SimTime, rng: &Rng) -> Self {
        let limit = |at: usize| match (settings.rate[at], settings.rate_iops[at]) {
            (0, 0) => Limit::None,
            (0, calls) => Limit::Calls(calls),
            (bytes, _) => Limit::Bytes(bytes),
        };
        let limits = [limit(0), limit(1), limit(2)];
        // As in fio: bytes a second are calls of the smallest block.
        let mean_ns = |at: usize| match limits[at] {
            Limit::None => 0.0,
            Limit::Calls(calls) => NS_PER_S as f64 / calls as f64,
            Limit::Bytes(bytes) => NS_PER_S as f64 * settings.blocks[at].min as f64 / bytes as f64,
        };
        let process = if settings.poisson {
            let mean_ns = [mean_ns(0), mean_ns(1), mean_ns(2)];
            Process::Poisson { due: [begin; 3], rng: rng.clone(), mean_ns }
        } else {
            Process::Linear
        };
        Self { begin, limits, issued: [0; 3], process }
    }

    /// Time at which the next call of this direction may be made.
    pub(super) fn due(&self, direction: Direction) -> SimTime {
        if let Process::Poisson { due, .. } = &self.process {
            return due[direction.index()];
        }
        let issued = u128::from(self.issued[direction.index()]);
        let ns = match self.limits[direction.index()] {
            Limit::None => 0,
            Limit::Bytes(limit) | Limit::Calls(limit) => {
                issued * u128::from(NS_PER_S) / u128::from(limit)
            }
        };
        SimTime::from_ns(self.begin.as_ns().saturating_add(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    pub(super) fn issue(&mut self, direction: Direction, bytes: u64) {
        let at = direction.index();
        if let Process::Poisson { due, rng, mean_ns } = &mut self.process {
            let wait_ns = mean_ns[at] * -libm::log(unit(rng));
            due[at] = SimTime::from_ns(due[at].as_ns().saturating_add(wait_ns as u64));
        }
        let amount = match self.limits[at] {
            Limit::Calls(_) => 1,
            Limit::None | Limit::Bytes(_) => bytes,
        };
        self.issued[at] = self.issued[at].saturating_add(amount);
    }
}
