//! Remapping as the host notices it: what moves, what survives, what it costs.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{
    BatchId, BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba, Pattern,
    RemapLimits, RemapPair, RemapWhen, SectorRange,
};
use dovetail_ftl::lines::LineId;
use dovetail_ftl::stats::{Cause, MapUse};
use dovetail_ftl::{ConfigError, Drive, DriveConfig, MapCacheConfig, RemapConfig, RemapStore};
use dovetail_nand::{FaultPlan, Geometry, NandConfig, PowerCut, Ppn, Torn};
use dovetail_time::{Rng, SimSpan, SimTime};

const COMMAND: u64 = 5_000;
const MAP_ACCESS: u64 = 50;
const ENTRY: u64 = 100;
/// A page over the channel and into the cells.
const PROGRAM: u64 = 510_000;

const NON_VOLATILE: RemapStore =
    RemapStore::NonVolatile { access: SimSpan::from_ns(ENTRY), discard_records: 169 };

const SEGMENTED_LOG: RemapStore = RemapStore::SegmentedLog {
    access: SimSpan::from_ns(ENTRY),
    discard_records: 169,
    segments: 0,
    segment_bytes: 512,
};

/// 2 channels, 4 dies, 32 superblocks of 64 pages of 4 KiB; 1,400 blocks for the host.
fn config(store: RemapStore) -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 32,
        pages_per_block: 16,
        page_bytes: 4096,
    };
    DriveConfig {
        idle_after: SimSpan::from_ms(1_000_000),
        map_access: SimSpan::from_ns(MAP_ACCESS),
        command: SimSpan::from_ns(COMMAND),
        remap: Some(RemapConfig { limits: RemapLimits::of(400, 100), store }),
        ..DriveConfig::plain(geometry, 1400)
    }
}

/// A drive with the next time. Content is a pattern of the writer's choice.
struct Host {
    drive: Drive,
    now: SimTime,
}

impl Host {
    fn new(config: DriveConfig) -> Self {
        Self { drive: Drive::new(config).unwrap(), now: SimTime::ZERO }
    }

    /// Submits, and returns how long it takes.
    fn submit(&mut self, command: Command<'_>) -> Result<u64, DeviceError> {
        let done = self.drive.submit(self.now, command)?.done;
        Ok(done.since(self.now).as_ns())
    }

    /// Writes one block and waits until it is acknowledged.
    fn write(&mut self, lba: u64, pattern: u64) {
        let data = Data::Patterns(Pattern::new(pattern));
        let range = BlockRange::new(Lba(lba), 1);
        let spent = self
            .submit(Command::Write { range, data, hints: Hints::default(), fua: false })
            .unwrap();
        self.now += SimSpan::from_ns(spent);
    }

    fn remap(&mut self, pairs: &[RemapPair], when: RemapWhen) -> u64 {
        self.submit(Command::Remap { pairs, when }).unwrap()
    }

    fn read(&mut self, lba: u64) -> Content {
        let mut into = [Content::Empty];
        self.submit(Command::Read { range: BlockRange::new(Lba(lba), 1), into: Some(&mut into) })
            .unwrap();
        into[0].clone()
    }

    fn discard(&mut self, lba: u64) {
        self.submit(Command::Discard { ranges: &[SectorRange::new(lba * 8, 8)] }).unwrap();
    }

    fn programs(&self, cause: Cause) -> u64 {
        self.drive.counters().programs[cause as usize]
    }

    /// Cuts the power in the order of issue, and recovers.
    fn cut(self) -> Self {
        let (drive, _) = self.drive.into_unrecovered().recover().unwrap();
        drive.check().unwrap();
        Self { drive, now: SimTime::ZERO }
    }
}

fn pairs(to: u64, from: u64, count: u64) -> Vec<RemapPair> {
    (0..count).map(|i| RemapPair { to: Lba(to + i), from: Lba(from + i) }).collect()
}

fn pattern(n: u64) -> Content {
    Content::Pattern(Pattern::new(n))
}

