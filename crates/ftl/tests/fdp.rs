//! Reclaim units and their handles: what dies together is erased without being moved.

use dovetail_block::{
    BLOCK_SIZE, BlockDevice, BlockRange, Command, Data, DeviceError, Hints, Isolation, Lba,
    Lifetime, Pattern, PlacementEvent, PlacementReport, Query, StreamId, placement,
};
use dovetail_ftl::{ConfigError, Drive, DriveConfig, StreamsBy, lines::LineShape};
use dovetail_nand::{BlockId, Geometry};
use dovetail_time::{Rng, SimTime};

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 128,
    pages_per_block: 32,
    page_bytes: 4096,
};
/// Blocks of a reclaim unit: a block of 32 pages on each of two dies.
const UNIT: u64 = 64;

/// A drive of 128 units, of which the host sees a part.
fn config(handles: u8, isolation: Isolation) -> DriveConfig {
    DriveConfig {
        streams: handles,
        fdp: Some(isolation),
        ..DriveConfig::plain(GEOMETRY, 96 * UNIT)
    }
}

struct Host {
    drive: Drive,
    now: SimTime,
}

impl Host {
    fn new(config: DriveConfig) -> Self {
        Self { drive: Drive::new(config).unwrap(), now: SimTime::ZERO }
    }

    fn write(&mut self, lba: u64, handle: u8) {
        let hints = Hints { stream: StreamId(handle), ..Hints::default() };
        let (range, data) = (BlockRange::new(Lba(lba), 1), Data::Patterns(Pattern::new(lba)));
        let write = Command::Write { range, data, hints, fua: false };
        self.now = self.drive.submit(self.now, write).unwrap().done;
    }

    fn report(&mut self) -> PlacementReport {
        placement(&mut self.drive).unwrap().unwrap()
    }

    /// Write amplification of what is done from now on.
    fn waf_of(&mut self, work: impl FnOnce(&mut Self)) -> f64 {
        let before = self.report();
        work(self);
        let after = self.report();
        (after.media_bytes - before.media_bytes) as f64
            / (after.host_bytes - before.host_bytes) as f64
    }
}

/// Rings of so many units each, written round and round: `turns` says which ring takes the next
/// unit's worth, in pieces of 8 blocks.
fn rings(host: &mut Host, sizes: &[u64], pieces: u64, handle: impl Fn(usize) -> u8) {
    let starts: Vec<u64> = sizes
        .iter()
        .scan(0, |next, size| {
            *next += size * UNIT;
            Some(*next - size * UNIT)
        })
        .collect();
    let mut heads = vec![0; sizes.len()];
    let mut rng = Rng::new(7);
    for _ in 0..pieces {
        let ring = rng.below(sizes.len() as u64) as usize;
        for _ in 0..8 {
            host.write(starts[ring] + heads[ring], handle(ring));
            heads[ring] = (heads[ring] + 1) % (sizes[ring] * UNIT);
        }
    }
}

#[test]
fn what_dies_together_is_never_moved() {
    for isolation in [Isolation::Initial, Isolation::Persistent] {
        let work = |host: &mut Host, apart: bool| {
            rings(host, &[4, 12, 80], 9000, |ring| ring as u8 * u8::from(apart));
        };
        let mut apart = Host::new(config(4, isolation));
        work(&mut apart, true);
        let waf = apart.waf_of(|host| work(host, true));
        assert!((waf - 1.0).abs() < f64::EPSILON, "{isolation:?}: {waf} with a handle a ring");
        assert_eq!(apart.report().events(PlacementEvent::MediaReallocated), 0);
        let mut mixed = Host::new(config(4, isolation));
        work(&mut mixed, false);
        let waf = mixed.waf_of(|host| work(host, false));
        assert!(waf > 1.2, "{isolation:?}: {waf} with one handle for all rings");
        assert!(mixed.report().events(PlacementEvent::MediaReallocated) > 0);
    }
}

/// Units of which nothing lives are erased as they are, though each has a bad block.
#[test]
fn a_bad_block_in_a_dead_unit_is_no_reallocation() {
    let mut config = DriveConfig { user_blocks: 40 * UNIT, ..config(2, Isolation::Initial) };
    config.nand.factory_bad = (0..128).map(|line| BlockId(2 * line)).collect();
    let mut host = Host::new(config);
    rings(&mut host, &[40], 4000, |_| 1);
    assert!(host.drive.counters().gc_runs > 100);
    assert_eq!(host.report().events(PlacementEvent::MediaReallocated), 0);
}

/// One handle writes a small part often at random, another the rest seldom: both leave survivors,
/// with lives of their own.
fn hot_beside_cold(isolation: Isolation) -> f64 {
    let mut host = Host::new(config(2, isolation));
    let mut rng = Rng::new(3);
    let (hot, all) = (16 * UNIT, 96 * UNIT);
    let mut work = |host: &mut Host| {
        for _ in 0..20 * all {
            if rng.below(10) < 8 {
                host.write(rng.below(hot), 0);
            } else {
                host.write(hot + rng.below(all - hot), 1);
            }
        }
    };
    work(&mut host);
    host.waf_of(work)
}

#[test]
fn what_is_moved_stays_apart_where_isolation_is_persistent() {
    let (initial, persistent) =
        (hot_beside_cold(Isolation::Initial), hot_beside_cold(Isolation::Persistent));
    assert!(persistent < 0.95 * initial, "persistent {persistent:.3}, initial {initial:.3}");
}

