//! A figure at several scales: from which scale on its results stay.

use std::ops::RangeInclusive;

use dovetail_lab::bench::BenchError;
use dovetail_time::Ratio;
use serde::Serialize;

use super::numbers::numbers;
use super::{Comparison, Figure, Setting, Verdict};

/// A statement at several scales.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AtScales {
    /// Subject of the comparison.
    pub what: String,
    /// Result of the paper.
    pub paper: String,
    /// Rule that our result has to meet; empty for a row that is only shown.
    pub rule: String,
    /// Our result at each scale, the smallest scale first; `None` where the row is missing.
    pub ours: Vec<Option<String>>,
    /// Judgement at each scale.
    pub verdicts: Vec<Option<Verdict>>,
    /// Difference of the first number of our result between the two largest scales, as a share of
    /// the one at the largest. `None` where there is no number.
    pub change: Option<f64>,
    /// Difference up to which a result stays, as such a share: what the rule leaves to the paper's.
    /// `None` where the rule is none of numbers: then only the judgement is compared.
    pub tolerance: Option<f64>,
    /// The smallest scale from which on the result stays at that of the largest; `None` if it moves
    /// between the two largest, or is only shown.
    pub stays_from: Option<f64>,
}

impl AtScales {
    /// There is a rule, and the result moves between the two largest scales.
    pub fn moves(&self) -> bool {
        !self.rule.is_empty() && self.stays_from.is_none()
    }
}

/// The share by which a result may differ: N % of "within N %", half of the band of "A to B".
fn tolerance(rule: &str) -> Option<f64> {
    match numbers(rule)[..] {
        [percent, ..] if rule.starts_with("within ") && rule.contains('%') => Some(percent / 100.0),
        [low, high, ..] if rule.contains(" to ") && high > low => Some((high - low) / (high + low)),
        _ => None,
    }
}

/// The first number of our result.
fn value(comparison: &Comparison) -> Option<f64> {
    numbers(&comparison.ours).first().copied()
}

/// Difference of two values as a share of `last`.
fn change(first: f64, last: f64) -> f64 {
    match last {
        0.0 if first == 0.0 => 0.0,
        0.0 => f64::INFINITY,
        last => ((first - last) / last).abs(),
    }
}

/// Our result is as at the largest scale: judged the same, and within the tolerance.
fn is_as(comparison: &Comparison, last: &Comparison, tolerance: Option<f64>) -> bool {
    let numbers = tolerance.zip(value(comparison).zip(value(last)));
    let is_near = numbers.is_none_or(|(most, (first, last))| change(first, last) <= most);
    comparison.verdict() == last.verdict() && is_near
}

/// A row of the largest scale beside the same row of the others.
fn at_scales(scales: &[Ratio], each: &[Vec<Comparison>], last: &Comparison) -> AtScales {
    let rows: Vec<Option<&Comparison>> =
        each.iter().map(|rows| rows.iter().find(|row| row.what == last.what)).collect();
    let tolerance = tolerance(&last.rule);
    let stays = |row: &Option<&Comparison>| row.is_some_and(|row| is_as(row, last, tolerance));
    let first = rows.iter().rposition(|row| !stays(row)).map_or(0, |moved| moved + 1);
    let is_settled = last.verdict() != Verdict::Shown && first + 1 < rows.len();
    let before = rows.iter().rev().nth(1).copied().flatten();
    AtScales {
        what: last.what.clone(),
        paper: last.paper.clone(),
        rule: last.rule.clone(),
        ours: rows.iter().map(|row| row.map(|row| row.ours.clone())).collect(),
        verdicts: rows.iter().map(|row| row.map(Comparison::verdict)).collect(),
        change: before.and_then(value).zip(value(last)).map(|(first, last)| change(first, last)),
        tolerance,
        stays_from: scales.get(first).filter(|_| is_settled).map(|scale| scale.value()),
    }
}

/// A figure that runs at a scale of its own has no others.
fn check_scale(asked: Ratio, ran: f64) -> Result<(), BenchError> {
    if (ran / asked.value() - 1.0).abs() < 1e-9 {
        return Ok(());
    }
    Err(BenchError::Workload(format!("it has one scale, 1/{:.0}", 1.0 / ran)))
}

/// Numbers of scales that a figure can be run at.
pub const SCALES: RangeInclusive<usize> = 2..=8;