#[test]
fn content_moves_without_being_programmed_again_and_stays_after_a_cut() {
    for store in [NON_VOLATILE, SEGMENTED_LOG, RemapStore::Log] {
        let mut host = Host::new(config(store));
        host.write(0, 1);
        host.write(1, 2);
        host.write(700, 3);
        // Block 701 was never written: its destination becomes empty.
        host.remap(&pairs(0, 700, 2), RemapWhen::Now);
        assert_eq!(host.programs(Cause::Host), 3);
        for _ in 0..2 {
            let found: Vec<_> = [0, 1, 700, 701].map(|lba| host.read(lba)).into();
            assert_eq!(
                found,
                [pattern(3), Content::Empty, Content::Empty, Content::Empty],
                "{store:?}"
            );
            host = host.cut();
        }
    }
}

#[test]
fn an_entry_costs_an_access_to_non_volatile_memory() {
    for count in [1, 10, 100] {
        let mut host = Host::new(config(NON_VOLATILE));
        (0..count).for_each(|i| host.write(700 + i, i));
        let spent = host.remap(&pairs(0, 700, count), RemapWhen::Now);
        // A lookup of the source; updates of source and destination.
        assert_eq!(spent, COMMAND + count * (3 * MAP_ACCESS + ENTRY), "{count} pairs");
        let counters = host.drive.counters();
        assert_eq!(
            (counters.remaps, counters.remapped_pairs, counters.nvm_accesses),
            (1, count, count)
        );
        assert_eq!(host.programs(Cause::Remap) + host.programs(Cause::Journal), 0);
    }
}

#[test]
fn a_remap_waits_for_sources_that_are_in_the_buffer_only() {
    let mut host = Host::new(DriveConfig { buffer_pages: 16, ..config(NON_VOLATILE) });
    host.write(700, 1);
    host.write(701, 2);
    assert_eq!(host.programs(Cause::Host), 0);
    let spent = host.remap(&pairs(0, 700, 2), RemapWhen::Now);
    assert_eq!(host.programs(Cause::Host), 2, "sent to two channels");
    assert_eq!(
        spent,
        COMMAND + PROGRAM + 2 * (2 * MAP_ACCESS + ENTRY),
        "lookups go with the programs"
    );
    assert_eq!((host.read(0), host.read(700)), (pattern(1), Content::Empty));
}

#[test]
fn a_dirty_destination_is_older_than_the_remap() {
    for store in [NON_VOLATILE, SEGMENTED_LOG, RemapStore::Log] {
        let mut host = Host::new(DriveConfig { buffer_pages: 16, ..config(store) });
        host.write(700, 1);
        host.write(0, 2);
        host.remap(&pairs(0, 700, 1), RemapWhen::Now);
        assert_eq!(host.read(0), pattern(1));
        host.submit(Command::Flush).unwrap();
        assert_eq!(host.cut().read(0), pattern(1), "{store:?}");
    }
}

#[test]
fn in_the_log_a_remap_costs_a_page_for_each_338_pairs() {
    for (count, pages) in [(1, 1), (338, 1), (339, 2)] {
        let mut host = Host::new(config(RemapStore::Log));
        (0..count).for_each(|i| host.write(700 + i, i));
        let spent = host.remap(&pairs(0, 700, count), RemapWhen::Now);
        assert_eq!(host.programs(Cause::Remap), pages, "{count} pairs");
        assert_eq!(
            spent,
            COMMAND + PROGRAM + count * 3 * MAP_ACCESS,
            "its pages are programmed side by side"
        );
        assert_eq!(host.drive.counters().nvm_accesses, 0);
    }
}

/// 10 pairs at a time, sources one after the other as a log-structured file system writes them. The
/// tables cost less than a tenth of a page a remap.
#[test]
fn tables_of_the_log_cost_little_when_sources_come_in_a_row() {
    let mut host = Host::new(config(RemapStore::Log));
    let (remaps, mut rng) = (2000, Rng::new(3));
    for round in 0..remaps {
        let from = 1000 + round % 40 * 10;
        (0..10).for_each(|i| host.write(from + i, round * 10 + i));
        host.remap(&pairs(rng.below(990), from, 10), RemapWhen::Now);
    }
    host.drive.check().unwrap();
    let programs = host.programs(Cause::Remap);
    // The drive has 7 table pages and 16 slots: at most 7 tables each 16 remaps.
    assert!(
        (remaps..remaps + remaps * 7 / 16 + 7).contains(&programs),
        "{programs} for {remaps} remaps"
    );
}

