//! `--sensitivity`: how much results hang on the figures that no source gives, as a table.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::table::{list_width, wrap};

/// A figure by its name, and how it is read off a run; `None` where a run has no such figure.
pub(crate) type Figure<R> = (&'static str, fn(&R) -> Option<f64>);

/// Change in a run: the assumed figure, its value, and the other one.
pub(crate) type Change = [String; 3];

/// A latency of which there is one.
pub(crate) fn at_least_one(ns: u64) -> Option<f64> {
    (ns > 0).then_some(ns as f64)
}

/// By how much each figure of each variant differs from `base`, without figures that no run has; below
/// the table, the assumed figures with which none does.
pub(crate) fn table<R>(
    figures: &[Figure<R>],
    base: &R,
    changes: &[Change],
    variants: &[R],
) -> String {
    let is_there = |(_, figure): &&Figure<R>| {
        figure(base).is_some() || variants.iter().any(|run| figure(run).is_some())
    };
    let figures: Vec<&Figure<R>> = figures.iter().filter(is_there).collect();
    let percents = |variant| -> Vec<String> {
        figures.iter().map(|(_, figure)| percent(figure(base), figure(variant))).collect()
    };
    let rows: Vec<(&Change, Vec<String>)> =
        changes.iter().zip(variants.iter().map(percents)).collect();
    let is_moving = |name: &str| {
        rows.iter().any(|([of, ..], row)| of == name && row.iter().any(|it| is_change(it)))
    };
    let (moving, still): (Vec<_>, Vec<_>) =
        rows.iter().partition(|([name, ..], _)| is_moving(name));
    let mut text = String::new();
    if !moving.is_empty() {
        text += &changes_table(figures.iter().map(|(name, _)| *name), &moving);
    }
    let mut names: Vec<&str> = still.iter().map(|([name, ..], _)| name.as_str()).collect();
    names.dedup();
    if !names.is_empty() {
        let said = format!("nothing moves by 0.05 % with {}", names.join(", "));
        text += &wrap(&said, list_width(), "  ");
    }
    text
}

fn changes_table<'f>(
    figures: impl Iterator<Item = &'f str>,
    rows: &[&(&Change, Vec<String>)],
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    // a word a line, so that the table fits into 80 columns
    let titles = ["assumed figure", "from", "to"].map(String::from);
    table.set_header(titles.into_iter().chain(figures.map(|name| name.replace(' ', "\n"))));
    for (change, percents) in rows {
        table.add_row(change.iter().chain(percents));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

fn is_change(percent: &str) -> bool {
    !["=", "-"].contains(&percent)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_move_nothing_are_named_once() {
        let figures: [Figure<f64>; 3] = [
            ("write p50", |run| Some(*run)),
            ("read p99", |_| None),
            ("flush p99", |run| (*run > 10.0).then_some(1.0)),
        ];
        let change = |name: &str, to: &str| [name.to_string(), "2".into(), to.into()];
        let changes = [
            change("a.one", "1"),
            change("a.one", "4"),
            change("b.two", "1"),
            change("b.two", "4"),
        ];
        let text = table(&figures, &10.0, &changes, &[10.0, 10.0, 10.0, 11.0]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(!text.contains("read"), "no run has it: {text}");
        assert_eq!(lines[4], "nothing moves by 0.05 % with a.one", "{text}");
        assert!(lines[2].ends_with(" =      -") && lines[3].contains("+10.0 %"), "{text}");
    }
}
