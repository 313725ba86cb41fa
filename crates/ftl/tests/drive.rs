//! The drive as its host and its owner notice it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{
    BlockDevice, BlockRange, ByteRange, Command, Content, Data, DeviceError, Hints, Lba, Pattern,
    SectorRange, StreamId,
};
use dovetail_ftl::stats::{Cause, ReadCause};
use dovetail_ftl::{Drive, DriveConfig, mapping};
use dovetail_nand::{BlockId, FaultPlan, Geometry, NandConfig, PowerCut, Ppn, Torn};
use dovetail_time::{Rng, SimSpan, SimTime};

/// 2 channels, 4 dies, 32 superblocks of 64 pages of 4 KiB; 1,536 blocks for the host.
fn config() -> DriveConfig {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 32,
        pages_per_block: 16,
        page_bytes: 4096,
    };
    DriveConfig::plain(geometry, 1536)
}

/// A drive with the next time and the next pattern.
struct Host {
    drive: Drive,
    now: SimTime,
    pattern: u64,
}

impl Host {
    fn new(config: DriveConfig) -> Self {
        Self { drive: Drive::new(config).unwrap(), now: SimTime::ZERO, pattern: 1 }
    }

    fn submit(&mut self, command: Command<'_>) -> Result<SimTime, DeviceError> {
        self.drive.submit(self.now, command).map(|completion| completion.done)
    }

    fn write_hinted(&mut self, lba: u64, blocks: u64, hints: Hints, fua: bool) -> SimTime {
        let data = Data::Patterns(Pattern::new(self.pattern));
        self.pattern += blocks;
        self.submit(Command::Write { range: BlockRange::new(Lba(lba), blocks), data, hints, fua })
            .unwrap()
    }

    /// Writes, and lets the time pass that it takes.
    fn write(&mut self, lba: u64, blocks: u64) {
        self.now = self.write_hinted(lba, blocks, Hints::default(), false);
    }

    fn read(&mut self, lba: u64) -> Result<Content, DeviceError> {
        let mut into = [Content::Empty];
        self.submit(Command::Read { range: BlockRange::new(Lba(lba), 1), into: Some(&mut into) })?;
        Ok(into[0].clone())
    }

    fn discard(&mut self, start: u64, len: u64) {
        self.submit(Command::Discard {
            ranges: &[SectorRange::inside(ByteRange::new(start, len))],
        })
        .unwrap();
    }

    /// Discards blocks, each of which takes a slot of the journal: all sixteen.
    fn use_slots(&mut self, first: u64) {
        for lba in first..first + 16 {
            self.discard(lba * 4096, 4096);
            self.submit(Command::Flush).unwrap();
        }
    }

    /// Cuts the power in the order of issue, and recovers.
    fn cut(self) -> Self {
        let (drive, _) = self.drive.into_unrecovered().recover().unwrap();
        Self { drive, now: SimTime::ZERO, ..self }
    }

    fn fill(&mut self) {
        let blocks = self.drive.info().blocks;
        (0..blocks).for_each(|lba| self.write(lba, 1));
    }

    fn write_at_random(&mut self, count: u64, below: u64, seed: u64) {
        let mut rng = Rng::new(seed);
        (0..count).for_each(|_| self.write(rng.below(below), 1));
    }
}

fn pattern(n: u64) -> Content {
    Content::Pattern(Pattern::new(n))
}

#[test]
fn a_buffered_write_is_acknowledged_before_flash_has_it() {
    let mut host = Host::new(DriveConfig { buffer_pages: 16, ..config() });
    assert!(host.write_hinted(0, 1, Hints::default(), false) < SimTime::from_ns(10_000));
    assert_eq!(host.drive.counters().programmed_pages(), 0);
    let forced = host.write_hinted(1, 1, Hints::default(), true);
    assert!(forced >= SimTime::from_ns(500_000), "FUA waits for the program");
    let flushed = host.submit(Command::Flush).unwrap();
    assert!(flushed >= SimTime::from_ns(500_000));
    assert_eq!(host.drive.counters().programmed_pages(), 2);
}