#[test]
fn a_flush_writes_no_journal_page_where_records_are_in_non_volatile_memory() {
    for (store, pages) in [(NON_VOLATILE, 0), (RemapStore::Log, 10)] {
        let mut host = Host::new(config(store));
        for lba in 0..10 {
            host.write(2 * lba, lba);
            host.discard(2 * lba);
            host.submit(Command::Flush).unwrap();
        }
        assert_eq!(host.programs(Cause::Journal), pages);
        assert_eq!(host.cut().read(4), Content::Empty);
    }
}

#[test]
fn records_that_fill_a_page_go_to_flash() {
    let mut host = Host::new(config(NON_VOLATILE));
    (0..400).for_each(|lba| host.write(2 * lba, lba));
    (0..338).for_each(|lba| host.discard(2 * lba));
    assert_eq!(host.programs(Cause::Journal), 2);
    host.discard(2 * 338);
    let mut host = host.cut();
    for lba in 0..400 {
        assert_eq!(
            host.read(2 * lba),
            if lba <= 338 { Content::Empty } else { pattern(lba) },
            "block {lba}"
        );
    }
}

#[test]
fn held_pairs_wait_for_their_last_command_and_a_cut_forgets_them() {
    for store in [NON_VOLATILE, SEGMENTED_LOG, RemapStore::Log] {
        let mut host = Host::new(config(store));
        (0..8).for_each(|i| host.write(700 + i, i));
        let batch = BatchId(1);
        assert_eq!(host.remap(&pairs(0, 700, 2), RemapWhen::Held(batch)), COMMAND);
        assert_eq!((host.read(0), host.read(700)), (Content::Empty, pattern(0)), "held");
        host = host.cut();
        host.remap(&pairs(2, 702, 2), RemapWhen::Held(batch));
        host.remap(&pairs(4, 704, 2), RemapWhen::WithHeld(batch));
        let mut host = host.cut();
        let found: Vec<_> = (0..6).map(|lba| host.read(lba)).collect();
        let moved = [2, 3, 4, 5].map(pattern);
        assert_eq!(found[..2], [Content::Empty, Content::Empty], "forgotten by the cut");
        assert_eq!(found[2..], moved, "{store:?}");
        assert_eq!(host.read(700), pattern(0));
    }
}

#[test]
fn cleaning_moves_remapped_pages_to_their_owner() {
    for store in [NON_VOLATILE, SEGMENTED_LOG, RemapStore::Log] {
        let mut host = Host::new(DriveConfig { wear_spread: 3, ..config(store) });
        let mut rng = Rng::new(5);
        let mut content = vec![Content::Empty; 1400];
        // Half of the drive is cold: only wear levelling moves it.
        (0..700).for_each(|lba| host.write(lba, 1 << 20 | lba));
        (0..700).for_each(|lba| content[lba as usize] = pattern(1 << 20 | lba));
        for round in 0..4000 {
            let (to, from) = (600 + rng.below(690), 1300 + round % 25 * 4);
            for i in 0..4 {
                host.write(from + i, 4 * round + i);
            }
            host.remap(&pairs(to, from, 4), RemapWhen::Now);
            for i in 0..4 {
                content[(to + i) as usize] = pattern(4 * round + i);
                content[(from + i) as usize] = Content::Empty;
            }
        }
        let counters = host.drive.counters();
        let (gc, wear) = (counters.gc_runs, counters.wear_runs);
        assert!(gc > 100 && wear > 0, "{gc} lines cleaned, {wear} for their wear");
        for power_on in [true, false] {
            host.drive.check().unwrap();
            for (lba, expected) in content.iter().enumerate() {
                assert_eq!(
                    host.read(lba as u64),
                    *expected,
                    "block {lba}, power on: {power_on}, {store:?}"
                );
            }
            host = host.cut();
        }
    }
}

#[test]
fn what_cannot_be_remapped_is_refused_and_changes_nothing() {
    let mut host = Host::new(config(NON_VOLATILE));
    host.write(700, 1);
    let twice =
        [RemapPair { to: Lba(0), from: Lba(700) }, RemapPair { to: Lba(0), from: Lba(701) }];
    let refused = host.submit(Command::Remap { pairs: &twice, when: RemapWhen::Now });
    assert_eq!(refused, Err(DeviceError::RemapTwice(Lba(0))));
    assert_eq!((host.read(0), host.read(700)), (Content::Empty, pattern(1)));

    let mut without = Host::new(DriveConfig { remap: None, ..config(NON_VOLATILE) });
    assert_eq!(without.drive.info().capabilities.remap, None);
    let refused = without.submit(Command::Remap { pairs: &pairs(0, 700, 1), when: RemapWhen::Now });
    assert_eq!(refused, Err(DeviceError::Unsupported("remap")));

    let large = config(NON_VOLATILE);
    let geometry = Geometry { page_bytes: 16384, ..large.nand.geometry };
    let large = DriveConfig { nand: NandConfig { geometry, ..large.nand }, ..large };
    assert_eq!(Drive::new(large).err(), Some(ConfigError::RemapPage(16384)));
}

