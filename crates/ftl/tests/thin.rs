//! Thin drives as the host notices them: what they have room for, and what their addresses cost.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{
    AREA_BLOCKS, AREAS, BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba,
    Pattern, SectorRange, Thin, free_blocks, held_blocks,
};
use dovetail_ftl::{
    ConfigError, Drive, DriveConfig, MapCacheConfig, Overrides, Profile, cache, mapping,
};
use dovetail_nand::{Geometry, NandConfig};
use dovetail_time::{SimSpan, SimTime};

const CAPACITY: u64 = 1200;
const LAST: u64 = AREAS * AREA_BLOCKS;

/// 2 channels, 4 dies, 32 superblocks of 64 pages of 4 KiB; 1,200 blocks for the host.
fn config() -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 32,
        pages_per_block: 16,
        page_bytes: 4096,
    };
    DriveConfig {
        addresses: Some(LAST),
        scheme: mapping::scheme("interval").unwrap(),
        idle_after: SimSpan::from_ms(1_000_000),
        map_access: SimSpan::from_ns(50),
        command: SimSpan::from_us(5),
        ..DriveConfig::plain(geometry, CAPACITY)
    }
}

/// The same with pages of four blocks: room for 4 times as much in as many pages.
fn large_pages() -> DriveConfig {
    let plain = config();
    let geometry = Geometry { page_bytes: 16384, ..plain.nand.geometry };
    DriveConfig { nand: NandConfig { geometry, ..plain.nand }, user_blocks: 4 * CAPACITY, ..plain }
}

/// A drive, and the time at which the host has heard of all that it asked for.
struct Host {
    drive: Drive,
    now: SimTime,
}

impl Host {
    fn new(config: DriveConfig) -> Self {
        Self { drive: Drive::new(config).unwrap(), now: SimTime::ZERO }
    }

    fn submit(&mut self, command: Command<'_>) -> Result<(), DeviceError> {
        self.now = self.now.max(self.drive.submit(self.now, command)?.done);
        Ok(())
    }

    /// Writes blocks of which each holds a pattern by its address.
    fn write(&mut self, lba: u64, blocks: u64) -> Result<(), DeviceError> {
        let data = Data::Patterns(Pattern::new(lba));
        let range = BlockRange::new(Lba(lba), blocks);
        self.submit(Command::Write { range, data, hints: Hints::default(), fua: false })
    }

    fn read(&mut self, lba: u64) -> Content {
        let mut into = [Content::Empty];
        self.submit(Command::Read { range: BlockRange::new(Lba(lba), 1), into: Some(&mut into) })
            .unwrap();
        into[0].clone()
    }

    fn discard(&mut self, lba: u64, blocks: u64) {
        let range = SectorRange::from(BlockRange::new(Lba(lba), blocks));
        self.submit(Command::Discard { ranges: &[range] }).unwrap();
    }

    fn free_blocks(&mut self) -> u64 {
        free_blocks(&mut self.drive).unwrap().unwrap()
    }

    /// Cuts the power in the order of issue, and recovers.
    fn cut(self) -> Self {
        let (drive, _) = self.drive.into_unrecovered().recover().unwrap();
        drive.check().unwrap();
        Self { drive, now: SimTime::ZERO }
    }
}

fn pattern(lba: u64) -> Content {
    Content::Pattern(Pattern::new(lba))
}

#[test]
fn a_drive_says_that_it_is_thin_and_others_do_not() {
    let mut thin = Drive::new(config()).unwrap();
    assert_eq!((thin.info().blocks, free_blocks(&mut thin).unwrap()), (7 << 58, Some(CAPACITY)));
    assert_eq!(thin.info().capabilities.thin, Some(Thin::new(CAPACITY, 1)));
    let large = Drive::new(large_pages()).unwrap().info().capabilities.thin;
    assert_eq!(large, Some(Thin::new(4 * CAPACITY, 4)));
    let mut plain = Drive::new(DriveConfig { addresses: None, ..config() }).unwrap();
    assert_eq!((plain.info().blocks, free_blocks(&mut plain).unwrap()), (CAPACITY, None));
    assert_eq!(plain.info().capabilities.thin, None);
}

