//! `rate` and `rate_iops`: no more than so much in a time.

use dovetail_time::SimTime;

use super::pattern::Direction;
use super::settings::Settings;
use super::value::NS_PER_S;

/// Limits for a second by direction, and the amounts that were issued.
#[derive(Debug)]
pub(super) struct Rate {
    begin: SimTime,
    limits: [Limit; 3],
    issued: [u64; 3],
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    Bytes(u64),
    Calls(u64),
}

impl Rate {
    pub(super) fn new(settings: &Settings, begin: SimTime) -> Self {
        let limit = |at: usize| match (settings.rate[at], settings.rate_iops[at]) {
            (0, 0) => Limit::None,
            (0, calls) => Limit::Calls(calls),
            (bytes, _) => Limit::Bytes(bytes),
        };
        Self { begin, limits: [limit(0), limit(1), limit(2)], issued: [0; 3] }
    }

    /// Time at which the next call of this direction may be made.
    pub(super) fn due(&self, direction: Direction) -> SimTime {
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
        let amount = match self.limits[direction.index()] {
            Limit::Calls(_) => 1,
            Limit::None | Limit::Bytes(_) => bytes,
        };
        self.issued[direction.index()] = self.issued[direction.index()].saturating_add(amount);
    }
}