#[test]
fn memory_is_reported_where_it_lies() {
    let pages = 4 * 32 * 16;
    let non_volatile = Host::new(config(NON_VOLATILE)).drive.non_volatile_bytes();
    assert_eq!(non_volatile, pages * 12 + 169 * 24 + 500 * 12);
    let mut host = Host::new(config(RemapStore::Log));
    let before = host.drive.other_memory_bytes();
    host.write(700, 1);
    host.remap(&pairs(0, 700, 1), RemapWhen::Now);
    assert_eq!(host.drive.non_volatile_bytes(), 0);
    assert_eq!(host.drive.other_memory_bytes() - before, 16 * 12, "the entries of one block");
}

/// A drive with a remap of `count` pairs ahead: destinations 0.. hold pattern 1, sources 700.. hold
/// pattern 2, all durable but the sources that lie in the buffer. The two last pairs come with the
/// command, the others are held.
fn before_a_remap(store: RemapStore, count: u64) -> Host {
    let limits = RemapLimits::of(100, 700);
    let remap = Some(RemapConfig { limits, store });
    let mut host = Host::new(DriveConfig { buffer_pages: 16, remap, ..config(store) });
    host.drive.remember_operations();
    (0..count).for_each(|lba| host.write(lba, 1));
    let flushed = host.submit(Command::Flush).unwrap();
    host.now += SimSpan::from_ns(flushed);
    (0..count).for_each(|lba| host.write(700 + lba, 2));
    let held = pairs(0, 700, count - 2);
    for pairs in held.chunks(100) {
        host.remap(pairs, RemapWhen::Held(BatchId(7)));
    }
    host
}

/// Executes it; whether it was acknowledged.
fn execute(host: &mut Host, count: u64) -> bool {
    let last = pairs(count - 2, 700 + count - 2, 2);
    let command = Command::Remap { pairs: &last, when: RemapWhen::WithHeld(BatchId(7)) };
    host.submit(command).is_ok()
}

/// Recovers; whether the remap is there, which it must be wholly or not at all.
fn is_there(host: Host, count: u64, cut: &str) -> bool {
    let mut host = host.cut();
    let moved: Vec<bool> = (0..count).map(|lba| host.read(lba) == pattern(2)).collect();
    for lba in 0..count {
        assert_eq!(moved[lba as usize], moved[0], "{cut}: block {lba} against block 0");
        let source = host.read(700 + lba);
        // A source that was not flushed may be lost when the remap did not happen.
        assert!(
            source == Content::Empty || (source == pattern(2) && !moved[0]),
            "{cut}: source {lba}"
        );
    }
    moved[0]
}

#[test]
fn a_flush_waits_for_remaps_before_it() {
    for store in [NON_VOLATILE, SEGMENTED_LOG, RemapStore::Log] {
        let mut host = before_a_remap(store, 10);
        let done = host.remap(&pairs(8, 708, 2), RemapWhen::WithHeld(BatchId(7)));
        let flushed = host.submit(Command::Flush).unwrap();
        assert!(flushed >= done - 20 * MAP_ACCESS, "{store:?}: {flushed} ns against {done}");
    }
}

