//! `rate` and `rate_iops`: no more than so many bytes in a time.

use dovetail_time::{Rng, SimTime};

use super::pattern::Direction;
use super::sampler::unit;
use super::settings::Settings;
use super::value::NS_PER_S;

/// Limits for a second by direction, and the amounts that were issued.
#[derive(Debug)]
pub(super) struct Rate {
    begin: SimTime,
    /// Bytes a second; 0 for no limit.
    limits: [u64; 3],
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

impl Rate {
    /// `rng` draws the times between calls of a Poisson process.
    pub(super) fn new(settings: &Settings, begin: SimTime, rng: &Rng) -> Self {
        // As in fio: calls a second are bytes of the smallest block, and the other way round.
        let block = |at: usize| settings.blocks[at].min;
        let limit = |at: usize| match settings.rate[at] {
            0 => settings.rate_iops[at].saturating_mul(block(at)),
            bytes => bytes,
        };
        let limits = [limit(0), limit(1), limit(2)];
        let mean_ns = |at: usize| match limits[at] {
            0 => 0.0,
            bytes => NS_PER_S as f64 * block(at) as f64 / bytes as f64,
        };
        let process = if settings.poisson {
            let mean_ns = [mean_ns(0), mean_ns(1), mean_ns(2)];
            Process::Poisson { due: [begin; 3], rng: rng.clone(), mean_ns }
        } else {
            Process::Linear
        };
        Self { begin, limits, issued: [0; 3], process }
    }

    /// Forgets what was issued: the limits hold from `now` on.
    pub(super) fn restart(&mut self, now: SimTime) {
        (self.begin, self.issued) = (now, [0; 3]);
        if let Process::Poisson { due, .. } = &mut self.process {
            *due = [now; 3];
        }
    }

    /// Time at which the next call of this direction may be made.
    pub(super) fn due(&self, direction: Direction) -> SimTime {
        if let Process::Poisson { due, .. } = &self.process {
            return due[direction.index()];
        }
        let issued = u128::from(self.issued[direction.index()]);
        let ns = match self.limits[direction.index()] {
            0 => 0,
            limit => issued * u128::from(NS_PER_S) / u128::from(limit),
        };
        SimTime::from_ns(self.begin.as_ns().saturating_add(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    pub(super) fn issue(&mut self, direction: Direction, bytes: u64) {
        let at = direction.index();
        if let Process::Poisson { due, rng, mean_ns } = &mut self.process {
            let wait_ns = mean_ns[at] * -libm::log(unit(rng));
            due[at] = SimTime::from_ns(due[at].as_ns().saturating_add(wait_ns as u64));
        }
        self.issued[at] = self.issued[at].saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fio forgets at the end of `ramp_time` what a job owes.
    #[test]
    fn a_job_that_was_slow_does_not_catch_up_after_a_restart() {
        let settings = Settings { rate_iops: [100; 3], ..Settings::default() };
        let second = |s: u64| SimTime::from_ns(s * NS_PER_S);
        let mut rate = Rate::new(&settings, second(0), &Rng::new(1));
        rate.restart(second(10));
        rate.issue(Direction::Read, 100 * 4096);
        assert_eq!(rate.due(Direction::Read), second(11));
        assert_eq!(rate.due(Direction::Write), second(10));
    }
}
