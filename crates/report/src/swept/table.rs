//! The table of a sweep: a row for each combination.

use crate::format::{MISSING, count, escape};

use super::grid::Grid;
use super::sentences::value;
use super::shown::{Figure, Shown};

/// Figures that have a column, where they are shown.
const COLUMNS: [&str; 14] = [
    "totals.elapsed_s",
    "totals.calls_per_s",
    "totals.read_mb_per_s",
    "totals.write_mb_per_s",
    "latency.read.p99_ns",
    "latency.write.p99_ns",
    "latency.flush.p99_ns",
    "totals.fs_waf",
    "totals.device_waf",
    "totals.total_waf",
    "totals.erases",
    "totals.gc_stalls",
    "totals.cpu_s",
    "memory.map_bytes_max",
];
/// Rows of the page; table.csv has all.
const ROWS: usize = 300;

/// The table as HTML.
pub(super) fn html(grid: &Grid<'_>, shown: &Shown) -> String {
    if grid.cells.is_empty() {
        return "<p>No point has come to its end.</p>".into();
    }
    let is_column = |figure: &&Figure| COLUMNS.contains(&figure.path.as_str()) && !is_idle(figure);
    let figures: Vec<&Figure> = shown.figures.iter().filter(is_column).collect();
    let heads = grid.axes.iter().map(|axis| axis.name.as_str()).skip(1).chain(["runs"]);
    let heads = heads.chain(figures.iter().map(|figure| figure.title.as_str()));
    let head: String =
        heads.map(|head| format!("<th scope=\"col\">{}</th>", escape(head))).collect();
    let corner = grid.axes.first().map_or(String::new(), |axis| escape(&axis.name));
    let rows: String = (0..grid.cells.len().min(ROWS)).map(|at| row(grid, &figures, at)).collect();
    let more = match grid.cells.len().saturating_sub(ROWS) {
        0 => String::new(),
        more => format!(
            "<p class=\"note\">{} more combinations stand in the charts and in table.csv.</p>",
            count(more as u64)
        ),
    };
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Summary\">\n<table class=\"swept\">\n<thead><tr><td>{corner}</td>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n{more}"
    )
}

/// A rate of nothing: the workload has no such calls.
fn is_idle(figure: &Figure) -> bool {
    figure.path.ends_with("_mb_per_s") && figure.means.iter().all(|mean| *mean == Some(0.0))
}

fn row(grid: &Grid<'_>, figures: &[&Figure], at: usize) -> String {
    let cell = &grid.cells[at];
    let own = grid.axes.iter().zip(&cell.at).map(|(axis, at)| escape(&axis.values[*at]));
    let own: Vec<String> = own.collect();
    let first = own.first().cloned().unwrap_or_else(|| "all".into());
    let others = own.iter().skip(1).cloned().chain([cell.runs.len().to_string()]);
    let figures = figures.iter().map(|figure| {
        let mean = figure.means[at].map_or_else(|| MISSING.into(), |mean| value(figure, mean));
        let error = figure.errors[at].filter(|error| *error > 0.0);
        let error = error.map_or_else(String::new, |error| {
            format!(" <span class=\"error\">± {}</span>", escape(&value(figure, error)))
        });
        escape(&mean) + &error
    });
    let cells: String = others.chain(figures).map(|text| format!("<td>{text}</td>")).collect();
    format!("<tr><th scope=\"row\">{first}</th>{cells}</tr>\n")
}