#[test]
fn writes_to_a_buffered_block_cost_one_program() {
    let mut host = Host::new(DriveConfig { buffer_pages: 16, ..config() });
    (0..10).for_each(|_| host.write(3, 1));
    host.submit(Command::Flush).unwrap();
    assert_eq!(host.drive.counters().programmed_pages(), 1);
    assert_eq!(host.drive.counters().buffer_overwrites, 9);
    assert_eq!(host.read(3), Ok(pattern(10)));
}

#[test]
fn a_full_buffer_makes_writes_wait_for_flash() {
    let mut host = Host::new(DriveConfig { buffer_pages: 8, ..config() });
    let latencies: Vec<_> =
        (0..100).map(|lba| host.write_hinted(lba, 1, Hints::default(), false)).collect();
    assert!(latencies[3] < SimTime::from_ns(10_000), "{}", latencies[3]);
    // 4 dies program 8,000 pages a second: the hundredth write waits for about ninety programs.
    assert!(latencies[99] > SimTime::from_ns(10_000_000), "{}", latencies[99]);
}

#[test]
fn parts_of_large_pages_are_merged() {
    let geometry = Geometry { page_bytes: 16384, ..config().nand.geometry };
    let nand = NandConfig { geometry, ..config().nand };
    let mut host = Host::new(DriveConfig { nand, ..config() });
    host.write(0, 4);
    host.write(2, 1);
    assert_eq!(host.drive.counters().flash_reads[ReadCause::Merge as usize], 1);
    let contents: Vec<_> = (0..4).map(|lba| host.read(lba).unwrap()).collect();
    assert_eq!(contents, [pattern(1), pattern(2), pattern(5), pattern(4)]);
    host.discard(0, 3 * 4096);
    assert_eq!(
        (host.read(2), host.read(3)),
        (Ok(Content::Empty), Ok(pattern(4))),
        "one part stays"
    );
    host.write(4, 1);
    assert_eq!(
        host.drive.counters().flash_reads[ReadCause::Merge as usize],
        1,
        "nothing to merge with"
    );
}

#[test]
fn discards_free_whole_blocks_and_map_memory() {
    let mut host = Host::new(DriveConfig { scheme: mapping::scheme("hash").unwrap(), ..config() });
    host.fill();
    let full = host.drive.mapping_memory_bytes();
    host.discard(512, 1400 * 4096);
    assert_eq!(host.read(0), Ok(pattern(1)), "covered in part only");
    assert_eq!((host.read(1), host.read(1399)), (Ok(Content::Empty), Ok(Content::Empty)));
    assert_eq!(host.read(1400), Ok(pattern(1401)), "covered in part only");
    assert_eq!(host.drive.counters().discarded_blocks, 1399);
    assert!(
        host.drive.mapping_memory_bytes() * 2 < full,
        "{} of {full}",
        host.drive.mapping_memory_bytes()
    );
}

#[test]
fn discards_survive_a_cut_once_flushed_even_when_their_slots_were_used_again() {
    let mut host = Host::new(config());
    host.fill();
    for round in 0..200 {
        host.discard(round * 7 % 1500 * 4096, 4096);
        host.submit(Command::Flush).unwrap();
        host.write(1500 + round % 36, 1);
    }
    let (drive, report) = host.drive.into_unrecovered().recover().unwrap();
    assert!(report.discarded_blocks > 0);
    let mut host = Host { drive, ..Host::new(config()) };
    for round in 0..200 {
        assert_eq!(host.read(round * 7 % 1500), Ok(Content::Empty), "round {round}");
    }
    assert_eq!(host.read(1499), Ok(pattern(1500)));
}

