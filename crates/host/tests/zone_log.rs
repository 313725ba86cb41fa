//! The log on the host over a zoned device: what was last written is read, whatever it moves.

use std::collections::BTreeMap;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, MemoryDevice, Pattern,
    ZonedDevice, Zones,
};
use dovetail_host::{NoZoneLog, ZoneLog};
use dovetail_time::{Rng, SimTime};

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
    for (seed, max_active, capacity) in [(1, 2, 16), (2, 1, 16), (3, 0, 11), (4, 3, 13)] {
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

#[test]
fn a_drive_with_too_few_zones_is_told_so() {
    let zones = Zones::covering(Lba(0), 96, 16, 16);
    let few = ZoneLog::new(ZonedDevice::new(MemoryDevice::new(96), zones), 7.0).unwrap_err();
    assert_eq!(few, NoZoneLog::TooFew { zones: 6, needed: 7 });
    let none = ZoneLog::new(MemoryDevice::new(96), 7.0).unwrap_err();
    assert_eq!(none, NoZoneLog::NoZones);
}
