//! The report of a sweep: a chosen figure over an axis, a line for each combination of the others.

mod grid;
mod sentences;
mod shown;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::format::{count, escape};
use crate::page::{Page, Section, counted};

use grid::Grid;
use shown::{Shown, rounded};

const JS: &str = include_str!("../../assets/sweep.js");

const TERMS: &str = "Times are those of the simulated host and drive. Points that differ in their seed alone are repetitions: means, with the standard error of the mean. WAF, write amplification: of the file system (fs), blocks that it wrote over blocks that the workload wrote; of the drive, bytes programmed over bytes that reached the drive; in all, bytes programmed over bytes that the workload wrote. MB: 10<sup>6</sup> bytes; KiB, MiB, GiB: powers of 1,024 bytes. Numbers of this page have five significant digits, table.csv in the sweep's folder has all.";

/// Failed points that are named; the others are counted.
const FAILED_NAMED: usize = 100;

/// A sweep and what its finished points found.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Name of the folder.
    pub name: String,
    /// Command of the points: `bench` or `replay`.
    pub command: String,
    /// Jobs or traces.
    pub inputs: Vec<String>,
    /// Options of all points, each with its values.
    pub options: Vec<(String, String)>,
    /// Number of points that the sweep has, finished or not.
    pub planned: usize,
    /// Finished points, in their order.
    pub points: Vec<SweptPoint>,
}

/// A finished point.
#[derive(Clone, Debug, Default)]
pub struct SweptPoint {
    /// Value on each axis.
    pub values: Vec<(String, String)>,
    /// Its runs; none if it failed.
    pub runs: Vec<SweptRun>,
    /// Reason why it failed.
    pub error: Option<String>,
}

/// A run of a point.
#[derive(Clone, Debug, Default)]
pub struct SweptRun {
    /// Label that tells it from the others of its point.
    pub label: String,
    /// Single figures by the path of their field.
    pub figures: BTreeMap<String, f64>,
}

/// Data of the charts: means and standard errors, a row a figure, a column a
/// combination.
#[derive(Serialize)]
struct Data<'a> {
    axes: Vec<Axis<'a>>,
    /// Place of each combination on each axis.
    cells: Vec<&'a [usize]>,
    /// Runs of each combination.
    runs: Vec<usize>,
    figures: Vec<Figure<'a>>,
    /// The figure that is drawn first.
    start: usize,
}

#[derive(Serialize)]
struct Axis<'a> {
    name: &'a str,
    values: &'a [String],
    /// Factor by which the first sentence's figure depends on it.
    effect: f64,
}

#[derive(Serialize)]
struct Figure<'a> {
    path: &'a str,
    title: &'a str,
    unit: &'static str,
    means: Vec<Option<f64>>,
    /// Empty where no combination has several runs.
    errors: Vec<Option<f64>>,
}

#[derive(Serialize)]
struct Embedded<'a> {
    runs: [(); 0],
    sweep: Data<'a>,
}

/// The report on a sweep as one HTML page. Its data are the means of the figures, not the runs.
pub fn html(swept: &Swept) -> String {
    let grid = Grid::of(swept);
    let shown = Shown::of(&grid);
    let first = sentences::first(&shown);
    let page = Page {
        title: format!("Dovetail sweep {}", escape(&swept.name)),
        heading: "Dovetail sweep",
        lede: lede(swept, &grid),
        sentences: sentences::sentences(&grid, &shown),
        sections: sections(swept, &grid, &shown),
        provenance: String::new(),
        terms: TERMS,
        charts: JS,
    };
    page.html(&Embedded { runs: [], sweep: data(&grid, &shown, first) })
}

fn data<'a>(grid: &'a Grid, shown: &'a Shown, first: Option<usize>) -> Data<'a> {
    let effects = first.map(|first| grid.effects(&shown.figures[first].means));
    let effect = |at: usize| effects.as_ref().map_or(1.0, |effects| rounded(effects[at]));
    let axis = |(at, axis): (usize, &'a grid::Axis)| Axis {
        name: &axis.name,
        values: &axis.values,
        effect: effect(at),
    };
    let figure = |figure: &'a shown::Figure| {
        let round = |values: &[Option<f64>]| values.iter().map(|v| v.map(rounded)).collect();
        let has_errors = figure.errors.iter().any(Option::is_some);
        Figure {
            path: &figure.path,
            title: &figure.title,
            unit: figure.unit,
            means: round(&figure.means),
            errors: if has_errors { round(&figure.errors) } else { Vec::new() },
        }
    };
    Data {
        axes: grid.axes.iter().enumerate().map(axis).collect(),
        cells: grid.cells.iter().map(|cell| cell.at.as_slice()).collect(),
        runs: grid.cells.iter().map(|cell| cell.runs.len()).collect(),
        figures: shown.figures.iter().map(figure).collect(),
        start: first.unwrap_or(0),
    }
}