/// A source is moved by cleaning while its remap waits for a busy die. Were the copy on flash
/// first, its new owner would have moved alone.
#[test]
fn a_copy_of_a_page_is_not_durable_before_its_remap() {
    let mut host = Host::new(DriveConfig { background_lines: 32, ..config(RemapStore::Log) });
    host.drive.remember_operations();
    let first_log_page = host.remap(&pairs(500, 501, 1), RemapWhen::Now);
    // A line of which the second half is valid: cleaning moves a page of it with each that is
    // written.
    (0..64).for_each(|i| host.write(700 + i % 32, i));
    host.write(0, 1000);
    host.write(1, 1000);
    let moved = |host: &Host| host.programs(Cause::Gc);
    let (now, before) = (host.now, moved(&host));
    // The log page's die is busy with reads of a page in its place of the line.
    let next_die = (host.programs(Cause::Remap) + before + 1) % 4;
    for _ in 0..40 {
        host.read(700 + (next_die + 28) % 32);
    }
    let next = |i| 700 + before + 1 + i;
    let sources = [next(0), next(1)];
    let moves = [0, 1].map(|i| RemapPair { to: Lba(i as u64), from: Lba(sources[i]) });
    let done = host.remap(&moves, RemapWhen::Now);
    assert!(done > 2 * first_log_page, "{done}");
    let data = Data::Patterns(Pattern::new(2000));
    let range = BlockRange::new(Lba(600), 1);
    for _ in 0..2 {
        host.submit(Command::Write { range, data, hints: Hints::default(), fua: false }).unwrap();
    }
    assert!(moved(&host) >= before + 2, "{} pages moved, {before} before", moved(&host));
    let mut host = cut_at(host, now + SimSpan::from_ns(done * 3 / 4));
    assert_eq!([0, 1].map(|lba| host.read(lba)), [pattern(1000), pattern(1000)]);
}

/// A drive with a log whose next but `left` remaps use its 16 slots up. Blocks 600 to 603 lie on
/// the four dies in turn; block 700 was written twice.
fn before_the_slots_are_used_up(left: u64, first: &[RemapPair]) -> Host {
    let mut host = Host::new(config(RemapStore::Log));
    host.drive.remember_operations();
    (0..4).for_each(|i| host.write(600 + i, i));
    host.write(700, 1);
    host.write(700, 2);
    for i in 0..16 - left {
        let nothing = pairs(500 + i, 550 + i, 1);
        let spent = host.remap(if i == 0 { first } else { &nothing }, RemapWhen::Now);
        host.now += SimSpan::from_ns(spent);
    }
    host
}

/// Keeps the die of a block busy for a while.
fn keep_busy(host: &mut Host, lba: u64) {
    for _ in 0..60 {
        host.read(lba);
    }
}

/// Cuts the power at a time, and recovers.
fn cut_at(host: Host, at: SimTime) -> Host {
    let (drive, _) = host.drive.into_unrecovered_at(at).recover().unwrap();
    drive.check().unwrap();
    Host { drive, now: SimTime::ZERO }
}

/// A remap waits for a busy die while the next one has the tables written. Were they on flash
/// first, the remap would be there without the death of its source.
#[test]
fn tables_are_not_durable_before_the_remaps_in_them() {
    let mut host = before_the_slots_are_used_up(1, &pairs(500, 550, 1));
    // The last slot's log page is the 16th page of the drive's own.
    keep_busy(&mut host, 603);
    let now = host.now;
    let done = host.remap(&pairs(0, 700, 1), RemapWhen::Now);
    let before = host.programs(Cause::Remap);
    host.remap(&pairs(1, 600, 1), RemapWhen::Now);
    assert!(host.programs(Cause::Remap) > before + 1 && done > 3 * PROGRAM, "{done} ns");
    let mut host = cut_at(host, now + SimSpan::from_ns(done / 2));
    assert_eq!([0, 700].map(|lba| host.read(lba)), [Content::Empty, pattern(2)]);
}

/// The tables wait for a busy die. Were a slot used again before they are on flash, the remap that
/// it held would be gone.
#[test]
fn slots_are_used_again_only_when_the_tables_are_durable() {
    for quarter in 1..4 {
        let mut host = before_the_slots_are_used_up(0, &pairs(0, 700, 1));
        // After 16 log pages and a bitmap page comes the table page.
        keep_busy(&mut host, 601);
        let now = host.now;
        let done = host.remap(&pairs(1, 600, 1), RemapWhen::Now);
        assert!(done > 4 * PROGRAM, "{done} ns");
        let mut host = cut_at(host, now + SimSpan::from_ns(done * quarter / 4));
        let found = [0, 700].map(|lba| host.read(lba));
        assert_eq!(found, [pattern(2), Content::Empty], "after {quarter}/4");
    }
}