/// `fifo` cleans the line that was filled first, also after a power cut.
#[test]
fn the_oldest_line_is_the_same_after_a_power_cut() {
    let mut host = Host::new(config());
    let blocks = host.drive.info().blocks;
    host.fill();
    host.write_at_random(3 * blocks, blocks, 1);
    let oldest = |host: &Host| {
        let lines = host.drive.lines();
        let first = lines.closed().iter().map(|&line| lines.closed_at(line)).min();
        (lines.oldest().map(|line| lines.closed_at(line)), first)
    };
    let (before, first) = oldest(&host);
    assert_eq!(before, first);
    let (after, first) = oldest(&host.cut());
    assert_eq!(after, first);
}

/// The line that the next write goes to, more or less: where one of a block that is written again
/// and again has gone.
fn line_of_writes(host: &mut Host) -> Option<u32> {
    let valid =
        |host: &Host| host.drive.lines().ids().map(|line| host.drive.lines().valid(line)).collect();
    let before: Vec<u32> = valid(host);
    host.write(0, 1);
    let after: Vec<u32> = valid(host);
    (0..)
        .zip(before.iter().zip(&after))
        .find(|(_, (before, after))| before < after)
        .map(|(line, _)| line)
}

/// A drive with a bitmap page for each half of its lines. Block 1024 has an old version in the
/// second half, a newer one in the first, and was discarded; all journal slots are used up.
fn discarded_in_both_halves() -> Host {
    let mut host =
        Host::new(DriveConfig { pages_per_bitmap: Some(1024), user_blocks: 1300, ..config() });
    (0..1300).for_each(|lba| host.write(lba, 1));
    let mut rng = Rng::new(12);
    while line_of_writes(&mut host).is_none_or(|line| line >= 16) {
        host.write(rng.below(500), 1);
    }
    host.write(1024, 1);
    host.use_slots(520);
    host.discard(1024 * 4096, 4096);
    host
}

#[test]
fn a_version_that_was_overwritten_before_the_discard_stays_dead_when_slots_are_used_again() {
    let mut host = discarded_in_both_halves();
    host.submit(Command::Flush).unwrap();
    host.use_slots(540);
    host.use_slots(560);
    // The newer version is erased, the older one is not.
    host.write_at_random(4000, 500, 13);
    let (drive, _) = host.drive.into_unrecovered().recover().unwrap();
    let mut host = Host { drive, ..Host::new(config()) };
    assert_eq!(host.read(1024), Ok(Content::Empty));
}

/// Each second block, one by one: the records take 96 pages, and the bitmap pages before their
/// slots are used again as many once more; the reserve is three lines of 32 pages.
#[test]
fn any_number_of_discards_can_be_flushed_at_once() {
    let geometry =
        Geometry { blocks_per_plane: 1024, pages_per_block: 8, ..config().nand.geometry };
    let nand = NandConfig { geometry, ..config().nand };
    let drive = DriveConfig { nand, user_blocks: 32_500, pages_per_bitmap: Some(1536), ..config() };
    let mut host = Host::new(DriveConfig { idle_after: SimSpan::from_ms(1_000_000), ..drive });
    host.fill();
    host.write_at_random(3000, 32_500, 14);
    let mut rng = Rng::new(15);
    let mut blocks: Vec<u64> = (0..32_500).step_by(2).collect();
    (1..blocks.len()).rev().for_each(|i| blocks.swap(i, rng.below(i as u64 + 1) as usize));
    blocks.iter().for_each(|lba| host.discard(lba * 4096, 4096));
    host.submit(Command::Flush).unwrap();
    host.drive.check().unwrap();
    let mut host = host.cut();
    (0..32_500).for_each(|lba| {
        assert_eq!(host.read(lba) == Ok(Content::Empty), lba % 2 == 0, "block {lba}");
    });
}