#[test]
fn what_there_is_room_for_can_be_written_wherever_it_lies() {
    for (buffer_pages, spare_is_room) in [(0, false), (64, false), (0, true), (64, true)] {
        let mut host = Host::new(DriveConfig { buffer_pages, spare_is_room, ..large_pages() });
        let capacity = host.drive.info().capabilities.thin.unwrap().pages;
        assert_eq!(capacity > CAPACITY, spare_is_room, "{capacity} pages of 2,048");
        // Four blocks of one page, and one of another: two pages.
        host.write(LAST - 4, 4).unwrap();
        host.write(AREA_BLOCKS - 1, 1).unwrap();
        assert_eq!(host.free_blocks(), capacity - 2, "{buffer_pages} pages of buffer");
        host.write(AREA_BLOCKS - 2, 1).unwrap();
        assert_eq!(
            host.free_blocks(),
            capacity - 2,
            "a page that is there has room for its other blocks"
        );
        let far = |i: u64| (i % AREAS) * AREA_BLOCKS + 5 * i * i + 7;
        let room = host.free_blocks();
        (0..room).for_each(|i| host.write(far(i), 1).unwrap());
        assert_eq!(host.free_blocks(), 0);
        // it can still clean
        (0..3 * room).for_each(|i| host.write(far(7 * i % room), 1).unwrap());
        assert_eq!(host.write(1 << 40, 1), Err(DeviceError::NoRoom));
        host.write(AREA_BLOCKS - 4, 4).unwrap();
        assert_eq!(
            host.write(AREA_BLOCKS - 4, 5),
            Err(DeviceError::NoRoom),
            "the fifth is in no page yet"
        );
        host.submit(Command::Flush).unwrap();
        assert_eq!(host.drive.live_blocks(), 4 + 4 + room);
        host = host.cut();
        assert_eq!((host.free_blocks(), host.drive.live_blocks()), (0, 4 + 4 + room));
        (0..room).for_each(|i| assert_eq!(host.read(far(i)), pattern(far(i))));
        assert_eq!(
            (host.read(LAST - 1), host.read(1 << 40)),
            (pattern(LAST - 4 + 3), Content::Empty)
        );
    }
}

#[test]
fn a_discard_makes_room_at_once_also_of_what_is_in_the_buffer() {
    for buffer_pages in [0, 64] {
        let mut host = Host::new(DriveConfig { buffer_pages, ..large_pages() });
        for lba in 0..CAPACITY {
            host.write(AREA_BLOCKS + 4 * lba, 1).unwrap();
        }
        host.discard(AREA_BLOCKS, 4 * 100);
        assert_eq!(host.free_blocks(), 100, "{buffer_pages} pages of buffer");
        host.discard(AREA_BLOCKS + 4 * (CAPACITY - 10), AREA_BLOCKS);
        assert_eq!(host.free_blocks(), 110, "{buffer_pages} pages of buffer");
        (0..110).for_each(|i| host.write(5 * AREA_BLOCKS + 4 * i, 1).unwrap());
        assert_eq!(host.write(0, 1), Err(DeviceError::NoRoom));
        // A page of which one block is left takes as much as a whole one.
        host.write(5 * AREA_BLOCKS, 4).unwrap();
        host.discard(5 * AREA_BLOCKS + 1, 3);
        assert_eq!(host.free_blocks(), 0);
        host.discard(5 * AREA_BLOCKS, 1);
        assert_eq!(host.free_blocks(), 1);
    }
}

#[test]
fn what_a_cut_brings_back_does_not_choke_the_drive() {
    let mut host = Host::new(config());
    let line = u64::from(host.drive.lines().pages_per_line());
    for lba in 0..CAPACITY {
        host.write(lba, 1).unwrap();
    }
    host.submit(Command::Flush).unwrap();
    // Nothing is flushed any more: each cut brings back discarded blocks beside those that were
    // written instead.
    let (mut next, mut most) = (CAPACITY, 0);
    for round in 1..=60 {
        for _ in 0..round * 37 % 50 {
            host.discard(0, next - CAPACITY + 20);
            host.write(next, 20).unwrap();
            next += 20;
        }
        host = host.cut();
        most = most.max(host.drive.live_blocks());
        assert!(most <= CAPACITY + line + 20, "round {round}: {most} live blocks");
        host.discard(0, next - CAPACITY);
        assert_eq!((host.free_blocks(), host.drive.live_blocks()), (0, CAPACITY), "round {round}");
    }
    assert!(most > CAPACITY, "no cut has brought anything back");
}

