//! The zoned drive from outside: against a model, through power cuts, and in times that can be
//! worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba, Pattern, ZoneAction,
    ZoneError, ZoneState, ZoneTable, ZoneWindow,
};
use dovetail_ftl::{DriveConfig, ZoneConfig, ZoneTimes, ZonedDrive};
use dovetail_nand::{BlockId, Cells, FaultPlan, Geometry, NandConfig, Timing};
use dovetail_time::{Rng, SimSpan, SimTime};

fn us(us: u64) -> SimTime {
    SimTime::from_ns(us * 1000)
}

/// Two channels of two dies; a page of 4 KiB takes 500 us.
fn small() -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 40,
        pages_per_block: 8,
        page_bytes: 4096,
    };
    let drive = DriveConfig { buffer_pages: 64, ..DriveConfig::plain(geometry, 900) };
    let zones = ZoneConfig {
        size: 64,
        capacity: 64,
        conventional: 64,
        dies: 4,
        max_open: 3,
        max_active: 4,
        max_append: 16,
        window: None,
        spare: 2,
        finish_fills: false,
        times: ZoneTimes::default(),
    };
    DriveConfig { zones: Some(zones), ..drive }
}

fn submit(drive: &mut ZonedDrive, at: SimTime, command: Command<'_>) -> SimTime {
    drive.submit(at, command).unwrap().done
}

fn write(drive: &mut ZonedDrive, at: SimTime, start: u64, blocks: u64, fua: bool) -> SimTime {
    let range = BlockRange::new(Lba(start), blocks);
    let data = Data::Patterns(Pattern::new(start + 1));
    submit(drive, at, Command::Write { range, data, hints: Hints::default(), fua })
}

fn read(drive: &mut ZonedDrive, at: SimTime, start: u64) -> (SimTime, Content) {
    let mut into = [Content::Empty];
    let range = BlockRange::new(Lba(start), 1);
    let done = submit(drive, at, Command::Read { range, into: Some(&mut into) });
    (done, into[0].clone())
}

#[test]
fn a_zone_is_spread_over_its_dies() {
    let mut drive = ZonedDrive::new(small()).unwrap();
    // four blocks over the link at 1 us each; the record and the data are nobody's concern
    assert_eq!(write(&mut drive, us(0), 64, 4, false), us(4));
    // a record is one program of 510 us; then each die programs a page
    let flushed = submit(&mut drive, us(4), Command::Flush);
    assert_eq!(flushed, us(510 + 10 + 500 + 10));
    let (done, content) = read(&mut drive, us(2000), 66);
    assert_eq!((done, content), (us(2000 + 50 + 10 + 1), Content::Pattern(Pattern::new(67))));
    assert_eq!(drive.zones().state(0), ZoneState::ImplicitlyOpen);
    assert_eq!(drive.counters().waf(1), Some(5.0 / 4.0));
}

#[test]
fn zones_on_other_dies_do_not_wait_for_each_other() {
    let config = small();
    let zones = ZoneConfig { dies: 1, ..config.zones.unwrap() };
    let mut drive = ZonedDrive::new(DriveConfig { zones: Some(zones), ..config }).unwrap();
    let mut ends = Vec::new();
    for zone in 0..2 {
        write(&mut drive, us(0), 64 + zone * 64, 4, false);
        ends.push(submit(&mut drive, us(0), Command::Flush));
    }
    // four pages one after the other on one die, the other zone's at the same time
    assert!(ends[1] < us(3000), "{ends:?}");
}

#[test]
fn what_is_reset_is_gone_and_its_blocks_are_erased_later() {
    let mut drive = ZonedDrive::new(small()).unwrap();
    write(&mut drive, us(0), 64, 32, false);
    let flushed = submit(&mut drive, us(0), Command::Flush);
    let reset = Command::Zone { start: Some(Lba(64)), action: ZoneAction::Reset };
    let done = submit(&mut drive, flushed, reset);
    assert_eq!(done.since(flushed), SimSpan::from_us(510), "the record is programmed");
    assert_eq!(drive.counters().erases, 0);
    let (_, content) = read(&mut drive, done, 64);
    assert_eq!(content, Content::Empty);
    assert_eq!(drive.counters().erases, 8, "two stripes on four dies");
}

