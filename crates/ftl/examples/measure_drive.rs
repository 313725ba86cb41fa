//! Random writes of 4 KiB on a modelled drive, until its write amplification is steady.
//!
//! `cargo run --release -p dovetail-ftl --example measure_drive -- [PROFILE]`
//!
//! prints a line for each drive write, that is for so many writes as the drive has blocks: the
//! write amplification and the 99th percentile of the latency within it. PROFILE is the name of a
//! profile that comes with Dovetail or the path of one, `femu-32g` if it is left out; the drive is
//! 1/64 of its size.

#![allow(clippy::print_stdout, reason = "an example prints what it found")]

use std::error::Error;

use dovetail_block::{BlockDevice, BlockRange, Command, Data, Lba, Pattern};
use dovetail_ftl::stats::{CommandKind, Latencies};
use dovetail_ftl::{Drive, Overrides, Profile};
use dovetail_time::{Rng, SimSpan, SimTime};

/// Drive writes at most.
const MOST: u32 = 20;
/// Write amplification is steady when it changes by less than this share between two drive writes.
const STEADY: f64 = 0.01;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "femu-32g".into());
    let overrides = Overrides { scale: Some("1/64".parse()?), ..Overrides::default() };
    let mut drive = Drive::new(Profile::load(&name)?.resolve(&overrides)?)?;
    let (mut rng, mut now, mut last) = (Rng::new(1), SimTime::ZERO, 0.0);
    println!("drive write   WAF  p99 of a write");
    for number in 1..=MOST {
        let before = drive.counters();
        let latencies = write_once(&mut drive, &mut rng, &mut now)?;
        let written = drive.counters() - before;
        let waf = written.waf(drive.geometry().subpages_per_page()).unwrap_or(1.0);
        let p99 = latencies.percentiles(CommandKind::Write).p99_ns;
        println!("{number:>11}  {waf:>4.2}  {}", SimSpan::from_ns(p99));
        if (waf - last).abs() < STEADY * waf {
            println!("steady after {:.1} s of virtual time", now.as_secs_f64());
            break;
        }
        last = waf;
    }
    Ok(())
}

/// Writes as many blocks as the drive has, at random addresses, one at a time.
fn write_once(
    drive: &mut Drive,
    rng: &mut Rng,
    now: &mut SimTime,
) -> Result<Latencies, Box<dyn Error>> {
    let blocks = drive.config().user_blocks;
    let mut latencies = Latencies::new();
    for number in 0..blocks {
        let range = BlockRange::new(Lba(rng.below(blocks)), 1);
        let write = Command::write(range, Data::Patterns(Pattern::new(number)));
        let done = drive.submit(*now, write)?.done;
        latencies.record(CommandKind::Write, done.since(*now));
        *now = done;
    }
    Ok(latencies)
}