/// A log page, or the table page that came after all slots were used.
#[test]
fn a_page_of_the_log_that_cannot_be_read_is_replaced_before_it_is_erased() {
    for (further, lost) in [(0, Ppn(64)), (16, Ppn(64 + 17))] {
        let config =
            DriveConfig { gc_apart: false, background_lines: 30, ..config(RemapStore::Log) };
        let mut host = Host::new(config);
        // A full line, then log pages at the start of the next one, then what makes that line the
        // one to clean.
        (0..64).for_each(|i| host.write(700 + i, i));
        host.remap(&pairs(0, 700, 10), RemapWhen::Now);
        for i in 0..further {
            host.remap(&pairs(500 + i, 550 + i, 1), RemapWhen::Now);
        }
        host.drive.set_faults(FaultPlan { unreadable: [lost].into(), ..FaultPlan::default() });
        (0..200).for_each(|i| host.write(600, i));
        let erased = [0, 1].map(|line| host.drive.lines().erases(LineId(line)));
        assert_eq!(erased, [0, 1], "the sources stay, the line of the log does not");
        host.drive.set_faults(FaultPlan::default());
        let mut host = host.cut();
        for i in 0..10 {
            assert_eq!(
                (host.read(i), host.read(700 + i)),
                (pattern(i), Content::Empty),
                "pair {i}, {lost:?}"
            );
        }
    }
}

#[test]
fn a_cut_at_every_flash_operation_leaves_a_batch_whole() {
    for (store, count) in
        [(RemapStore::Log, 700), (RemapStore::Log, 10), (NON_VOLATILE, 40), (SEGMENTED_LOG, 40)]
    {
        let mut undisturbed = before_a_remap(store, count);
        let first = undisturbed.drive.flash_operations();
        assert!(execute(&mut undisturbed, count));
        let operations = undisturbed.drive.flash_operations() - first;
        assert!(operations > count.div_ceil(338), "{operations}");
        assert!(is_there(undisturbed, count, "after it"));
        let mut there = 0;
        for operation in 0..operations {
            for torn in [Torn::Untouched, Torn::Garbage, Torn::Finished] {
                let mut host = before_a_remap(store, count);
                let power_cut = Some(PowerCut { at_operation: first + operation, torn });
                host.drive.set_faults(FaultPlan { power_cut, ..FaultPlan::default() });
                assert!(!execute(&mut host, count));
                there +=
                    u64::from(is_there(host, count, &format!("{store:?}, {operation}, {torn:?}")));
            }
        }
        // Only the last log page completes a remap; with non-volatile memory no flash operation
        // does.
        assert_eq!(there, u64::from(store == RemapStore::Log), "{store:?}");
    }
}

#[test]
fn a_cut_at_every_entry_leaves_a_batch_whole() {
    let count = 40;
    for after in 0..count {
        for written in [false, true] {
            let mut host = before_a_remap(NON_VOLATILE, count);
            host.drive.cut_power_at_entry(after, written);
            assert!(!execute(&mut host, count));
            let there = is_there(host, count, &format!("after {after} entries, {written}"));
            assert_eq!(there, written && after + 1 == count, "the last entry completes it");
        }
    }
}

#[test]
fn a_cut_at_any_time_leaves_a_batch_whole() {
    for (store, count) in
        [(RemapStore::Log, 700), (RemapStore::Log, 10), (NON_VOLATILE, 40), (SEGMENTED_LOG, 40)]
    {
        let run = |cut_after: Option<u64>| {
            let mut host = before_a_remap(store, count);
            let last = pairs(count - 2, 700 + count - 2, 2);
            let command = Command::Remap { pairs: &last, when: RemapWhen::WithHeld(BatchId(7)) };
            let spent = host.submit(command).unwrap();
            let cut = cut_after.map(|ns| host.now + SimSpan::from_ns(ns));
            (host, spent, cut)
        };
        let (_, spent, _) = run(None);
        let mut there = Vec::new();
        for step in 0..=200 {
            let (host, _, cut) = run(Some(spent * step / 200));
            there.push(is_there(
                cut_at(host, cut.unwrap()),
                count,
                &format!("{store:?}, {step}/200"),
            ));
        }
        assert!(there[200] && !there[190], "there when it is acknowledged, and not much earlier");
    }
}