/// A quarter written: base and a quarter of the share, from any state; an empty zone takes none,
/// and a write that comes too early waits.
#[test]
fn a_reset_takes_longer_the_fuller_the_zone_is() {
    let mut config = small();
    let times = ZoneTimes { reset: SimSpan::from_us(1600), reset_full: SimSpan::from_us(13_800) };
    config.zones.as_mut().unwrap().times = times;
    config.power_loss_protection = true;
    let act = |drive: &mut ZonedDrive, at, action| {
        let done = submit(drive, at, Command::Zone { start: Some(Lba(64)), action });
        done.since(at)
    };
    let mut drive = ZonedDrive::new(config).unwrap();
    assert_eq!(act(&mut drive, us(0), ZoneAction::Reset), SimSpan::ZERO, "it is empty");
    write(&mut drive, us(0), 64, 16, false);
    act(&mut drive, us(100_000), ZoneAction::Finish);
    let reset = act(&mut drive, us(200_000), ZoneAction::Reset);
    assert_eq!(reset, SimSpan::from_us(1600 + 13_800 / 4), "as much as was written counts");
    let written = write(&mut drive, us(201_000), 64, 64, false);
    assert!(written >= us(200_000) + reset, "{written:?}: the reset was under way");
    let again = act(&mut drive, us(300_000), ZoneAction::Reset);
    assert_eq!(again, SimSpan::from_us(1600 + 13_800));
}

/// Records of the drive's own fall into one block: it stays in the buffer behind capacitors.
#[test]
fn records_are_no_overwrites_of_the_hosts() {
    let mut drive =
        ZonedDrive::new(DriveConfig { power_loss_protection: true, ..small() }).unwrap();
    for zone in 0..3 {
        write(&mut drive, us(zone * 10), 64 + zone * 64, 1, false);
    }
    assert_eq!(drive.counters().buffer_overwrites, 0);
}

/// The zone that is being reset takes its write when that is over; another takes its own at once.
#[test]
fn a_write_that_waits_for_a_reset_holds_back_no_other_zone() {
    let mut config = small();
    let times = ZoneTimes { reset: SimSpan::from_us(1600), reset_full: SimSpan::from_us(13_800) };
    config.zones.as_mut().unwrap().times = times;
    for link_write_4k in [None, Some(SimSpan::from_us(2))] {
        let mut drive = ZonedDrive::new(DriveConfig { link_write_4k, ..config.clone() }).unwrap();
        write(&mut drive, us(0), 64, 64, false);
        let action = ZoneAction::Reset;
        let begun = us(200_000);
        let reset = submit(&mut drive, begun, Command::Zone { start: Some(Lba(64)), action });
        assert!(reset >= begun + SimSpan::from_us(15_400));
        assert!(write(&mut drive, begun, 64, 1, false) > reset);
        assert!(write(&mut drive, begun, 65, 1, false) > reset, "the second one waits, too");
        let other = write(&mut drive, begun, 128, 1, false);
        assert!(other < begun + SimSpan::from_us(10), "{other:?}");
    }
}

#[test]
fn the_drive_tells_of_zones_that_it_closed() {
    let mut drive = ZonedDrive::new(small()).unwrap();
    let (mut now, mut seen) = (us(0), 0);
    for zone in 0..4 {
        assert_eq!(dovetail_block::changed_zones(&mut drive, &mut seen), Ok(vec![]));
        now = write(&mut drive, now, 64 + zone * 64, 1, false);
    }
    let closed = dovetail_block::changed_zones(&mut drive, &mut seen).unwrap();
    let closed: Vec<_> = closed.iter().map(|zone| (zone.start, zone.state)).collect();
    assert_eq!(closed, [(Lba(64), Some(ZoneState::Closed))], "three may be open");
    assert_eq!(dovetail_block::changed_zones(&mut drive, &mut seen), Ok(vec![]));
}

