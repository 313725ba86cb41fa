//! Log-block maps: what each merge copies and how long the write that waits for it takes, worked
//! out by hand.
//!
//! One die of one plane, lines of four pages. A read takes 50 us, a program 500, a page 10 on the
//! channel and 1 on the link. Without a write buffer a write takes 1 + 10 + 500 us. A merge reads
//! and programs a page at a time. The first program begins after its page was read and has come
//! back over the channel: 50 + 10 + 10 us. The others follow without a gap, but for the read of
//! each (50 us), which goes before them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{
    BlockDevice, BlockRange, Command, Content, Data, Hints, Lba, Pattern, SectorRange,
};
use dovetail_ftl::stats::Cause;
use dovetail_ftl::{
    ConfigError, Drive, DriveConfig, LogBlockConfig, LogScheme, Overrides, Profile,
};
use dovetail_nand::Geometry;
use dovetail_time::{Rng, SimSpan, SimTime};

const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 32,
    pages_per_block: 4,
    page_bytes: 4096,
};
/// A write that waits for nothing.
const ALONE: u64 = 511;

fn config(scheme: LogScheme, log_lines: u32) -> DriveConfig {
    let log_block = Some(LogBlockConfig { scheme, log_lines });
    DriveConfig { log_block, ..DriveConfig::plain(GEOMETRY, 40) }
}

/// A drive, and the block that is written next at the time when the last one is done.
struct Bench {
    drive: Drive,
    now: SimTime,
    versions: Vec<u64>,
}

impl Bench {
    fn new(scheme: LogScheme, log_lines: u32) -> Self {
        let drive = Drive::new(config(scheme, log_lines)).unwrap();
        Self { drive, now: SimTime::ZERO, versions: vec![0; 40] }
    }

    /// Writes a block; returns the microseconds that it takes.
    fn write(&mut self, lba: u64) -> u64 {
        self.versions[lba as usize] += 1;
        let pattern = Pattern::new(1000 * self.versions[lba as usize] + lba);
        let command = Command::Write {
            range: BlockRange::new(Lba(lba), 1),
            data: Data::Blocks(&[Content::Pattern(pattern)]),
            hints: Hints::default(),
            fua: false,
        };
        let done = self.drive.submit(self.now, command).unwrap().done;
        let took = done.since(self.now).as_ns() / 1000;
        self.now = done;
        took
    }

    fn fill(&mut self, blocks: std::ops::Range<u64>) {
        blocks.for_each(|lba| assert_eq!(self.write(lba), ALONE, "block {lba}"));
    }

    /// Switch, partial and full merges, pages that they copied, and pages read for them.
    fn merges(&self) -> [u64; 5] {
        let counters = self.drive.counters();
        let copied = counters.programs[Cause::Merge as usize];
        let [switch, partial, full] =
            [counters.switch_merges, counters.partial_merges, counters.full_merges];
        [switch, partial, full, copied, counters.flash_reads.iter().sum()]
    }

    /// Erases of lines once all that was issued is through.
    fn erases(&mut self) -> u64 {
        let long = SimSpan::from_ms(100);
        for _ in 0..2 {
            self.now += long;
            self.drive.submit(self.now, Command::Flush).unwrap();
        }
        self.drive.check().unwrap();
        self.drive.counters().erases
    }

    fn check(&mut self) {
        for lba in 0..40 {
            let mut found = [Content::Empty];
            let range = BlockRange::new(Lba(lba), 1);
            self.drive.submit(self.now, Command::Read { range, into: Some(&mut found) }).unwrap();
            let expected = match self.versions[lba as usize] {
                0 => Content::Empty,
                version => Content::Pattern(Pattern::new(1000 * version + lba)),
            };
            assert_eq!(found[0], expected, "block {lba}");
        }
    }
}

#[test]
fn a_log_line_filled_in_order_becomes_the_data_line_at_no_cost() {
    let mut bench = Bench::new(LogScheme::Bast, 1);
    bench.fill(0..4);
    assert_eq!(bench.write(4), ALONE, "block 1 needs the log line");
    assert_eq!(bench.merges(), [1, 0, 0, 0, 0]);
    assert_eq!(bench.erases(), 0, "there was no data line before");
    bench.fill(5..8);
    bench.fill(0..4);
    assert_eq!(bench.write(8), ALONE);
    assert_eq!(bench.merges(), [3, 0, 0, 0, 0]);
    assert_eq!(bench.erases(), 1, "the data line of block 0");
    bench.check();
}

#[test]
fn a_log_line_that_begins_in_order_gets_the_rest_of_its_block() {
    let mut bench = Bench::new(LogScheme::Bast, 1);
    bench.fill(0..4);
    bench.fill(0..2);
    // Pages 2 and 3 are copied behind 0 and 1, then the new page is programmed.
    assert_eq!(bench.write(4), 1 + 70 + 500 + (50 + 500) + 500);
    assert_eq!(bench.merges(), [1, 1, 0, 2, 2]);
    assert_eq!(bench.erases(), 1, "the old data line");
    bench.check();
}

#[test]
fn a_log_line_out_of_order_costs_a_copy_of_the_block() {
    let mut bench = Bench::new(LogScheme::Bast, 1);
    bench.fill(0..4);
    bench.fill(1..2);
    assert_eq!(bench.write(4), 1 + 70 + 4 * 500 + 3 * 50 + 500);
    assert_eq!(bench.merges(), [1, 0, 1, 4, 4]);
    assert_eq!(bench.erases(), 2, "the old data line and the log line");
    bench.check();
}

