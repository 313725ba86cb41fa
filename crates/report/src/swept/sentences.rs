//! Sentences on a sweep: the best and the worst combination, and what makes the difference.

use crate::format::{bytes, capitalized, duration_ns, significant};
use crate::sentences::list;

use super::grid::Grid;
use super::shown::{Figure, Shown};

/// Factor below which a figure is called the same.
const WORTH: f64 = 1.02;

/// Figures that a sentence may be about: the first of each group that changes.
const ABOUT: [&[&str]; 2] = [
    &[
        "totals.write_mb_per_s",
        "totals.read_mb_per_s",
        "totals.calls_per_s",
        "latency.write.p99_ns",
        "latency.read.p99_ns",
        "latency.flush.p99_ns",
    ],
    &["totals.total_waf", "totals.device_waf", "totals.fs_waf"],
];

/// Figures of a single combination: of each group the first that is not 0.
const ALONE: [&[&str]; 3] = [
    &["totals.write_mb_per_s", "totals.read_mb_per_s", "totals.calls_per_s"],
    &["latency.flush.p99_ns", "latency.write.p99_ns", "latency.read.p99_ns"],
    &["totals.total_waf", "totals.device_waf"],
];

/// The figure of the first sentence, by its place.
pub(super) fn first(shown: &Shown) -> Option<usize> {
    ABOUT.iter().find_map(|paths| of_group(shown, paths))
}

fn of_group(shown: &Shown, paths: &[&str]) -> Option<usize> {
    let place = |path: &&str| shown.figures.iter().position(|figure| figure.path == *path);
    paths.iter().filter_map(place).find(|at| factor(&shown.figures[*at]) > WORTH)
}

/// Greatest over least; 1 where that says nothing.
fn factor(figure: &Figure) -> f64 {
    let value = |at: usize| figure.means[at].unwrap_or(0.0);
    match figure.ends() {
        Some((least, most)) if value(least) > 0.0 => value(most) / value(least),
        _ => 1.0,
    }
}

/// The sentences; none where nothing was measured.
pub(super) fn sentences(grid: &Grid<'_>, shown: &Shown) -> Vec<String> {
    if grid.cells.is_empty() {
        return vec!["No point has come to its end.".into()];
    }
    if let [cell] = &grid.cells[..] {
        return vec![alone(cell.runs.len(), shown)];
    }
    let mut all: Vec<String> = ABOUT
        .iter()
        .filter_map(|paths| of_group(shown, paths))
        .map(|at| about(grid, &shown.figures[at]))
        .collect();
    if all.is_empty() {
        all.push(format!(
            "Throughput, latencies and write amplification are the same at all {} combinations, within 2 %.",
            grid.cells.len()
        ));
    }
    all.extend(seeds(grid, shown));
    all
}

/// The figures of the only combination, with standard errors where it has several seeds.
fn alone(runs: usize, shown: &Shown) -> String {
    let named = |path: &&str| {
        let figure = shown.figures.iter().find(|figure| figure.path == **path)?;
        figure.means[0].is_some_and(|mean| mean > 0.0).then_some(figure)
    };
    let figures = ALONE.iter().filter_map(|paths| paths.iter().find_map(named));
    let texts: Vec<String> = figures.map(of_alone).collect();
    let what = match runs {
        1 => "There is a single run".into(),
        runs => format!("There is a single combination, with {runs} seeds"),
    };
    match &texts[..] {
        [] => what + ".",
        texts => {
            format!("{what}: {}.", list(&texts.iter().map(String::as_str).collect::<Vec<_>>()))
        }
    }
}

/// `write MB/s 154 ± 2.10`.
fn of_alone(figure: &Figure) -> String {
    let mean = value(figure, figure.means[0].unwrap_or(0.0));
    let error = figure.errors[0].filter(|error| *error > 0.0);
    let error = error.map(|error| format!(" \u{b1} {}", value(figure, error)));
    format!("{} {mean}{}", figure.title, error.unwrap_or_default())
}

fn about(grid: &Grid<'_>, figure: &Figure) -> String {
    let Some((least, most)) = figure.ends() else { return String::new() };
    let less_is_better = figure.less_is_better.unwrap_or(true);
    let (best, worst) = if less_is_better { (least, most) } else { (most, least) };
    let value = |at: usize| value(figure, figure.means[at].unwrap_or(0.0));
    let effects = grid.effects(&figure.means);
    // what changes nothing is left out, unless nothing else is there
    let matters = |axis: usize| effects[axis] > WORTH || effects.iter().all(|all| *all <= WORTH);
    format!(
        "{} is best with {} ({}) and worst with {} ({}), a factor of {}.{}",
        capitalized(&figure.title),
        grid.name(best, matters),
        value(best),
        grid.name(worst, matters),
        value(worst),
        significant(factor(figure)),
        axes(grid, &effects)
    )
}

/// The axes by how much they matter.
fn axes(grid: &Grid<'_>, effects: &[f64]) -> String {
    let named = effects.iter().copied().zip(grid.axes.iter().map(|axis| axis.name.as_str()));
    let mut all: Vec<(f64, &str)> = named.collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [(most, first), others @ ..] = &all[..] else { return String::new() };
    if others.is_empty() || *most <= WORTH {
        return String::new();
    }
    let (some, idle): (Vec<_>, Vec<_>) = others.iter().partition(|(factor, _)| *factor > WORTH);
    let some: String =
        some.iter().map(|(factor, name)| format!(", {name} by {}", significant(*factor))).collect();
    let idle: Vec<&str> = idle.iter().map(|(_, name)| *name).collect();
    let idle = match &idle[..] {
        [] => String::new(),
        idle => format!(", {} by less than 2 %", list(idle)),
    };
    format!(
        " {first} matters most: it changes the figure by a factor of {}{some}{idle}.",
        significant(*most)
    )
}

/// Repetitions, and how sure the means are.
fn seeds(grid: &Grid<'_>, shown: &Shown) -> Option<String> {
    let runs = || grid.cells.iter().map(|cell| cell.runs.len());
    let (fewest, most) = (runs().min()?, runs().max()?);
    let figure = &shown.figures[first(shown)?];
    let shares = figure.errors.iter().zip(&figure.means);
    let shares =
        shares.filter_map(|(error, mean)| Some((*error)? / mean.filter(|mean| *mean > 0.0)?));
    let widest = shares.fold(0.0, f64::max) * 100.0;
    let each = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    (most > 1).then(|| {
        format!(
            "Each combination has {each} seeds; the standard error of {} is at most {} % of its mean.",
            figure.title,
            significant(widest)
        )
    })
}

/// A value with its unit.
pub(super) fn value(figure: &Figure, value: f64) -> String {
    match figure.unit {
        "ns" => duration_ns(value),
        "s" => duration_ns(value * 1e9),
        "bytes" => bytes(value.round() as u64),
        _ => significant(value),
    }
}