#[test]
fn a_flush_keeps_what_a_die_does_not_take_yet() {
    let mut config = small();
    let us_of = |us| [SimSpan::from_us(us); 4];
    let cells = Cells { bits: 3, one_shot: true, parts: 1, read: us_of(60), program: us_of(1500) };
    config.nand.timing.cells = Some(cells);
    config.nand.geometry.pages_per_block = 12;
    config.zones.as_mut().unwrap().capacity = 48;
    let mut drive = ZonedDrive::new(config).unwrap();
    write(&mut drive, us(0), 64, 5, false);
    let flushed = submit(&mut drive, us(0), Command::Flush);
    let (mut drive, found) =
        drive.into_unrecovered_at(flushed).recover().map_err(|error| error.to_string()).unwrap();
    assert_eq!((found.zones_scanned, found.blocks_kept), (1, 2), "{found:?}");
    assert_eq!((drive.zones().state(0), drive.zones().written(0)), (ZoneState::Closed, 5));
    write(&mut drive, us(0), 69, 4, false);
    for lba in 64..73 {
        let first = if lba < 69 { 64 } else { 69 };
        let expected = Pattern::new(first + 1).nth(lba - first);
        assert_eq!(read(&mut drive, us(0), lba).1, Content::Pattern(expected), "{lba}");
    }
}

