//! Lines of the table for each job, where there are several: what one does is no answer for another.

use dovetail_lab::results::{ByKind, JobResult, LatencyResult, RunResult};

use super::table::{latency, rate};
use crate::table::Line;

/// A figure of a job by its name.
type Figure = (&'static str, fn(&JobResult) -> Option<String>);

/// Jobs that have lines of their own; of more, the JSON has all.
const MOST: usize = 12;

/// Of jobs on files.
const OF_FILES: [Figure; 6] = [
    ("calls/s", |job| calls_per_s(job).map(rate)),
    ("read MB/s", |job| mb_per_s(job, job.read_bytes)),
    ("write MB/s", |job| mb_per_s(job, job.written_bytes)),
    ("read p50 / p99 / p99.9", |job| latency(&job.latency.read)),
    ("write p50 / p99 / p99.9", |job| latency(&job.latency.write)),
    ("sync p50 / p99 / p99.9", |job| latency(&job.latency.flush)),
];

/// Of jobs on a raw drive.
const OF_DRIVES: [Figure; 5] = [
    ("IOPS", |job| iops(job).map(rate)),
    ("read p50 / p99 / p99.9", |job| latency(&job.latency.read)),
    ("write p50 / p99 / p99.9", |job| latency(&job.latency.write)),
    ("flush p50 / p99 / p99.9", |job| latency(&job.latency.flush)),
    ("discard p50 / p99 / p99.9", |job| latency(&job.latency.discard)),
];

/// The lines of all jobs, of runs that have several: each job's are over its own time.
pub(super) fn lines(runs: &[RunResult]) -> Vec<Line> {
    let mut names: Vec<&str> = Vec::new();
    for job in runs.iter().flat_map(jobs) {
        if !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    if names.len() > MOST {
        let each = |run| (jobs(run).len() > 1).then(|| jobs(run).len().to_string());
        return vec![("jobs, each in the JSON".into(), runs.iter().map(each).collect())];
    }
    let is_raw = runs.iter().all(|run| run.stack.is_raw());
    let figures: &[Figure] = if is_raw { &OF_DRIVES } else { &OF_FILES };
    let of_job = |name: &str| {
        let line = |(title, figure): &Figure| {
            let of_run = |run| jobs(run).iter().find(|job| job.name == name).and_then(figure);
            (format!("{name}: {title}"), runs.iter().map(of_run).collect())
        };
        figures.iter().map(line).collect::<Vec<_>>()
    };
    names.into_iter().flat_map(of_job).collect()
}

fn jobs(run: &RunResult) -> &[JobResult] {
    if run.jobs.len() > 1 { &run.jobs } else { &[] }
}

fn mb_per_s(job: &JobResult, bytes: u64) -> Option<String> {
    let is_there = bytes > 0 && job.elapsed_s > 0.0;
    is_there.then(|| format!("{:.1}", bytes as f64 / 1e6 / job.elapsed_s))
}

/// Calls a second, syncs among them.
fn calls_per_s(job: &JobResult) -> Option<f64> {
    a_second(requests(&job.latency) + job.latency.flush.percentiles.count, job.elapsed_s)
}

/// Requests a second, as fio counts them: without flushes.
fn iops(job: &JobResult) -> Option<f64> {
    a_second(requests(&job.latency), job.elapsed_s)
}

/// The same of a whole run.
pub(super) fn iops_of_run(run: &RunResult) -> Option<f64> {
    a_second(requests(&run.latency), run.totals.elapsed_s - run.totals.ramp_s)
}

/// Reads, writes and discards.
fn requests(latency: &ByKind<LatencyResult>) -> u64 {
    [&latency.read, &latency.write, &latency.discard]
        .map(|kind| kind.percentiles.count)
        .iter()
        .sum()
}

fn a_second(count: u64, seconds: f64) -> Option<f64> {
    (count > 0 && seconds > 0.0).then(|| count as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_jobs_has_its_lines() {
        let job = |name: &str, count: u64, elapsed_s: f64| {
            let mut job = JobResult { name: name.into(), elapsed_s, ..JobResult::default() };
            job.latency.read.percentiles.count = count;
            job.latency.flush.percentiles.count = count;
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
        run.jobs[0].written_bytes = 4_000_000;
        let found = lines(std::slice::from_ref(&run));
        let calls = found.iter().find(|(name, _)| name == "qd1: calls/s").unwrap();
        assert_eq!(calls.1, [Some("100".to_string())], "a sync is a call, and no request");
        let rate = found.iter().find(|(name, _)| name == "qd1: write MB/s").unwrap();
        assert_eq!(rate.1, [Some("2.0".to_string())]);
        run.jobs = vec![job("many", 1, 1.0); MOST + 1];
        run.jobs.iter_mut().zip(0..).for_each(|(job, i)| job.name += &i.to_string());
        assert_eq!(lines(&[run]), [("jobs, each in the JSON".into(), vec![Some("13".into())])]);
    }
}
