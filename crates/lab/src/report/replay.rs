//! The report of a replay: traces on drives.

mod setup;
mod summary;

use super::page::{Page, counted, names};
use super::table::Column;
use crate::results::{Results, RunResult};

/// The charts.
pub(super) const JS: &str = include_str!("../../assets/replay.js");

const TERMS: &str = "Times are those of the simulated drive. WAF, write amplification: bytes programmed over bytes written by the host. MB: 10<sup>6</sup> bytes; KiB, MiB, GiB: powers of 1,024 bytes.";

impl Column for RunResult {
    fn label(&self) -> &str {
        &self.label
    }
}

/// The report on `results` as one HTML page.
///
/// It can be opened from disk and needs no network. The same results give the same bytes.
pub fn html(results: &Results) -> String {
    let page = Page {
        title: title(results),
        heading: "Dovetail replay",
        lede: lede(results),
        summary: summary::table(&results.runs),
        setup: setup::table(&results.runs),
        terms: TERMS,
        charts: JS,
    };
    page.html(results)
}

fn title(results: &Results) -> String {
    format!("Dovetail replay of {}", names(&results.runs, "trace", |run| &run.trace.name))
}

/// What was run, in one sentence.
fn lede(results: &Results) -> String {
    let traces = names(&results.runs, "trace", |run| &run.trace.name);
    let drives = names(&results.runs, "drive", |run| &run.drive.profile);
    format!("{}: {traces} on {drives}. Seed {}.", counted(results.runs.len(), "run"), results.seed)
}