#[test]
fn the_host_and_the_medium_are_counted_by_handle() {
    let mut host = Host::new(config(3, Isolation::Initial));
    (0..100).for_each(|lba| host.write(lba, 1));
    (100..130).for_each(|lba| host.write(lba, 2));
    let report = host.report();
    let seen: Vec<_> =
        report.handles.iter().map(|h| (h.host_blocks, h.media_blocks, h.blocks_left)).collect();
    assert_eq!(seen, [(0, 0, UNIT), (100, 100, 2 * UNIT - 100), (30, 30, UNIT - 30)]);
    assert_eq!((report.host_bytes, report.erased_bytes), (130 * BLOCK_SIZE, 0));
    assert_eq!(report.media_bytes, 130 * BLOCK_SIZE);
}

#[test]
fn a_handle_that_is_not_there_is_the_first_one_and_noted() {
    let mut host = Host::new(config(2, Isolation::Initial));
    host.write(5, 7);
    let report = host.report();
    assert_eq!(report.handles[0].host_blocks, 1);
    assert_eq!(report.events(PlacementEvent::InvalidHandle), 1);
    let update = host.drive.submit(host.now, Command::UpdateHandles(&[StreamId(2)]));
    assert_eq!(update, Err(DeviceError::NoHandle { handle: 2, handles: 2 }));
}

#[test]
fn an_update_gives_a_handle_an_empty_unit() {
    let mut host = Host::new(config(2, Isolation::Initial));
    (0..10).for_each(|lba| host.write(lba, 1));
    let update = [StreamId(0), StreamId(1)];
    host.drive.submit(host.now, Command::UpdateHandles(&update)).unwrap();
    let report = host.report();
    assert_eq!(report.handles[1].blocks_left, UNIT);
    // the first handle had begun none
    assert_eq!(report.events(PlacementEvent::UnitNotFull), 1);
    host.write(10, 1);
    assert_eq!(host.report().handles[1].blocks_left, UNIT - 1);
    host.drive.check().unwrap();
}

#[test]
fn an_update_of_a_full_unit_is_no_event() {
    let mut host = Host::new(config(2, Isolation::Initial));
    (0..UNIT).for_each(|lba| host.write(lba, 1));
    host.drive.submit(host.now, Command::UpdateHandles(&[StreamId(1)])).unwrap();
    let report = host.report();
    assert_eq!(report.handles[1].blocks_left, UNIT);
    assert_eq!(report.events(PlacementEvent::UnitNotFull), 0);
    host.drive.check().unwrap();
}

#[test]
fn handles_are_kept_over_a_power_cut() {
    let mut host = Host::new(config(3, Isolation::Persistent));
    (0..10).for_each(|lba| host.write(lba, 1));
    (20..50).for_each(|lba| host.write(lba, 2));
    let now = host.now;
    let (drive, _) = host.drive.into_unrecovered().recover().unwrap();
    let left: Vec<u64> =
        Host { drive, now }.report().handles.iter().map(|h| h.blocks_left).collect();
    assert_eq!(left, [UNIT, UNIT - 10, UNIT - 30]);
}

/// Units of moved data are no handle's: after a power cut each handle goes on where it was, and
/// what is moved goes on apart.
#[test]
fn moved_data_stay_apart_over_a_power_cut() {
    let mut host = Host::new(config(2, Isolation::Initial));
    let mut rng = Rng::new(5);
    for _ in 0..6 * 96 * UNIT {
        let at = rng.below(90 * UNIT);
        host.write(at, u8::from(at.is_multiple_of(3)));
    }
    let left = |report: PlacementReport| {
        report.handles.iter().map(|handle| handle.blocks_left).collect::<Vec<_>>()
    };
    assert!(host.report().events(PlacementEvent::MediaReallocated) > 100);
    let before = left(host.report());
    let now = host.now;
    let (drive, _) = host.drive.into_unrecovered().recover().unwrap();
    assert_eq!(left(Host { drive, now }.report()), before);
}

#[test]
fn drives_without_reclaim_units_say_so() {
    let mut host = Host::new(DriveConfig { fdp: None, ..config(2, Isolation::Initial) });
    assert_eq!(placement(&mut host.drive).unwrap(), None);
    let update = host.drive.submit(host.now, Command::UpdateHandles(&[StreamId(0)]));
    assert_eq!(update, Err(DeviceError::Unsupported("update-handles")));
    let query = host.drive.submit(host.now, Command::Query(Query::Placement));
    assert_eq!(query, Err(DeviceError::Unsupported("placement-statistics")));
}

#[test]
fn reclaim_units_need_superblocks_and_the_hosts_hints() {
    let base = config(2, Isolation::Initial);
    for drive in [
        DriveConfig { shape: LineShape::Block, ..base.clone() },
        DriveConfig { streams_by: StreamsBy::Address, ..base },
    ] {
        let refused = Drive::new(drive).map(drop).unwrap_err();
        assert!(matches!(refused, ConfigError::Fdp(_)), "{refused}");
    }
}

#[test]
fn a_lifetime_alone_changes_nothing_on_the_drive() {
    let mut host = Host::new(config(6, Isolation::Initial));
    let hints = Hints { lifetime: Lifetime::Short, ..Hints::default() };
    let (range, data) = (BlockRange::new(Lba(0), 1), Data::Patterns(Pattern::new(0)));
    host.drive.submit(host.now, Command::Write { range, data, hints, fua: false }).unwrap();
    assert_eq!(host.report().handles[0].host_blocks, 1);
}
