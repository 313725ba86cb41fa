//! Part of a run that a page of many figures keeps: a few totals, and curves of at most a hundred
//! points.

use dovetail_lab::results::{RunResult, Series};
use serde::Serialize;

/// Most points of a curve.
const POINTS: usize = 100;
/// Most runs of a figure whose curves are kept.
const CURVES: usize = 8;

/// A run for the charts; names are those of the results.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    label: String,
    totals: Totals,
    series: Curves,
}

#[derive(Debug, Serialize)]
struct Totals {
    write_mb_per_s: f64,
    read_mb_per_s: f64,
    calls_per_s: f64,
    fs_waf: Option<f64>,
    device_waf: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
struct Curves {
    time_s: Vec<f64>,
    written_bytes: Vec<u64>,
    write_mb_per_s: Vec<f64>,
    read_mb_per_s: Vec<f64>,
    fs_waf: Vec<Option<f64>>,
    device_waf: Vec<Option<f64>>,
    map_bytes: Vec<u64>,
}

/// The runs of a figure; curves only where they are few.
pub(super) fn runs(runs: &[RunResult]) -> Vec<Run> {
    let has_curves = runs.len() <= CURVES;
    runs.iter()
        .map(|run| Run {
            label: if run.label.is_empty() { run.stack.name.clone() } else { run.label.clone() },
            totals: Totals {
                write_mb_per_s: short(run.totals.write_mb_per_s),
                read_mb_per_s: short(run.totals.read_mb_per_s),
                calls_per_s: short(run.totals.calls_per_s),
                fs_waf: run.totals.fs_waf.map(short),
                device_waf: run.totals.device_waf.map(short),
            },
            series: if has_curves { curves(&run.series) } else { Curves::default() },
        })
        .collect()
}

/// Four digits that count.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Means over parts of the intervals: rates by time, write amplification by what was written.
fn curves(series: &Series) -> Curves {
    let len = series.time_s.len();
    let each = len.div_ceil(POINTS).max(1);
    let mut curves = Curves::default();
    for from in (0..len).step_by(each) {
        let part = from..(from + each).min(len);
        let last = part.end - 1;
        let span =
            |at: usize| series.time_s[at] - at.checked_sub(1).map_or(0.0, |at| series.time_s[at]);
        let mean =
            |column: &[f64]| weighted(part.clone().map(|at| (column.get(at).copied(), span(at))));
        let moved = |rate: &[f64], at: usize| rate.get(at).map_or(0.0, |rate| rate * span(at));
        let waf = |column: &[Option<f64>], rate: &[f64]| {
            weighted(part.clone().map(|at| (column.get(at).copied().flatten(), moved(rate, at))))
        };
        curves.time_s.push(short(series.time_s[last]));
        if let Some(written) = series.written_bytes.get(last) {
            curves.written_bytes.push(*written);
        }
        curves.write_mb_per_s.extend(mean(&series.write_mb_per_s));
        curves.read_mb_per_s.extend(mean(&series.read_mb_per_s));
        curves.fs_waf.push(waf(&series.fs_waf, &series.write_mb_per_s));
        curves.device_waf.push(waf(&series.device_waf, &series.drive_write_mb_per_s));
        curves.map_bytes.extend(series.map_bytes.get(last));
    }
    curves.map_bytes = if curves.map_bytes.iter().all(|bytes| *bytes == 0) {
        Vec::new()
    } else {
        curves.map_bytes
    };
    for column in [&mut curves.fs_waf, &mut curves.device_waf] {
        if column.iter().all(Option::is_none) {
            column.clear();
        }
    }
    for column in [&mut curves.write_mb_per_s, &mut curves.read_mb_per_s] {
        if column.iter().all(|rate| *rate == 0.0) {
            column.clear();
        }
    }
    curves
}

/// The mean of values with their weights; `None` where there is none.
fn weighted(values: impl Iterator<Item = (Option<f64>, f64)>) -> Option<f64> {
    let known = values.filter_map(|(value, weight)| Some((value?, weight)));
    let (sum, weights) = known.fold((0.0, 0.0), |(sum, weights), (value, weight)| {
        (sum + value * weight, weights + weight)
    });
    (weights > 0.0).then(|| short(sum / weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_means_of_parts() {
        let mut run = RunResult { label: "a".into(), ..RunResult::default() };
        run.series.time_s = (1..=200).map(f64::from).collect();
        run.series.written_bytes = (1..=200).map(|n| n * 1_000_000).collect();
        run.series.write_mb_per_s = (0..200).map(|n| f64::from(n % 2) * 2.0).collect();
        run.series.fs_waf = (0..200).map(|n| (n % 2 == 1).then_some(3.0)).collect();
        run.series.device_waf = vec![None; 200];
        let found = &runs(std::slice::from_ref(&run))[0].series;
        assert_eq!((found.time_s.len(), found.time_s[99]), (100, 200.0));
        assert!(found.write_mb_per_s.iter().all(|rate| *rate == 1.0));
        assert!(found.fs_waf.iter().all(|waf| *waf == Some(3.0)), "weighted by what was written");
        assert!(found.device_waf.is_empty() && found.written_bytes[99] == 200_000_000);
        let many = runs(&vec![run; 9]);
        assert!(many.len() == 9 && many[0].series.time_s.is_empty());
    }
}