#[test]
fn a_zone_without_blocks_in_reserve_can_only_be_read() {
    let config = small();
    let zones = ZoneConfig { spare: 1, ..config.zones.unwrap() };
    let mut drive = ZonedDrive::new(DriveConfig { zones: Some(zones), ..config }).unwrap();
    let mut now = us(0);
    let zones = *drive.zones().zones();
    // all zones take all blocks; then a page fails
    drive.set_faults(FaultPlan { program_rate: 0.02, seed: 3, ..FaultPlan::default() });
    let mut worn_out = None;
    for zone in 0..zones.count {
        for offset in (0..64).step_by(8) {
            let range = BlockRange::new(Lba(zones.start(zone).0 + offset), 8);
            let data = Data::Patterns(Pattern::new(range.start.0 + 1));
            let command = Command::Write { range, data, hints: Hints::default(), fua: false };
            match drive.submit(now, command) {
                Ok(done) => now = done.done,
                Err(DeviceError::Zone(ZoneError::ReadOnly(zone))) => {
                    worn_out = worn_out.or(Some(zone));
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    let zone = worn_out.expect("a zone is worn out");
    assert_eq!(drive.zones().state(zone), ZoneState::ReadOnly);
    for offset in 0..drive.zones().written(zone) {
        let lba = zones.start(zone).0 + offset;
        let first = lba / 8 * 8;
        let expected = Content::Pattern(Pattern::new(first + 1).nth(lba - first));
        assert_eq!(read(&mut drive, now, lba).1, expected);
    }
}

/// The page-mapped part keeps its own share of lines free, not the zones': a stream that overwrites
/// all of it leaves lines without a page to move.
#[test]
fn conventional_blocks_in_a_row_are_never_moved() {
    let mut config = small();
    config.nand.geometry.blocks_per_plane = 400;
    config.zones.as_mut().unwrap().conventional = 640;
    // a twentieth of the drive's lines, a quarter of them in the background
    (config.foreground_lines, config.background_lines) = (20, 100);
    for power_loss_protection in [false, true] {
        let config = DriveConfig { power_loss_protection, ..config.clone() };
        let mut drive = ZonedDrive::new(config).unwrap();
        let mut now = us(0);
        for start in (0..8).flat_map(|_| (0..640).step_by(16)) {
            now = write(&mut drive, now, start, 16, false);
        }
        now = submit(&mut drive, now, Command::Flush);
        drive.write_out(now).unwrap();
        let moved = drive.counters().programs[dovetail_ftl::stats::Cause::Gc as usize];
        assert!(moved < 64, "{moved} of {} pages", 8 * 640);
        let waf = drive.counters().waf(1).unwrap();
        assert!((1.0..1.1).contains(&waf), "{waf}");
    }
}

/// Bad blocks beyond the spare ones make zones fewer, so that all of them can be filled.
#[test]
fn all_zones_of_a_drive_with_bad_blocks_can_be_filled() {
    let mut config = DriveConfig { user_blocks: 1280, ..small() };
    let whole = ZonedDrive::new(config.clone()).unwrap().zones().zones().count;
    let geometry = config.nand.geometry;
    // six blocks of the last unit, at the end
    let bad = (1..=6).map(|row| BlockId(geometry.blocks() - 4 * (row - 1) - 1));
    config.nand.factory_bad = bad.collect();
    let mut drive = ZonedDrive::new(config).unwrap();
    let zones = *drive.zones().zones();
    assert_eq!(zones.count, whole - 2, "two blocks of a unit a zone, two spare");
    let mut now = us(0);
    for zone in 0..zones.count {
        now = write(&mut drive, now, zones.start(zone).0, 64, false);
    }
}

/// Configurations that differ in all that matters: pages, planes, word lines, dies of a zone, what
/// a zone holds, windows, capacitors.
fn random_config(rng: &mut Rng) -> DriveConfig {
    let page_bytes = [4096, 8192, 16384][rng.below(3) as usize];
    let planes = 1 + rng.below(2) as u32;
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1 + rng.below(2) as u32,
        planes_per_die: planes,
        blocks_per_plane: 64,
        pages_per_block: 12,
        page_bytes,
    };
    let bits = 1 + rng.below(3) as u32;
    let us = |us| [SimSpan::from_us(us); 4];
    let cells = Cells { bits, one_shot: true, parts: 1, read: us(60), program: us(900) };
    let plain = DriveConfig::plain(geometry, 1 << 20);
    let cells = (rng.chance(0.6)).then_some(cells);
    let timing = Timing { cells, ..plain.nand.timing };
    let subpages = u64::from(page_bytes / 4096);
    let dies = [1, geometry.dies(), 2][rng.below(3) as usize];
    let stripe = u64::from(dies * planes * 12) * subpages;
    let capacity = stripe * (1 + rng.below(2)) - rng.below(stripe / 2);
    let window = (capacity >= 8 && rng.chance(0.4)).then_some(ZoneWindow {
        blocks: 8,
        granularity: 4,
        most: 2,
    });
    let max_active = 3 + rng.below(3) as u32;
    let zones = ZoneConfig {
        size: capacity.next_power_of_two(),
        capacity,
        conventional: [0, 16, 33][rng.below(3) as usize],
        dies,
        max_open: 2 + rng.below(2) as u32,
        max_active,
        max_append: 8,
        window,
        spare: 1 + rng.below(3) as u32,
        finish_fills: rng.chance(0.5),
        times: random_times(&rng.fork(77)),
    };
    let unit = planes * bits;
    let drive = DriveConfig {
        nand: NandConfig { timing, ..plain.nand },
        buffer_pages: if cells.is_none() && rng.chance(0.2) { 0 } else { 2 * unit * max_active },
        power_loss_protection: rng.chance(0.2),
        ..plain
    };
    DriveConfig { zones: Some(zones), ..drive }
}

/// Times of commands on zones, or none.
fn random_times(rng: &Rng) -> ZoneTimes {
    let mut rng = rng.clone();
    let mut time = || SimSpan::from_us(rng.below(3000));
    let times = ZoneTimes { reset: time(), reset_full: time() };
    if rng.chance(0.5) { times } else { ZoneTimes::default() }
}

/// A zone as the model has it, since its last reset.
#[derive(Clone, Default)]
struct Life {
    /// By block: every content that it was given, the last one last.
    versions: Vec<Vec<u64>>,
    pointer: u64,
}

/// The part that surely survives: of which life, up to where, which version of each block at least.
#[derive(Clone, Default)]
struct Safe {
    life: usize,
    pointer: u64,
    versions: Vec<usize>,
}

struct Model {
    table: ZoneTable,
    lives: Vec<Vec<Life>>,
    safe: Vec<Safe>,
    /// Ends of commands that make something safe.
    pending: Vec<(SimTime, usize, Safe)>,
    conventional: Vec<Vec<u64>>,
    conventional_safe: Vec<usize>,
    conventional_pending: Vec<(SimTime, Vec<usize>)>,
}

impl Model {
    fn new(drive: &ZonedDrive) -> Self {
        let zones = *drive.zones().zones();
        let count = zones.count as usize;
        let conventional = vec![vec![0]; zones.first.0 as usize];
        Self {
            table: ZoneTable::new(zones),
            lives: vec![vec![Life::new(zones.capacity)]; count],
            safe: (0..count)
                .map(|_| Safe { versions: vec![0; zones.capacity as usize], ..Safe::default() })
                .collect(),
            pending: Vec::new(),
            conventional_safe: vec![0; conventional.len()],
            conventional,
            conventional_pending: Vec::new(),
        }
    }

    fn life(&mut self, zone: u32) -> &mut Life {
        self.lives[zone as usize].last_mut().unwrap()
    }

    fn snapshot(&self, zone: usize) -> Safe {
        let life = self.lives[zone].last().unwrap();
        let versions = life.versions.iter().map(|versions| versions.len() - 1).collect();
        Safe { life: self.lives[zone].len() - 1, pointer: life.pointer, versions }
    }

    fn will_be_safe(&mut self, done: SimTime, zone: u32) {
        let snapshot = self.snapshot(zone as usize);
        self.pending.push((done, zone as usize, snapshot));
    }

    fn flushed(&mut self, done: SimTime) {
        (0..self.lives.len() as u32).for_each(|zone| self.will_be_safe(done, zone));
        let versions = self.conventional.iter().map(|versions| versions.len() - 1).collect();
        self.conventional_pending.push((done, versions));
    }

    /// All that had completed by `at` is safe.
    fn settle(&mut self, at: SimTime) {
        for (done, zone, safe) in std::mem::take(&mut self.pending) {
            let known = &mut self.safe[zone];
            if done <= at && (safe.life, safe.pointer) >= (known.life, known.pointer) {
                if safe.life > known.life {
                    *known = safe;
                } else {
                    known.pointer = safe.pointer;
                    for (known, version) in known.versions.iter_mut().zip(safe.versions) {
                        *known = (*known).max(version);
                    }
                }
            }
        }
        for (done, versions) in std::mem::take(&mut self.conventional_pending) {
            if done <= at {
                for (known, version) in self.conventional_safe.iter_mut().zip(versions) {
                    *known = (*known).max(version);
                }
            }
        }
    }
}

impl Life {
    fn new(capacity: u64) -> Self {
        Self { versions: vec![vec![0]; capacity as usize], pointer: 0 }
    }
}

fn number(content: &Content) -> u64 {
    match content {
        Content::Empty => 0,
        Content::Pattern(pattern) => pattern.number(),
        Content::Bytes(_) => panic!("no bytes were written"),
    }
}

struct Rig {
    drive: ZonedDrive,
    model: Model,
    rng: Rng,
    now: SimTime,
    version: u64,
    cuts: u64,
    commands: u64,
    /// Zones that are used.
    zones: u32,
}

impl Rig {
    /// Fills all zones but those that are used: what is erased is soon given to another.
    fn leave_few_blocks(&mut self) {
        let zones = *self.model.table.zones();
        for zone in self.zones.min(zones.count)..zones.count {
            let (range, first) = (BlockRange::new(zones.start(zone), 1), self.next_versions(1));
            let (data, hints) = (Data::Patterns(first), Hints::default());
            let command = Command::Write { range, data, hints, fua: true };
            let did = self.drive.submit(self.now, command).map(|done| done.done);
            self.now = self.wrote(zone, range, first, true, did);
            let (start, action) = (Some(zones.start(zone)), ZoneAction::Finish);
            self.now = submit(&mut self.drive, self.now, Command::Zone { start, action });
            self.model.table.perform(zone, action).unwrap();
            self.model.will_be_safe(self.now, zone);
        }
    }

    fn step(&mut self) {
        self.commands += 1;
        let zones = *self.model.table.zones();
        let zone = self.rng.below(u64::from(zones.count.min(self.zones))) as u32;
        let done = match self.rng.below(20) {
            0..9 => self.write(zone),
            9..11 => self.append(zone),
            11..13 => self.read(zone),
            13 => self.write_conventional(),
            14..16 => {
                let done = submit(&mut self.drive, self.now, Command::Flush);
                self.model.flushed(done);
                done
            }
            _ => self.act(zone),
        };
        assert_eq!(self.drive.zones().state(zone), self.model.table.state(zone), "zone {zone}");
        // half of the commands come while others are under way
        self.now = match self.rng.below(4) {
            0 | 1 => self.now.max(done),
            2 => self.now + SimSpan::from_us(self.rng.below(300)),
            _ => self.now.max(done) + SimSpan::from_us(self.rng.below(8000)),
        };
    }

    fn next_versions(&mut self, blocks: u64) -> Pattern {
        self.version += blocks;
        Pattern::new(self.version - blocks + 1)
    }

    fn write(&mut self, zone: u32) -> SimTime {
        let zones = *self.model.table.zones();
        let pointer = self.model.table.written(zone);
        let reach = if self.model.table.has_window(zone) { 16 } else { 0 };
        let at = match self.rng.below(12) {
            0 => self.rng.below(zones.capacity),
            _ => pointer + self.rng.below(reach + 1),
        };
        let blocks = 1 + self.rng.below(12);
        let range = BlockRange::new(Lba(zones.start(zone).0 + at), blocks);
        // past the last block of a zone the next one begins
        let zone = zones.index(range.start).unwrap_or(zone);
        let first = self.next_versions(blocks);
        let fua = self.rng.chance(0.1);
        let (data, hints) = (Data::Patterns(first), Hints::default());
        let did = self.drive.submit(self.now, Command::Write { range, data, hints, fua });
        self.wrote(zone, range, first, fua, did.map(|done| done.done))
    }

    fn append(&mut self, zone: u32) -> SimTime {
        let zones = *self.model.table.zones();
        let blocks = 1 + self.rng.below(9);
        let first = self.next_versions(blocks);
        let pointer = Lba(zones.start(zone).0 + self.model.table.written(zone));
        let command = Command::Append {
            zone: zones.start(zone),
            blocks,
            data: Data::Patterns(first),
            hints: Hints::default(),
            fua: false,
        };
        let did = self.drive.submit(self.now, command);
        if let Ok(done) = &did {
            assert_eq!(done.answer.clone().into_addresses(), [pointer]);
        }
        let range = BlockRange::new(pointer, blocks);
        if let Err(expected) = self.model.table.append_to(zones.start(zone), blocks) {
            assert_eq!(did.unwrap_err(), DeviceError::Zone(expected));
            return self.now;
        }
        self.wrote(zone, range, first, false, did.map(|done| done.done))
    }

    /// Holds the outcome of a write, or its error, against the model's.
    fn wrote(
        &mut self,
        zone: u32,
        range: BlockRange,
        first: Pattern,
        fua: bool,
        did: Result<SimTime, DeviceError>,
    ) -> SimTime {
        let zones = *self.model.table.zones();
        if range.end().0 > zones.end().0 {
            assert!(matches!(did, Err(DeviceError::OutOfRange { .. })));
            return self.now;
        }
        let done = match (self.model.table.begin_write(zone, range), did) {
            (Ok(()), Ok(done)) => done,
            (Err(expected), Err(DeviceError::Zone(error))) => {
                assert_eq!(error, expected);
                return self.now;
            }
            (expected, did) => panic!("{range} in zone {zone}: {expected:?}, {did:?}"),
        };
        let start = zones.start(zone).0;
        for (i, lba) in range.iter().enumerate() {
            let raw = first.nth(i as u64).number();
            self.model.life(zone).versions[(lba.0 - start) as usize].push(raw);
        }
        let (end, written) = (range.end().0 - start, self.model.table.written(zone));
        let to = match zones.window.filter(|_| self.model.table.has_window(zone)) {
            Some(window) if end <= written + window.blocks => written,
            Some(window) => {
                let beyond = end - written - window.blocks;
                (written + beyond.next_multiple_of(window.granularity)).min(zones.capacity)
            }
            None => end,
        };
        self.model.table.wrote(zone, to - written);
        self.model.life(zone).pointer = to;
        let config = self.drive.config();
        if fua || config.buffer_pages == 0 || config.power_loss_protection {
            self.model.will_be_safe(done, zone);
        }
        done
    }

    fn write_conventional(&mut self) -> SimTime {
        let most = self.model.conventional.len() as u64;
        if most == 0 {
            return self.now;
        }
        let lba = self.rng.below(most);
        let first = self.next_versions(1);
        let (range, data) = (BlockRange::new(Lba(lba), 1), Data::Patterns(first));
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        let done = submit(&mut self.drive, self.now, command);
        self.model.conventional[lba as usize].push(first.number());
        if self.drive.config().power_loss_protection || self.drive.config().buffer_pages == 0 {
            let mut versions = vec![0; most as usize];
            versions[lba as usize] = self.model.conventional[lba as usize].len() - 1;
            self.model.conventional_pending.push((done, versions));
        }
        done
    }

    fn read(&mut self, zone: u32) -> SimTime {
        let zones = *self.model.table.zones();
        let offset = self.rng.below(zones.capacity);
        let (done, content) = read(&mut self.drive, self.now, zones.start(zone).0 + offset);
        let newest = *self.model.life(zone).versions[offset as usize].last().unwrap();
        assert_eq!(number(&content), newest, "block {offset} of zone {zone}");
        done
    }

    fn act(&mut self, zone: u32) -> SimTime {
        let zones = *self.model.table.zones();
        let window = zones.window.is_some() && self.rng.chance(0.7);
        let written = self.model.table.written(zone);
        let action = match self.rng.below(10) {
            0 => ZoneAction::Close,
            1 => ZoneAction::Finish,
            2..5 => ZoneAction::Open { window },
            5 => ZoneAction::FlushWindow { up_to: Lba(zones.start(zone).0 + written + 4) },
            _ => ZoneAction::Reset,
        };
        let command = Command::Zone { start: Some(zones.start(zone)), action };
        let did = self.drive.submit(self.now, command);
        let before = self.model.table.state(zone);
        let done = match (self.model.table.perform(zone, action), did) {
            (Ok(()), Ok(done)) => done.done,
            (Err(expected), Err(DeviceError::Zone(error))) => {
                assert_eq!(error, expected);
                return self.now;
            }
            (expected, did) => panic!("{action:?} of zone {zone}: {expected:?}, {did:?}"),
        };
        match action {
            ZoneAction::Reset if before != ZoneState::Empty => {
                self.model.lives[zone as usize].push(Life::new(zones.capacity));
                self.model.will_be_safe(done, zone);
            }
            ZoneAction::Finish if before != ZoneState::Full => {
                // what lies beyond the pointer of a window is given up
                let mut life = self.model.life(zone).clone();
                let pointer = life.pointer as usize;
                life.versions[pointer..].iter_mut().for_each(|versions| *versions = vec![0]);
                self.model.lives[zone as usize].push(life);
                self.model.will_be_safe(done, zone);
            }
            ZoneAction::FlushWindow { up_to } => {
                let to = up_to.0 - zones.start(zone).0;
                self.model.table.wrote(zone, to - written);
                self.model.life(zone).pointer = to;
                self.model.will_be_safe(done, zone);
            }
            _ => {}
        }
        done
    }

    /// Cuts the power now or soon, and holds what is left against what was promised.
    fn cut(mut self) -> Self {
        self.cuts += 1;
        let at = self.now + SimSpan::from_us(self.rng.below(4000));
        self.model.settle(at);
        let (mut drive, _) = self.drive.into_unrecovered_at(at).recover().unwrap();
        drive.remember_operations();
        let zones = *self.model.table.zones();
        let mut found = Vec::new();
        for zone in 0..zones.count {
            let (state, written) = (drive.zones().state(zone), drive.zones().written(zone));
            let contents: Vec<u64> = (0..zones.capacity)
                .map(|offset| number(&read(&mut drive, us(0), zones.start(zone).0 + offset).1))
                .collect();
            let life = self.model.take_up(zone as usize, written, &contents);
            self.model.lives[zone as usize] = vec![life];
            found.push((state, written));
        }
        for lba in 0..self.model.conventional.len() {
            let content = number(&read(&mut drive, us(0), lba as u64).1);
            let versions = &self.model.conventional[lba];
            let version = versions.iter().rposition(|&version| version == content);
            let least = self.model.conventional_safe[lba];
            assert!(version.is_some_and(|v| v >= least), "conventional block {lba}");
            self.model.conventional[lba] = vec![content];
            self.model.conventional_safe[lba] = 0;
        }
        let mut table = ZoneTable::found(zones, found);
        (0..zones.count).filter(|&zone| drive.zones().has_window(zone)).for_each(|zone| {
            table.restore_window(zone);
        });
        self.model.table = table;
        for zone in 0..zones.count as usize {
            self.model.safe[zone] = self.model.snapshot(zone);
        }
        self.now = us(1);
        Self { drive, ..self }
    }
}

impl Model {
    /// Finds a life of a zone of which this can be what is left; returns that as a life of its own.
    fn take_up(&mut self, zone: usize, written: u64, contents: &[u64]) -> Life {
        let safe = &self.safe[zone];
        let fits = |index: usize| {
            let life = &self.lives[zone][index];
            let (least, none) = (safe.pointer, vec![0; contents.len()]);
            let (least, versions) =
                if index == safe.life { (least, &safe.versions) } else { (0, &none) };
            if written < least || written > life.pointer {
                return Err(format!("{written} not in {least}..={}", life.pointer));
            }
            for (offset, &content) in contents.iter().enumerate() {
                let found = life.versions[offset].iter().rposition(|&v| v == content);
                if found.is_none_or(|found| found < versions[offset]) {
                    return Err(format!("block {offset} is {content}"));
                }
                let is_before = (offset as u64) < written;
                let newest = life.versions[offset].len() - 1;
                if is_before && found == Some(0) && newest == 1 {
                    return Err(format!("block {offset} before the pointer is lost"));
                }
            }
            Ok(())
        };
        let tried: Vec<_> = (safe.life..self.lives[zone].len()).map(fits).collect();
        assert!(tried.iter().any(Result::is_ok), "zone {zone} fits no life: {tried:?}");
        let versions = contents.iter().map(|&content| vec![content]).collect();
        Life { versions, pointer: written }
    }
}

fn run(seed: u64) -> (u64, u64) {
    let mut rng = Rng::new(seed);
    let config = random_config(&mut rng);
    let mut drive = ZonedDrive::new(config).unwrap();
    if seed.is_multiple_of(3) {
        let rate = [0.002, 0.02][rng.below(2) as usize];
        drive.set_faults(FaultPlan {
            seed,
            program_rate: rate,
            erase_rate: rate,
            ..FaultPlan::default()
        });
    }
    drive.remember_operations();
    let model = Model::new(&drive);
    let zones = [4, 7, 14][rng.below(3) as usize];
    let mut rig = Rig { drive, model, rng, now: us(0), version: 0, cuts: 0, commands: 0, zones };
    if seed % 4 == 1 && !seed.is_multiple_of(3) {
        rig.leave_few_blocks();
    }
    for _ in 0..12 {
        for _ in 0..rig.rng.below(160) {
            rig.step();
        }
        rig = rig.cut();
    }
    (rig.cuts, rig.commands)
}

/// Random commands on random drives, with power cuts at any time: states and errors are those of
/// the table, content is that of the model, and what was flushed is there.
#[test]
fn a_zoned_drive_is_its_model_through_power_cuts() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    if let Some(seed) = number("DOVETAIL_SEED") {
        run(seed);
        return;
    }
    let (mut cuts, mut commands) = (0, 0);
    for seed in 0..number("DOVETAIL_SEEDS").unwrap_or(500) {
        let (cut, done) = std::panic::catch_unwind(|| run(seed)).unwrap_or_else(|_| {
            panic!("seed {seed} fails: DOVETAIL_SEED={seed} cargo test -p dovetail-ftl --test all zoned::")
        });
        (cuts, commands) = (cuts + cut, commands + done);
    }
    println!("{commands} commands, {cuts} power cuts");
    assert!(cuts >= 2000 && commands >= 100_000);
}
