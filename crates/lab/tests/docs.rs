//! The document of results and the results agree: every field that is written is described, and no
//! other.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::common;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use dovetail_lab::bench::figures_by_file_system;
use dovetail_lab::results::{
    DevirtualizeResult, DevirtualizeRun, DieResult, HandleResult, JobSource, MapCacheResult,
    OptionsResult, PlacementResult, PreconditionResult, Provenance, ReplayResult, RestartResult,
    Results, RunResult, SCHEMA, SCHEMA_VERSION, ScatterPoint, TraceResult, ZoneLogResult,
};
use dovetail_vfs::{Figure, Figures};
use serde_json::Value;

/// A document, and results that it describes.
struct Case {
    text: String,
    /// In which every object that may be missing is there.
    results: Value,
    /// Keys that a file system gives.
    figures: Vec<&'static str>,
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn case() -> Case {
    let mut run = RunResult {
        restart: Some(RestartResult::default()),
        trace: Some(TraceResult::default()),
        replay: Some(ReplayResult::default()),
        precondition: Some(PreconditionResult::default()),
        dies: vec![DieResult::default()],
        scatter: vec![ScatterPoint::default()],
        map_cache: Some(MapCacheResult::default()),
        zone_log: Some(ZoneLogResult::default()),
        devirtualize: Some(DevirtualizeResult {
            each: vec![DevirtualizeRun::default()],
            ..DevirtualizeResult::default()
        }),
        ..common::bench_run("f2fs", "f2fs")
    };
    let handles = vec![HandleResult::default()];
    run.totals.ramp_s = 1.0;
    (run.totals.ramp_read_bytes, run.totals.ramp_written_bytes) = (4096, 4096);
    run.totals.drive.placement = Some(PlacementResult { handles, ..PlacementResult::default() });
    let results = Results {
        provenance: Some(Provenance::default()),
        options: Some(OptionsResult::default()),
        job: Some(JobSource::default()),
        ..Results::of("varmail".into(), 1.0, 1, vec![run])
    };
    Case {
        text: document("results-json.md"),
        results: serde_json::to_value(results).unwrap(),
        figures: figures_by_file_system()
            .flat_map(|(_, figures)| figures.written.iter().chain(figures.events))
            .map(|figure| figure.key)
            .collect(),
    }
}

/// Picks the figures of one kind.
type Kind = fn(Figures) -> &'static [Figure];

/// The figures of one kind, a table for each set of file systems that share them.
fn figure_tables(of: Kind) -> String {
    let mut tables: Vec<(Vec<&str>, &[Figure])> = Vec::new();
    for (name, figures) in figures_by_file_system() {
        match tables.iter_mut().find(|(_, known)| *known == of(figures)) {
            Some((names, _)) => names.push(name),
            None => tables.push((vec![name], of(figures))),
        }
    }
    let row = |f: &Figure| format!("| `{}` | {} | {} |\n", f.key, f.unit, f.about);
    let table = |(names, figures): (Vec<&str>, &[Figure])| {
        let rows: String = figures.iter().map(row).collect();
        format!("Of {}:\n\n| field | unit | meaning |\n|---|---|---|\n{rows}", names.join(" and "))
    };
    tables.into_iter().map(table).collect::<Vec<_>>().join("\n")
}

/// `text` with the tables of figures between their marks.
fn with_figures(text: &str) -> String {
    let kinds: [(&str, Kind); 2] =
        [("written", |figures| figures.written), ("events", |figures| figures.events)];
    kinds.iter().fold(text.to_string(), |text, (name, of)| {
        let start = format!("<!-- {name}: from the file systems' figures -->\n");
        let end = format!("<!-- end of {name} -->\n");
        let (before, rest) = text.split_once(&start).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        [before, &start, &figure_tables(*of), &end, after].concat()
    })
}

#[test]
fn the_figures_of_every_file_system_are_described() {
    let text = document("results-json.md");
    let whole = with_figures(&text);
    if std::env::var_os("DOVETAIL_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results-json.md");
        return fs::write(path, whole).unwrap();
    }
    assert!(text == whole, "run: DOVETAIL_BLESS=1 cargo test -p dovetail-lab --test all docs::");
}

#[test]
fn figures_of_one_key_have_one_title() {
    let figures = || figures_by_file_system().flat_map(|(_, f)| f.written.iter().chain(f.events));
    let same = |figure: &Figure| {
        figures().filter(|f| f.key == figure.key).all(|f| f.title == figure.title)
    };
    figures().for_each(|figure| assert!(same(figure), "{figure:?}"));
}

impl Case {
    fn written_fields(&self) -> BTreeSet<String> {
        let mut keys: BTreeSet<String> = self.figures.iter().map(ToString::to_string).collect();
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
            Value::Array(entries) => {
                entries.iter().for_each(|entry| Self::collect_keys(entry, keys));
            }
            _ => {}
        }
    }

    /// The fields in the first cells of the document's tables; some rows have several.
    fn described_fields(&self) -> BTreeSet<String> {
        let rows = self.text.lines().filter(|line| line.starts_with("| `"));
        let first = rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
        let fields = first.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        fields.map(str::to_string).collect()
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
        assert!(
            unknown.is_empty(),
            "the document describes {unknown:?}, which results do not have"
        );
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
