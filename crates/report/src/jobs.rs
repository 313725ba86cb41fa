//! Rows of the summary for each job, where a run has several.

use dovetail_lab::results::{JobResult, RunResult};

use super::comparison::{Cell, Comparison, latency, missing, rate};

/// Jobs that have rows of their own.
const MOST: usize = 24;

type Figure = (&'static str, fn(&JobResult) -> Cell);

const FIGURES: [Figure; 9] = [
    ("written, MB/s", |job| mb_per_s(job, job.written_bytes)),
    ("read, MB/s", |job| mb_per_s(job, job.read_bytes)),
    ("write p50", |job| latency(&job.latency.write, |p| p.p50_ns)),
    ("write p99", |job| latency(&job.latency.write, |p| p.p99_ns)),
    ("read p50", |job| latency(&job.latency.read, |p| p.p50_ns)),
    ("read p99", |job| latency(&job.latency.read, |p| p.p99_ns)),
    ("sync p99", |job| latency(&job.latency.flush, |p| p.p99_ns)),
    ("discard p50", |job| latency(&job.latency.discard, |p| p.p50_ns)),
    ("discard p99", |job| latency(&job.latency.discard, |p| p.p99_ns)),
];

fn mb_per_s(job: &JobResult, bytes: u64) -> Cell {
    let is_there = bytes > 0 && job.elapsed_s > 0.0;
    if is_there { rate(bytes as f64 / 1e6 / job.elapsed_s) } else { missing() }
}

/// Adds the rows of all jobs.
pub(crate) fn add(table: &mut Comparison<'_, RunResult>, runs: &[RunResult]) {
    let several = runs.iter().filter(|run| run.jobs.len() > 1);
    let mut names: Vec<&str> = Vec::new();
    for job in several.flat_map(|run| &run.jobs) {
        if !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    for name in names.into_iter().take(MOST) {
        let rows = FIGURES.map(|(title, _)| (title, title.to_owned()));
        table.group_of(&format!("Job {name}, over its own time"), &rows, |run, title| {
            let job = run.jobs.iter().find(|job| job.name == name);
            let figure = FIGURES.iter().find(|(known, _)| *known == title);
            job.zip(figure).map_or_else(missing, |(job, (_, cell))| cell(job))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_jobs_has_a_group() {
        let job = |name: &str, written_bytes| JobResult {
            name: name.into(),
            elapsed_s: 2.0,
            written_bytes,
            ..JobResult::default()
        };
        let mut runs =
            vec![RunResult { jobs: vec![job("one", 4_000_000)], ..RunResult::default() }];
        let html = |runs: &[RunResult]| {
            let mut table = Comparison::of(runs);
            add(&mut table, runs);
            table.html("Summary", "")
        };
        assert!(!html(&runs).contains("Job one"), "it stands in the totals");
        runs[0].jobs.push(job("<two>", 20_000_000));
        let mut trims = JobResult { name: "trims".into(), ..JobResult::default() };
        trims.latency.discard.percentiles.count = 1;
        runs[0].jobs.push(trims);
        let html = html(&runs);
        assert!(html.contains("Job trims") && html.contains("discard p99"), "{html}");
        assert!(html.contains("Job one, over its own time") && html.contains("Job &lt;two&gt;"));
        assert!(html.contains("Written, MB/s") || html.contains("written, MB/s"), "{html}");
        assert!(html.contains(">2.00") && html.contains(">10.0"), "{html}");
        assert!(!html.contains("sync p99"), "nothing was synced: {html}");
    }
}