#[test]
fn a_part_that_was_discarded_stays_dead_in_its_page_when_slots_are_used_again() {
    for cut_before in [false, true] {
        let geometry = Geometry { page_bytes: 16384, ..config().nand.geometry };
        let nand = NandConfig { geometry, ..config().nand };
        let user_blocks = 4 * 1300;
        let mut host =
            Host::new(DriveConfig { nand, user_blocks, pages_per_bitmap: Some(1024), ..config() });
        (0..1300).for_each(|page| host.write(4 * page, 4));
        // The only death in the second half of the flash.
        let block = 4 * 1100 + 1;
        host.discard(block * 4096, 4096);
        host.submit(Command::Flush).unwrap();
        if cut_before {
            host = host.cut();
        }
        (0..3).for_each(|round| host.use_slots(16 * round));
        host = host.cut();
        let found: Vec<_> = (block - 1..block + 2).map(|lba| host.read(lba).unwrap()).collect();
        let expected = [pattern(block), Content::Empty, pattern(block + 2)];
        assert_eq!(found, expected, "with a cut before: {cut_before}");
    }
}

#[test]
fn a_discard_that_only_one_of_two_bitmap_pages_tells_of_brings_nothing_older_back() {
    let mut discarded = 0;
    for cut in 0.. {
        let mut host = discarded_in_both_halves();
        let at_operation = host.drive.flash_operations() + cut;
        let power_cut = Some(PowerCut { at_operation, torn: Torn::Untouched });
        host.drive.set_faults(FaultPlan { power_cut, ..FaultPlan::default() });
        if host.submit(Command::Flush).is_ok() {
            break;
        }
        let newer = host.pattern - 1;
        let (drive, _) = host.drive.into_unrecovered().recover().unwrap();
        let mut host = Host { drive, ..Host::new(config()) };
        let found = host.read(1024).unwrap();
        assert!(found == Content::Empty || found == pattern(newer), "cut {cut}: {found:?}");
        discarded += u32::from(found == Content::Empty);
        // Whatever holds the newer version is erased, and nothing is discarded meanwhile.
        host.write_at_random(4000, 500, 13);
        let (drive, _) = host.drive.into_unrecovered().recover().unwrap();
        let mut host = Host { drive, ..Host::new(config()) };
        assert_eq!(host.read(1024), Ok(found), "cut {cut}");
    }
    assert!(discarded > 0, "the power was never cut between the two bitmap pages");
}

#[test]
fn what_lay_in_the_buffer_is_lost_by_a_cut_and_the_rest_is_not() {
    let mut host = Host::new(DriveConfig { buffer_pages: 16, ..config() });
    host.write(0, 1);
    host.submit(Command::Flush).unwrap();
    host.write(0, 1);
    host.write(1, 1);
    assert_eq!(host.read(0), Ok(pattern(2)));
    let (drive, _) = host.drive.into_unrecovered().recover().unwrap();
    let mut host = Host { drive, ..Host::new(config()) };
    assert_eq!((host.read(0), host.read(1)), (Ok(pattern(1)), Ok(Content::Empty)));
}

#[test]
fn a_cut_drive_answers_nothing() {
    let mut host = Host::new(config());
    let cut = PowerCut { at_operation: 1, torn: Torn::Garbage };
    host.drive.set_faults(FaultPlan { power_cut: Some(cut), ..FaultPlan::default() });
    host.write(0, 1);
    let range = BlockRange::new(Lba(1), 1);
    let data = Data::Patterns(Pattern::new(9));
    let write = Command::Write { range, data, hints: Hints::default(), fua: false };
    assert_eq!(host.submit(write), Err(DeviceError::PowerLost));
    assert_eq!(host.read(0), Err(DeviceError::PowerLost));
}

#[test]
fn a_failed_program_moves_the_data_and_retires_the_block() {
    let mut host = Host::new(config());
    let data_before = 20;
    host.write(0, data_before);
    // The next page of the block that holds page 0 (4 dies: every fourth page).
    host.drive.set_faults(FaultPlan { failing_programs: [Ppn(20)].into(), ..FaultPlan::default() });
    host.write(100, 8);
    let counters = host.drive.counters();
    assert_eq!((counters.program_failures, host.drive.bad_blocks()), (1, 1));
    assert_eq!(
        counters.programs[Cause::Retire as usize],
        5,
        "five of the twenty pages lay on that block"
    );
    for lba in (0..20).chain(100..108) {
        assert_ne!(host.read(lba), Ok(Content::Empty), "block {lba}");
    }
    host.drive.check().unwrap();
}

