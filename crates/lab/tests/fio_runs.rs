//! Fio jobs on stacks, as several tests play them.

use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_lab::results::RunResult;

/// A fio job on stacks at 1/32, with a power cut at the end if `restart` says so.
pub(crate) fn fio_runs(job: &str, stacks: &[Stack], restart: bool) -> Vec<RunResult> {
    let source = Source::fio(job, "job.fio", &[]).unwrap();
    let scale = "1/32".parse().unwrap();
    let experiment = Experiment { scale, restart, ..Experiment::new(&source, stacks) };
    let (results, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    results.runs
}
