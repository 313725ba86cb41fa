//! `--sensitivity`: how much results hang on the figures that no source gives, as a table.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// A figure by its name, and how it is read off a run; `None` where a run has no such figure.
pub(crate) type Figure<R> = (&'static str, fn(&R) -> Option<f64>);

/// Change in a run: the assumed figure, its value, and the other one.
pub(crate) type Change = [String; 3];

/// A latency of which there is one.
pub(crate) fn at_least_one(ns: u64) -> Option<f64> {
    (ns > 0).then_some(ns as f64)
}

/// By how much each figure of each variant differs from `base`.
pub(crate) fn table<R>(
    figures: &[Figure<R>],
    base: &R,
    changes: &[Change],
    variants: &[R],
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let names = figures.iter().map(|(name, _)| (*name).to_owned());
    table.set_header(["assumed figure", "from", "to"].map(String::from).into_iter().chain(names));
    for (change, variant) in changes.iter().zip(variants) {
        let percents = figures.iter().map(|(_, figure)| percent(figure(base), figure(variant)));
        table.add_row(change.iter().cloned().chain(percents));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

fn percent(base: Option<f64>, variant: Option<f64>) -> String {
    match (base, variant) {
        (Some(base), Some(variant)) if base > 0.0 => match (variant / base - 1.0) * 100.0 {
            percent if percent.abs() < 0.05 => "=".into(),
            percent => format!("{percent:+.1} %"),
        },
        _ => "-".into(),
    }
}
