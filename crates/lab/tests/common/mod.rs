//! Runs that several tests use.

use std::sync::atomic::AtomicBool;

use dovetail_lab::bench::{self, Experiment, Job, Source, Stack};
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
        precondition: false,
        final_sync: false,
        restart: false,
        progress: &|_| {},
    };
    bench::run(&job, &mut workload).unwrap()
}

/// A fio job on stacks at 1/32, with a power cut at the end if `restart` says so.
pub(crate) fn fio_runs(job: &str, stacks: &[Stack], restart: bool) -> Vec<RunResult> {
    let source = Source::fio(job, "job.fio", &[]).unwrap();
    let stop = AtomicBool::new(false);
    let experiment = Experiment {
        source: &source,
        fill: None,
        stacks,
        scale: "1/32".parse().unwrap(),
        seed: 1,
        repetitions: 1,
        stop: &stop,
        precondition: false,
        final_sync: false,
        restart,
        progress: &|_, _| {},
    };
    let (results, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    results.runs
}
