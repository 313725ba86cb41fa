//! The documents of results and the results agree: every field that is written is described, and no other.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use dovetail_lab::bench::results::{self as bench, BenchResults};
use dovetail_lab::results::{
    DieResult, MapCacheResult, PreconditionResult, Results, RunResult, SCHEMA, SCHEMA_VERSION, ScatterPoint,
};
use serde_json::Value;

/// A document, and results that it describes.
struct Case {
    name: &'static str,
    text: String,
    /// In which every object that may be missing is there.
    results: Value,
    /// Objects that another document describes.
    elsewhere: &'static [&'static str],
    schema: (&'static str, u32),
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn replay() -> Case {
    let run = RunResult {
        precondition: Some(PreconditionResult::default()),
        dies: vec![DieResult::default()],
        scatter: vec![ScatterPoint::default()],
        map_cache: Some(MapCacheResult::default()),
        ..RunResult::default()
    };
    let results = Results { schema: SCHEMA.into(), version: SCHEMA_VERSION, seed: 1, runs: vec![run] };
    Case {
        name: "replay-json.md",
        text: document("replay-json.md"),
        results: serde_json::to_value(results).unwrap(),
        elsewhere: &[],
        schema: (SCHEMA, SCHEMA_VERSION),
    }
}

fn bench() -> Case {
    let results = BenchResults {
        schema: bench::SCHEMA.into(),
        version: bench::SCHEMA_VERSION,
        workload: "varmail".into(),
        scale: 1.0,
        seed: 1,
        runs: vec![bench::BenchRun {
            devirtualize: Some(bench::DevirtualizeResult {
                each: vec![bench::DevirtualizeRun::default()],
                ..bench::DevirtualizeResult::default()
            }),
            ..common::bench_run("f2fs", "f2fs")
        }],
    };
    Case {
        name: "bench-json.md",
        text: document("bench-json.md"),
        results: serde_json::to_value(results).unwrap(),
        elsewhere: &["drive", "latency", "map_cache", "memory", "wear", "programs", "scatter"],
        schema: (bench::SCHEMA, bench::SCHEMA_VERSION),
    }
}

impl Case {
    fn written_fields(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        self.collect_keys(&self.results, &mut keys);
        keys
    }

    fn collect_keys(&self, value: &Value, keys: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                for (key, inner) in fields {
                    keys.insert(key.clone());
                    if !self.elsewhere.contains(&key.as_str()) {
                        self.collect_keys(inner, keys);
                    }
                }
            }
            Value::Array(entries) => entries.iter().for_each(|entry| self.collect_keys(entry, keys)),
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
        assert!(missing.is_empty(), "docs/{} says nothing of {missing:?}", self.name);
    }

    fn describes_no_other(&self, at_least: usize) {
        let (written, described) = (self.written_fields(), self.described_fields());
        assert!(described.len() > at_least, "the tables were not found: {described:?}");
        let unknown: Vec<_> = described.difference(&written).collect();
        assert!(unknown.is_empty(), "docs/{} describes {unknown:?}, which results do not have", self.name);
    }

    fn says_its_version(&self) {
        let (schema, version) = self.schema;
        let said = format!("`schema` is `\"{schema}\"`, `version` is {version}.");
        assert!(self.text.contains(&said), "docs/{} does not say: {said}", self.name);
    }
}

#[test]
fn every_field_of_a_replay_is_described_and_no_other() {
    let case = replay();
    case.describes_every_field();
    case.describes_no_other(100);
    case.says_its_version();
}

#[test]
fn every_field_of_a_bench_is_described_and_no_other() {
    let case = bench();
    case.describes_every_field();
    case.describes_no_other(60);
    case.says_its_version();
    let links = case.elsewhere.iter().filter(|object| **object != "programs");
    for object in links {
        assert!(case.text.contains(&format!("replay-json.md#{object})")), "no link for {object}");
    }
}
