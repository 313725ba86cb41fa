//! Integrity against a reference model: random commands, faults of the medium and power cuts, also
//! during recovery. What was flushed reads back; what was not reads as old or new, never as
//! anything else.
//!
//! A failing seed is printed with what to type:
//! `DOVETAIL_SEED=7 cargo test -p dovetail-ftl --test all integrity::`. `DOVETAIL_CACHE=lanes` gives
//! all demand-paged maps that cache policy.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(clippy::print_stdout, reason = "a test tells what it has reached")]

use dovetail_block::{DeviceError, HeldRemaps};
use dovetail_ftl::Drive;
use dovetail_nand::FaultPlan;
use dovetail_testkit::ReferenceDevice;
use dovetail_time::{Rng, SimSpan, SimTime};

mod drives;
mod life;
mod seen;
mod space;

pub(crate) use drives::config;
use drives::{Flash, Kind, drawn, faults};
use life::{Expected, Life, states};
use seen::Seen;
use space::Space;

/// The normal run; `DOVETAIL_SEEDS` asks for another number.
const SEEDS: u64 = 300;
/// Seeds beyond those that have found a fault; they run each time.
const ONCE_FAILED: [u64; 3] = [859, 30_245, 50_711];
const CUTS_PER_SEED: u64 = 12;
const COMMANDS_PER_LIFE: u64 = 400;

/// Plans how this life ends; returns how many commands it has at most.
fn plan_end(life: &mut Life, rng: &mut Rng, kind: Kind) -> u64 {
    let plan = faults(
        rng,
        life.drive.flash_operations(),
        3 * COMMANDS_PER_LIFE,
        life.failing.then_some(kind),
    );
    let at_entry = kind.has_memory() && !life.in_time && rng.chance(0.5);
    let power_cut = plan.power_cut.filter(|_| !life.in_time && !at_entry);
    life.drive.set_faults(FaultPlan { power_cut, ..plan });
    if at_entry {
        life.drive.cut_power_at_entry(rng.below(COMMANDS_PER_LIFE), rng.chance(0.5));
    }
    if life.in_time { 1 + rng.below(COMMANDS_PER_LIFE) } else { COMMANDS_PER_LIFE }
}

