//! `docs/replay-json.md` and the results agree: every field that is written is described, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use dovetail_lab::results::{
    DieResult, PreconditionResult, Results, RunResult, SCHEMA, SCHEMA_VERSION, ScatterPoint,
};
use serde_json::Value;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/replay-json.md");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Results in which every object that may be missing is there.
fn results() -> Value {
    let run = RunResult {
        precondition: Some(PreconditionResult::default()),
        dies: vec![DieResult::default()],
        scatter: vec![ScatterPoint::default()],
        ..RunResult::default()
    };
    let results = Results { schema: SCHEMA.into(), version: SCHEMA_VERSION, seed: 1, runs: vec![run] };
    serde_json::to_value(results).unwrap_or_else(|error| panic!("results cannot be written: {error}"))
}

fn collect_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                keys.insert(key.clone());
                collect_keys(inner, keys);
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| collect_keys(entry, keys)),
        _ => {}
    }
}

fn written_fields() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    collect_keys(&results(), &mut keys);
    keys
}

/// The fields that the document's tables begin their rows with.
fn described_fields(document: &str) -> BTreeSet<String> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(field, _)| field.to_string()).collect()
}

#[test]
fn every_field_of_the_results_is_described() {
    let document = document();
    let missing: Vec<_> =
        written_fields().into_iter().filter(|field| !document.contains(&format!("`{field}`"))).collect();
    assert!(missing.is_empty(), "docs/replay-json.md says nothing of {missing:?}");
}

#[test]
fn no_field_is_described_that_is_not_written() {
    let written = written_fields();
    let described = described_fields(&document());
    assert!(described.len() > 100, "the tables were not found: {described:?}");
    let unknown: Vec<_> = described.difference(&written).collect();
    assert!(unknown.is_empty(), "docs/replay-json.md describes {unknown:?}, which results do not have");
}

#[test]
fn the_version_described_is_the_one_written() {
    let said = format!("`schema` is `\"{SCHEMA}\"`, `version` is {SCHEMA_VERSION}.");
    assert!(document().contains(&said), "docs/replay-json.md does not say: {said}");
}
