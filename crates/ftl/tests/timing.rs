//! Times of a drive: its units at work at every scale, the planes of a die together, and commands
//! one after the other.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_block::{BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern};
use dovetail_ftl::lines::LineShape;
use dovetail_ftl::stats::Cause;
use dovetail_ftl::{ConfigError, Drive, DriveConfig, Overrides, Profile, builtin_profiles};
use dovetail_nand::Geometry;
use dovetail_time::{Rng, SimSpan, SimTime};

fn write(drive: &mut Drive, at: SimTime, lba: u64, blocks: u64) -> SimTime {
    let range = BlockRange::new(Lba(lba), blocks);
    let (data, hints) = (Data::Patterns(Pattern::new(lba)), Hints::default());
    drive.submit(at, Command::Write { range, data, hints, fua: false }).unwrap().done
}

/// Fills half of the drive in order, 256 KiB at a time with eight writes under way; returns bytes
/// a second.
fn sequential_rate(config: &DriveConfig) -> f64 {
    let mut drive = Drive::new(config.clone()).unwrap();
    let mut done = [SimTime::ZERO; 8];
    let writes = config.user_blocks / 2 / 64;
    for n in 0..writes {
        let slot = (n % 8) as usize;
        done[slot] = write(&mut drive, done[slot], n * 64, 64);
    }
    let end = drive.submit(*done.iter().max().unwrap(), Command::Flush).unwrap().done;
    (writes * 64 * 4096) as f64 / end.as_secs_f64()
}

/// A scaled drive has all of its dies, so it must be as fast as the whole one.
#[test]
fn a_drive_writes_as_fast_at_every_scale() {
    let paper = |name: &&str| {
        let drive = Profile::load(name).unwrap().resolve(&Overrides::default()).unwrap();
        let timing = drive.nand.timing;
        let is_plain = drive.zones.is_none() && drive.fdp.is_none();
        timing.cells.is_none() && timing.suspend.is_none() && is_plain
    };
    let papers = builtin_profiles().filter(paper).map(|name| (name, ["1/16", "1/64", "1/128"]));
    // word lines and SLC caches: smaller lines than these hold too few of them
    let others = ["evo970-250g", "p1-1t"].map(|name| (name, ["1/32", "1/48", "1/64"]));
    for (name, scales) in papers.chain(others) {
        let rate = |scale: &str| {
            let overrides = Overrides { scale: scale.parse().ok(), ..Overrides::default() };
            sequential_rate(&Profile::load(name).unwrap().resolve(&overrides).unwrap())
        };
        let rates = scales.map(rate);
        for other in rates {
            let ratio = other / rates[0];
            assert!((0.9..1.1).contains(&ratio), "{name}: {rates:?} bytes a second");
        }
    }
}

/// 1 channel, 2 dies of 4 planes; 32 lines of 128 pages.
fn with_planes(planes_per_die: u32) -> DriveConfig {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        planes_per_die,
        blocks_per_plane: 32 * 4 / planes_per_die,
        pages_per_block: 16,
        page_bytes: 4096,
    };
    DriveConfig { background_lines: 4, ..DriveConfig::plain(geometry, 3000) }
}

/// The time for which dies are busy with a move, while random writes make the drive clean.
fn busy_for_a_move(config: DriveConfig) -> f64 {
    let blocks = config.user_blocks;
    let mut drive = Drive::new(config).unwrap();
    let mut now = SimTime::ZERO;
    for lba in (0..blocks).step_by(8) {
        now = write(&mut drive, now, lba, 8);
    }
    let work =
        |drive: &Drive| drive.die_use(drive.idle_from()).map(|die| die.busy.as_ns()).sum::<u64>();
    let moves = |drive: &Drive| drive.counters().programs[Cause::Gc as usize];
    let (busy, moved) = (work(&drive), moves(&drive));
    let mut rng = Rng::new(1);
    let writes = 20_000;
    for _ in 0..writes {
        now = write(&mut drive, now, rng.below(blocks), 1);
    }
    let (busy, moved) = (work(&drive) - busy, moves(&drive) - moved);
    // a host's write is a program; the erases are few
    (busy as f64 - f64::from(writes) * 500e3) / moved as f64 / 550e3
}