fn run(seed: u64, kind: Kind, flash: Flash) -> Seen {
    let is_checked = !matches!(flash, Flash::Plain | Flash::Cells);
    let mut rng = Rng::new(seed);
    let config = drawn(&mut rng, kind, flash);
    let space = Space::new(&config, &mut rng);
    let drive = match Drive::new(config) {
        Ok(drive) => drive,
        Err(_) => return Seen::default(), // too small for its frontiers: another seed has a larger one
    };
    let mut life = Life {
        drive,
        space,
        expected: Expected::new(ReferenceDevice::new()),
        held: HeldRemaps::default(),
        seen: Seen::default(),
        now: SimTime::ZERO,
        version: 0,
        // Half of the drives have flash that fails now and then; only these may run out of good
        // blocks.
        failing: seed % 2 == 1,
        pause: SimSpan::ZERO,
        // Half of the cuts come in the order of time.
        in_time: seed / 2 % 2 == 1,
        last_remap: SimTime::ZERO,
    };
    if life.in_time {
        life.drive.remember_operations();
    }
    while life.seen.cuts < CUTS_PER_SEED {
        let commands = plan_end(&mut life, &mut rng, kind);
        let in_a_hurry = life.in_time && kind.remaps() && rng.chance(0.8);
        for command in 0..=commands {
            let done = match command < commands {
                true => life.step(&mut rng),
                false if in_a_hurry => life.last_moments(&mut rng),
                false => Ok(()),
            };
            match done {
                Ok(()) if is_checked && command % 16 == 0 => life.drive.check().unwrap(),
                Ok(()) => {}
                Err(DeviceError::PowerLost) => break,
                Err(DeviceError::ReadOnly(_)) if life.failing => {
                    life.check_read_only();
                    life = life.recover(&mut rng);
                    life.seen.worn_out += 1;
                    return life.seen;
                }
                Err(error) => {
                    panic!("{error}\n{:?}\nlines: {}", life.drive.config(), states(&life.drive))
                }
            }
        }
        life.seen.count(&life.drive);
        life = life.recover(&mut rng);
        life.seen.cuts += 1;
    }
    life.seen
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

/// Runs all seeds; one alone if it is asked for.
fn run_all(kind: Kind, flash: Flash, test: &str) -> Option<Seen> {
    if let Some(seed) = number("DOVETAIL_SEED") {
        run(seed, kind, flash);
        return None;
    }
    let (mut total, mut seeds) = (Seen::default(), 0);
    for seed in (0..number("DOVETAIL_SEEDS").unwrap_or(SEEDS)).chain(ONCE_FAILED) {
        let seen = std::panic::catch_unwind(|| run(seed, kind, flash)).unwrap_or_else(|_| {
            panic!(
                "seed {seed} fails: DOVETAIL_SEED={seed} cargo test -p dovetail-ftl --test all integrity::{test}"
            )
        });
        seeds += u64::from(seen.cuts > 0);
        total.add(&seen);
    }
    let Seen { cuts, worn_out, gc_runs, retired, journal_pages, .. } = total;
    println!(
        "{kind:?}: {cuts} power cuts over {seeds} seeds; {gc_runs} lines cleaned, {retired} blocks retired,"
    );
    println!("{journal_pages} journal pages, {worn_out} drives worn out");
    assert!(cuts >= 2000 && seeds >= 200, "{cuts} cuts over {seeds} seeds");
    let reached = gc_runs + total.merges[2] > 1000 && retired > 20;
    assert!(reached, "the workload does not reach what it should");
    Some(total)
}

#[test]
fn nothing_flushed_is_lost_and_nothing_else_appears() {
    let Some(seen) = run_all(Kind::Plain, Flash::Plain, "nothing_flushed") else { return };
    assert!(seen.journal_pages > 1000, "{} journal pages", seen.journal_pages);
}

#[test]
fn drives_on_cells_of_several_bits_lose_nothing() {
    let test = "drives_on_cells_of_several_bits_lose_nothing";
    let Some(seen) = run_all(Kind::Plain, Flash::Cells, test) else { return };
    let Seen { folded, skipped, refreshed, .. } = seen;
    println!("{folded} lines folded, {skipped} pages skipped, {refreshed} lines refreshed");
    assert!(
        folded > 500 && skipped > 5000 && refreshed > 100,
        "the cache and word lines are not reached"
    );
}

fn log_blocks_hold(flash: Flash, test: &str) {
    let Some(seen) = run_all(Kind::Plain, flash, test) else { return };
    println!("switch, partial and full merges: {:?}", seen.merges);
    let [switch, partial, full] = seen.merges;
    assert!(switch > 10 && partial > 100 && full > 10_000, "{:?}", seen.merges);
}

#[test]
fn log_block_maps_lose_nothing() {
    log_blocks_hold(Flash::LogBlocks, "log_block_maps_lose_nothing");
}

#[test]
fn log_block_maps_on_cells_of_several_bits_lose_nothing() {
    let test = "log_block_maps_on_cells_of_several_bits_lose_nothing";
    log_blocks_hold(Flash::LogBlocksOnCells, test);
}

#[test]
fn thin_drives_on_cells_of_several_bits_lose_nothing() {
    run_all(Kind::Thin, Flash::Cells, "thin_drives_on_cells_of_several_bits_lose_nothing");
}

#[test]
fn paged_maps_on_cells_of_several_bits_hold() {
    run_all(Kind::Plain, Flash::PagedOnCells, "paged_maps_on_cells_of_several_bits_hold");
}

#[test]
fn remaps_on_cells_of_several_bits_hold() {
    run_all(Kind::Log, Flash::Cells, "remaps_on_cells_of_several_bits_hold");
}

fn remaps_hold(kind: Kind, test: &str) -> Option<Seen> {
    let seen = run_all(kind, Flash::Plain, test)?;
    let Seen { remaps, longest_remap, in_remaps, remapped_pages, log_pages, .. } = seen;
    println!(
        "{remaps} remaps, the longest of {longest_remap} pairs; {in_remaps} cuts before one was acknowledged,"
    );
    println!("{remapped_pages} remapped pages found, {log_pages} pages of the log");
    let reached =
        remaps > 10_000 && longest_remap > 338 && in_remaps > 100 && remapped_pages > 10_000;
    assert!(reached, "the workload does not reach what it should");
    Some(seen)
}

#[test]
fn remaps_in_non_volatile_memory_happen_wholly_or_not_at_all() {
    let Some(seen) = remaps_hold(Kind::NonVolatile, "non_volatile") else { return };
    assert_eq!(seen.log_pages, 0);
}

#[test]
fn remaps_in_a_segmented_log_happen_wholly_or_not_at_all() {
    let Some(seen) = remaps_hold(Kind::SegmentedLog, "in_a_segmented_log") else { return };
    assert!(seen.log_pages > 200, "{} pages of tables", seen.log_pages);
}

#[test]
fn remaps_in_the_log_happen_wholly_or_not_at_all() {
    let Some(seen) = remaps_hold(Kind::Log, "in_the_log") else { return };
    assert!(seen.updated > 100, "{} handles were given new reclaim units", seen.updated);
    assert!(seen.log_pages > 10_000, "{} pages of the log", seen.log_pages);
}

#[test]
fn thin_drives_lose_nothing_bring_nothing_back_and_leak_nothing() {
    let Some(seen) = run_all(Kind::Thin, Flash::Plain, "thin_drives") else { return };
    assert!(seen.refused > 1000, "{} writes without room", seen.refused);
    assert!(seen.journal_pages > 1000, "{} journal pages", seen.journal_pages);
}

#[test]
fn remaps_of_thin_drives_hold_in_non_volatile_memory() {
    let Some(seen) = remaps_hold(Kind::ThinNonVolatile, "thin_drives_hold_in_non_volatile") else {
        return;
    };
    assert!(seen.refused > 100, "{} writes without room", seen.refused);
}

#[test]
fn remaps_of_thin_drives_hold_in_a_segmented_log() {
    let kind = Kind::ThinSegmentedLog;
    let Some(seen) = remaps_hold(kind, "thin_drives_hold_in_a_segmented_log") else { return };
    assert!(seen.refused > 100, "{} writes without room", seen.refused);
    assert!(seen.log_pages > 100, "{} pages of tables", seen.log_pages);
}

#[test]
fn remaps_of_thin_drives_hold_in_the_log() {
    let Some(seen) = remaps_hold(Kind::ThinLog, "thin_drives_hold_in_the_log") else { return };
    assert!(seen.refused > 100 && seen.log_pages > 10_000, "{} writes without room", seen.refused);
}

/// No change of a demand-paged map is lost, whatever it is paged by and over which map, and
/// whenever the power goes.
fn paged_maps_hold(kind: Kind, test: &str) {
    let Some(seen) = run_all(kind, Flash::Paged, test) else { return };
    println!("{} translation pages written", seen.translation_pages);
    assert!(seen.translation_pages > 100_000, "{} translation pages", seen.translation_pages);
}

#[test]
fn a_paged_map_is_what_it_was() {
    paged_maps_hold(Kind::Plain, "a_paged_map_is_what_it_was");
}

#[test]
fn a_paged_map_is_what_it_was_with_remaps_in_non_volatile_memory() {
    paged_maps_hold(Kind::NonVolatile, "a_paged_map_is_what_it_was_with_remaps_in_non");
}

#[test]
fn a_paged_map_is_what_it_was_with_remaps_in_a_segmented_log() {
    paged_maps_hold(Kind::SegmentedLog, "a_paged_map_is_what_it_was_with_remaps_in_a_segm");
}

#[test]
fn a_paged_map_is_what_it_was_with_remaps_in_the_log() {
    paged_maps_hold(Kind::Log, "a_paged_map_is_what_it_was_with_remaps_in_the_log");
}

#[test]
fn a_paged_map_of_a_thin_drive_is_what_it_was() {
    paged_maps_hold(Kind::Thin, "a_paged_map_of_a_thin_drive_is_what_it_was");
}

#[test]
fn a_paged_map_of_a_thin_drive_is_what_it_was_with_remaps_in_non_volatile_memory() {
    paged_maps_hold(
        Kind::ThinNonVolatile,
        "a_paged_map_of_a_thin_drive_is_what_it_was_with_remaps_in_non",
    );
}

#[test]
fn a_paged_map_of_a_thin_drive_is_what_it_was_with_remaps_in_the_log() {
    paged_maps_hold(
        Kind::ThinLog,
        "a_paged_map_of_a_thin_drive_is_what_it_was_with_remaps_in_the_log",
    );
}