impl Figure {
    /// Runs the figure at each of `scales`, at least two of them, which come in the order of their
    /// size; returns its statements.
    ///
    /// # Errors
    /// The first of its runs that failed, with the scale.
    pub fn run_at(
        &self,
        setting: &Setting<'_>,
        scales: &mut [Ratio],
    ) -> Result<Vec<AtScales>, BenchError> {
        scales.sort_by(|a, b| a.value().total_cmp(&b.value()));
        let mut each = Vec::new();
        for scale in scales.iter() {
            let at = Setting { scale: *scale, ..*setting };
            let failed = |error| match error {
                BenchError::Stopped => BenchError::Stopped,
                error => BenchError::Workload(format!("at 1/{:.0}: {error}", 1.0 / scale.value())),
            };
            let reproduction = self.run(&at).map_err(failed)?;
            check_scale(*scale, reproduction.results.scale)?;
            each.push(reproduction.comparisons);
        }
        let last = each.last().cloned().unwrap_or_default();
        Ok(last.iter().map(|last| at_scales(scales, &each, last)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::{direction, iplfs_map_size, rmipu_figure_3, within};
    use super::*;

    fn scales() -> [Ratio; 3] {
        ["1/64", "1/32", "1/16"].map(|scale| scale.parse().unwrap())
    }

    fn of(rows: [Comparison; 3]) -> AtScales {
        let each = rows.map(|row| vec![row]);
        at_scales(&scales(), &each, &each[2][0])
    }

    #[test]
    fn numbers_and_tolerances_are_read_from_text() {
        assert_eq!(numbers("1.48 times (1,215 MB/s, 145.)"), [1.48, 1215.0, 145.0]);
        assert_eq!(numbers("it falls"), [0.0; 0]);
        assert_eq!(tolerance("within 25 %"), Some(0.25));
        assert_eq!(tolerance("1.2 to 1.6 times").map(|it| (it * 1e6).round()), Some(142_857.0));
        assert_eq!(tolerance("direction"), None);
    }

    #[test]
    fn a_result_stays_from_the_scale_on_that_is_within_the_tolerance() {
        let row = |ours| within("x", "times", 2.0, ours, 1.1);
        assert_eq!(of([1.0, 2.0, 2.1].map(row)).stays_from, Some(1.0 / 32.0));
        assert_eq!(of([2.05, 2.0, 2.1].map(row)).stays_from, Some(1.0 / 64.0));
        let moved = of([2.1, 1.85, 2.1].map(row));
        assert!(moved.moves() && moved.stays_from.is_none(), "{moved:?}");
        assert_eq!((moved.change.unwrap() * 1000.0).round(), 119.0);
        let judged = of([2.0, 2.19, 2.21].map(row));
        assert!(judged.moves(), "near, but judged otherwise: {judged:?}");
    }

    #[test]
    fn a_direction_stays_while_it_is_judged_the_same() {
        let row = |agrees| direction("x", "more", "5 over 4".into(), agrees);
        assert_eq!(of([false, true, true].map(row)).stays_from, Some(1.0 / 32.0));
        assert!(of([true, true, false].map(row)).moves());
        let shown = of([1, 2, 3].map(|ours| Comparison::shown("x", ours.to_string())));
        assert!(!shown.moves() && shown.stays_from.is_none());
    }

    #[test]
    fn a_figure_runs_at_several_scales() {
        let stop = AtomicBool::new(false);
        let setting = Setting {
            scale: Ratio::ONE,
            seed: 1,
            threads: 2,
            stop: &stop,
            clock: None,
            changes: &crate::Changes::default(),
            finished: None,
        };
        let mut scales = ["1/4", "1/16", "1/8"].map(|scale| scale.parse::<Ratio>().unwrap());
        let rows = iplfs_map_size::FIGURE.run_at(&setting, &mut scales).unwrap();
        assert_eq!(scales.map(Ratio::value), [1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0]);
        assert!(!rows.is_empty() && rows.iter().all(|row| row.ours.len() == 3), "{rows:#?}");
        assert!(rows.iter().any(|row| row.stays_from.is_some()), "{rows:#?}");
    }

    #[test]
    fn a_figure_that_chooses_its_scale_is_refused() {
        assert!(check_scale(Ratio::ONE, 1.0).is_ok());
        let error = check_scale("1/64".parse().unwrap(), 1.0 / 32.0).unwrap_err();
        assert_eq!(error.to_string(), "it has one scale, 1/32");
    }

    #[test]
    fn what_fails_is_told_with_its_scale() {
        let stop = AtomicBool::new(false);
        let setting = Setting {
            scale: Ratio::ONE,
            seed: 1,
            threads: 2,
            stop: &stop,
            clock: None,
            changes: &crate::Changes::default(),
            finished: None,
        };
        let mut scales = ["1/4096", "1/2048"].map(|scale| scale.parse().unwrap());
        let error = rmipu_figure_3::FIGURE.run_at(&setting, &mut scales).unwrap_err();
        assert!(error.to_string().starts_with("at 1/4096: "), "{error}");
    }
}
