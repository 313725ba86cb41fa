//! The document of results and the results agree: every field that is written is described, and no other.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use dovetail_lab::results::{
    DevirtualizeResult, DevirtualizeRun, DieResult, MapCacheResult, PreconditionResult, ReplayResult,
    Results, RunResult, SCHEMA, SCHEMA_VERSION, ScatterPoint, TraceResult,
};
use serde_json::Value;

/// A document, and results that it describes.
struct Case {
    text: String,
    /// In which every object that may be missing is there.
    results: Value,
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn case() -> Case {
    let run = RunResult {
        trace: Some(TraceResult::default()),
        replay: Some(ReplayResult::default()),
        precondition: Some(PreconditionResult::default()),
        dies: vec![DieResult::default()],
        scatter: vec![ScatterPoint::default()],
        map_cache: Some(MapCacheResult::default()),
        devirtualize: Some(DevirtualizeResult {
            each: vec![DevirtualizeRun::default()],
            ..DevirtualizeResult::default()
        }),
        ..common::bench_run("f2fs", "f2fs")
    };
    let results = Results::of("varmail".into(), 1.0, 1, vec![run]);
    Case { text: document("results-json.md"), results: serde_json::to_value(results).unwrap() }
}

impl Case {
    fn written_fields(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        Self::collect_keys(&self.results, &mut keys);
        keys
    }

    fn collect_keys(value: &Value, keys: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (key, inner) in fields {
                    keys.insert(key.clone());
                    Self::collect_keys(inner, keys);
                }
            }
            Value::Array(entries) => entries.iter().for_each(|entry| Self::collect_keys(entry, keys)),
            _ => {}
        }
    }

    /// The fields that the document's tables begin their rows with.
    fn described_fields(&self) -> BTreeSet<String> {
        let rows = self.text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        rows.map(|(field, _)| field.to_string()).collect()
    }

    fn describes_every_field(&self) {
        let written = self.written_fields();
        let missing: Vec<_> =
            written.iter().filter(|field| !self.text.contains(&format!("`{field}`"))).collect();
        assert!(missing.is_empty(), "the document says nothing of {missing:?}");
    }

    fn describes_no_other(&self, at_least: usize) {
        let (written, described) = (self.written_fields(), self.described_fields());
        assert!(described.len() > at_least, "the tables were not found: {described:?}");
        let unknown: Vec<_> = described.difference(&written).collect();
        assert!(unknown.is_empty(), "the document describes {unknown:?}, which results do not have");
    }

    fn says_its_version(&self) {
        let said = format!("`schema` is `\"{SCHEMA}\"`, `version` is {SCHEMA_VERSION}.");
        assert!(self.text.contains(&said), "the document does not say: {said}");
    }
}

#[test]
fn every_field_of_results_is_described_and_no_other() {
    let case = case();
    case.describes_every_field();
    case.describes_no_other(150);
    case.says_its_version();
}
