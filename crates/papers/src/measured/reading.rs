//! The figures that are read off a test.

use super::workload::Observed;

/// A figure of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// Mean time of a command, in microseconds.
    MeanUs,
    /// The same in milliseconds.
    MeanMs,
    /// The time that this part of all commands does not exceed, in microseconds.
    QuantileUs(f64),
    /// The same of writes beside reads.
    WriteQuantileUs(f64),
    /// Thousands of commands a second.
    ThousandsPerSecond,
    /// GB that are written in a fill before the rate falls below three quarters of that at the
    /// beginning, for good or for ten windows.
    CliffGb,
    /// MB/s of a fill before that.
    LevelMb,
    /// MB/s of a fill between two places, in GB.
    MbBetween(f64, f64),
    /// MB/s of a whole fill.
    WholeMb,
    /// Pages programmed a page written.
    Amplification,
    /// MiB a second that the host writes.
    HostMib,
    /// MB/s of random writes between two places, in multiples of what is used: on the way from a
    /// drive that was filled in a row to its steady state.
    DecayMb(f64, f64),
    /// The place, in the same measure, at which that rate has fallen to three quarters of the first.
    DecayBegins,
}

/// Windows at the beginning of a fill that give its first level.
const FIRST: usize = 4;
/// Windows for which the rate stays low behind a cliff.
const LOW: usize = 10;

impl Reading {
    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::MeanUs | Self::QuantileUs(_) | Self::WriteQuantileUs(_) => "us",
            Self::MeanMs => "ms",
            Self::ThousandsPerSecond => "k/s",
            Self::CliffGb => "GB",
            Self::LevelMb | Self::MbBetween(..) | Self::WholeMb => "MB/s",
            Self::Amplification => "",
            Self::HostMib => "MiB/s",
            Self::DecayMb(..) => "MB/s",
            Self::DecayBegins => "drive writes",
        }
    }

    /// Its name in a table.
    pub fn name(self) -> String {
        match self {
            Self::MeanUs | Self::MeanMs => "mean".into(),
            Self::QuantileUs(part) => format!("p{}", part * 100.0),
            Self::WriteQuantileUs(part) => format!("write p{}", part * 100.0),
            Self::ThousandsPerSecond => "rate".into(),
            Self::CliffGb => "cache is full at".into(),
            Self::LevelMb => "rate before".into(),
            Self::MbBetween(from, to) => format!("rate from {from} to {to} GB"),
            Self::WholeMb => "whole fill".into(),
            Self::Amplification => "write amplification".into(),
            Self::HostMib => "host's rate".into(),
            Self::DecayMb(from, to) => format!("rate from {from} to {to} drive writes"),
            Self::DecayBegins => "rate falls after".into(),
        }
    }

    pub(super) fn of(self, seen: &Observed) -> f64 {
        match self {
            Self::MeanUs => seen.first.mean_us(),
            Self::MeanMs => seen.first.mean_us() / 1000.0,
            Self::QuantileUs(part) => seen.first.quantile_us(part),
            Self::WriteQuantileUs(part) => seen.writes.quantile_us(part),
            Self::ThousandsPerSecond => seen.first.per_second() / 1000.0,
            Self::CliffGb => cliff(&seen.fill),
            Self::LevelMb => mean_between(&seen.fill, 0.0, cliff(&seen.fill)),
            Self::MbBetween(from, to) => mean_between(&seen.fill, from, to),
            Self::WholeMb => mean_between(&seen.fill, 0.0, f64::INFINITY),
            Self::Amplification => seen.amplification,
            Self::HostMib => seen.host_mib_per_s,
            Self::DecayMb(from, to) => mean_between(&seen.decay, from, to),
            Self::DecayBegins => falls(&seen.decay),
        }
    }
}

/// The place at which the rate of a fill falls; its end if it does not.
fn cliff(fill: &[(f64, f64)]) -> f64 {
    let first = fill.iter().take(FIRST).map(|(_, rate)| rate).sum::<f64>() / FIRST as f64;
    let is_low = |windows: &[(f64, f64)]| windows.iter().all(|(_, rate)| *rate < 0.75 * first);
    let first_low = fill.windows(LOW).position(is_low).unwrap_or(fill.len());
    // a window's place is its end
    first_low.checked_sub(1).map_or(0.0, |before| fill[before].0)
}

/// The end of the last window before the rate falls below three quarters of the first one's.
fn falls(decay: &[(f64, f64)]) -> f64 {
    let Some((_, first)) = decay.first() else { return 0.0 };
    let low = decay.iter().position(|(_, rate)| *rate < 0.75 * first);
    let before = low.unwrap_or(decay.len()).checked_sub(1);
    before.map_or(0.0, |before| decay[before].0)
}

/// The mean rate over what is written between two places: time counts, not windows.
fn mean_between(fill: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let within = fill.iter().filter(|(at, _)| *at > from && *at <= to);
    let (mut windows, mut time) = (0.0, 0.0);
    for (_, rate) in within {
        windows += 1.0;
        time += 1.0 / rate;
    }
    if time == 0.0 { 0.0 } else { windows / time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cliff_and_its_levels_are_found() {
        let rate = |n: usize| if n < 22 { 2000.0 } else { 500.0 };
        let fill: Vec<_> = (0..100).map(|n| ((n + 1) as f64, rate(n))).collect();
        assert_eq!(cliff(&fill), 22.0);
        let near = |ours: f64, expected: f64| assert!((ours - expected).abs() < 1e-6, "{ours}");
        near(Reading::LevelMb.of(&Observed { fill: fill.clone(), ..Observed::default() }), 2000.0);
        near(mean_between(&fill, 22.0, 100.0), 500.0);
        let whole = 100.0 / (22.0 / 2000.0 + 78.0 / 500.0);
        near(mean_between(&fill, 0.0, f64::INFINITY), whole);
        let flat: Vec<_> = (0..100).map(|n| ((n + 1) as f64, 300.0)).collect();
        assert_eq!(cliff(&flat), 100.0);
    }
}