#[test]
fn the_planes_of_a_die_program_moved_pages_together() {
    let (alone, together) = (busy_for_a_move(with_planes(1)), busy_for_a_move(with_planes(4)));
    assert!(alone > 0.9, "with one plane a move takes a read and a program: {alone:.2}");
    // erases are in both; where pages of a row are programmed as they come, it is 0.48 of it
    assert!(together < 0.35 * alone, "four planes share a program: {together:.2} of {alone:.2}");
}

#[test]
fn a_controller_takes_one_command_after_the_other() {
    let serial = SimSpan::from_us(5);
    let mut drive = Drive::new(DriveConfig { command_serial: serial, ..with_planes(1) }).unwrap();
    let range = BlockRange::new(Lba(0), 1);
    let read = |drive: &mut Drive| {
        let read = Command::Read { range, into: None };
        drive.submit(SimTime::from_ns(1_000), read).unwrap().done
    };
    let first = read(&mut drive);
    let tenth = (1..10).map(|_| read(&mut drive)).last().unwrap();
    assert!(tenth.since(first) >= serial * 9, "{first} {tenth}");
}

/// Firmware that hands each 4 KiB and each page to hardware by itself takes a core for each.
#[test]
fn each_request_to_hardware_takes_the_core() {
    let config = |request_serial| DriveConfig { request_serial, ..with_planes(1) };
    let time_of_overwrites = |request_serial| {
        let mut drive = Drive::new(config(request_serial)).unwrap();
        let (mut now, mut rng) = (SimTime::ZERO, Rng::new(1));
        for n in 0..9000 {
            let lba = if n < 3000 { n } else { rng.below(3000) };
            now = write(&mut drive, now, lba, 1);
        }
        let moves = drive.counters().programs[Cause::Gc as usize];
        (now.since(SimTime::ZERO), moves)
    };
    let ((plain, moves), (slow, same)) =
        (time_of_overwrites(SimSpan::ZERO), time_of_overwrites(SimSpan::from_us(1_000)));
    assert_eq!(moves, same, "what cleaning moves does not hang on its time");
    // pages of one block: over the link and programmed, or read and programmed
    let requests = SimSpan::from_ms(1) * (2 * (9000 + moves));
    assert!(slow >= requests && slow < requests + plain, "{slow}, {requests}, {plain} without");
}

/// The requests of commands on pages of four blocks, by the time that they keep the core.
#[test]
fn pages_are_requests_where_they_are_read_or_programmed() {
    let request = SimSpan::from_ms(10);
    let geometry =
        Geometry { pages_per_block: 64, page_bytes: 16384, ..with_planes(1).nand.geometry };
    let config = DriveConfig { request_serial: request, ..DriveConfig::plain(geometry, 3000) };
    let requests_of = |buffer_pages, commands: &dyn Fn(&mut Drive, SimTime)| {
        let mut drive = Drive::new(DriveConfig { buffer_pages, ..config.clone() }).unwrap();
        write(&mut drive, SimTime::ZERO, 0, 64);
        drive.submit(SimTime::ZERO, Command::Flush).unwrap();
        let start = drive.idle_from();
        commands(&mut drive, start);
        drive.idle_from().since(start).as_ns() / request.as_ns()
    };
    let reads = |start, blocks| {
        move |drive: &mut Drive, now: SimTime| {
            let range = BlockRange::new(Lba(start), blocks);
            let done = drive.submit(now, Command::Read { range, into: None }).unwrap().done;
            assert!(done >= now + request, "the command itself waits for its requests");
        }
    };
    let writes = |writes: &'static [(u64, u64)]| {
        move |drive: &mut Drive, now: SimTime| {
            for &(lba, blocks) in writes {
                write(drive, now, lba, blocks);
            }
            drive.submit(now, Command::Flush).unwrap();
        }
    };
    assert_eq!(requests_of(0, &reads(0, 4)), 4 + 1);
    assert_eq!(requests_of(0, &reads(2, 4)), 4 + 2, "two pages have a part of it");
    assert_eq!(requests_of(0, &reads(2000, 4)), 4, "never written: nothing is read");
    assert_eq!(requests_of(0, &writes(&[(0, 4)])), 4 + 1);
    assert_eq!(requests_of(0, &writes(&[(1, 1)])), 1 + 2, "the rest of its page is read");
    assert_eq!(requests_of(32, &writes(&[(0, 1), (1, 1), (2, 1), (3, 1)])), 4 + 1, "in the buffer");
}

