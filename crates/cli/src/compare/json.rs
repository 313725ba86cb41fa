//! A comparison as JSON.

use dovetail_lab::compare::{Compared, Sample};
use serde_json::{Value, json};

use super::Found;

/// The name of the format in the field `schema`, and its version.
const SCHEMA: &str = "dovetail-comparison";
const VERSION: u32 = 1;

/// The text of the JSON: every figure that was looked at, changed or not.
pub(super) fn text(found: &Found<'_>) -> String {
    let [a, b] = &found.names;
    let [only_a, only_b] = &found.only;
    let [unfinished_a, unfinished_b] = &found.unfinished;
    let value = json!({
        "schema": SCHEMA,
        "version": VERSION,
        "a": a,
        "b": b,
        "threshold_percent": found.threshold,
        "identical": found.is_same,
        "changed": found.is_changed(),
        "only_a": only_a,
        "only_b": only_b,
        "unfinished_a": unfinished_a,
        "unfinished_b": unfinished_b,
        "runs": found.both.iter().map(run).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn run(both: &Compared<'_>) -> Value {
    let side = |sample: Sample| {
        let Sample { mean, error, count } = sample;
        json!({ "mean": mean, "standard_error": error, "runs": count })
    };
    let figure = |(path, change): &(String, dovetail_lab::compare::Change)| {
        json!({
            "figure": path,
            "a": side(change.a),
            "b": side(change.b),
            "change_percent": change.percent,
            "spread_percent": change.spread_percent,
            "verdict": change.verdict.name(),
        })
    };
    let setup = |(path, a, b): &(String, String, String)| json!({ "field": path, "a": a, "b": b });
    let [notes_a, notes_b] = both.notes();
    json!({
        "a": both.a.name,
        "b": both.b.name,
        "error_a": both.a.error(),
        "error_b": both.b.error(),
        "notes_a": notes_a,
        "notes_b": notes_b,
        "setup": both.setup.iter().map(setup).collect::<Vec<_>>(),
        "figures": both.changes.iter().map(figure).collect::<Vec<_>>(),
    })
}
