//! Common parts of all tables: a column for each run, under a sample of its line.

use super::format::escape;

/// Colours and dash patterns of runs in `report.css`; together they tell 24 runs apart.
pub(crate) const COLOURS: usize = 8;
pub(crate) const DASHES: usize = 6;

/// Text in place of a table without runs.
pub(crate) const NO_RUNS: &str = "<p>There are no runs.</p>";

/// A run as a table shows it.
pub(crate) trait Column {
    /// Label that tells the run from the others.
    fn label(&self) -> &str;
}

/// The head of a table: an empty corner, then each run with a sample of its line.
fn head(runs: &[impl Column]) -> String {
    let columns: String = runs
        .iter()
        .enumerate()
        .map(|(index, run)| format!("<th scope=\"col\">{}</th>", name(index, run)))
        .collect();
    format!("<thead><tr><td></td>{columns}</tr></thead>")
}

fn name(index: usize, run: &impl Column) -> String {
    let label =
        if run.label().is_empty() { format!("Run {}", index + 1) } else { escape(run.label()) };
    format!(
        "<svg class=\"swatch c{} d{}\" viewBox=\"0 0 34 10\" aria-hidden=\"true\"><line x1=\"0\" y1=\"5\" x2=\"34\" y2=\"5\"/></svg><br>{label}",
        index % COLOURS,
        index % DASHES
    )
}

/// A table that scrolls by itself when it is wider than the page; `title` names it for those who
/// cannot see it.
pub(crate) fn scrolling(title: &str, runs: &[impl Column], body: &str) -> String {
    let head = head(runs);
    let class = title.to_lowercase();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n<table class=\"{class}\">\n{head}\n{body}</table>\n</div>"
    )
}