#[test]
fn pages_stay_on_their_die_only_where_a_line_is_one_block_of_one_die() {
    for planes in [1, 4] {
        let wide = DriveConfig { gc_within_die: true, ..with_planes(planes) };
        assert_eq!(Drive::new(wide).unwrap_err(), ConfigError::WithinDie, "superblocks");
    }
    let apart = DriveConfig { gc_within_die: true, shape: LineShape::Block, ..with_planes(4) };
    assert_eq!(Drive::new(apart).unwrap_err(), ConfigError::WithinDie, "four planes");
}

#[test]
fn the_update_of_the_map_keeps_the_controller_busy() {
    let access = SimSpan::from_us(50);
    let read_after = |blocks_written: u64| {
        let mut drive = Drive::new(DriveConfig { map_access: access, ..with_planes(1) }).unwrap();
        if blocks_written > 0 {
            write(&mut drive, SimTime::ZERO, 0, blocks_written);
        }
        let read = Command::Read { range: BlockRange::new(Lba(2000), 1), into: None };
        drive.submit(SimTime::ZERO, read).unwrap().done
    };
    let [none, one, eight] = [0, 1, 8].map(read_after);
    assert!(one.since(none) >= access, "{none} {one}");
    assert!(eight.since(none) >= access * 8, "{none} {eight}");
}

/// Cleaning in an idle time keeps the controller busy then, not when the next command comes.
#[test]
fn a_command_after_an_idle_time_does_not_wait_for_the_map_updates_in_it() {
    let map_access = SimSpan::from_us(20);
    let slow_map = DriveConfig { map_access, background_lines: 20, ..with_planes(4) };
    let mut drive = Drive::new(slow_map).unwrap();
    let mut now = SimTime::ZERO;
    let mut rng = Rng::new(1);
    for _ in 0..6000 {
        now = write(&mut drive, now, rng.below(3000), 1);
    }
    let moved = drive.counters().programs[Cause::Gc as usize];
    let later = now + SimSpan::from_ms(20_000);
    let unmapped = Command::Discard { ranges: &[BlockRange::new(Lba(0), 1500).into()] };
    now = drive.submit(later, unmapped).unwrap().done;
    let later = now + SimSpan::from_ms(20_000);
    let read = Command::Read { range: BlockRange::new(Lba(2999), 1), into: None };
    let done = drive.submit(later, read).unwrap().done;
    assert!(drive.counters().programs[Cause::Gc as usize] > moved, "it cleans meanwhile");
    assert!(done.since(later) < SimSpan::from_us(300), "{later} {done}");
}

/// A drive without capacitors takes its time to promise durability: flushes in turn, writes with
/// FUA beside each other.
#[test]
fn a_flush_and_a_fua_write_take_what_the_profile_says() {
    let spans = |flush, fua, power_loss_protection| {
        let (flush, fua) = (SimSpan::from_us(flush), SimSpan::from_us(fua));
        let config = DriveConfig { flush, fua, power_loss_protection, ..with_planes(1) };
        let mut drive = Drive::new(config).unwrap();
        let data = Data::Patterns(Pattern::new(1));
        let range = BlockRange::new(Lba(0), 1);
        let command = Command::Write { range, data, hints: Hints::default(), fua: true };
        let written = drive.submit(SimTime::ZERO, command).unwrap().done;
        let [first, second] =
            [0, 1].map(|_| drive.submit(written, Command::Flush).unwrap().done.since(written));
        (written.as_ns(), first.as_ns(), second.as_ns())
    };
    let (written, first, second) = spans(1000, 300, false);
    let (free, nothing, _) = spans(0, 0, false);
    assert_eq!(written, free + 300_000);
    assert_eq!((first, second), (nothing + 1_000_000, nothing + 2_000_000));
    assert_eq!(spans(1000, 300, true), spans(0, 0, true), "capacitors");
}
