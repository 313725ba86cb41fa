//! Write amplification of the simulated drive against theory: uniform random 4 KiB writes at steady
//! state, no discards. See `docs/gc-theory.md` for the formulas and for how utilisation is counted.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(clippy::print_stdout, reason = "the comparison is a table")]

use dovetail_block::{BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern};
use dovetail_ftl::lines::{LineShape, LineState};
use dovetail_ftl::{Drive, DriveConfig, victim};
use dovetail_nand::{Geometry, NandConfig, Timing};
use dovetail_papers::theory;
use dovetail_time::{Rng, SimSpan, SimTime};

/// A drive of single-block lines on one die: as many equal lines as theory's infinity can be had
/// cheaply.
#[derive(Clone, Copy)]
struct Size {
    lines: u32,
    pages: u32,
    /// Drive writes before and while measuring.
    warm_up: u64,
    measured: u64,
}

const SMALL: Size = Size { lines: 1000, pages: 32, warm_up: 6, measured: 12 };
const LARGE: Size = Size { lines: 20_000, pages: 256, warm_up: 6, measured: 4 };

const OVER_PROVISIONING: [f64; 3] = [0.07, 0.125, 0.28];

fn drive(size: Size, over_provisioning: f64, policy: &str, choices: u32) -> Drive {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: size.lines,
        pages_per_block: size.pages,
        page_bytes: 4096,
    };
    let timing = Timing {
        read: SimSpan::from_us(50),
        program: SimSpan::from_us(500),
        erase: SimSpan::from_ms(5),
        transfer_4k: SimSpan::from_us(10),
        ..Timing::default()
    };
    let config = DriveConfig {
        nand: NandConfig {
            geometry,
            timing,
            retry: None,
            endurance: u32::MAX,
            factory_bad: vec![],
        },
        policy: victim::policy(policy).unwrap(),
        choices,
        shape: LineShape::Block,
        gc_apart: false,
        idle_after: SimSpan::from_ms(1000),
        link_4k: SimSpan::ZERO,
        seed: 3,
        ..DriveConfig::plain(
            geometry,
            (f64::from(geometry.pages()) / (1.0 + over_provisioning)) as u64,
        )
    };
    Drive::new(config).unwrap()
}

/// Writes at random, and sums up the free pages whenever a victim has just been chosen.
struct Writer {
    drive: Drive,
    rng: Rng,
    now: SimTime,
    picks: u64,
    free_pages: u64,
}

impl Writer {
    fn fill_and_write(&mut self, drive_writes: u64) {
        let blocks = self.drive.info().blocks;
        for _ in 0..drive_writes * blocks {
            let lba = self.rng.below(blocks);
            self.write(lba);
        }
    }

    fn write(&mut self, lba: u64) {
        let runs = self.drive.counters().gc_runs;
        let range = BlockRange::new(Lba(lba), 1);
        let data = Data::Patterns(Pattern::new(lba));
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        self.now = self.drive.submit(self.now, command).unwrap().done;
        // Lines are many: looking at every sixteenth choice is enough.
        if self.drive.counters().gc_runs > runs && runs.is_multiple_of(16) {
            self.picks += 1;
            self.free_pages += self.free_now();
        }
    }

    /// Erased pages in free lines and half of the line being filled; lines waiting for their erase
    /// are as free.
    fn free_now(&self) -> u64 {
        let lines = self.drive.lines();
        let pages = u64::from(lines.pages_per_line());
        let cleaned = lines
            .ids()
            .filter(|&l| lines.state(l) == LineState::Victim && lines.valid(l) == 0)
            .count();
        u64::from(lines.free()) * pages + cleaned as u64 * pages + pages / 2
    }
}

/// Measured write amplification and the utilisation of the lines in play.
fn measure(size: Size, over_provisioning: f64, policy: &str, choices: u32) -> (f64, f64) {
    let drive = drive(size, over_provisioning, policy, choices);
    let mut writer =
        Writer { drive, rng: Rng::new(9), now: SimTime::ZERO, picks: 0, free_pages: 0 };
    (0..writer.drive.info().blocks).for_each(|lba| writer.write(lba));
    writer.fill_and_write(size.warm_up);
    let before = writer.drive.counters();
    (writer.picks, writer.free_pages) = (0, 0);
    writer.fill_and_write(size.measured);
    let waf = (writer.drive.counters() - before).waf(1).unwrap();
    let total = u64::from(size.lines) * u64::from(size.pages);
    let free = writer.free_pages as f64 / writer.picks as f64;
    (waf, theory::effective_occupancy(writer.drive.info().blocks, total, free).unwrap())
}

fn compare(size: Size) {
    type Model = fn(f64, u32) -> f64;
    let policies: [(&str, u32, Model, f64); 4] = [
        ("fifo", 1, |rho, _| theory::fifo_wa(rho).unwrap(), 0.02),
        ("greedy", 1, |rho, b| theory::greedy_wa(rho, b).unwrap(), 0.03),
        ("d-choices", 2, |rho, b| theory::d_choices_wa(rho, b, 2).unwrap(), 0.03),
        ("d-choices", 10, |rho, b| theory::d_choices_wa(rho, b, 10).unwrap(), 0.03),
    ];
    println!("{} lines of {} pages", size.lines, size.pages);
    println!("policy         op %    rho    theory  measured  difference");
    for (policy, choices, model, tolerance) in policies {
        for op in OVER_PROVISIONING {
            let (waf, rho) = measure(size, op, policy, choices);
            let expected = model(rho, size.pages);
            let difference = waf / expected - 1.0;
            let name =
                if policy == "d-choices" { format!("{policy} {choices}") } else { policy.into() };
            let (op, percent) = (op * 100.0, difference * 100.0);
            println!("{name:13} {op:5.1}  {rho:.4}  {expected:8.3}  {waf:8.3}  {percent:+8.2} %");
            assert!(
                difference.abs() <= tolerance,
                "{name}, {op} %: {waf} is not within {tolerance} of {expected}"
            );
        }
    }
}

#[test]
fn small_drive_meets_theory() {
    compare(SMALL);
}

#[test]
#[ignore = "minutes of simulation: cargo xtask theory runs it in release"]
fn large_drive_meets_theory() {
    compare(LARGE);
}
