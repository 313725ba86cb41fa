//! The table of what was run: the stack, the trace and the drive of each run. What all runs share
//! stands once.

use dovetail_lab::results::{PreconditionResult, ReplayResult, RunResult, TraceResult};

use super::format::{bytes, count, duration_ns, significant};
use super::listing::{Listing, Row, row};

const ROWS: &[Row<RunResult>] = &[
    row("Trace", |run| of_trace(run, |trace| trace.name.clone())),
    row("Format", |run| of_trace(run, |trace| trace.format.clone())),
    row("Recorded span", |run| of_trace(run, |trace| duration_ns(trace.span_s * 1e9))),
    row("Changes to the trace", |run| of_trace(run, changes)),
    row("Replay", |run| run.replay.as_ref().map(replay)),
    row("Stack", |run| of_stack(run, |run| run.stack.name.clone())),
    row("File system", |run| of_stack(run, |run| run.stack.filesystem.clone())),
    row("Mount options", |run| of_stack(run, |run| or_none(&run.stack.mount))),
    row("Partition", |run| of_stack(run, |run| bytes(run.stack.partition_bytes))),
    row("Page cache", |run| of_stack(run, |run| bytes(run.stack.memory_bytes))),
    row("Seed", |run| Some(run.seed.to_string())),
    row("Drive", |run| Some(run.drive.profile.clone())),
    row("Capacity", |run| Some(bytes(run.drive.capacity_bytes))),
    row("Flash", |run| Some(bytes(run.drive.raw_bytes))),
    row("Over-provisioning", |run| {
        Some(format!("{} %", significant(run.drive.over_provisioning_percent)))
    }),
    row("Channels, dies", |run| {
        Some(pair(count(run.drive.channels.into()), count(run.drive.dies.into())))
    }),
    row("Page, block", |run| {
        Some(pair(bytes(run.drive.page_bytes.into()), bytes(run.drive.block_bytes)))
    }),
    row("Lines", |run| {
        Some(format!("{} of {}", count(run.drive.lines.into()), bytes(run.drive.line_bytes)))
    }),
    row("Mapping", |run| Some(run.drive.map.clone())),
    row("Cleaning", |run| Some(run.drive.gc.clone())),
    row("Write streams", |run| Some(run.drive.streams.to_string())),
    row("Write buffer", |run| Some(bytes(run.drive.buffer_bytes))),
    row("At their floors", floors),
    row("Preconditioning", |run| run.precondition.as_ref().map(precondition)),
    row("Endurance", |run| Some(format!("{} erases", count(run.wear.endurance.into())))),
    row("Bad blocks at the end", |run| Some(count(run.wear.bad_blocks.into()))),
];

/// Figures that the scale has put at their floors.
fn floors(run: &RunResult) -> Option<String> {
    let floors: Vec<String> = run.floors.iter().map(ToString::to_string).collect();
    (!floors.is_empty()).then(|| floors.join("; "))
}

fn of_trace(run: &RunResult, text: fn(&TraceResult) -> String) -> Option<String> {
    run.trace.as_ref().map(text)
}

/// Of a stack with a file system.
fn of_stack(run: &RunResult, text: fn(&RunResult) -> String) -> Option<String> {
    run.trace.is_none().then(|| text(run))
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".into() } else { text.into() }
}

fn pair(first: String, second: String) -> String {
    format!("{first}, {second}")
}

fn changes(trace: &TraceResult) -> String {
    let changes = [
        (trace.skipped_lines, "lines left out"),
        (trace.reordered, "put in order"),
        (trace.wrapped, "folded into the drive"),
        (trace.partial_blocks, "reads to complete blocks"),
    ];
    let made = changes.iter().filter(|(n, _)| *n > 0);
    let made: Vec<String> = made.map(|(n, what)| format!("{} {what}", count(*n))).collect();
    or_none(&made.join(", "))
}

fn replay(replay: &ReplayResult) -> String {
    match (replay.speed, replay.queue_depth) {
        (Some(speed), _) => {
            format!("{}, {} times the recorded speed", replay.mode, significant(speed))
        }
        (None, Some(depth)) => format!("{}, {depth} in flight", replay.mode),
        (None, None) => replay.mode.clone(),
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
pub(crate) fn table(runs: &[RunResult]) -> String {
    Listing::of(runs).rows(ROWS).html("Setup")
}

#[cfg(test)]
mod tests {
    use dovetail_lab::results::FloorResult;

    use super::*;

    #[test]
    fn changes_name_only_what_was_changed() {
        let mut trace = TraceResult::default();
        assert_eq!(changes(&trace), "none");
        trace.reordered = 1200;
        assert_eq!(changes(&trace), "1,200 put in order");
    }

    #[test]
    fn figures_at_their_floors_are_named() {
        let floor = FloorResult { what: "flash.pages_per_block".into(), ..FloorResult::default() };
        let floored = RunResult { floors: vec![floor], ..RunResult::default() };
        assert!(!table(&[RunResult::default()]).contains("floor"));
        assert!(table(&[floored]).contains("flash.pages_per_block is at its floor"));
    }

    #[test]
    fn a_row_that_no_run_has_is_left_out() {
        assert!(!table(&[RunResult::default()]).contains("Recorded span"));
        let replayed = RunResult { trace: Some(TraceResult::default()), ..RunResult::default() };
        assert!(table(&[replayed]).contains("Recorded span"));
    }
}
