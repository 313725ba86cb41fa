//! One fio job on F2FS and on ext4, each on a new drive of the same kind.
//!
//! `cargo run --release -p dovetail-lab --example compare_stacks`
//!
//! prints for each stack the calls in a second of virtual time, the 99th percentile of an fsync,
//! and the write amplification from the job down to the flash.

#![allow(clippy::print_stdout, reason = "an example prints what it found")]

use std::error::Error;

use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_lab::results::RunResult;
use dovetail_time::SimSpan;

/// Small writes over one large file, each eighth made durable. Sizes are those at full scale.
const JOB: &str = "
[database]
rw=randwrite
bs=4k
size=16g
io_size=48g
fsync=8
";

/// By how much drive, memory and job are shrunk.
const SCALE: &str = "1/64";

fn main() -> Result<(), Box<dyn Error>> {
    let source = Source::fio(JOB, "database.fio", &[])?;
    let stacks = [Stack::load("f2fs")?, Stack::load("ext4")?];
    let experiment = Experiment { scale: SCALE.parse()?, ..Experiment::new(&source, &stacks) };
    let (results, failures) = experiment.run(stacks.len(), &|_| {});
    results.runs.iter().for_each(show);
    match failures.into_iter().next() {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

fn show(run: &RunResult) {
    println!(
        "{}: {:.0} calls/s, 99 % of fsyncs within {}, write amplification {:.2}",
        run.label,
        run.totals.calls_per_s,
        SimSpan::from_ns(run.latency.flush.percentiles.p99_ns),
        run.totals.total_waf.unwrap_or(f64::NAN),
    );
}
