//! Results as CSV: a row a run, a column for each single figure of the JSON, named by its path with
//! dots.

use std::collections::HashMap;

use dovetail_lab::results::Results;
use dovetail_sweep::field;
use serde::Serialize;
use serde_json::Value;

use crate::Failure;

/// The list of a run's jobs; of several each has columns of its own.
const JOBS: &str = "jobs";

/// All runs as CSV with a header: the columns of all of them, then what all runs share. Other lists
/// (curves, series, maps) and texts of several lines are left to the JSON; null is an empty field.
pub(crate) fn text(results: &Results) -> Result<String, Failure> {
    let mut names: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    let value = |part: &dyn Fn() -> serde_json::Result<Value>| part().map_err(Failure::failed);
    let shared = [
        ("options", value(&|| serde_json::to_value(&results.options))?),
        ("provenance", value(&|| serde_json::to_value(&results.provenance))?),
    ];
    for run in &results.runs {
        let mut columns = figures(run)?;
        shared.iter().for_each(|(name, part)| flatten(name, part, &mut columns));
        for (name, _) in &columns {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        rows.push(columns.into_iter().collect::<HashMap<_, _>>());
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&names).map_err(Failure::failed)?;
    for row in &rows {
        let fields = names.iter().map(|name| row.get(name).map_or_else(String::new, field));
        writer.write_record(fields).map_err(Failure::failed)?;
    }
    let bytes = writer.into_inner().map_err(Failure::failed)?;
    String::from_utf8(bytes).map_err(Failure::failed)
}

/// Single figures of a run, named by their path with dots.
pub(crate) fn figures<R: Serialize>(run: &R) -> Result<Vec<(String, Value)>, Failure> {
    let mut figures = Vec::new();
    flatten("", &serde_json::to_value(run).map_err(Failure::failed)?, &mut figures);
    Ok(figures)
}

fn flatten(path: &str, value: &Value, into: &mut Vec<(String, Value)>) {
    match value {
        Value::Array(jobs) if path == JOBS && jobs.len() > 1 => {
            for job in jobs {
                let name = job["name"].as_str().unwrap_or_default();
                flatten(&format!("{path}.{name}"), job, into);
            }
        }
        Value::Array(_) => {}
        Value::String(text) if text.contains('\n') => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, into);
            }
        }
        Value::Null | Value::String(_) | Value::Bool(_) | Value::Number(_) => {
            into.push((path.into(), value.clone()));
        }
    }
}
