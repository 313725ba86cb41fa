//! Commands on zones: how long a real zoned drive takes for them, and ours.

use dovetail_block::{
    BlockDevice, BlockRange, Command, Data, DeviceError, Hints, Lba, Pattern, ZoneAction,
};
use dovetail_ftl::{Overrides, Profile, ZonedDrive};
use dovetail_time::{SimSpan, SimTime};

use super::load::Seen;
use super::workload::Observed;
use super::{MeasuredError, Published, Reading, Test, Workload};

/// Zones of the drive that a test runs on: they have their full size, the drive is smaller.
const ZONES: u32 = 8;
/// Erase blocks of each plane beside those of the zones: for records, and for zones that wait to be
/// erased.
const OWN_BLOCKS: u32 = 24;
/// Blocks of a write: 1 MiB.
const WRITE_BLOCKS: u64 = 256;

/// Blocks of a zone that are written before the command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filled {
    /// A part of its capacity.
    Part(f64),
    /// All but one block.
    AllButOne,
}

/// A command on a zone that was written in part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ZoneTest {
    /// The reset of a zone that was finished before.
    ResetFinished(Filled),
    /// The reset of a zone that is still open.
    ResetOpen(Filled),
    /// A finish.
    Finish(Filled),
}

impl std::fmt::Display for Filled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Part(0.0) => write!(f, "with nothing in it"),
            Self::Part(1.0) => write!(f, "that is full"),
            Self::Part(part) => write!(f, "filled to 1/{:.0}", 1.0 / part),
            Self::AllButOne => write!(f, "that lacks one block"),
        }
    }
}

impl std::fmt::Display for ZoneTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ResetFinished(filled) => write!(f, "reset of a finished zone {filled}"),
            Self::ResetOpen(filled) => write!(f, "reset of an open zone {filled}"),
            Self::Finish(filled) => write!(f, "finish of a zone {filled}"),
        }
    }
}

impl ZoneTest {
    /// Runs it on each zone of a small drive of this profile.
    pub(super) fn run(self, profile: &str, seed: u64) -> Result<Observed, MeasuredError> {
        let overrides = Overrides { seed, ..Overrides::default() };
        let mut config = Profile::load(profile)?.resolve(&overrides)?;
        let no_drive = |error: String| MeasuredError::Scale(error);
        let zones = config.zones.as_mut().ok_or_else(|| no_drive("it has no zones".into()))?;
        (zones.max_active, zones.max_open) = (zones.max_active.min(2), zones.max_open.min(2));
        let geometry = &mut config.nand.geometry;
        geometry.blocks_per_plane = ZONES + OWN_BLOCKS + zones.spare;
        config.user_blocks = u64::from(ZONES) * zones.capacity + zones.conventional;
        let geometry = config.nand.geometry;
        config.nand.factory_bad.retain(|block| block.0 < geometry.blocks());
        let drive = ZonedDrive::new(config).map_err(|error| no_drive(error.to_string()))?;
        Ok(self.on_each_zone(drive)?)
    }

    fn on_each_zone(self, mut drive: ZonedDrive) -> Result<Observed, DeviceError> {
        let (zones, mut now, mut seen) = (*drive.zones().zones(), SimTime::ZERO, Seen::default());
        for zone in 0..zones.count {
            let start = zones.start(zone);
            let (Self::ResetFinished(filled) | Self::ResetOpen(filled) | Self::Finish(filled)) =
                self;
            let to_write = match filled {
                Part(part) => (zones.capacity as f64 * part) as u64,
                AllButOne => zones.capacity - 1,
            };
            now = write(&mut drive, now, start, to_write)?;
            let mut act = |now, action| {
                let command = Command::Zone { start: Some(start), action };
                drive.submit(now, command).map(|completion| completion.done)
            };
            if matches!(self, Self::ResetFinished(_)) {
                now = rest(act(now, ZoneAction::Finish)?);
            }
            let is_finish = matches!(self, Self::Finish(_));
            let action = if is_finish { ZoneAction::Finish } else { ZoneAction::Reset };
            let done = act(now, action)?;
            seen.latencies.push(done.since(now).as_ns());
            now = rest(done);
            if is_finish {
                now = rest(act(now, ZoneAction::Reset)?);
            }
        }
        Ok(Observed { first: seen, ..Observed::default() })
    }
}

/// Long enough for all that the drive does behind a command.
fn rest(at: SimTime) -> SimTime {
    at + SimSpan::from_us(1_000_000)
}

/// Writes the first blocks of a zone in a row; returns when the drive is at rest.
fn write(
    drive: &mut ZonedDrive,
    mut now: SimTime,
    start: Lba,
    blocks: u64,
) -> Result<SimTime, DeviceError> {
    for at in (0..blocks).step_by(WRITE_BLOCKS as usize) {
        let range = BlockRange::new(Lba(start.0 + at), WRITE_BLOCKS.min(blocks - at));
        let data = Data::Patterns(Pattern::new(range.start.0));
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        now = drive.submit(now, command)?.done;
    }
    Ok(rest(now))
}

const fn test(command: ZoneTest, figures: &'static [Published]) -> Test {
    Test {
        device: "WD ZN540 1 TB",
        profile: "zn540-1t",
        workload: Workload::Zone(command),
        source: "NVMe benchmarks of 2023, medians of 903 zones",
        figures,
    }
}

/// A figure in milliseconds, within five percent of which ours is to be.
const fn ms(value: f64, is_calibrated: bool) -> Published {
    Published { reading: Reading::MeanMs, value, limit: 5.0, is_calibrated }
}

use Filled::{AllButOne, Part};
use ZoneTest::{Finish, ResetFinished, ResetOpen};

/// Commands on zones of the WD ZN540.
pub const ZONE_TESTS: &[Test] = &[
    test(ResetFinished(Part(0.0)), &[ms(1.6, true)]),
    test(ResetFinished(Part(1.0 / 16.0)), &[ms(2.5, false)]),
    test(ResetFinished(Part(1.0 / 8.0)), &[ms(3.3, false)]),
    test(ResetFinished(Part(1.0 / 4.0)), &[ms(5.1, false)]),
    test(ResetFinished(Part(1.0 / 2.0)), &[ms(8.5, false)]),
    test(ResetFinished(Part(1.0)), &[ms(15.3, true)]),
    test(ResetOpen(Part(1.0 / 16.0)), &[ms(5.1, false)]),
    test(ResetOpen(Part(1.0 / 8.0)), &[ms(6.0, false)]),
    test(ResetOpen(Part(1.0 / 4.0)), &[ms(7.7, false)]),
    test(ResetOpen(Part(1.0 / 2.0)), &[ms(11.2, false)]),
    test(Finish(Part(1.0 / 16.0)), &[ms(848.0, false)]),
    test(Finish(Part(1.0 / 8.0)), &[ms(792.0, false)]),
    test(Finish(Part(1.0 / 4.0)), &[ms(681.0, false)]),
    test(Finish(Part(1.0 / 2.0)), &[ms(457.0, false)]),
    test(Finish(AllButOne), &[ms(2.6, false)]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Setting;

    #[test]
    fn resets_of_finished_zones_take_as_long_as_was_measured() {
        let finished = |test: &&Test| matches!(test.workload, Workload::Zone(ResetFinished(Part(part))) if part < 0.2);
        for test in ZONE_TESTS.iter().filter(finished) {
            for row in test.run(Setting { seed: 1, scale: 1.0 }).unwrap() {
                assert!(row.off_by().abs() <= row.limit, "{}: {}", row.what, row.ours);
            }
        }
    }
}
