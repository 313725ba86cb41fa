//! Results as CSV: a row a run, a column for each single figure of the JSON, named by its path with dots.

use dovetail_lab::results::RunResult;
use serde_json::Value;

use crate::Failure;

/// All runs as CSV with a header. Lists (curves, series, maps) are left to the JSON; null is an empty field.
pub(crate) fn text(runs: &[RunResult]) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (i, run) in runs.iter().enumerate() {
        let mut columns = Vec::new();
        flatten("", &serde_json::to_value(run).map_err(Failure::failed)?, &mut columns);
        if i == 0 {
            writer.write_record(columns.iter().map(|(name, _)| name)).map_err(Failure::failed)?;
        }
        writer.write_record(columns.iter().map(|(_, value)| value)).map_err(Failure::failed)?;
    }
    let bytes = writer.into_inner().map_err(Failure::failed)?;
    String::from_utf8(bytes).map_err(Failure::failed)
}

fn flatten(path: &str, value: &Value, into: &mut Vec<(String, String)>) {
    match value {
        Value::Array(_) => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, into);
            }
        }
        Value::Null => into.push((path.into(), String::new())),
        Value::String(text) => into.push((path.into(), text.clone())),
        Value::Bool(_) | Value::Number(_) => into.push((path.into(), value.to_string())),
    }
}
