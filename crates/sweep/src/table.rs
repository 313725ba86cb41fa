//! The table of a sweep: a row for each run of each finished point.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::record::Record;
use crate::sweep::Sweep;

/// The results as CSV, in the order of the points whoever performed them when: number, values on
/// the axes, single figures, and the reason of a failure. A figure that a run does not have is an
/// empty field.
///
/// # Errors
/// A text of the CSV writer, which is not to be expected.
pub fn table(sweep: &Sweep, records: &BTreeMap<u32, Record>) -> Result<String, csv::Error> {
    let axes = sweep.axes();
    let mut figures: Vec<&str> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for name in records.values().flat_map(|record| &record.runs).flat_map(|run| run.keys()) {
        if known.insert(name.as_str()) {
            figures.push(name);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = ["point"].into_iter().chain(axes.iter().copied());
    let header = header.map(str::to_owned).chain(figures.iter().map(|name| column(name, &axes)));
    writer.write_record(header.chain(["error".to_owned()]))?;
    for point in sweep.points() {
        let Some(record) = records.get(&point.number) else { continue };
        let own = |axis: &&str| {
            let value = point.values.iter().find(|(name, _)| name == axis);
            value.map_or_else(String::new, |(_, value)| value.clone())
        };
        let start: Vec<String> =
            [point.number.to_string()].into_iter().chain(axes.iter().map(own)).collect();
        let error = record.error.clone().unwrap_or_default();
        for run in &record.runs {
            let figures = figures.iter().map(|name| run.get(*name).map_or_else(String::new, field));
            writer.write_record(start.iter().cloned().chain(figures).chain([error.clone()]))?;
        }
        if record.runs.is_empty() {
            let nothing = figures.iter().map(|_| String::new());
            writer.write_record(start.iter().cloned().chain(nothing).chain([error]))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The column of a figure: no two columns have one name. A run of several repetitions has another
/// seed than its point.
fn column(figure: &str, axes: &[&str]) -> String {
    if axes.contains(&figure) { format!("run_{figure}") } else { figure.to_owned() }
}

/// A figure as a field of CSV: null is empty, a text has no quotes of its own.
pub fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
