//! `dovetail replay --sensitivity`: how much results hang on the figures that no source gives.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use dovetail_ftl::{Overrides, Profile};
use dovetail_lab::replay::ReplayJob;
use dovetail_lab::results::RunResult;

use super::{Arguments, job, perform};
use crate::{Failure, drive, print};

/// A figure as it is read off a run; `None` where a run has no such figure.
type Figure = fn(&RunResult) -> Option<f64>;

/// What is compared.
const FIGURES: [(&str, Figure); 6] = [
    ("WAF", |run| run.totals.waf),
    ("write p50", |run| at_least_one(run.latency.write.percentiles.p50_ns)),
    ("write p99", |run| at_least_one(run.latency.write.percentiles.p99_ns)),
    ("read p50", |run| at_least_one(run.latency.read.percentiles.p50_ns)),
    ("read p99", |run| at_least_one(run.latency.read.percentiles.p99_ns)),
    ("flush p99", |run| at_least_one(run.latency.flush.percentiles.p99_ns)),
];

fn at_least_one(ns: u64) -> Option<f64> {
    (ns > 0).then_some(ns as f64)
}

/// One table for each trace and drive.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    for trace in &arguments.traces {
        for name in &arguments.drive {
            let profile = drive::load(name)?;
            let text = compare(arguments, trace, &profile)?;
            print(&format!("{} on {}\n{text}\n", trace.display(), profile.name))?;
        }
    }
    Ok(())
}

fn compare(arguments: &Arguments, trace: &std::path::Path, profile: &Profile) -> Result<String, Failure> {
    let overrides = Overrides { scale: arguments.scale, seed: arguments.seed, ..Overrides::default() };
    let mut jobs = vec![job(arguments, trace, profile, &profile.name, &overrides)?];
    let mut names = Vec::new();
    for variant in profile.variants_of_assumed() {
        // A variant that makes no working drive at this scale tells nothing.
        if let Ok(changed) = job(arguments, trace, &variant.profile, &profile.name, &overrides) {
            let name = [variant.key, variant.from, variant.to];
            jobs.push(ReplayJob { label: format!("{} = {}", name[0], name[2]), ..changed });
            names.push(name);
        }
    }
    let (runs, failed) = perform(arguments, &jobs);
    if !failed.is_empty() {
        return Err(Failure::Failed(failed.join("\ndovetail: ")));
    }
    let Some((base, variants)) = runs.split_first() else { return Ok(String::new()) };
    Ok(table(base, &names, variants))
}

fn table(base: &RunResult, names: &[[String; 3]], variants: &[RunResult]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let figures = FIGURES.iter().map(|(name, _)| name.to_string());
    table.set_header(["assumed figure", "from", "to"].map(String::from).into_iter().chain(figures));
    for (name, variant) in names.iter().zip(variants) {
        let changes = FIGURES.iter().map(|(_, figure)| change(figure(base), figure(variant)));
        table.add_row(name.iter().cloned().chain(changes));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_string() + "\n").collect()
}

fn change(base: Option<f64>, variant: Option<f64>) -> String {
    match (base, variant) {
        (Some(base), Some(variant)) if base > 0.0 => match (variant / base - 1.0) * 100.0 {
            percent if percent.abs() < 0.05 => "=".into(),
            percent => format!("{percent:+.1} %"),
        },
        _ => "-".into(),
    }
}
