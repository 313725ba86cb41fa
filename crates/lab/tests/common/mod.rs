//! Runs that several tests use.

use dovetail_lab::bench::{self, Job, Stack};
use dovetail_lab::results::RunResult;
use dovetail_workload::personality::{Personality, PersonalityWorkload};

/// A mail server for a short time on a stack.
pub(crate) fn bench_run(stack: &str, label: &str) -> RunResult {
    let mut varmail = Personality::load("varmail").unwrap();
    varmail.set([("nfiles", "50"), ("nthreads", "2"), ("operations", "400")]).unwrap();
    let mut workload = PersonalityWorkload::new(&varmail, 1).unwrap();
    let stack = Stack::load(stack).unwrap();
    let scale = "1/64".parse().unwrap();
    let job = Job {
        label: label.into(),
        stack: &stack,
        scale,
        seed: 1,
        stop: &|| false,
        precondition: None,
        final_sync: false,
        restart: false,
        progress: &|_| {},
    };
    bench::run(&job, &mut workload).unwrap()
}
