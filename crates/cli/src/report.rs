//! `dovetail report`: the HTML report of results that were written before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use dovetail_lab::results::beside;
use dovetail_papers::{Figure, Reproduction};
use dovetail_report::{Swept, SweptPoint, SweptRun};
use dovetail_sweep::{Point, Record, Sweep};
use dovetail_time::format_bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::output::{Outputs, check_writable, is_stdout, write};
use crate::sources::{Source, figures_of, read};
use crate::{Failure, print, reproduce};

/// Text below the options' help.
const HELP: &str = "\
Of runs it is the report that --report wrote, byte for byte. Several files make one report, their \
runs beside each other, if they have one workload, scale and seed.
Of a sweep it draws any figure over any axis, a line for each combination of the other axes, and says \
which combination is best and which axis matters.";

/// Make the HTML report of results that were written before, or of a sweep.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// Files that bench, replay or reproduce wrote with --json=FILE, or the folder of a sweep.
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,
    /// The report: one HTML file that needs nothing else; - for standard output [default: the name
    /// of the first results with .html].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let output = arguments.output.clone().unwrap_or_else(|| by_default(&arguments.results[0]));
    let mut outputs = Outputs::default();
    arguments.results.iter().for_each(|results| outputs.input(results));
    outputs.output("--output", &output)?;
    check_writable([&output].into_iter())?;
    let html = html(&arguments.results)?;
    write(&output, &html)?;
    if is_stdout(Some(&output)) {
        return Ok(());
    }
    print(&format!("{}: {}\n", output.display(), format_bytes(html.len() as u64)))
}

/// The report's name beside the results.
fn by_default(results: &Path) -> PathBuf {
    match is_stdout(Some(results)) {
        true => results.into(),
        false => results.with_extension("html"),
    }
}

fn html(paths: &[PathBuf]) -> Result<String, Failure> {
    let mut runs = Vec::new();
    for path in paths {
        match read(path)? {
            Source::Results(results) => runs.push((name(path, paths), typed(path, results)?)),
            Source::Figures(figures) if paths.len() == 1 => return of_figures(path, figures),
            Source::Figures(_) => return Err(alone(path, "papers' figures")),
            Source::Sweep(sweep, records) if paths.len() == 1 => {
                return Ok(dovetail_report::sweep_html(&swept(path, &sweep, &records)));
            }
            Source::Sweep(..) => return Err(alone(path, "a sweep")),
        }
    }
    let joined = beside(runs).map_err(|error| Failure::Usage(error.to_string()))?;
    let none = || Failure::Usage("give results".into());
    Ok(dovetail_report::html(&joined.ok_or_else(none)?))
}

fn alone(path: &Path, what: &str) -> Failure {
    Failure::Usage(format!("{} has {what}: give it alone", path.display()))
}

/// The name of results among others: the file's, unless several have it.
fn name(path: &Path, others: &[PathBuf]) -> String {
    let stem = |path: &Path| path.file_stem().unwrap_or(path.as_os_str()).to_owned();
    let is_twice = others.iter().filter(|other| stem(other) == stem(path)).count() > 1;
    let name = if is_twice { path.as_os_str().to_owned() } else { stem(path) };
    name.to_string_lossy().into_owned()
}

/// Results of JSON, as they were before they were written.
fn typed<T: DeserializeOwned>(path: &Path, value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| {
        Failure::Usage(format!("{} is damaged: {error}; run it again", path.display()))
    })
}

fn of_figures(path: &Path, all: serde_json::Map<String, Value>) -> Result<String, Failure> {
    let mut page = dovetail_report::Figures::default();
    let mut provenance = None;
    for (name, value) in all {
        let figure = Figure::find(&name).ok_or_else(|| {
            let path = path.display();
            Failure::Usage(format!(
                "{path} has figure \"{name}\", which this version does not know"
            ))
        })?;
        let reproduction: Reproduction = typed(path, value)?;
        page.add(&reproduce::drawn(figure, &reproduction));
        provenance = provenance.or(reproduction.results.provenance);
    }
    Ok(page.html(&provenance.unwrap_or_default()))
}

/// A sweep as its page takes it.
fn swept(path: &Path, sweep: &Sweep, records: &BTreeMap<u32, Record>) -> Swept {
    let run = |row: &serde_json::Map<String, Value>| SweptRun {
        label: row.get("label").and_then(Value::as_str).unwrap_or_default().into(),
        figures: figures_of(row),
    };
    let point = |point: &Point| {
        let record = records.get(&point.number)?;
        let (values, error) = (point.values.clone(), record.error.clone());
        Some(SweptPoint { values, runs: record.runs.iter().map(run).collect(), error })
    };
    let options = sweep.options().iter().map(|(name, values)| (name.clone(), values.join(", ")));
    Swept {
        name: name(path, &[]),
        command: sweep.command.name().into(),
        inputs: sweep.inputs().to_vec(),
        options: options.collect(),
        planned: sweep.points().len(),
        points: sweep.points().iter().filter_map(point).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_stands_beside_the_results() {
        let name = |path: &str| by_default(Path::new(path)).display().to_string();
        assert_eq!(["a/b.json", "spare.sweep", "-"].map(name), ["a/b.html", "spare.html", "-"]);
    }

    #[test]
    fn files_of_one_name_are_told_apart_by_their_paths() {
        let paths = ["a/x.json", "b/x.json", "c/y.json"].map(PathBuf::from);
        assert_eq!(paths.each_ref().map(|path| name(path, &paths)), ["a/x.json", "b/x.json", "y"]);
    }
}
