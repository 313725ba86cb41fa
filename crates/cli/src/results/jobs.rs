//! Lines of the table for each job of a raw drive: its IOPS at one queue depth and its latency at
//! another are told apart.

use dovetail_lab::results::{JobResult, LatencyResult, RunResult};

use super::table::{latency, rate};
use crate::table::Line;

/// A figure of a job by its name.
type Figure = (&'static str, fn(&JobResult) -> Option<String>);

const FIGURES: [Figure; 4] = [
    ("IOPS", |job| iops(job).map(rate)),
    ("read p50 / p99 / p99.9", |job| latency(&job.latency.read)),
    ("write p50 / p99 / p99.9", |job| latency(&job.latency.write)),
    ("discard p50 / p99 / p99.9", |job| latency(&job.latency.discard)),
];

/// The lines of all jobs, of runs on raw drives that have several.
pub(super) fn lines(runs: &[RunResult]) -> Vec<Line> {
    let mut names: Vec<&str> = Vec::new();
    for job in runs.iter().flat_map(jobs) {
        if !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    let of_job = |name: &str| {
        FIGURES.map(|(title, figure)| {
            let of_run = |run| jobs(run).iter().find(|job| job.name == name).and_then(figure);
            (format!("{name}: {title}"), runs.iter().map(of_run).collect())
        })
    };
    names.into_iter().flat_map(of_job).collect()
}

fn jobs(run: &RunResult) -> &[JobResult] {
    if run.stack.is_raw() && run.jobs.len() > 1 { &run.jobs } else { &[] }
}

/// Reads, writes and discards a second.
fn iops(job: &JobResult) -> Option<f64> {
    let count = |latency: &LatencyResult| latency.percentiles.count;
    let calls = count(&job.latency.read) + count(&job.latency.write) + count(&job.latency.discard);
    (calls > 0 && job.elapsed_s > 0.0).then(|| calls as f64 / job.elapsed_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_of_a_raw_drive_has_its_lines() {
        let job = |name: &str, count: u64, elapsed_s: f64| {
            let mut job = JobResult { name: name.into(), elapsed_s, ..JobResult::default() };
            job.latency.read.percentiles.count = count;
            job
        };
        let mut run = RunResult { jobs: vec![job("qd1", 100, 2.0)], ..RunResult::default() };
        run.stack.filesystem = "none".into();
        assert!(lines(std::slice::from_ref(&run)).is_empty(), "it stands in the totals");
        run.jobs.push(job("qd32", 3000, 0.5));
        let found: Vec<_> = lines(std::slice::from_ref(&run))
            .into_iter()
            .filter(|(name, _)| name.ends_with("IOPS"))
            .collect();
        let expected = [("qd1: IOPS", "50"), ("qd32: IOPS", "6,000")];
        assert_eq!(found, expected.map(|(name, iops)| (name.into(), vec![Some(iops.into())])));
        run.stack.filesystem = "f2fs".into();
        assert!(lines(&[run]).is_empty());
    }
}
