//! Several runs of one stack, each with another seed: mean and spread of their main figures.

use dovetail_lab::results::RunResult;

use crate::sensitivity::{Figure, at_least_one};
use crate::table::{digits, of_words};

/// Figures whose spread is shown.
const FIGURES: [Figure<RunResult>; 10] = [
    ("elapsed, s", |run| Some(run.totals.elapsed_s)),
    ("calls/s", |run| (run.totals.calls > 0).then_some(run.totals.calls_per_s)),
    ("read MB/s", |run| (run.totals.read_bytes > 0).then_some(run.totals.read_mb_per_s)),
    ("write MB/s", |run| (run.totals.written_bytes > 0).then_some(run.totals.write_mb_per_s)),
    ("read p99, us", |run| us(run.latency.read.percentiles.p99_ns)),
    ("write p99, us", |run| us(run.latency.write.percentiles.p99_ns)),
    ("sync p99, us", |run| us(run.latency.flush.percentiles.p99_ns)),
    ("fs WAF", |run| run.totals.fs_waf),
    ("drive WAF", |run| run.totals.device_waf),
    ("together", |run| run.totals.total_waf),
];

fn us(ns: u64) -> Option<f64> {
    at_least_one(ns).map(|ns| ns / 1e3)
}

/// Mean, standard deviation of the sample in percent of it, least and most.
struct Spread {
    mean: f64,
    percent: f64,
    least: f64,
    most: f64,
}

impl Spread {
    /// Of at least two values.
    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.len() < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        let percent = if mean == 0.0 { 0.0 } else { deviation / mean.abs() * 100.0 };
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { mean, percent, least, most })
    }
}

/// A table for each stack that ran several times; empty where none did.
pub(super) fn text(runs: &[RunResult]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in runs.iter().filter_map(repeated) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.into_iter().map(|name| table(name, runs)).collect()
}

/// The name of a run that is one of several.
fn repeated(run: &RunResult) -> Option<&str> {
    let (name, number) = run.label.rsplit_once(" #")?;
    number.parse::<u32>().is_ok().then_some(name)
}

fn table(name: &str, runs: &[RunResult]) -> String {
    let of_name: Vec<&RunResult> = runs.iter().filter(|run| repeated(run) == Some(name)).collect();
    let row = |(title, figure): &Figure<RunResult>| {
        let values: Vec<f64> = of_name.iter().filter_map(|run| figure(run)).collect();
        let spread = Spread::of(&values)?;
        let range = format!("{} to {}", digits(spread.least), digits(spread.most));
        let percent = format!("{:.1} %", spread.percent);
        Some(vec![(*title).to_string(), digits(spread.mean), percent, range])
    };
    let rows: Vec<_> = FIGURES.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let title = format!("{name}, {} runs", of_name.len());
    format!("\n{}", of_words(&[&title, "mean", "deviation", "range"], &rows, 200))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_stack_have_their_mean_and_spread() {
        let run = |label: &str, waf: f64| {
            let mut run = RunResult { label: label.into(), ..RunResult::default() };
            run.totals.device_waf = Some(waf);
            run
        };
        let runs =
            [run("f2fs #1", 2.0), run("f2fs #2", 4.0), run("f2fs #3", 6.0), run("ext4", 1.0)];
        let text = text(&runs);
        let line = text.lines().find(|line| line.starts_with("drive WAF")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["drive", "WAF", "4.000", "50.0", "%", "2.000", "to", "6.000"], "{text}");
        assert!(text.starts_with("\nf2fs, 3 runs") && !text.contains("ext4"), "{text}");
        assert_eq!(super::text(&runs[3..]), "");
    }
}
