//! The page of figures: a table for each, made of the results that are kept.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Figures that cannot differ: workloads that are made after a paper's figures of them, and the
/// arithmetic of a paper, done again.
const INPUTS: [&str; 2] = ["mapcache-table-1", "iplfs-tables-1-2"];

/// Figures by name, as they are kept: at the default scales, at the papers' sizes, and at several
/// scales.
pub(super) struct Results {
    pub reduced: Map<String, Value>,
    pub full: Map<String, Value>,
    pub scales: Map<String, Value>,
}

/// Is true for a row that counts: a statement that a paper makes of its results. Our own
/// statements do not, nor do inputs that are held against their source.
fn counts(name: &str, row: &Value) -> bool {
    let is_ours = row["paper"].as_str().is_some_and(|paper| paper.starts_with("none: "));
    !is_ours && !INPUTS.contains(&name)
}

/// The rows that count.
pub(super) fn counted(results: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    results
        .iter()
        .flat_map(|(name, figure)| comparisons(figure).iter().filter(move |row| counts(name, row)))
}

/// The page: a table for each figure, and how many statements agree.
pub(super) fn page(names: &[String], results: &Results) -> String {
    let Results { reduced, full, scales } = results;
    let mut page = "# The papers' figures, run again\n\n\
        Made by `cargo xtask figures` (default scales) and `cargo xtask figures --full` (the papers' own sizes). \
        \"Shown\" is a result of ours that no paper makes a statement about. Statements of ours, the inputs of mapcache-table-1 and the arithmetic of iplfs-tables-1-2 are not counted. Causes of what differs, with the \
        experiments that show them: [figures-causes.md](figures-causes.md).\n\n"
        .to_string();
    for (title, results) in [("At the default scales", reduced), ("At the papers' own sizes", full)]
    {
        let count = |verdict: &str| {
            counted(results).filter(|comparison| comparison["verdict"] == verdict).count()
        };
        let (agree, differ) = (count("agrees"), count("differs"));
        if agree + differ > 0 {
            let _ = writeln!(
                page,
                "{title} {agree} of {} statements agree ({:.0} %), in {} figures.\n",
                agree + differ,
                100.0 * agree as f64 / (agree + differ) as f64,
                results.len()
            );
        }
    }
    let missing: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !full.contains_key(*name)).collect();
    if !missing.is_empty() {
        let _ = writeln!(
            page,
            "Not run at full size: {}. Figures that were run at several scales have a second table: \
             from which scale on the results stay.\n",
            missing.join(", ")
        );
    }
    for name in names {
        page += &section(name, reduced.get(name), full.get(name));
        page += &scales.get(name).map(scales_table).unwrap_or_default();
    }
    page
}

/// The list of a key; empty without one.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn comparisons(figure: &Value) -> &[Value] {
    list(figure, "comparisons")
}

/// A figure's table: its statements in the order of the run at the default scale.
fn section(name: &str, reduced: Option<&Value>, full: Option<&Value>) -> String {
    let Some(first) = reduced.or(full) else { return String::new() };
    let scale = reduced.and_then(|figure| figure["scale"].as_f64()).unwrap_or(1.0);
    let at = scale_text(&scale.into());
    let beside = full.filter(|_| scale < 1.0);
    let commit = |figure: &Value| figure["commit"].as_str().unwrap_or_default().to_owned();
    let run_at = match beside.map(commit).filter(|full| *full != commit(first)) {
        Some(full) => format!("{}, at full size at {full}", commit(first)),
        None => commit(first),
    };
    let mut out = format!("## {name}\n\nRun at {run_at}.\n\n| | paper | ours, {at} |");
    out += if beside.is_some() {
        " ours, full size | agreement is | |\n"
    } else {
        " agreement is | |\n"
    };
    out += if beside.is_some() { "|---|---|---|---|---|---|\n" } else { "|---|---|---|---|---|\n" };
    for row in comparisons(first) {
        let same = |figure| comparisons(figure).iter().find(|other| other["what"] == row["what"]);
        let beside_row = beside.and_then(same);
        let other = beside.map(|_| {
            format!(" {} |", beside_row.map_or_else(String::new, |other| cell(&other["ours"])))
        });
        let verdicts = [Some(row), beside_row];
        let verdicts: Vec<&str> =
            verdicts.into_iter().flatten().filter_map(|row| row["verdict"].as_str()).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} |{} {} | {} |",
            cell(&row["what"]),
            cell(&row["paper"]),
            cell(&row["ours"]),
            other.unwrap_or_default(),
            cell(&row["rule"]),
            verdicts.join(", ")
        );
    }
    out + "\n"
}

/// "1/16" for 0.0625.
fn scale_text(scale: &Value) -> String {
    match scale.as_f64() {
        Some(scale) if scale < 1.0 => format!("1/{:.0}", 1.0 / scale),
        _ => "full size".into(),
    }
}

/// "agrees", or the judgement at each scale if they are not the same.
fn verdicts(row: &Value) -> String {
    let mut verdicts: Vec<&str> = list(row, "verdicts").iter().filter_map(Value::as_str).collect();
    if verdicts.iter().all(|verdict| Some(verdict) == verdicts.first()) {
        verdicts.truncate(1);
    }
    verdicts.join(", ")
}

/// A figure at several scales: its statements, and from which scale on each stays.
fn scales_table(figure: &Value) -> String {
    let titles: Vec<String> = list(figure, "scales").iter().map(scale_text).collect();
    let commit = figure["commit"].as_str().unwrap_or_default();
    let mut out = format!(
        "Run at {commit} at {} scales; a result stays if it is judged the same, and moves by no more \
         than its rule leaves to the paper.\n\n| | {} | stays from | |\n|---|{}---|---|\n",
        titles.len(),
        titles.join(" | "),
        "---|".repeat(titles.len())
    );
    for row in list(figure, "statements") {
        let ours: Vec<String> = list(row, "ours").iter().map(cell).collect();
        let from = &row["stays_from"];
        let from = if from.is_null() { "moves".into() } else { scale_text(from) };
        let (what, ours, verdicts) = (cell(&row["what"]), ours.join(" | "), verdicts(row));
        let _ = writeln!(out, "| {what} | {ours} | {from} | {verdicts} |");
    }
    out + "\n"
}

fn cell(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('|', "\\|")
}