/// Deaths and discards of neighbours, with a remap onto one of them in between: records of the
/// neighbours do not kill what the remap brought.
#[test]
fn a_block_that_was_remapped_between_deaths_of_its_neighbours_stays() {
    let chain = |mut host: Host| {
        for to in 0..3 {
            host.remap(&pairs(to, to + 1, 1), RemapWhen::Now);
        }
        host
    };
    let first_discard = |mut host: Host| {
        host.discard(0);
        host.remap(&pairs(0, 1, 1), RemapWhen::Now);
        host
    };
    let second_discard = |mut host: Host| {
        host.discard(2);
        host
    };
    let between = [pattern(2), Content::Empty, Content::Empty, pattern(4)];
    type Work<'a> = &'a dyn Fn(Host) -> Host;
    let works: [(Work<'_>, [Content; 4]); 3] = [
        (&chain, [pattern(2), pattern(3), pattern(4), Content::Empty]),
        (&|host| second_discard(first_discard(host)), between.clone()),
        (&|host| second_discard(first_discard(host).cut()), between),
    ];
    for store in [NON_VOLATILE, SEGMENTED_LOG, RemapStore::Log] {
        for (work, expected) in &works {
            let mut host = Host::new(config(store));
            (0..4).for_each(|lba| host.write(lba, lba + 1));
            host.submit(Command::Flush).unwrap();
            host.now += SimSpan::from_ms(100);
            let mut host = work(host);
            host.submit(Command::Flush).unwrap();
            let mut host = host.cut();
            assert_eq!([0, 1, 2, 3].map(|lba| host.read(lba)), *expected, "{store:?}");
        }
    }
}

/// Remaps and writes until nothing can be written any more: a remap that was refused has moved
/// nothing.
#[test]
fn a_worn_out_drive_has_not_carried_out_the_remap_that_it_refuses() {
    let mut refused = 0;
    for (seed, store) in (0..12).zip([NON_VOLATILE, RemapStore::Log].into_iter().cycle()) {
        let mut host = Host::new(config(store));
        let mut rng = Rng::new(seed);
        let mut expected: Vec<Content> = (0..1400).map(pattern).collect();
        (0..1400).for_each(|lba| host.write(lba, lba));
        host.drive.set_faults(FaultPlan { seed, program_rate: 0.02, ..FaultPlan::default() });
        for step in 0..2000 {
            let (to, from) = (rng.below(700), 700 + rng.below(700));
            let moved = Command::Remap { pairs: &pairs(to, from, 1), when: RemapWhen::Now };
            if host.submit(moved).is_err() {
                refused += 1;
                assert_eq!(host.read(from), expected[from as usize], "seed {seed}, step {step}");
                assert_eq!(host.read(to), expected[to as usize], "seed {seed}, step {step}");
                break;
            }
            expected[to as usize] = std::mem::replace(&mut expected[from as usize], Content::Empty);
            let range = BlockRange::new(Lba(from), 1);
            let data = Data::Patterns(Pattern::new(2000 + step));
            let write = Command::Write { range, data, hints: Hints::default(), fua: false };
            if host.submit(write).is_ok() {
                expected[from as usize] = pattern(2000 + step);
            } else {
                expected[from as usize] = host.read(from);
            }
        }
    }
    assert!(refused > 0, "no drive has worn out with a remap");
}

/// A host discards what died together and remaps single blocks: `lanes` reads ahead for discards.
#[test]
fn lanes_brings_in_a_translation_page_for_a_discard_and_one_entry_for_a_remap() {
    let policy = dovetail_ftl::cache::policy("lanes").unwrap();
    let map_cache = Some(MapCacheConfig { policy, bytes: 1_000, page_entries: 64 });
    let mut host = Host::new(DriveConfig { map_cache, ..config(NON_VOLATILE) });
    // the first translation page, in an order that makes no runs; then others until it has gone
    (0..64).for_each(|i| host.write(i * 37 % 64, i));
    (0..64).for_each(|i| host.write(64 + i * 37 % 64, i));
    (0..600).for_each(|i| host.write(400 + i * 7 % 600, i));
    let missed = |host: &mut Host, lba| {
        let before = host.drive.counters().map_misses[MapUse::Read as usize];
        host.read(lba);
        host.drive.counters().map_misses[MapUse::Read as usize] - before
    };
    host.remap(&pairs(5, 900, 1), RemapWhen::Now);
    assert_eq!([6, 40].map(|lba| missed(&mut host, lba)), [1, 1], "after a remap");
    host.discard(64 + 5);
    assert_eq!([64 + 6, 64 + 40].map(|lba| missed(&mut host, lba)), [0, 0], "after a discard");
}
