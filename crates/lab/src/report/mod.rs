//! The HTML report: one file that holds everything it needs.
//!
//! It shows the runs of [`Results`] side by side. The tables are written here and can be read without JavaScript;
//! the charts are drawn in the browser from the results, which the page carries as JSON. The page loads nothing:
//! style sheets, scripts and the charting library (uPlot) stand in it, and its content security policy forbids all
//! requests.
//!
//! Hazards: labels are names of files and may hold anything; every text goes through `format::escape`, and the
//! JSON has no `<`. The output depends on the results alone. Left out: writing the file.
//!
//! A new chart is one entry in `assets/charts.js`; a new row of a table is one entry in `summary` or `setup`.

mod format;
mod setup;
mod summary;

use crate::results::{Results, RunResult};
use format::{count, escape};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../assets/report.html");
const CSS: &str = include_str!("../../assets/report.css");
const DARK_CSS: &str = include_str!("../../assets/report-dark.css");
/// One script; `report.js` starts it and comes last.
const JS: &str = concat!(
    include_str!("../../assets/format.js"),
    include_str!("../../assets/frame.js"),
    include_str!("../../assets/axis.js"),
    include_str!("../../assets/lines.js"),
    include_str!("../../assets/scatter.js"),
    include_str!("../../assets/heatmap.js"),
    include_str!("../../assets/bars.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/report.js"),
);
const LIBRARY_JS: &str = include_str!("../../assets/uPlot.iife.min.js");
const LIBRARY_CSS: &str = include_str!("../../assets/uPlot.min.css");
const LIBRARY_LICENSE: &str = include_str!("../../assets/uPlot.LICENSE");

/// Colours and dash patterns of runs in `report.css`; together they tell 24 runs apart.
const COLOURS: usize = 8;
const DASHES: usize = 6;
/// Names listed in the heading before they are counted instead.
const NAMES_LISTED: usize = 3;

/// The report on `results` as one HTML page.
///
/// It can be opened from disk and needs no network. The same results give the same bytes.
pub fn html(results: &Results) -> String {
    fill(PAGE, |name| match name {
        "title" => title(results),
        "lede" => lede(results),
        "summary" => summary::table(&results.runs),
        "setup" => setup::table(&results.runs),
        "data" => json(results),
        "css" => CSS.into(),
        "dark_css" => DARK_CSS.into(),
        "js" => JS.into(),
        "library_js" => LIBRARY_JS.into(),
        "library_css" => LIBRARY_CSS.into(),
        "library_license" => LIBRARY_LICENSE.into(),
        _ => String::new(),
    })
}

/// Replaces each `{{name}}` in `page`. What is put in is not searched again.
fn fill(page: &str, mut value: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((before, name, after)) = next_placeholder(rest) {
        out.push_str(before);
        out.push_str(&value(name));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn next_placeholder(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once("{{")?;
    let (name, after) = rest.split_once("}}")?;
    Some((before, name, after))
}

/// The results as JSON that may stand in a script element: neither `</script` nor `<!--` can appear.
fn json(results: &Results) -> String {
    // Strings and numbers under fixed names cannot fail to serialize; a page without data still has its tables.
    serde_json::to_string(results).unwrap_or_else(|_| "null".into()).replace('<', "\\u003c")
}

fn title(results: &Results) -> String {
    format!("Dovetail replay of {}", names(&results.runs, "trace", |run| &run.trace.name))
}

/// What was run, in one sentence.
fn lede(results: &Results) -> String {
    let runs = results.runs.len();
    let traces = names(&results.runs, "trace", |run| &run.trace.name);
    let drives = names(&results.runs, "drive", |run| &run.drive.profile);
    let plural = if runs == 1 { "" } else { "s" };
    format!("{} run{plural}: {traces} on {drives}. Seed {}.", count(runs as u64), results.seed)
}

/// The different names of the runs, or how many there are if they are many; escaped.
fn names(runs: &[RunResult], what: &str, name: impl Fn(&RunResult) -> &str) -> String {
    let different: BTreeSet<&str> = runs.iter().map(&name).collect();
    match different.len() {
        0 => format!("no {what}s"),
        1..=NAMES_LISTED => different.into_iter().map(escape).collect::<Vec<_>>().join(", "),
        many => format!("{many} {what}s"),
    }
}

/// The head of a table: an empty corner, then each run with a sample of its line.
fn table_head(runs: &[RunResult]) -> String {
    let columns: String = runs
        .iter()
        .enumerate()
        .map(|(index, run)| format!("<th scope=\"col\">{}</th>", run_name(index, run)))
        .collect();
    format!("<thead><tr><td></td>{columns}</tr></thead>")
}

fn run_name(index: usize, run: &RunResult) -> String {
    let label = if run.label.is_empty() { format!("Run {}", index + 1) } else { escape(&run.label) };
    format!(
        "<svg class=\"swatch c{} d{}\" viewBox=\"0 0 34 10\" aria-hidden=\"true\"><line x1=\"0\" y1=\"5\" x2=\"34\" y2=\"5\"/></svg><br>{label}",
        index % COLOURS,
        index % DASHES
    )
}

/// A table that scrolls by itself when it is wider than the page; `title` names it for those who cannot see it.
fn scrolling_table(title: &str, runs: &[RunResult], body: &str) -> String {
    let head = table_head(runs);
    let class = title.to_lowercase();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n<table class=\"{class}\">\n{head}\n{body}</table>\n</div>"
    )
}

#[cfg(test)]
mod tests;
