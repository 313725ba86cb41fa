//! The figures that a page of a sweep has.

use std::collections::BTreeSet;

use dovetail_lab::compare::{HEADLINES, Sample, Unit};

use super::grid::Grid;

/// Numbers that a page has at most, so that it stays below 2 MB (assumed: 7 bytes each, and as many
/// for the errors).
const NUMBERS_MAX: usize = 100_000;

/// A figure of each combination.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) path: String,
    pub(super) title: String,
    /// `ns`, `s`, `bytes` or nothing.
    pub(super) unit: &'static str,
    /// True if less is better, false if more is; `None` where neither is.
    pub(super) less_is_better: Option<bool>,
    pub(super) means: Vec<Option<f64>>,
    /// Standard errors of the means.
    pub(super) errors: Vec<Option<f64>>,
}

impl Figure {
    /// The combinations of the least and of the greatest mean.
    pub(super) fn ends(&self) -> Option<(usize, usize)> {
        let there = || (0..self.means.len()).filter_map(|at| Some((at, self.means[at]?)));
        let least = there().min_by(|a, b| a.1.total_cmp(&b.1))?;
        // the first of several, as of the least
        let most = there().fold(least, |most, other| if other.1 > most.1 { other } else { most });
        Some((least.0, most.0))
    }
}

/// Figures that change, the headlines first; all figures where none changes, such as of a single
/// combination.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) figures: Vec<Figure>,
    /// Figures that never change, while others do.
    pub(super) constant: usize,
    /// Figures like `figures`, for which the page has no room.
    pub(super) left_out: usize,
}

impl Shown {
    pub(super) fn of(grid: &Grid<'_>) -> Self {
        let runs = || grid.cells.iter().flat_map(|cell| &cell.runs);
        let there: BTreeSet<&String> = runs().flat_map(|run| run.figures.keys()).collect();
        let is_there = |path: &&str| there.iter().any(|known| known == path);
        let headlines = HEADLINES.iter().map(|headline| headline.path).filter(is_there);
        let is_other = |path: &&str| HEADLINES.iter().all(|headline| headline.path != *path);
        let others = there.iter().map(|path| path.as_str()).filter(is_other);
        let paths: Vec<&str> = headlines.chain(others).collect();
        let all = paths.len();
        let mut figures: Vec<Figure> = paths.into_iter().map(|path| figure(grid, path)).collect();
        if figures.iter().any(changes) {
            figures.retain(changes);
        }
        let (kept, room) = (figures.len(), NUMBERS_MAX / grid.cells.len().max(1));
        figures.truncate(room.max(1));
        Self { constant: all - kept, left_out: kept - figures.len(), figures }
    }
}

/// Its means are not all the same.
fn changes(figure: &Figure) -> bool {
    figure.means.windows(2).any(|pair| pair[0] != pair[1])
}

fn figure(grid: &Grid<'_>, path: &str) -> Figure {
    let headline = HEADLINES.iter().find(|headline| headline.path == path);
    let unit = headline.map_or_else(
        || unit(path),
        |headline| match headline.unit {
            Unit::Ns => "ns",
            Unit::S => "s",
            Unit::Bytes => "bytes",
            Unit::Number => "",
        },
    );
    let samples = grid.cells.iter().map(|cell| {
        let values = cell.runs.iter().filter_map(|run| run.figures.get(path).copied());
        Sample::of(&values.collect::<Vec<_>>())
    });
    let (means, errors) = samples.map(|sample| (sample.mean, sample.error)).unzip();
    Figure {
        path: path.into(),
        title: headline.map_or(path, |headline| headline.title).into(),
        unit,
        less_is_better: headline.and_then(|headline| headline.less_is_better),
        means,
        errors,
    }
}

/// The unit that a path ends in.
fn unit(path: &str) -> &'static str {
    match path {
        path if path.ends_with("_ns") => "ns",
        path if path.ends_with("_per_s") => "",
        path if path.ends_with("_s") => "s",
        path if path.ends_with("bytes") || path.ends_with("_bytes_max") => "bytes",
        _ => "",
    }
}

/// Five significant digits.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}