/// A long discard waits for a long queue of one die until it is durable, and the other dies do not.
/// Their writes before a cut must not lie beside more than a line of what comes back.
#[test]
fn room_is_given_back_when_a_cut_can_no_longer_take_the_discard_back() {
    const MS: u64 = 1_000_000;
    // Dies with a channel each, so that they do not wait for each other's transfers.
    let plain = config();
    let geometry =
        Geometry { channels: 8, dies_per_channel: 1, pages_per_block: 8, ..plain.nand.geometry };
    let mut host = Host::new(DriveConfig { nand: NandConfig { geometry, ..plain.nand }, ..plain });
    host.drive.remember_operations();
    (0..CAPACITY).for_each(|lba| host.write(lba, 1).unwrap());
    // All slots of the journal are used, so that the next page of it waits for bitmap pages, and
    // these for all programs.
    for lba in 1100..1116 {
        host.discard(lba, 1);
        host.submit(Command::Flush).unwrap();
        host.write(lba, 1).unwrap();
    }
    let asked = host.now;
    // One die is busy with reads for 40 ms, and then with a write.
    let read = |host: &mut Host, lba| {
        let range = BlockRange::new(Lba(lba), 1);
        host.drive.submit(asked, Command::Read { range, into: None }).unwrap();
    };
    (0..800).for_each(|_| read(&mut host, 1));
    let write = |host: &mut Host, lba| {
        let (range, data) = (BlockRange::new(Lba(lba), 1), Data::Patterns(Pattern::new(lba)));
        host.drive
            .submit(asked, Command::Write { range, data, hints: Hints::default(), fua: false })
            .unwrap();
    };
    (600..608).for_each(|lba| write(&mut host, lba));
    let discarded = SectorRange::from(BlockRange::new(Lba(100), 200));
    host.drive.submit(asked, Command::Discard { ranges: &[discarded] }).unwrap();
    (0..200).for_each(|i| write(&mut host, 5000 + i));
    assert_eq!(host.free_blocks(), 0);
    let line = u64::from(host.drive.lines().pages_per_line());
    let cut = SimTime::from_ns(asked.as_ns() + 35 * MS);
    let (drive, _) = host.drive.into_unrecovered_at(cut).recover().unwrap();
    let live = drive.live_blocks();
    assert!(live <= CAPACITY + line, "{live} live blocks");
}

#[test]
fn a_long_discard_looks_through_a_table_of_all_pages_once() {
    let mut host = Host::new(DriveConfig {
        scheme: mapping::scheme("hash").unwrap(),
        buffer_pages: 64,
        ..config()
    });
    (0..CAPACITY).for_each(|lba| host.write(7 * lba, 1).unwrap());
    host.submit(Command::Flush).unwrap();
    let before = host.drive.counters();
    host.discard(0, LAST);
    let spent = host.drive.counters() - before;
    assert_eq!((spent.discarded_blocks, host.free_blocks()), (CAPACITY, CAPACITY));
    // Once to look, and a few accesses for each that is unmapped.
    assert!(spent.map_accesses < 4 * CAPACITY, "{} accesses", spent.map_accesses);
}

#[test]
fn a_discard_costs_what_is_mapped_and_not_how_long_it_is() {
    for scheme in ["interval", "hash"] {
        let mut host = Host::new(DriveConfig {
            scheme: mapping::scheme(scheme).unwrap(),
            buffer_pages: 64,
            ..config()
        });
        let places = [0, 1 << 40, AREA_BLOCKS - 50, 3 * AREA_BLOCKS, LAST - 100];
        places.iter().for_each(|&start| host.write(start, 100).unwrap());
        let before = host.drive.counters();
        host.discard(50, LAST - 100);
        let spent = host.drive.counters() - before;
        assert_eq!(spent.discarded_blocks, 400);
        assert!(spent.map_accesses < 20_000, "{scheme}: {} accesses", spent.map_accesses);
        assert_eq!((host.read(49), host.read(LAST - 50)), (pattern(49), pattern(LAST - 50)));
        assert_eq!((host.read(50), host.read(LAST - 51)), (Content::Empty, Content::Empty));
        host.submit(Command::Flush).unwrap();
        host = host.cut();
        assert_eq!(host.drive.live_blocks(), 100);
    }
}

