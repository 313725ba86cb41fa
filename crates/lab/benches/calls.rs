//! Calls that are simulated in a second of CPU time: `examples/random-updates.fio` on four stacks,
//! beside another program `dovetail` if one is given. Both run in turn, each in a process of its
//! own, and the shortest of three times counts. It says so if their results are not the same.
//!
//! `cargo bench -p dovetail-lab --bench calls [-- SCALE [OTHER_DOVETAIL]]`, 1/16 if no scale is
//! given

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![allow(clippy::unwrap_used, reason = "a benchmark may stop at a broken set-up")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_time::Ratio;
use serde_json::Value;

const STACKS: [&str; 4] = ["f2fs", "rm-ipu", "ext4", "iplfs"];
const TIMES: usize = 3;
/// Of the job at full scale: 16 GiB in each of four files, by 4 KiB, and an fsync after every ten.
const CALLS: f64 = (4_u64 * (16 << 30) / 4096) as f64 * 1.1;

fn job() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/random-updates.fio")
}

/// CPU time of all processes that this one has started and that have ended, in seconds.
fn cpu_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // the name of the program, in parentheses, may have spaces
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = fields.skip(13).take(2).map(|ticks| ticks.parse().unwrap()).collect();
    ticks.iter().sum::<f64>() / 100.0
}

/// Runs a program that prints its results; returns its CPU time and the runs of the results.
fn measured(mut program: Command) -> (f64, Value) {
    let before = cpu_of_children();
    let ended = program.stderr(Stdio::null()).output().unwrap();
    assert!(ended.status.success(), "{program:?}");
    let cpu = cpu_of_children() - before;
    let mut results: Value = serde_json::from_slice(&ended.stdout).unwrap();
    (cpu, results["runs"].take())
}

fn own(stack: &str, scale: &str) -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([scale, "--stack", stack]);
    program
}

fn other(program: &str, stack: &str, scale: &str) -> Command {
    let mut program = Command::new(program);
    program.arg("bench").arg(job()).args(["-j1", "--scale", scale, "--stack", stack, "--json"]);
    program
}

fn run(stack: &str, scale: &str) {
    let text = std::fs::read_to_string(job()).unwrap();
    let source = Source::fio(&text, "random-updates.fio", &[]).unwrap();
    let stacks = [Stack::load(stack).unwrap()];
    let scale: Ratio = scale.parse().unwrap();
    let experiment = Experiment { scale, ..Experiment::new(&source, &stacks) };
    let (results, failures) = experiment.run(1, &|_| ());
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(results.runs[0].error, None);
    println!("{}", serde_json::to_string_pretty(&results).unwrap());
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let scale = arguments.first().map_or("1/16", String::as_str);
    if let Some(at) = arguments.iter().position(|argument| argument == "--stack") {
        return run(&arguments[at + 1], scale);
    }
    let calls = CALLS * scale.parse::<Ratio>().unwrap().value();
    for stack in STACKS {
        let (mut times, mut others, mut agree) = (Vec::new(), Vec::new(), true);
        for _ in 0..TIMES {
            let (cpu, runs) = measured(own(stack, scale));
            times.push(cpu);
            if let Some(path) = arguments.get(1) {
                let (cpu, others_runs) = measured(other(path, stack, scale));
                others.push(cpu);
                agree &= runs == others_runs;
            }
        }
        let least = |times: &[f64]| times.iter().copied().min_by(f64::total_cmp);
        let rate = |seconds: f64| calls / seconds / 1e6;
        let seconds = least(&times).unwrap();
        print!("{stack}: {:.3} million calls a CPU second", rate(seconds));
        match least(&others) {
            Some(other) => {
                let remark = if agree { "" } else { "; their results differ" };
                println!(", the other {:.3}: ratio {:.2}{remark}", rate(other), other / seconds);
            }
            None => println!(),
        }
    }
}
