//! Drives on cells of several bits, each mechanism alone: times that can be worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern};
use dovetail_ftl::{Drive, DriveConfig, Overrides, Profile, SingleCache, WhenFull};
use dovetail_nand::{BlockId, CellMode, Cells, Geometry, Retry, SingleTiming, Suspend, Timing};
use dovetail_time::{Rng, SimSpan, SimTime};

/// One die of one plane; lines of 24 pages, or 8 at one bit a cell. A read takes 60 us, a word line
/// 2,000, a page at one bit a cell 200; 10 us a transfer, 1 us on the link.
fn tlc(lines: u32) -> DriveConfig {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: lines,
        pages_per_block: 24,
        page_bytes: 4096,
    };
    let plain = DriveConfig::plain(geometry, u64::from(lines) * 10);
    let us = |us| [SimSpan::from_us(us); 4];
    let cells = Cells { bits: 3, one_shot: true, parts: 1, read: us(60), program: us(2000) };
    let single = SingleTiming {
        read: SimSpan::from_us(30),
        program: SimSpan::from_us(200),
        erase: SimSpan::from_ms(2),
    };
    let timing = Timing {
        read: SimSpan::from_us(60),
        cells: Some(cells),
        single: Some(single),
        ..plain.nand.timing
    };
    DriveConfig {
        nand: dovetail_nand::NandConfig { timing, ..plain.nand },
        buffer_pages: 6,
        ..plain
    }
}

fn cache(when_full: WhenFull) -> SingleCache {
    SingleCache {
        static_lines: 2,
        dynamic_lines: 0,
        shrink_from: 1.0,
        shrink_to: 1.0,
        when_full,
        fold_after: Some(SimSpan::from_ms(1)),
    }
}

fn us(us: u64) -> SimTime {
    SimTime::from_ns(us * 1000)
}

fn write(drive: &mut Drive, at: SimTime, lba: u64, fua: bool) -> SimTime {
    let data = Data::Patterns(Pattern::new(lba + 1));
    let range = BlockRange::new(Lba(lba), 1);
    drive.submit(at, Command::Write { range, data, hints: Hints::default(), fua }).unwrap().done
}

fn read(drive: &mut Drive, at: SimTime, lba: u64) -> SimTime {
    let range = BlockRange::new(Lba(lba), 1);
    drive.submit(at, Command::Read { range, into: None }).unwrap().done
}

fn flush(drive: &mut Drive, at: SimTime) -> SimTime {
    drive.submit(at, Command::Flush).unwrap().done
}

#[test]
fn a_page_alone_takes_its_whole_word_line() {
    let mut drive = Drive::new(tlc(24)).unwrap();
    let done = write(&mut drive, us(0), 0, true);
    assert_eq!(done, us(1 + 10 + 2000));
    assert_eq!(drive.counters().skipped_pages, 2);
    let begin = us(5000);
    for lba in 1..4 {
        write(&mut drive, begin, lba, false);
    }
    // three over the channel, one program
    assert_eq!(flush(&mut drive, begin), us(5000 + 30 + 2000));
    assert_eq!(drive.counters().skipped_pages, 2);
}

/// A word line of two planes has six pages; three of them are on a block that is bad.
#[test]
fn pages_of_bad_blocks_are_not_skipped() {
    let mut config = DriveConfig { buffer_pages: 12, user_blocks: 48, ..tlc(24) };
    config.nand.geometry.planes_per_die = 2;
    config.nand.factory_bad = (0..24).map(|line| BlockId(2 * line)).collect();
    let mut drive = Drive::new(config).unwrap();
    for lba in 0..8 {
        write(&mut drive, us(lba * 5000), lba, true);
    }
    assert_eq!(drive.counters().skipped_pages, 8 * 2);
}

#[test]
fn the_cache_takes_writes_until_it_is_full_and_again_after_idle_time() {
    let config = DriveConfig { single_cache: Some(cache(WhenFull::Direct)), ..tlc(24) };
    let mut drive = Drive::new(config).unwrap();
    let mut now = us(0);
    // two lines of eight pages
    for lba in 0..16 {
        let done = write(&mut drive, now, lba, true);
        assert_eq!(done.since(now), SimSpan::from_us(1 + 10 + 200), "{lba}");
        now = done;
    }
    let done = write(&mut drive, now, 16, true);
    assert_eq!(done.since(now), SimSpan::from_us(1 + 10 + 2000));
    assert_eq!((drive.lines().singles(), drive.counters().fold_runs), (2, 0));
    now = us(100_000);
    let done = write(&mut drive, now, 17, true);
    assert_eq!(done.since(now), SimSpan::from_us(1 + 10 + 200), "folded in between");
    assert_eq!(drive.counters().fold_runs, 2);
    assert_eq!(read(&mut drive, us(200_000), 0).since(us(200_000)), SimSpan::from_us(60 + 10 + 1));
}

#[test]
fn writes_wait_for_folding_where_the_cache_takes_all() {
    let config = DriveConfig { single_cache: Some(cache(WhenFull::Fold)), ..tlc(24) };
    let mut drive = Drive::new(config).unwrap();
    let mut now = us(0);
    for lba in 0..100 {
        now = write(&mut drive, now, lba, true);
    }
    let counted = drive.counters();
    assert!(counted.single_programs >= 100, "all went there: {counted:?}");
    assert!(counted.fold_runs >= 10 && drive.lines().singles() <= 3, "{counted:?}");
    drive.check().unwrap();
}