/// A log appends through the end of an area and up to the very last block, a hundred times as much
/// as the drive holds; behind it everything is discarded.
#[test]
fn a_log_runs_for_a_hundred_lifetimes_up_to_the_last_address() {
    let mut host = Host::new(DriveConfig { buffer_pages: 32, ..config() });
    let (live, all) = (CAPACITY - 104, 100 * CAPACITY);
    let mut largest = 0;
    for start in [AREA_BLOCKS - all / 2, LAST - all] {
        for lba in (start..start + all).step_by(8) {
            host.write(lba, 8).unwrap();
            if lba >= start + live {
                host.discard(lba - live, 8);
            }
            largest = largest.max(host.drive.mapping_memory_bytes());
        }
        host.submit(Command::Flush).unwrap();
        host.drive.check().unwrap();
        assert_eq!(host.drive.live_blocks(), live);
        host = host.cut();
        assert_eq!(host.drive.live_blocks(), live);
        let last = start + all - 1;
        assert_eq!(
            (host.read(last - live), host.read(last)),
            (Content::Empty, pattern(start + all - 8 + 7))
        );
        host.discard(start, all);
        assert_eq!(host.free_blocks(), CAPACITY);
    }
    // A chunk of tables and one of nodes, and the map's own records.
    assert!(largest < 1 << 20, "{largest} bytes of map");
    assert!(host.write(LAST - 1, 1).is_ok());
    assert!(matches!(host.write(LAST - 1, 2), Err(DeviceError::OutOfRange { .. })));
}

#[test]
fn a_map_that_cannot_be_sparse_is_refused_and_a_profile_asks_for_addresses() {
    let dense = DriveConfig { scheme: mapping::scheme("page").unwrap(), ..config() };
    let error = Drive::new(dense).unwrap_err();
    assert_eq!(error, ConfigError::DenseMap("page"));
    assert!(error.to_string().contains("use one of hash, interval"), "{error}");
    for addresses in [CAPACITY - 1, LAST + 1] {
        let error = Drive::new(DriveConfig { addresses: Some(addresses), ..config() }).unwrap_err();
        assert_eq!(error, ConfigError::Addresses(addresses));
    }
    let profile = Profile::load("openssd-230g").unwrap();
    let asked = |addresses: &str, map: &str| {
        profile.with_figures([("capacity.addresses", addresses.into()), ("ftl.map", map.into())])
    };
    let small = |map: &str| Overrides {
        scale: Some("1/1024".parse().unwrap()),
        map: Some(map.into()),
        ..Overrides::default()
    };
    let thin = asked("iplfs", "interval").unwrap();
    assert_eq!(thin.resolve(&small("hash")).unwrap().addresses, Some(LAST));
    assert_eq!(asked("capacity", "page").unwrap().resolve(&small("page")).unwrap().addresses, None);
    let error = thin.resolve(&small("page")).unwrap_err().to_string();
    assert!(error.contains("more addresses than room"), "{error}");
    let error = asked("many", "interval").unwrap_err().to_string();
    assert!(
        error.ends_with("capacity.addresses is 'many', allowed is capacity or iplfs"),
        "{error}"
    );
}

