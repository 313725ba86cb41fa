//! Fio jobs on stacks, as several tests play them.

use std::sync::atomic::AtomicBool;

use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_lab::results::RunResult;

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
