//! Results that were written before: files of `bench`, `replay` and `reproduce`, folders of sweeps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dovetail_lab::compare::Run;
use dovetail_lab::results::{SCHEMA, SchemaError, check_schema};
use dovetail_sweep::{Record, Sweep};
use serde_json::Value;

use crate::Failure;
use crate::csv_out::figures;
use crate::output::is_stdout;

/// End of a sentence: the sources that can be given instead.
const GIVE: &str =
    "give a file that bench, replay or reproduce wrote with --json=FILE, or the folder of a sweep";
/// Beginnings of paths that describe stack, drive and trace: no figures.
const SETUP: [&str; 5] = ["stack.", "drive.", "replay.", "trace.name", "trace.format"];
/// The axis of a sweep whose points are repetitions.
pub(crate) const SEED: &str = "seed";

/// Results of one call.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// Of a bench or a replay: the documented JSON.
    Results(Value),
    /// Of figures of papers, by name.
    Figures(serde_json::Map<String, Value>),
    /// Of a sweep's finished points.
    Sweep(Box<Sweep>, BTreeMap<u32, Record>),
}

/// Reads a file or a folder.
///
/// # Errors
/// It cannot be read, or is something else; wrong usage both.
pub(crate) fn read(path: &Path) -> Result<Source, Failure> {
    let name = path.display();
    if path.is_dir() {
        let usage = |error: dovetail_sweep::SweepError| Failure::Usage(error.to_string());
        let (sweep, records) = dovetail_sweep::read(path).map_err(usage)?;
        return Ok(Source::Sweep(Box::new(sweep), records));
    }
    let text = if is_stdout(Some(path)) {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text =
        text.map_err(|error| Failure::Usage(format!("{name} cannot be read ({error}): {GIVE}")))?;
    parse(&text).map_err(|problem| Failure::Usage(format!("{name} {problem}")))
}

fn parse(text: &str) -> Result<Source, String> {
    let is_html = text.trim_start().starts_with("<!doctype html");
    if is_html {
        return Err(format!("is a report, made to be looked at: {GIVE}"));
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("is no JSON ({error}): {GIVE}"))?;
    match check_schema(&value) {
        Ok(()) => return Ok(Source::Results(value)),
        Err(SchemaError::Other) => {}
        Err(version) => return Err(version.to_string()),
    }
    if value.get("fio version").is_some() {
        return Err(format!("is JSON as of fio (--fio-json), which has not all figures: {GIVE}"));
    }
    match value {
        Value::Object(figures)
            if !figures.is_empty()
                && figures.values().all(|figure| figure["results"]["schema"] == SCHEMA) =>
        {
            Ok(Source::Figures(figures))
        }
        _ => Err(format!("{}: {GIVE}", SchemaError::Other)),
    }
}

impl Source {
    /// The runs as single figures. Repetitions with other seeds have one name.
    pub(crate) fn runs(&self) -> Result<Vec<Run>, Failure> {
        match self {
            Self::Results(results) => runs_of(results, ""),
            Self::Figures(figures) => {
                let each = figures
                    .iter()
                    .map(|(name, figure)| runs_of(&figure["results"], &format!("{name}: ")));
                Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
            }
            Self::Sweep(sweep, records) => Ok(runs_of_sweep(sweep, records)),
        }
    }

    /// All that its runs were and found, without what names the program and the call.
    pub(crate) fn without_provenance(mut self) -> Self {
        let drop = |results: &mut Value| {
            if let Value::Object(fields) = results {
                fields.shift_remove("provenance");
            }
        };
        match &mut self {
            Self::Results(results) => drop(results),
            Self::Figures(figures) => {
                figures.values_mut().for_each(|figure| drop(&mut figure["results"]));
            }
            Self::Sweep(..) => {}
        }
        self
    }
}

/// The runs of results; `prefix` comes before their labels.
fn runs_of(results: &Value, prefix: &str) -> Result<Vec<Run>, Failure> {
    let shared = ["workload", "scale", "options", "job"].into_iter();
    let shared: serde_json::Map<String, Value> =
        shared.map(|name| (name.to_string(), results[name].clone())).collect();
    let mut shared = figures(&shared)?;
    shared.retain(|(path, value)| !value.is_null() && path != "options.repeat");
    if let Some(text) = results["job"]["text"].as_str() {
        shared.push(("job.text".into(), text.into()));
    }
    let run = |run: &Value| {
        let mut found = run_of(figures(run)?.iter().map(|(path, value)| (path.as_str(), value)));
        found.setup.extend(shared.iter().map(|(path, value)| (path.clone(), text(value))));
        found.name = format!("{prefix}{}", repeated(run["label"].as_str().unwrap_or_default()));
        found.error = run["error"].as_str().map(str::to_owned);
        let notes = run["notes"].as_array().into_iter().flatten();
        found.notes = notes.filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(found)
    };
    results["runs"].as_array().into_iter().flatten().map(run).collect()
}

/// The label of a run without the number of its repetition.
fn repeated(label: &str) -> &str {
    let split = label.rsplit_once(" #");
    split.filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(label, |(name, _)| name)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn run_of<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)> + Clone) -> Run {
    let is_setup = |path: &str| SETUP.iter().any(|start| path.starts_with(start));
    // of calls that there were none of, no latency is 0
    let is_empty = |path: &str| {
        let of = path.rsplit_once('.').map(|(of, _)| format!("{of}.count"));
        path.contains("latency.")
            && of.is_some_and(|of| fields.clone().any(|(path, n)| path == of && *n == 0))
    };
    let mut run = Run::default();
    for (path, value) in fields.clone() {
        match value.as_f64() {
            _ if path == SEED || value.is_null() => {}
            _ if is_setup(path) => {
                run.setup.insert(path.into(), text(value));
            }
            Some(value) if !is_empty(path) => {
                run.figures.insert(path.into(), value);
            }
            _ => {}
        }
    }
    run
}