#[test]
fn what_a_drive_holds_can_be_asked_for() {
    for (buffer_pages, config) in [(0, config()), (0, large_pages()), (40, large_pages())] {
        let mut host = Host::new(DriveConfig { buffer_pages, ..config });
        let (mut rng, mut model) = (dovetail_time::Rng::new(7), std::collections::BTreeSet::new());
        for step in 0..400 {
            let start = [0, AREA_BLOCKS - 20, LAST - 100][rng.below(3) as usize] + rng.below(90);
            let range = BlockRange::new(Lba(start), 1 + rng.below(10));
            if rng.chance(0.6) {
                let (data, hints) = (Data::Patterns(Pattern::new(100 * step)), Hints::default());
                host.submit(Command::Write { range, data, hints, fua: false }).unwrap();
                model.extend(range.iter());
            } else {
                host.submit(Command::Discard { ranges: &[SectorRange::from(range)] }).unwrap();
                model.retain(|lba| !range.iter().any(|gone| gone == *lba));
            }
            let asked = BlockRange::new(Lba(start - start.min(30)), rng.below(2 * AREA_BLOCKS));
            let most = 1 + rng.below(60) as usize;
            let expected: Vec<Lba> =
                model.range(asked.start..asked.end()).take(most).copied().collect();
            assert_eq!(
                held_blocks(&mut host.drive, asked, most),
                Ok(Some(expected)),
                "step {step}: {most} of {asked}"
            );
        }
    }
}

/// Each block in a translation page of its own: the drive says that it has no room before its flash
/// is full.
#[test]
fn scattered_pages_of_a_paged_map_take_room_for_their_translation_pages() {
    for (policy, buffer_pages) in [("dftl", 0), ("split", 64), ("extent", 64)] {
        let policy = cache::policy(policy).unwrap();
        let map_cache = Some(MapCacheConfig { policy, bytes: 512, page_entries: 512 });
        let mut host = Host::new(DriveConfig { map_cache, buffer_pages, ..config() });
        let place = |i: u64| (i % AREAS) * AREA_BLOCKS + i * 512;
        let mut live = 0..0;
        for _ in 0..4 {
            while host.free_blocks() > 0 {
                host.write(place(live.end), 1).unwrap();
                live.end += 1;
            }
            host.submit(Command::Flush).unwrap();
            assert!((CAPACITY * 2 / 5..CAPACITY).contains(&(live.end - live.start)), "{live:?}");
            while host.write(place(live.end), 1).is_ok() {
                live.end += 1;
            }
            live.clone().for_each(|i| assert_eq!(host.read(place(i)), pattern(place(i))));
            host.drive.check().unwrap();
            let gone = live.start..live.start + CAPACITY / 3;
            gone.clone().for_each(|i| host.discard(place(i), 1));
            live.start = gone.end;
            host.submit(Command::Flush).unwrap();
            assert!(host.free_blocks() >= CAPACITY / 3 - 1, "{} blocks free", host.free_blocks());
            host = host.cut();
        }
        // What lies together needs no more room than it has.
        host.discard(0, LAST);
        host.write(0, CAPACITY - 64).unwrap();
    }
}

/// The firmware of that drive counts no room: pages of which a part is dead fill its spare flash.
#[test]
fn a_profile_may_have_its_spare_flash_filled() {
    let room_of = |spare: bool| {
        let overrides = Overrides {
            scale: "1/512".parse().ok(),
            addresses: Some("iplfs".into()),
            map: Some("interval".into()),
            ..Overrides::default()
        };
        let profile = Profile::load("openssd-230g").unwrap();
        let profile = profile.with_figures([("capacity.spare_is_room", spare.into())]).unwrap();
        let mut host = Host::new(profile.resolve(&overrides).unwrap());
        let pages = (0..).take_while(|page| host.write(4 * page, 1).is_ok()).count() as f64;
        pages * 4.0 / host.drive.config().user_blocks as f64
    };
    assert!((room_of(false) - 1.0).abs() < 0.001, "{} of the capacity", room_of(false));
    assert!((1.01..1.12).contains(&room_of(true)), "{} of the capacity", room_of(true));
}

#[test]
fn spare_flash_is_no_room_where_the_map_lies_on_flash() {
    let policy = cache::policy("dftl").unwrap();
    let map_cache = Some(MapCacheConfig { policy, bytes: 4096, page_entries: 64 });
    let paged = DriveConfig { map_cache, spare_is_room: true, ..config() };
    assert_eq!(Drive::new(paged.clone()).unwrap_err(), ConfigError::SpareIsRoom);
    let ordinary = DriveConfig { addresses: None, ..paged };
    assert!(Drive::new(ordinary).is_ok(), "it has no effect there");
}
