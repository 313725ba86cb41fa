//! Memory of the machine that drives of any capacity take: new, and for each 4 KiB that was
//! written; and the time of a copy beside that of filling.
//!
//! Then time and memory over the number of writes, on 32 GiB and with cleaning.
//!
//! `cargo bench -p dovetail-ftl --bench memory [-- GIB_WRITTEN [MOST_WRITES]]`

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::time::Instant;

use dovetail_block::{BlockDevice, BlockRange, Command, Data, Hints, Lba, Pattern};
use dovetail_ftl::{Drive, DriveConfig, Overrides, Profile};
use dovetail_time::{Rng, SimTime};

/// Blocks of a write.
const BLOCKS: u64 = 64;

/// `femu-32g` with `times` as many erase blocks.
fn config(times: u32) -> DriveConfig {
    let mut config = Profile::load("femu-32g").unwrap().resolve(&Overrides::default()).unwrap();
    config.nand.geometry.blocks_per_plane *= times;
    config.user_blocks *= u64::from(times);
    config
}

/// Bytes of the process that are in memory, and those that it has asked for.
fn bytes() -> [i64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmRSS:", "VmSize:"].map(|key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<i64>().unwrap_or(0) * 1024
    })
}

fn mib(bytes: i64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u32>().ok());
    let gib = number(0).unwrap_or(16);
    let own = |arguments: [u32; 3]| {
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        own.args(arguments.map(|number| number.to_string())).status().unwrap();
    };
    match [1, 2].map(number) {
        [Some(0), Some(writes)] => return measure_writes(writes),
        [Some(times), Some(_)] => return measure(times, gib),
        _ => {}
    }
    let most = number(1).unwrap_or(10_000_000);
    println!(
        "capacity     new: in memory, asked for   {gib} GiB in order: a block   as much at random: a block   copy"
    );
    // what one drive leaves in the allocator would be the next one's
    for times in [1, 4, 16, 64, 256] {
        own([gib, times, 0]);
    }
    println!("\n      writes     time   writes a second    in memory");
    let powers = (5..=9).map(|power| 10_u32.pow(power));
    powers.take_while(|writes| *writes <= most).for_each(|writes| own([0, 0, writes]));
}

/// Writes single blocks at random to a drive of 32 GiB, and prints a line.
fn measure_writes(writes: u32) {
    let before = bytes();
    let mut drive = Drive::new(config(1)).unwrap();
    let blocks = drive.config().user_blocks;
    let (mut rng, mut now) = (Rng::new(1), SimTime::ZERO);
    let start = Instant::now();
    for write in 0..u64::from(writes) {
        let range = BlockRange::new(Lba(rng.below(blocks)), 1);
        let data = Data::Patterns(Pattern::new(1 + write % 65_000));
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        now = drive.submit(now, command).unwrap().done;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{writes:12} {seconds:6.2} s {:17.0} {:8.1} MiB",
        f64::from(writes) / seconds,
        mib(bytes()[0] - before[0])
    );
}

/// Makes a drive, fills a part of it in order and as much at random, and prints a line.
fn measure(times: u32, gib: u32) {
    let written = u64::from(gib) << 18;
    let before = bytes();
    let mut drive = Drive::new(config(times)).unwrap();
    let new = bytes();
    let blocks = drive.config().user_blocks;
    let mut version = 1;
    let mut write = |drive: &mut Drive, lba: u64| {
        let range = BlockRange::new(Lba(lba), BLOCKS);
        let data = Data::Patterns(Pattern::new(version));
        // as a run checks what it wrote: small numbers take least
        version = if version + 2 * BLOCKS > 65_000 { 1 } else { version + BLOCKS };
        let command = Command::Write { range, data, hints: Hints::default(), fua: false };
        drive.submit(SimTime::ZERO, command).unwrap();
    };
    let start = Instant::now();
    (0..written / BLOCKS).for_each(|i| write(&mut drive, i * BLOCKS));
    let (in_order, took) = (bytes(), start.elapsed());
    let mut rng = Rng::new(1);
    (0..written / BLOCKS).for_each(|_| write(&mut drive, rng.below(blocks / BLOCKS) * BLOCKS));
    let random = bytes();
    let copying = Instant::now();
    let copy = drive.clone();
    let copied = copying.elapsed();
    drop((copy, drive));
    let a_block = |before: i64, after: i64| (after - before) as f64 / written as f64;
    println!(
        "{:6} GiB {:10.1} MiB {:10.1} MiB {:16.2} bytes {:21.2} bytes   {:.2} s of {:.2} s",
        blocks >> 18,
        mib(new[0] - before[0]),
        mib(new[1] - before[1]),
        a_block(new[0], in_order[0]),
        a_block(in_order[0], random[0]),
        copied.as_secs_f64(),
        took.as_secs_f64(),
    );
}
