//! `dovetail reproduce --report`: figures as the page of the report takes them.

use dovetail_papers::{Comparison, Figure, Reproduction, Verdict};
use dovetail_report::{Reproduced, Statement};

/// The verdict in a word, as in JSON.
pub(super) fn verdict(comparison: &Comparison) -> &'static str {
    match comparison.verdict() {
        Verdict::Agrees => "agrees",
        Verdict::Differs => "differs",
        Verdict::Shown => "shown",
    }
}

/// A figure with its statements and what can be drawn of them.
pub(crate) fn of<'a>(figure: &'a Figure, reproduction: &'a Reproduction) -> Reproduced<'a> {
    Reproduced {
        name: figure.name,
        title: figure.title,
        source: figure.source,
        setup: figure.setup,
        statements: reproduction.comparisons.iter().map(statement).collect(),
        results: &reproduction.results,
    }
}

fn statement(comparison: &Comparison) -> Statement {
    let drawn = comparison.drawn();
    Statement {
        what: comparison.what.clone(),
        paper: comparison.paper.clone(),
        ours: comparison.ours.clone(),
        rule: comparison.rule.clone(),
        verdict: verdict(comparison),
        paper_span: drawn.as_ref().and_then(|drawn| drawn.paper),
        unit: drawn.as_ref().map(|drawn| drawn.unit.clone()).unwrap_or_default(),
        values: drawn.map(|drawn| drawn.ours).unwrap_or_default(),
    }
}
