//! The report of a bench or a replay.

use dovetail_lab::bench::{event_figures, written_figures};
use dovetail_lab::results::{Results, RunResult};
use dovetail_vfs::Figure;

use super::format::{capitalized, escape, significant};
use super::page::{Page, Section, counted, names};
use super::sentences::sentences;
use super::table::Column;
use super::{provenance, setup, summary};

/// The charts.
pub(crate) const JS: &str = include_str!("../assets/charts.js");

const TERMS: &str = "Times are those of the simulated host and drive. WAF, write amplification: of the file system, blocks that it wrote over blocks that the workload wrote; of the drive, bytes programmed over bytes that reached the drive; in all, bytes programmed over bytes that the workload wrote. A block has 4 KiB. Call: a system call that reads, writes, syncs or punches holes, or a request of a trace. Sync: fsync and its like, or a flush of a trace. MB: 10<sup>6</sup> bytes; KiB, MiB, GiB: powers of 1,024 bytes.";

impl Column for RunResult {
    fn label(&self) -> &str {
        if self.label.is_empty() { &self.stack.name } else { &self.label }
    }
}

/// The report on `results` as one HTML page.
///
/// It can be opened from disk and needs no network. The same results give the same bytes.
pub fn html(results: &Results) -> String {
    let heading = if is_replay(results) { "Dovetail replay" } else { "Dovetail bench" };
    let page = Page {
        title: format!("{heading} of {}", escape(&results.workload)),
        heading,
        lede: lede(results),
        sentences: if results.runs.is_empty() { Vec::new() } else { sentences(results) },
        sections: Section::summary_and_setup(
            summary::table(&results.runs),
            setup::table(&results.runs),
        ),
        provenance: provenance::section(results),
        terms: TERMS,
        charts: &format!("{}{JS}", figure_titles(&results.runs)),
    };
    page.html(results)
}

fn is_replay(results: &Results) -> bool {
    results.runs.iter().any(|run| run.trace.is_some())
}

/// The line of the script that names the figures of the runs' file systems, in the order of their
/// causes and events.
fn figure_titles(runs: &[RunResult]) -> String {
    let titles = |figures: Vec<&'static Figure>| -> serde_json::Map<String, serde_json::Value> {
        figures
            .into_iter()
            .map(|figure| (figure.key.into(), capitalized(figure.title).into()))
            .collect()
    };
    let (written, events) = (titles(written_figures(runs)), titles(event_figures(runs)));
    format!("const FIGURES = {};\n", serde_json::json!({ "written": written, "events": events }))
}

/// Introduction: the runs in one sentence, and in a second one those that ended early.
fn lede(results: &Results) -> String {
    let runs = counted(results.runs.len(), "run");
    let what = if is_replay(results) { "drive" } else { "stack" };
    let stacks = names(&results.runs, what, |run| &run.stack.name);
    let drives = match is_replay(results) {
        true => String::new(),
        false => format!(" with {}", names(&results.runs, "drive", |run| &run.drive.profile)),
    };
    let failed = results.runs.iter().filter(|run| run.error.is_some()).count();
    let early = match failed {
        0 => String::new(),
        _ => format!(
            " <strong>{} ended early</strong>; the summary says why.",
            counted(failed, "run")
        ),
    };
    format!(
        "{runs}: {} on {stacks}{drives}, {}, seed {}.{early}",
        escape(&results.workload),
        scale(results.scale),
        results.seed
    )
}

/// The scale as a fraction where it is one.
pub(crate) fn scale(scale: f64) -> String {
    match 1.0 / scale {
        _ if scale == 1.0 => "full scale".into(),
        inverse if inverse > 1.0 && inverse.fract() == 0.0 => format!("scale 1/{inverse}"),
        _ => format!("scale {}", significant(scale)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_fractions_where_they_can_be() {
        let shown = [1.0, 1.0 / 16.0, 0.3, 2.0].map(scale);
        assert_eq!(shown, ["full scale", "scale 1/16", "scale 0.300", "scale 2.00"]);
    }
}
