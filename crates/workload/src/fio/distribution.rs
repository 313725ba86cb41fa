//! `random_distribution`: which block a random call goes to.

use dovetail_time::Rng;

use super::pattern::Direction;
use super::settings::scaled_bytes;
use super::value::{Expected, Value};

/// fio's own limit of zones.
const ZONES_MAX: usize = 256;

const DISTRIBUTION: Expected = "random, zipf:THETA, pareto:H, normal:DEVIATION, zoned:ACCESS/SHARE:.. or \
                                zoned_abs:ACCESS/SIZE:..";
const THETA: Expected = "a theta above 0, up to 100 and other than 1, such as zipf:1.2";
const POWER: Expected = "an h between 0 and 1, such as pareto:0.2";
const DEVIATION: Expected = "a deviation from 0 to below 100 percent, such as normal:20";
const CENTER: Expected = "a center from 0 to 1 behind the last colon";
const ZONES: Expected =
    "up to 256 pairs such as 60/10:40/90; the first numbers add up to 100, and so do the shares";

/// fio's own values of a `zipf` and a `pareto` that stand alone (3.33, HOWTO and logs).
const THETA_DEFAULT: f64 = 1.1;
const POWER_DEFAULT: f64 = 0.2;

/// The value of `random_distribution`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Distribution {
    /// Every block is as likely as any other.
    Uniform,
    /// The k-th most frequent block comes `k^theta` times less often than the first.
    Zipf {
        theta: f64,
        /// Position of the most frequent block, as a share of the file; `None` draws one.
        center: Option<f64>,
    },
    /// A share of `1 - h` of the calls goes to a share of `h` of the blocks, and so on within
    /// these.
    Pareto { h: f64, center: Option<f64> },
    /// The mean of twelve numbers, and a uniform one of so many percent of the file.
    Normal { deviation: f64 },
    /// Zones for reads, writes and trims.
    Zoned([Vec<Zone>; 3]),
}

/// A part of a file and how often it is hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    /// Percent of the calls.
    pub access: u64,
    pub extent: ZoneExtent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneExtent {
    /// Percent of the file.
    Percent(u64),
    Bytes(u64),
}

impl Distribution {
    pub(super) fn parse(value: Value<'_>) -> Result<Self, Expected> {
        let split = value.text.split_once([':', '=']);
        let (word, rest) = split.unwrap_or((value.text, ""));
        let rest = value.part(rest);
        match word {
            "random" if rest.text.is_empty() => Ok(Self::Uniform),
            "zipf" if split.is_none() => Ok(Self::Zipf { theta: THETA_DEFAULT, center: None }),
            "pareto" if split.is_none() => Ok(Self::Pareto { h: POWER_DEFAULT, center: None }),
            "zipf" => zipf(rest),
            "pareto" => pareto(rest),
            "normal" if split.is_none() => Ok(Self::Normal { deviation: 0.0 }),
            "normal" => normal(rest),
            "zoned" => Ok(Self::Zoned(
                rest.triple(Default::default(), |zones| parse_zones(zones, percent_zone))?,
            )),
            "zoned_abs" => Ok(Self::Zoned(
                rest.triple(Default::default(), |zones| parse_zones(zones, bytes_zone))?,
            )),
            _ => Err(DISTRIBUTION),
        }
    }

    /// The same on a file of which a share is left: zones of so many bytes shrink with it.
    pub(super) fn scaled(&self, share: f64) -> Self {
        let Self::Zoned(zones) = self else { return self.clone() };
        let extent = |extent| match extent {
            ZoneExtent::Percent(_) => extent,
            ZoneExtent::Bytes(bytes) => ZoneExtent::Bytes(scaled_bytes(bytes, share)),
        };
        let zone = |zone: &Zone| Zone { extent: extent(zone.extent), ..*zone };
        Self::Zoned(zones.each_ref().map(|zones| zones.iter().map(zone).collect()))
    }

