//! Figure 6 of the F2FS-aware mapping cache's paper: the write part's size and MAHT over time.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::RunResult;

use super::mapcache::{APPLICATIONS, SETUP, SYNTHETIC, Work, join, with};
use super::{Comparison, Figure, Reproduction, Setting, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "mapcache-figure-6",
    title: "Size of the split cache's write part, and MAHT, over time",
    source: "Gao et al., F2FS Aware Mapping Cache Design on Solid State Drives: figures 6a and 6b and section V.B",
    setup: SETUP,
    reduced: 1,
    run,
    sensitivity: None,
};

/// The write part of a run: as a share of the cache, at most and at the end; and MAHT in entries.
struct Course {
    name: &'static str,
    most: f64,
    end: f64,
    maht_most: u64,
    maht_end: u64,
    /// Rank correlation of the two over time; `None` if one of them never changes.
    match_of_maht: Option<f64>,
}

/// Correlation from which on two courses count as of one pattern (assumed: usually called strong).
const MATCHES: f64 = 0.5;

/// Ranks of values; those that are alike share the mean of theirs.
fn ranks(values: &[u64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = |value: &u64| {
        let first = sorted.partition_point(|other| other < value);
        let end = sorted.partition_point(|other| other <= value);
        (first + end) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// Spearman's rank correlation.
fn rank_correlation(one: &[u64], other: &[u64]) -> Option<f64> {
    let centred = |values: &[u64]| {
        let ranks = ranks(values);
        let mean = ranks.iter().sum::<f64>() / ranks.len() as f64;
        ranks.into_iter().map(|rank| rank - mean).collect::<Vec<_>>()
    };
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (one, other) = (centred(one), centred(other));
    let spread = (product(&one, &one) * product(&other, &other)).sqrt();
    (spread > 0.0).then(|| product(&one, &other) / spread)
}

fn course(work: &Work, run: &RunResult) -> Course {
    let entries = (work.cache_kib * 1024 / dovetail_ftl::cache::ENTRY_BYTES) as f64;
    let (sizes, mahts) = (&run.series.cache_write_part, &run.series.cache_maht);
    let share = |size: Option<&u64>| size.map_or(0.0, |size| *size as f64 / entries);
    Course {
        name: work.name,
        most: share(sizes.iter().max()),
        end: share(sizes.last()),
        maht_most: mahts.iter().max().copied().unwrap_or(0),
        maht_end: mahts.last().copied().unwrap_or(0),
        match_of_maht: rank_correlation(sizes, mahts),
    }
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (mut all, mut courses) = (None, Vec::new());
    for work in APPLICATIONS.iter().chain(&SYNTHETIC) {
        let results = work.run(setting, &["f2fs"], &["split"])?;
        courses.push(course(work, with(&results, work, "f2fs", "split")?));
        join(&mut all, results);
    }
    let shown = |courses: &[Course], figure: fn(&Course) -> String| {
        courses
            .iter()
            .map(|it| format!("{} {}", it.name, figure(it)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let size = |it: &Course| format!("{:.0} to {:.0} %", it.most * 100.0, it.end * 100.0);
    let synthetic = &courses[APPLICATIONS.len()..];
    let least = courses.iter().map(|it| it.end).fold(f64::INFINITY, f64::min);
    let of_1w9r = synthetic.last().map_or(0.0, |it| it.end);
    let comparisons = vec![
        direction(
            "6a: the write part grows with the first writes and falls with the reads: at most and at the end",
            "all workloads",
            shown(&courses, size),
            courses.iter().all(|it| it.end < it.most),
        ),
        direction(
            "6a: the smallest at the end is 1W9R's",
            "1W9R has a little size of write mapping cache",
            shown(synthetic, size),
            of_1w9r <= least,
        ),
        Comparison {
            what: "6b: rank correlation of MAHT and the write part over time".into(),
            paper: "a matching pattern with space adjustment".into(),
            ours: shown(&courses, |it| {
                it.match_of_maht.map_or("none".into(), |match_of| format!("{match_of:.2}"))
            }),
            rule: format!("at least {MATCHES} in each"),
            agrees: courses
                .iter()
                .all(|it| it.match_of_maht.is_some_and(|match_of| match_of >= MATCHES)),
        },
        Comparison::shown(
            "6b: MAHT in entries at most and at the end",
            shown(&courses, |it| format!("{} to {}", it.maht_most, it.maht_end)),
        ),
    ];
    let results = all.ok_or_else(|| BenchError::Workload("no workload was run".into()))?;
    Ok(Reproduction { comparisons, results })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courses_that_rise_and_fall_together_correlate() {
        let of = |other: &[u64]| rank_correlation(&[1, 5, 7, 7, 2], other).unwrap();
        assert!((of(&[10, 50, 60, 60, 20]) - 1.0).abs() < 1e-9);
        assert!((of(&[9, 3, 1, 1, 8]) + 1.0).abs() < 1e-9);
        assert_eq!(rank_correlation(&[1, 2], &[4, 4]), None);
    }
}