#[test]
fn a_shared_log_line_costs_a_copy_of_each_of_its_blocks() {
    let mut bench = Bench::new(LogScheme::Fast, 2);
    bench.fill(0..8);
    assert_eq!(bench.merges(), [1, 0, 0, 0, 0], "block 1 begins: block 0 is switched");
    for lba in [1, 5, 2, 6] {
        assert_eq!(bench.write(lba), ALONE, "in the shared line");
    }
    assert_eq!(bench.write(3), 1 + 70 + 8 * 500 + 7 * 50 + 500);
    assert_eq!(bench.merges(), [1, 0, 2, 8, 8]);
    assert_eq!(bench.erases(), 3, "two data lines and the shared one");
    bench.check();
}

#[test]
fn writes_in_a_row_merge_partially_when_another_block_begins() {
    let mut bench = Bench::new(LogScheme::Fast, 2);
    bench.fill(0..4);
    bench.fill(0..3);
    assert_eq!(bench.write(4), 1 + 70 + 500 + 500, "page 3 of block 0 is copied");
    assert_eq!(bench.merges(), [1, 1, 0, 1, 1]);
    bench.check();
}

#[test]
fn discarded_pages_are_not_copied() {
    let mut bench = Bench::new(LogScheme::Bast, 1);
    bench.fill(0..4);
    bench.fill(1..2);
    let discard = Command::Discard { ranges: &[SectorRange::from(BlockRange::new(Lba(2), 2))] };
    bench.drive.submit(bench.now, discard).unwrap();
    bench.versions[2..4].fill(0);
    bench.write(4);
    assert_eq!(bench.merges(), [1, 0, 1, 2, 2]);
    bench.check();
}

#[test]
fn the_map_takes_an_entry_for_each_block_and_each_page_of_the_log() {
    let drive = Drive::new(config(LogScheme::Fast, 3)).unwrap();
    assert_eq!(drive.mapping_memory_bytes(), 4 * (10 + 3 * 4));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let refused = |change: fn(&mut DriveConfig)| {
        let mut config = config(LogScheme::Fast, 2);
        change(&mut config);
        matches!(Drive::new(config), Err(ConfigError::LogBlock(_)))
    };
    assert!(!refused(|_| {}));
    assert!(refused(|config| config.streams = 2));
    assert!(refused(|config| config.gc_apart = false));
    let one = LogBlockConfig { scheme: LogScheme::Fast, log_lines: 1 };
    let one = DriveConfig { log_block: Some(one), ..config(LogScheme::Fast, 2) };
    assert!(matches!(Drive::new(one), Err(ConfigError::LogBlock(_))));
}

/// The card as it comes: lines of word lines that are programmed in one go, and blocks that were bad
/// from the start.
#[test]
fn a_full_card_takes_random_writes_and_flushes() {
    let scale = "1/64".parse().ok();
    for map in ["fast", "bast"] {
        let overrides = Overrides { scale, map: Some(map.into()), ..Overrides::default() };
        let config = Profile::load("sd-fast-a2-64g").unwrap().resolve(&overrides).unwrap();
        let blocks = config.user_blocks;
        let (mut drive, mut now) = (Drive::new(config).unwrap(), SimTime::ZERO);
        let mut rng = Rng::new(1);
        let fill = (0..blocks / 64 * 64).step_by(64).map(|lba| (lba, 64));
        let random: Vec<u64> = (0..20_000).map(|_| rng.below(blocks)).collect();
        for (lba, count) in fill.chain(random.into_iter().map(|lba| (lba, 1))) {
            let range = BlockRange::new(Lba(lba), count);
            let (data, hints) = (Data::Patterns(Pattern::new(lba + 1)), Hints::default());
            let write = Command::Write { range, data, hints, fua: false };
            now = drive.submit(now, write).unwrap().done;
            if lba % 1024 == 0 {
                now = drive.submit(now, Command::Flush).unwrap().done;
            }
        }
        let counters = drive.counters();
        assert!(counters.switch_merges > 100 && counters.full_merges > 100, "{map}: {counters:?}");
        drive.check().unwrap();
    }
}

/// Half of the blocks are written once, the others over and over.
#[test]
fn static_wear_levelling_keeps_cold_blocks_from_staying_young() {
    for scheme in LogScheme::ALL {
        let spread = |wear_spread| {
            let drive = Drive::new(DriveConfig { wear_spread, ..config(scheme, 4) }).unwrap();
            let mut bench = Bench { drive, now: SimTime::ZERO, versions: vec![0; 40] };
            bench.fill(0..40);
            let mut rng = Rng::new(1);
            for _ in 0..20_000 {
                bench.write(rng.below(20));
            }
            bench.drive.check().unwrap();
            bench.check();
            let erases = || bench.drive.erase_counts();
            (erases().max().unwrap() - erases().min().unwrap(), bench.drive.counters().wear_runs)
        };
        let ((without, none), (with, runs)) = (spread(0), spread(10));
        assert!(without > 100 && none == 0, "{scheme:?}: {without}");
        assert!(
            with * 3 < without && runs > 0,
            "{scheme:?}: {with} with {runs}, {without} without"
        );
    }
}
