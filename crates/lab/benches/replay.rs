//! Requests that are replayed in a second of CPU time: a drive is filled in order, and random
//! writes go on until it cleans. Beside another program `dovetail` if one is given: both run in
//! turn, each in a process of its own, and the shortest of the times counts.
//!
//! `cargo bench -p dovetail-lab --bench replay [-- RANDOM_WRITES [OTHER_DOVETAIL]]`, 2,000,000 if
//! none are given

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use dovetail_ftl::{Overrides, Profile};
use dovetail_host::HostCosts;
use dovetail_lab::replay::{Pacing, ReplayJob, replay};
use dovetail_workload::trace::TraceOptions;
use serde_json::Value;

const TIMES: usize = 5;
const QUEUE_DEPTH: u32 = 32;
/// Blocks that the trace fills first, by 16, and then writes at random.
const SPAN: u64 = 2_000_000;

/// The drive that MQSim and SimpleSSD were timed with: 9.5 GiB of flash, two planes a die.
const DRIVE: &str = r#"
name = "two-planes"
about = "The drive that MQSim and SimpleSSD were timed with: 9.5 GiB of flash, two planes a die."

[capacity]
user = "8261MiB"
over_provisioning_percent = 17.6

[flash]
channels = 8
dies_per_channel = 8
planes_per_die = 2
pages_per_block = 128
page = "4KiB"
endurance = 100000
factory_bad_per_mille = 0.0

[timing]
read_us = 50
program_us = 500
erase_us = 3500
channel_mb_per_s = 333

[host]
link_mb_per_s = 3200
command_us = 5
write_buffer = "0"

[ftl]
map = "page"
map_access_ns = 0
lines = "superblock"
streams = 1
gc = "greedy"
gc_choices = 10
gc_apart = false
gc_foreground_percent = 20.0
gc_background_percent = 50.0
gc_least_garbage_percent = 12.5
gc_idle_us = 1000
wear_spread = 200
"#;

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Writes the trace, a microsecond between requests; returns how many it has.
fn write_trace(path: &Path, random: u64) -> u64 {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let fill = (0..SPAN).step_by(16).map(|block| (block, 128));
    let mut state = 42;
    let random = (0..random).map(|_| {
        let block = split_mix(&mut state) % SPAN;
        split_mix(&mut state); // that of a read or write, in traces with both
        (block, 8)
    });
    let mut requests = 0;
    for (block, sectors) in fill.chain(random) {
        writeln!(file, "{} 0 {} {sectors} 0", requests * 1000, block * 8).unwrap();
        requests += 1;
    }
    requests
}

fn run(trace: &str, drive: &str) {
    let drive = Profile::load(drive).unwrap().resolve(&Overrides::default()).unwrap();
    let job = ReplayJob {
        label: "replay".into(),
        trace: trace.into(),
        trace_options: TraceOptions::default(),
        drive,
        pacing: Pacing::Closed { depth: QUEUE_DEPTH },
        wrap: false,
        precondition: false,
        interval: None,
        host: HostCosts::NONE,
        limit: None,
        zone_log: None,
    };
    let result = replay(&job, &mut |_| ()).unwrap();
    println!("{}", serde_json::to_string_pretty(&result).unwrap());
}

/// CPU time of all processes that this one has started and that have ended, in seconds.
fn cpu_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // the name of the program, in parentheses, may have spaces
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = fields.skip(13).take(2).map(|ticks| ticks.parse().unwrap()).collect();
    ticks.iter().sum::<f64>() / 100.0
}

/// Runs a program that prints its results; returns its CPU time and the results.
fn measured(mut program: Command) -> (f64, Value) {
    let before = cpu_of_children();
    let ended = program.stderr(Stdio::null()).output().unwrap();
    assert!(ended.status.success(), "{program:?}");
    (cpu_of_children() - before, serde_json::from_slice(&ended.stdout).unwrap())
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--run") {
        return run(&arguments[at + 1], &arguments[at + 2]);
    }
    let random = arguments.first().map_or(2_000_000, |random| random.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (trace, drive) = (folder.path().join("trace"), folder.path().join("drive.toml"));
    let requests = write_trace(&trace, random);
    std::fs::write(&drive, DRIVE).unwrap();
    let (mut times, mut others) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.arg("--run").args([&trace, &drive]);
        let (cpu, results) = measured(own);
        times.push(cpu);
        let Some(path) = arguments.get(1) else { continue };
        let mut other = Command::new(path);
        other.arg("replay").arg(&trace).arg("--drive").arg(&drive);
        other.args(["--queue-depth", "32", "--json"]);
        let (cpu, others_results) = measured(other);
        others.push(cpu);
        for figures in ["drive", "totals", "latency", "dies", "series", "wear"] {
            assert_eq!(results[figures], others_results["runs"][0][figures], "{figures}");
        }
    }
    let least = |times: &[f64]| times.iter().copied().min_by(f64::total_cmp);
    let rate = |seconds: f64| requests as f64 / seconds / 1e6;
    print!("{requests} requests: {:.2} million a CPU second", rate(least(&times).unwrap()));
    match least(&others) {
        Some(other) => println!(
            ", the other {:.2}: ratio {:.2}; times {times:.2?}, {others:.2?}",
            rate(other),
            other / least(&times).unwrap()
        ),
        None => println!("; times {times:.2?}"),
    }
}