/// Figures of a row of a sweep, without what describes stack, drive and trace.
pub(crate) fn figures_of(row: &serde_json::Map<String, Value>) -> BTreeMap<String, f64> {
    run_of(row.iter().map(|(path, value)| (path.as_str(), value))).figures
}

/// The labels of the runs of a point where points have several.
fn labels(records: &BTreeMap<u32, Record>) -> BTreeSet<String> {
    let rows = records.values().filter(|record| record.runs.len() > 1).flat_map(|of| &of.runs);
    let label =
        |row: &serde_json::Map<String, Value>| Some(repeated(row.get("label")?.as_str()?).into());
    rows.filter_map(label).collect()
}

/// A run without figures for each label, or the only one, in the place of a point without runs.
fn without_runs(name: &str, labels: &BTreeSet<String>, error: Option<&str>) -> Vec<Run> {
    let run = |name: String| Run { name, error: error.map(str::to_owned), ..Run::default() };
    if labels.is_empty() {
        return vec![run(name.into())];
    }
    labels.iter().map(|label| run(format!("{name}, {label}"))).collect()
}

/// A run for each row of a sweep's table, named by its point's values without the seed; points
/// without a record have none.
fn runs_of_sweep(sweep: &Sweep, records: &BTreeMap<u32, Record>) -> Vec<Run> {
    let mut all = Vec::new();
    let labels = labels(records);
    for point in sweep.points() {
        let mut values: Vec<_> = point.values.iter().filter(|(axis, _)| axis != SEED).collect();
        values.sort();
        let name = values.iter().map(|(axis, value)| format!("{axis}={value}"));
        let name = name.collect::<Vec<_>>().join(" ");
        let name = if name.is_empty() { "all".to_string() } else { name };
        let Some(record) = records.get(&point.number) else { continue };
        for row in &record.runs {
            let mut run = run_of(row.iter().map(|(path, value)| (path.as_str(), value)));
            run.name.clone_from(&name);
            if record.runs.len() > 1 {
                let label = row.get("label").and_then(Value::as_str).unwrap_or_default();
                run.name = format!("{name}, {}", repeated(label));
            }
            all.push(run);
        }
        if record.runs.is_empty() {
            all.extend(without_runs(&name, &labels, record.error.as_deref()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use dovetail_lab::results::{Results, RunResult};

    use super::*;

    fn results(labels: &[&str]) -> Value {
        let run = |label: &&str| RunResult { label: (*label).into(), ..RunResult::default() };
        let results = Results::of("j.fio".into(), 0.5, 1, labels.iter().map(run).collect());
        serde_json::to_value(results).unwrap()
    }

    #[test]
    fn what_is_no_result_is_named() {
        for (text, expected) in [
            ("<!doctype html>", "is a report"),
            ("{", "is no JSON"),
            ("{}", "has no results"),
            ("[1]", "has no results"),
            (r#"{"fio version": "fio-3.33"}"#, "as of fio"),
            (r#"{"schema": "dovetail-results", "version": 3}"#, "by a later version"),
            (r#"{"schema": "dovetail-results", "version": 1}"#, "by an earlier version"),
            (r#"{"schema": "dovetail-bench", "version": 1}"#, "by an earlier version"),
            (r#"{"schema": "dovetail-sweep", "version": 1}"#, "the folder of a sweep"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn repetitions_have_one_name_and_descriptions_are_no_figures() {
        let runs = Source::Results(results(&["f2fs #1", "f2fs #2", "a #b"])).runs().unwrap();
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["f2fs", "f2fs", "a #b"]);
        assert_eq!(runs[0].setup["scale"], "0.5");
        assert!(runs[0].setup.contains_key("drive.capacity_bytes"));
        assert!(runs[0].figures.keys().all(|path| !path.starts_with("drive.") && path != "seed"));
        assert!(!runs[0].figures.contains_key("latency.read.p99_ns"), "there were no reads");
        let mut figures = serde_json::Map::new();
        figures.insert("figure-1".into(), serde_json::json!({ "results": results(&["f2fs"]) }));
        let figures = parse(&serde_json::to_string(&figures).unwrap()).unwrap();
        assert_eq!(figures.runs().unwrap()[0].name, "figure-1: f2fs");
    }

    #[test]
    fn points_that_differ_in_their_seed_have_one_name() {
        let text =
            "command = 'bench'\ninputs = ['a']\n[axes]\nop = [7]\ngc = ['greedy']\nseed = [1, 2]\n";
        let sweep = Sweep::parse(text, "s").unwrap();
        let row = serde_json::json!({ "label": "f2fs", "seed": 1, "totals.erases": 5 });
        let row = row.as_object().unwrap().clone();
        let record = |point, runs, error| (point, Record { point, runs, error });
        let records = BTreeMap::from([
            record(0, vec![row.clone(), row], None),
            record(1, vec![], Some("full".into())),
        ]);
        let runs = Source::Sweep(Box::new(sweep), records).runs().unwrap();
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["gc=greedy op=7, f2fs"; 3]);
        assert_eq!(runs[0].figures["totals.erases"], 5.0);
        assert_eq!(runs[2].error.as_deref(), Some("full"));
        let sweep = Sweep::parse(text, "s").unwrap();
        let runs = Source::Sweep(Box::new(sweep), BTreeMap::new()).runs().unwrap();
        assert!(runs.is_empty(), "no point is finished: {runs:?}");
    }
}