fn lede(swept: &Swept, grid: &Grid) -> String {
    let failed = swept.points.iter().filter(|point| point.error.is_some()).count();
    let missing = swept.planned - swept.points.len();
    let axes: Vec<String> = grid.axes.iter().map(|axis| escape(&axis.name)).collect();
    let over = if axes.is_empty() { String::new() } else { format!(" over {}", axes.join(" × ")) };
    let mut text = format!(
        "{}: {} of {}{over}, {}.",
        escape(&swept.name),
        escape(&swept.command),
        escape(&swept.inputs.join(", ")),
        counted(swept.points.len(), "point"),
    );
    if missing > 0 {
        text += &format!(" <strong>{} not finished yet.</strong>", points(missing, "is", "are"));
    }
    if failed > 0 {
        text += &format!(" <strong>{} failed</strong>; why stands below.", points(failed, "", ""));
    }
    text
}

/// So many points, with a verb behind them.
fn points(many: usize, one: &str, several: &str) -> String {
    let verb = if many == 1 { one } else { several };
    format!("{} {verb}", counted(many, "point")).trim_end().into()
}

fn sections(swept: &Swept, grid: &Grid, shown: &Shown) -> Vec<Section> {
    let section =
        |id: &str, title: &str, html| Section { id: id.into(), title: title.into(), html };
    let mut all = Vec::new();
    if swept.points.iter().any(|point| point.error.is_some()) {
        all.push(section("failed", "Failed points", failed(swept)));
    }
    all.push(section("summary", "Summary", table::html(grid, shown)));
    all.push(section("setup", "Setup", setup(swept, grid, shown)));
    all
}

/// Reasons of failures, each with its points.
fn failed(swept: &Swept) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for point in &swept.points {
        let Some(why) = point.error.as_deref() else { continue };
        let values = point.values.iter().map(|(axis, value)| format!("{axis}={value}"));
        let name = values.collect::<Vec<_>>().join(" ");
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let mut room = FAILED_NAMED;
    let item = |(why, names): &(&str, Vec<String>)| {
        let named = names.len().min(room);
        room -= named;
        let mut shown = names[..named].join("; ");
        if named < names.len() {
            shown += &format!(" and {} more, in table.csv", count((names.len() - named) as u64));
        }
        let points = counted(names.len(), "point");
        format!("<li>{}\n<p class=\"about\">{points}: {}</p></li>\n", escape(why), escape(&shown))
    };
    let items: String = reasons.iter().map(item).collect();
    format!("<ul class=\"failures\">\n{items}</ul>\n")
}

/// Options that all points share, axes on which they have one value, and the part that the page
/// leaves out.
fn setup(swept: &Swept, grid: &Grid, shown: &Shown) -> String {
    let option = |(name, value): &(String, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value))
    };
    let inputs = ("inputs".to_string(), swept.inputs.join(", "));
    let command = ("command".to_string(), format!("dovetail {}", swept.command));
    let constant = grid.constant.iter().map(|axis| (axis.name.clone(), axis.values.join(", ")));
    let options = [command, inputs].into_iter().chain(swept.options.clone()).chain(constant);
    let rows: String = options.map(|of| option(&of)).collect();
    let left_out = match shown.left_out {
        0 => String::new(),
        many => format!(
            "<p class=\"note\">{} that would make this page too long stand in table.csv alone.</p>",
            counted(many, "figure")
        ),
    };
    let constant = match shown.constant {
        0 => String::new(),
        many => format!(
            "<p class=\"note\">{} of these runs never {}, and cannot be drawn.</p>\n",
            counted(many, "figure"),
            if many == 1 { "changes" } else { "change" }
        ),
    };
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Setup\">\n<table class=\"setup\">\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n{constant}{left_out}"
    )
}

#[cfg(test)]
mod tests;
