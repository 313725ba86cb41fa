//! Three sentences on results: who wins, why, and where the time went. Pure functions of the
//! figures; the texts are plain, to be escaped by who puts them into a page.

mod lead;
mod side;
mod time;
mod writes;

use dovetail_lab::results::{Results, RunResult};

use side::{Side, is_paced, is_same_work};

/// Three sentences on the runs that came to their end; those that ended early are counted.
pub fn sentences(results: &Results) -> Vec<String> {
    let whole: Vec<&RunResult> = results.runs.iter().filter(|run| run.error.is_none()).collect();
    let early = results.runs.len() - whole.len();
    if whole.iter().any(|run| !is_same_work(run, whole[0])) {
        return of_different_traces(&whole);
    }
    let is_paced = whole.iter().any(|run| is_paced(run));
    let (sides, mut lead) = lead::ranked(Side::of(&whole), is_paced);
    if early > 0 && !sides.is_empty() {
        lead += &format!(
            " ({early} ended early and {} left out.)",
            if early == 1 { "is" } else { "are" }
        );
    }
    vec![lead, writes::sentence(&sides, &whole), time::sentence(&sides, is_paced)]
}

/// Nobody wins where each has other work; the writes and the time of each trace's first run.
fn of_different_traces(runs: &[&RunResult]) -> Vec<String> {
    let mut sides: Vec<Side> = Side::of(runs);
    sides.sort_by(|a, b| {
        let waf = |side: &Side| side.programmed / side.reached.max(1.0);
        waf(a).total_cmp(&waf(b))
    });
    let lead = "The runs replay different traces, so none of them wins; the first and the last below \
                are those with the least and the most write amplification.";
    vec![
        lead.into(),
        writes::sentence(&sides, runs),
        time::sentence(&sides, runs.iter().any(|run| is_paced(run))),
    ]
}

/// A ratio as `1.4 times`.
fn times(ratio: f64) -> String {
    format!("{} times", crate::format::significant(ratio))
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).into(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests;