    /// Bytes of a file that zones of a direction take whatever its size.
    pub(super) fn zoned_bytes(&self, direction: Direction) -> u64 {
        let Self::Zoned(zones) = self else { return 0 };
        let bytes = zones[direction.index()].iter().map(|zone| match zone.extent {
            ZoneExtent::Bytes(bytes) => bytes,
            ZoneExtent::Percent(_) => 0,
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns whether a map of the blocks that were hit makes sense. fio keeps none for the
    /// others.
    pub(super) const fn allows_map(&self) -> bool {
        matches!(self, Self::Uniform | Self::Zoned(_))
    }
}

fn center(value: Value<'_>) -> Result<f64, Expected> {
    value.fraction().ok().filter(|center| (0.0..=1.0).contains(center)).ok_or(CENTER)
}

/// The parameter, and the center if there is one.
fn parameters<'a>(value: Value<'a>) -> Result<(Value<'a>, Option<f64>), Expected> {
    match value.text.split_once(':') {
        Some((parameter, at)) => Ok((value.part(parameter), Some(center(value.part(at))?))),
        None => Ok((value, None)),
    }
}

fn zipf(value: Value<'_>) -> Result<Distribution, Expected> {
    let (theta, center) = parameters(value)?;
    // fio's formula has no value at 1 exactly; it refuses that, and so do we, so that files stay
    // portable.
    let theta =
        theta.fraction().ok().filter(|t| *t > 0.0 && *t != 1.0 && *t <= 100.0).ok_or(THETA)?;
    Ok(Distribution::Zipf { theta, center })
}

fn pareto(value: Value<'_>) -> Result<Distribution, Expected> {
    let (h, center) = parameters(value)?;
    let h = h.fraction().ok().filter(|h| *h > 0.0 && *h < 1.0).ok_or(POWER)?;
    Ok(Distribution::Pareto { h, center })
}

fn normal(value: Value<'_>) -> Result<Distribution, Expected> {
    // fio takes a center, too, by which it turns blocks that are scattered anyway
    let (deviation, _) = parameters(value)?;
    let deviation =
        deviation.fraction().ok().filter(|d| (0.0..100.0).contains(d)).ok_or(DEVIATION)?;
    Ok(Distribution::Normal { deviation })
}

fn parse_zones(
    value: Value<'_>,
    read: fn(Value<'_>) -> Result<ZoneExtent, Expected>,
) -> Result<Vec<Zone>, Expected> {
    let mut zones: Vec<Zone> =
        value.text.split(':').map(|part| zone(value.part(part), read)).collect::<Result<_, _>>()?;
    let access: u64 = zones.iter().map(|zone| zone.access).sum();
    let shares: u64 = zones.iter().map(|zone| percent_of(zone.extent)).sum();
    if zones.len() > ZONES_MAX || access != 100 || shares > 100 {
        return Err(ZONES);
    }
    share_rest(&mut zones, 100 - shares);
    Ok(zones)
}

/// Shares that are left open, or 0, have the same part each of what the others leave, as in fio.
fn share_rest(zones: &mut [Zone], rest: u64) {
    let is_open = |zone: &&mut Zone| zone.extent == ZoneExtent::Percent(0);
    let open = zones.iter_mut().filter(is_open).count() as u64;
    for zone in zones.iter_mut().filter(is_open) {
        zone.extent = ZoneExtent::Percent(rest / open);
    }
}

fn zone(
    value: Value<'_>,
    read: fn(Value<'_>) -> Result<ZoneExtent, Expected>,
) -> Result<Zone, Expected> {
    let (access, extent) = value.text.split_once('/').unwrap_or((value.text, ""));
    Ok(Zone { access: value.part(access).percent()?.into(), extent: read(value.part(extent))? })
}

/// 0 stands for a share that is left open.
fn percent_zone(value: Value<'_>) -> Result<ZoneExtent, Expected> {
    let percent = if value.text.is_empty() { 0 } else { value.percent()? };
    Ok(ZoneExtent::Percent(percent.into()))
}

fn bytes_zone(value: Value<'_>) -> Result<ZoneExtent, Expected> {
    value.some_size().map(ZoneExtent::Bytes).map_err(|_| ZONES)
}

const fn percent_of(extent: ZoneExtent) -> u64 {
    match extent {
        ZoneExtent::Percent(percent) => percent,
        ZoneExtent::Bytes(_) => 0,
    }
}

/// The first block of the zone that is drawn, and how many blocks it has: at least one.
pub(super) fn draw_zone(
    zones: &[Zone],
    blocks: u64,
    block_bytes: u64,
    rng: &mut Rng,
) -> (u64, u64) {
    let drawn = rng.below(100);
    let (mut access, mut start) = (0, 0_u64);
    let mut found = (0, blocks);
    for zone in zones {
        let length = match zone.extent {
            ZoneExtent::Percent(percent) => (u128::from(blocks) * u128::from(percent) / 100) as u64,
            ZoneExtent::Bytes(bytes) => bytes / block_bytes,
        };
        access += zone.access;
        found = (start, length);
        if drawn < access {
            break;
        }
        start = start.saturating_add(length);
    }
    let first = found.0.min(blocks - 1);
    (first, found.1.clamp(1, blocks - first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Distribution, Expected> {
        Distribution::parse(Value { text, kilo: 1024 })
    }

    #[test]
    fn every_distribution_of_fio() {
        assert_eq!(parse("random"), Ok(Distribution::Uniform));
        assert_eq!(
            parse("zipf:1.2:0.25"),
            Ok(Distribution::Zipf { theta: 1.2, center: Some(0.25) })
        );
        assert_eq!(parse("pareto:0.2"), Ok(Distribution::Pareto { h: 0.2, center: None }));
        assert_eq!(parse("normal:20"), Ok(Distribution::Normal { deviation: 20.0 }));
        assert!(
            matches!(parse("zoned:60/10:30/20:10/70"), Ok(Distribution::Zoned(zones)) if zones[2].len() == 3)
        );
        assert!(parse("zoned_abs:60/20m:40/100m").is_ok());
        for bad in [
            "",
            "zipf:",
            "pareto:",
            "normal:",
            "zipf:1",
            "zipf:-1",
            "zipf:nan",
            "zipf:1.2:2",
            "pareto:1.2",
            "normal:100",
            "zoned:60/10",
            "zoned:60/60:40/60",
            "zoned:/10:/90",
            "zoned_abs:50/1m:50",
            "uniform",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parameters_and_shares_that_are_left_open_are_those_of_fio() {
        assert_eq!(parse("zipf"), parse("zipf:1.1"));
        assert_eq!(parse("pareto"), parse("pareto:0.2"));
        assert_eq!(parse("normal"), parse("normal:0:0.2"));
        assert_eq!(parse("zoned:50/10:50/"), parse("zoned:50/10:50/90"));
        assert_eq!(parse("zoned:50/20:25/0:25"), parse("zoned:50/20:25/40:25/40"));
    }

    #[test]
    fn zones_are_hit_as_often_as_asked() {
        let Ok(Distribution::Zoned(zones)) = parse("zoned:60/10:40/90") else { panic!("zones") };
        let mut rng = Rng::new(3);
        let draws: Vec<_> =
            (0..10_000).map(|_| draw_zone(&zones[0], 1000, 4096, &mut rng)).collect();
        let first = draws.iter().filter(|drawn| **drawn == (0, 100)).count();
        assert!((5_800..6_200).contains(&first), "{first}");
        assert!(draws.iter().all(|drawn| [(0, 100), (100, 900)].contains(drawn)));
    }
}
