//! The log on the host over a zoned device: what was last written is read, whatever it moves.

use std::collections::BTreeMap;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Completion, Content, Data, DeviceError, DeviceInfo, Hints,
    Lba, MemoryDevice, Pattern, ZonedDevice, Zones,
};
use dovetail_host::{NoZoneLog, ZoneLog};
use dovetail_time::{Rng, SimSpan, SimTime};

const ZONES: u64 = 24;

fn log(max_active: u32, capacity: u64) -> ZoneLog<ZonedDevice<MemoryDevice>> {
    let zones = Zones {
        max_active,
        max_open: max_active.min(2),
        ..Zones::covering(Lba(5), ZONES * 16, 16, capacity)
    };
    let device = ZonedDevice::new(MemoryDevice::new(5 + ZONES * 16), zones);
    ZoneLog::new(device, 7.0).unwrap()
}

/// Random writes, reads and discards beside a map of what each block holds. The device refuses each
/// write that is not at a pointer, and more active zones than it may have.
#[test]
fn what_was_last_written_is_read() {
    for (seed, max_active, capacity) in [(1, 2, 16), (2, 2, 15), (3, 0, 11), (4, 3, 13)] {
        let (mut log, mut rng) = (log(max_active, capacity), Rng::new(seed));
        let blocks = log.info().blocks;
        assert_eq!(blocks, (ZONES - 6) * capacity, "six zones are its own");
        let (mut model, mut now) = (BTreeMap::new(), SimTime::ZERO);
        for number in 1..20_000 {
            let start = rng.below(blocks);
            let range = BlockRange::new(Lba(start), 1 + rng.below((blocks - start).min(40)));
            match rng.below(10) {
                0..=5 => {
                    let first = Pattern::new(number * 100);
                    let data = Data::Patterns(first);
                    let fua = rng.chance(0.1);
                    let command = Command::Write { range, data, hints: Hints::default(), fua };
                    now = log.submit(now, command).unwrap().done;
                    for (i, lba) in (0..).zip(range.iter()) {
                        model.insert(lba, Content::Pattern(first.nth(i)));
                    }
                }
                6 => {
                    let ranges = [range.into()];
                    now = log.submit(now, Command::Discard { ranges: &ranges }).unwrap().done;
                    range.iter().for_each(|lba| drop(model.remove(&lba)));
                }
                _ => {
                    let mut into = vec![Content::Empty; range.blocks as usize];
                    let command = Command::Read { range, into: Some(&mut into) };
                    now = log.submit(now, command).unwrap().done;
                    for (lba, found) in range.iter().zip(into) {
                        assert_eq!(found, model.get(&lba).cloned().unwrap_or_default(), "{lba:?}");
                    }
                }
            }
        }
        let counts = log.counts();
        assert!(counts.resets > 1000 && counts.moved_blocks > 1000, "{counts:?}");
        let written = log.below().table();
        assert!(max_active == 0 || written.active() <= max_active);
    }
}

/// A device whose commands take 100 us each, and the latest time that one was told for.
struct Slow {
    device: ZonedDevice<MemoryDevice>,
    latest: SimTime,
}

impl BlockDevice for Slow {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        self.latest = self.latest.max(at);
        let done = self.device.submit(at, command)?;
        Ok(Completion { done: done.done + SimSpan::from_us(100), ..done })
    }
}

/// Overwrites with much time between them: no step of cleaning, the reset after its flush included,
/// is told to the device before its time has come.
#[test]
fn cleaning_beside_the_host_tells_the_device_nothing_ahead_of_time() {
    let zones = Zones { max_active: 2, ..Zones::covering(Lba(0), ZONES * 16, 16, 16) };
    let device = ZonedDevice::new(MemoryDevice::new(ZONES * 16), zones);
    let mut log = ZoneLog::new(Slow { device, latest: SimTime::ZERO }, 7.0).unwrap();
    let (blocks, mut rng) = (log.info().blocks, Rng::new(5));
    for number in 0..4_000 {
        let now = SimTime::from_ns(150_000 * number);
        let start = if number < blocks { number } else { rng.below(blocks) };
        let range = BlockRange::new(Lba(start), 1);
        let data = Data::Patterns(Pattern::new(number + 1));
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        log.submit(now, command).unwrap();
        assert!(log.below().latest <= now, "write {number}");
    }
    let counts = log.counts();
    assert!(counts.resets > 100 && counts.moved_blocks > 1000 && counts.stalls == 0, "{counts:?}");
}

/// Ten percent are kept as asked; one percent would be less than the six zones that it needs.
#[test]
fn the_share_that_it_keeps_is_told() {
    let zones = Zones::covering(Lba(0), 96 * 16, 16, 16);
    let device = || ZonedDevice::new(MemoryDevice::new(96 * 16), zones);
    let kept = |percent| ZoneLog::new(device(), percent).unwrap().spare_percent();
    assert!((kept(10.0) - 10.0).abs() < 0.1, "{}", kept(10.0));
    assert_eq!(kept(1.0), 100.0 * 6.0 / 90.0);
}

#[test]
fn a_drive_with_one_active_zone_is_told_so() {
    let zones = Zones { max_active: 1, max_open: 1, ..Zones::covering(Lba(0), 384, 16, 16) };
    let one = ZoneLog::new(ZonedDevice::new(MemoryDevice::new(384), zones), 7.0).unwrap_err();
    assert_eq!(one, NoZoneLog::OneActive);
    assert!(one.to_string().contains("one active zone"), "{one}");
}

#[test]
fn a_drive_with_too_few_zones_is_told_so() {
    let zones = Zones::covering(Lba(0), 96, 16, 16);
    let few = ZoneLog::new(ZonedDevice::new(MemoryDevice::new(96), zones), 7.0).unwrap_err();
    assert_eq!(few, NoZoneLog::TooFew { zones: 6, needed: 7 });
    let none = ZoneLog::new(MemoryDevice::new(96), 7.0).unwrap_err();
    assert_eq!(none, NoZoneLog::NoZones);
}