#[test]
fn a_flush_behind_capacitors_takes_no_time_and_nothing_is_lost() {
    let config = DriveConfig { power_loss_protection: true, ..tlc(24) };
    let mut drive = Drive::new(config).unwrap();
    let done = write(&mut drive, us(0), 7, false);
    assert_eq!(flush(&mut drive, done), done);
    let (mut drive, _) = drive.into_unrecovered_at(done).recover().unwrap();
    let mut content = [dovetail_block::Content::Empty];
    let range = BlockRange::new(Lba(7), 1);
    drive.submit(us(0), Command::Read { range, into: Some(&mut content) }).unwrap();
    assert_eq!(content[0], dovetail_block::Content::Pattern(Pattern::new(8)));
}

#[test]
fn a_read_waits_for_a_suspension_and_not_for_a_word_line() {
    let mut config = tlc(24);
    for (suspend, expected) in
        [(None, 2011 + 60 + 10 + 1), (Some(SimSpan::from_us(40)), 1000 + 40 + 60 + 10 + 1)]
    {
        config.nand.timing.suspend =
            suspend.map(|span| Suspend { program: span, erase: span, most_times: 1 });
        let mut drive = Drive::new(config.clone()).unwrap();
        // as many as push the first one out of the buffer
        for lba in 0..8 {
            write(&mut drive, us(lba * 5000), lba, true);
        }
        let begin = 100_000;
        write(&mut drive, us(begin), 8, true);
        assert_eq!(read(&mut drive, us(begin + 1000), 0), us(begin + expected));
    }
}

#[test]
fn reads_of_worn_blocks_need_more_tries() {
    let mut config = tlc(24);
    config.nand.retry = Some(Retry {
        step: SimSpan::from_us(70),
        steps_per_erase: 0.0,
        steps_per_read: 0.5,
        steps_per_day: 0.0,
        days_at_start: 0.0,
        most: 2,
    });
    let mut drive = Drive::new(config).unwrap();
    write(&mut drive, us(0), 0, true);
    // the page has left the buffer when others took its place
    for lba in 1..13 {
        write(&mut drive, us(50_000 + lba), lba, true);
    }
    let took = [0, 1, 2, 3, 4, 5].map(|n| {
        let at = us(1_000_000 + n * 10_000);
        read(&mut drive, at, 0).since(at).as_ns() / 1000
    });
    assert_eq!(took, [71, 71, 141, 141, 211, 211]);
}

#[test]
fn cores_take_commands_side_by_side() {
    for (cores, expected) in [(1, [0, 10, 20, 30]), (2, [0, 0, 10, 10])] {
        let command_serial = SimSpan::from_us(10);
        let mut drive = Drive::new(DriveConfig { cores, command_serial, ..tlc(24) }).unwrap();
        // nothing is there: an answer takes the link alone
        let ends = [0, 1, 2, 3].map(|lba| read(&mut drive, us(0), lba).as_ns() / 1000);
        let link = [1, 2, 3, 4];
        let waited: Vec<_> =
            ends.iter().zip(link).map(|(end, link)| end - link.min(*end)).collect();
        assert!(
            waited.iter().zip(expected).all(|(waited, least)| *waited + 4 >= least),
            "{cores}: {ends:?}"
        );
        assert_eq!(ends[3], if cores == 1 { 31 } else { 12 });
    }
}

#[test]
fn a_line_of_the_cache_has_a_page_for_each_word_line() {
    let config = DriveConfig { single_cache: Some(cache(WhenFull::Direct)), ..tlc(24) };
    let mut drive = Drive::new(config).unwrap();
    write(&mut drive, us(0), 0, true);
    let line = drive.lines().ids().find(|&line| drive.lines().valid(line) == 1).unwrap();
    assert_eq!((drive.lines().mode(line), drive.lines().pages_in(line)), (CellMode::Single, 8));
}

/// A map that is paged with a small cache owes a translation page for nearly each page that cleaning
/// moves at random: written one by one, each in a word line of its own, they would take more room
/// than cleaning makes.
#[test]
fn a_full_phone_storage_takes_random_writes() {
    let overrides = Overrides { scale: "1/64".parse().ok(), ..Overrides::default() };
    let config = Profile::load("ufs31-256g").unwrap().resolve(&overrides).unwrap();
    let blocks = config.user_blocks;
    let mut drive = Drive::new(config).unwrap();
    let mut now = us(0);
    for start in (0..blocks / 64 * 64).step_by(64) {
        let data = Data::Patterns(Pattern::new(start + 1));
        let range = BlockRange::new(Lba(start), 64);
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        now = drive.submit(now, command).unwrap().done;
    }
    let mut rng = Rng::new(1);
    for _ in 0..blocks / 2 {
        now = write(&mut drive, now, rng.below(blocks), false);
    }
    assert!(drive.counters().gc_runs > 100, "{:?}", drive.counters());
    drive.check().unwrap();
}

/// A run that began between writes waits for the next ones, and reads alone do not bring them.
#[test]
fn a_line_worn_by_reads_is_rewritten_behind_a_cleaning_run_that_is_not_done() {
    let mut config = DriveConfig { background_lines: 58, refresh_reads: Some(50), ..tlc(100) };
    // reads are counted where retries depend on them
    config.nand.retry = Some(Retry {
        step: SimSpan::from_us(70),
        steps_per_erase: 0.0,
        steps_per_read: 0.001,
        steps_per_day: 0.0,
        days_at_start: 0.0,
        most: 2,
    });
    let mut drive = Drive::new(config).unwrap();
    let (mut rng, mut now) = (Rng::new(1), SimTime::ZERO);
    for _ in 0..3000 {
        now = write(&mut drive, now, rng.below(1000), false);
    }
    let before = drive.counters().refresh_runs;
    for at in 0..20_000 {
        now = read(&mut drive, now, at % 1000);
    }
    assert!(drive.counters().refresh_runs > before);
}