#[test]
fn data_beyond_correction_is_an_error_and_never_something_older() {
    let mut host = Host::new(config());
    host.write(7, 1);
    host.write(7, 1);
    host.drive.set_faults(FaultPlan { unreadable: [Ppn(1)].into(), ..FaultPlan::default() });
    assert_eq!(host.read(7), Err(DeviceError::Unreadable(Lba(7))));
    host.drive.set_faults(FaultPlan { read_rate: 1.0, ..FaultPlan::default() });
    host.fill();
    host.write_at_random(6000, 1536, 4);
    let lost = host.drive.counters().lost_blocks;
    assert!(lost > 0, "cleaning must have moved what it could not read");
    host.drive.set_faults(FaultPlan::default());
    let unreadable =
        (0..1536).filter(|&lba| host.read(lba) == Err(DeviceError::Unreadable(Lba(lba)))).count();
    assert!(unreadable > 0);
    let (drive, _) = host.drive.into_unrecovered().recover().unwrap();
    let mut host = Host { drive, ..Host::new(config()) };
    let after =
        (0..1536).filter(|&lba| host.read(lba) == Err(DeviceError::Unreadable(Lba(lba)))).count();
    assert_eq!(after, unreadable, "the knowledge of the loss survives a cut");
}

#[test]
fn static_wear_levelling_keeps_cold_lines_from_staying_young() {
    let spread = |wear_spread| {
        let mut host = Host::new(DriveConfig { wear_spread, ..config() });
        host.fill();
        host.write_at_random(150_000, 200, 5);
        let erases = || host.drive.erase_counts();
        (erases().max().unwrap() - erases().min().unwrap(), host.drive.counters().wear_runs)
    };
    let ((without, none), (with, runs)) = (spread(0), spread(10));
    assert!(without > 100 && none == 0, "{without}");
    assert!(with * 3 < without && runs > 0, "{with} after {runs} runs, {without} without");
}

#[test]
fn writes_that_come_all_at_once_are_not_cleaned_for_more_than_others() {
    let waf = |wait: bool| {
        let mut host = Host::new(DriveConfig { background_lines: 5, ..config() });
        host.fill();
        let mut rng = Rng::new(11);
        for _ in 0..30_000 {
            let done = host.write_hinted(rng.below(100), 1, Hints::default(), false);
            if wait {
                host.now = done;
            }
        }
        host.drive.counters().waf(1).unwrap()
    };
    let (one_by_one, at_once) = (waf(true), waf(false));
    assert!(at_once < 1.2 * one_by_one, "{one_by_one} one by one, {at_once} at once");
}

#[test]
fn idle_time_is_used_to_clean() {
    let mut host = Host::new(DriveConfig { background_lines: 6, ..config() });
    host.fill();
    host.write_at_random(2000, 1536, 6);
    let before = host.drive.lines().free();
    host.now += SimSpan::from_ms(10_000);
    host.read(0).unwrap();
    assert!(
        host.drive.lines().free() >= 6 && before < 6,
        "{before} to {}",
        host.drive.lines().free()
    );
}

/// Moving a line without garbage frees nothing: a drive that is full of live data rests, although
/// fewer lines are free than it would like.
#[test]
fn lines_without_garbage_are_left_alone_in_idle_time() {
    let mut host = Host::new(DriveConfig { background_lines: 40, ..config() });
    host.fill();
    // what the last writes have begun ends
    host.now += SimSpan::from_ms(10_000);
    host.read(0).unwrap();
    let moved = |host: &Host| host.drive.counters().programs[Cause::Gc as usize];
    let before = moved(&host);
    host.now += SimSpan::from_ms(10_000);
    host.read(0).unwrap();
    assert!(host.drive.lines().free() < 40);
    assert_eq!(moved(&host), before);
}

