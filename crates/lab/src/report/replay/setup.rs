//! The table of what was run: the trace, the drive and the options of each run. What all runs share stands once.

use super::super::drive;
use super::super::format::{bytes, count, duration_ns, significant};
use super::super::listing::{Listing, Row, row};
use crate::results::{PreconditionResult, RunResult};

const ROWS: &[Row<RunResult>] = &[
    row("Trace", |run| run.trace.name.clone()),
    row("Format", |run| run.trace.format.clone()),
    row("Recorded span", |run| duration_ns(run.trace.span_s * 1e9)),
    row("Changes to the trace", changes),
    row("Replay", replay),
    row("Seed", |run| run.replay.seed.to_string()),
];

const AFTER_THE_DRIVE: &[Row<RunResult>] = &[
    row("Preconditioning", |run| run.precondition.as_ref().map_or_else(|| "none".into(), precondition)),
    row("Endurance", |run| format!("{} erases", count(run.wear.endurance.into()))),
    row("Bad blocks at the end", |run| count(run.wear.bad_blocks.into())),
];

fn changes(run: &RunResult) -> String {
    let trace = &run.trace;
    let changes = [
        (trace.skipped_lines, "lines left out"),
        (trace.reordered, "put in order"),
        (trace.wrapped, "folded into the drive"),
        (trace.partial_blocks, "reads to complete blocks"),
    ];
    let made: Vec<String> =
        changes.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))).collect();
    if made.is_empty() { "none".into() } else { made.join(", ") }
}

fn replay(run: &RunResult) -> String {
    match (run.replay.speed, run.replay.queue_depth) {
        (Some(speed), _) => format!("{}, {} times the recorded speed", run.replay.mode, significant(speed)),
        (None, Some(depth)) => format!("{}, {depth} in flight", run.replay.mode),
        (None, None) => run.replay.mode.clone(),
    }
}

fn precondition(done: &PreconditionResult) -> String {
    format!(
        "{} in order, {} at random; WAF {}, {}",
        bytes(done.sequential_bytes),
        bytes(done.random_bytes),
        significant(done.waf),
        if done.steady { "steady" } else { "not yet steady" }
    )
}

/// The setup of all runs.
pub(super) fn table(runs: &[RunResult]) -> String {
    let listing = Listing::of(runs).rows(ROWS, |run| run).rows(drive::ROWS, |run| &run.drive);
    listing.rows(AFTER_THE_DRIVE, |run| run).html("Setup")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_name_only_what_was_changed() {
        let mut run = RunResult::default();
        assert_eq!(changes(&run), "none");
        run.trace.reordered = 1200;
        assert_eq!(changes(&run), "1,200 put in order");
    }
}