#[test]
fn streams_fill_lines_of_their_own() {
    let mut host = Host::new(DriveConfig { streams: 2, user_blocks: 1200, ..config() });
    for lba in 0..40 {
        let hints = Hints { stream: StreamId((lba % 2) as u8), ..Hints::default() };
        host.write_hinted(lba, 1, hints, false);
    }
    let filled: Vec<u32> =
        host.drive.lines().ids().map(|line| host.drive.lines().valid(line)).collect();
    assert_eq!(filled.iter().filter(|&&valid| valid == 20).count(), 2, "{filled:?}");
}

#[test]
fn an_erase_that_fails_costs_its_block_and_nothing_else() {
    let mut host = Host::new(config());
    host.drive
        .set_faults(FaultPlan { failing_erases: [BlockId(2)].into(), ..FaultPlan::default() });
    host.fill();
    host.write_at_random(5000, 1536, 7);
    assert_eq!((host.drive.counters().erase_failures, host.drive.bad_blocks()), (1, 1));
    (0..1536).for_each(|lba| assert_ne!(host.read(lba), Ok(Content::Empty)));
    host.drive.check().unwrap();
}

#[test]
fn a_worn_out_drive_can_still_be_read() {
    let nand = NandConfig { endurance: 5, ..config().nand };
    let mut host = Host::new(DriveConfig { nand, ..config() });
    host.fill();
    let mut rng = Rng::new(8);
    let mut expected: Vec<_> = (1..=1536).collect();
    let end = (2000..).find_map(|number| {
        let lba = rng.below(1536);
        let range = BlockRange::new(Lba(lba), 1);
        let data = Data::Patterns(Pattern::new(number));
        let failed =
            host.submit(Command::Write { range, data, hints: Hints::default(), fua: false }).err();
        if failed.is_none() {
            expected[lba as usize] = number;
        }
        failed
    });
    assert!(matches!(end, Some(DeviceError::ReadOnly(_))), "{end:?}");
    for _ in 0..3 {
        for lba in 0..1536 {
            // In each pause the drive tries to clean, and finds no room for what it wants to move.
            host.now += SimSpan::from_ms(20);
            assert_eq!(host.read(lba), Ok(pattern(expected[lba as usize])), "block {lba}");
        }
    }
    let (drive, _) = host.drive.into_unrecovered().recover().unwrap();
    let mut host = Host { drive, ..Host::new(config()) };
    (0..1536).for_each(|lba| {
        assert_eq!(host.read(lba), Ok(pattern(expected[lba as usize])), "block {lba}");
    });
}

#[test]
fn addresses_and_lengths_are_checked() {
    let mut host = Host::new(config());
    let beyond = BlockRange::new(Lba(1530), 10);
    let error = host.submit(Command::Read { range: beyond, into: None }).unwrap_err();
    assert_eq!(error, DeviceError::OutOfRange { range: beyond, blocks: 1536 });
    assert!(error.to_string().contains("blocks 1530..1540 is beyond"));
    let huge = SectorRange::new(u64::MAX - 10, u64::MAX);
    assert!(host.submit(Command::Discard { ranges: &[huge] }).is_err());
    let range = BlockRange::new(Lba(0), 2);
    let write =
        Command::Write { range, data: Data::Blocks(&[]), hints: Hints::default(), fua: false };
    assert_eq!(host.submit(write), Err(DeviceError::LengthMismatch { range: 2, data: 0 }));
}

#[test]
fn a_drive_that_cannot_work_says_what_to_change() {
    let error = Drive::new(DriveConfig { user_blocks: 2000, ..config() }).unwrap_err().to_string();
    assert!(error.contains("raise over-provisioning or the scale"), "{error}");
}
