//! The table of what was run: the trace, the drive and the options of each run. What all runs share stands once.

use super::format::{bytes, count, escape, significant};
use super::scrolling_table;
use crate::results::{PreconditionResult, RunResult};

struct Row {
    name: &'static str,
    text: fn(&RunResult) -> String,
}

const fn row(name: &'static str, text: fn(&RunResult) -> String) -> Row {
    Row { name, text }
}

const ROWS: &[Row] = &[
    row("Trace", |run| run.trace.name.clone()),
    row("Format", |run| run.trace.format.clone()),
    row("Recorded span", |run| super::format::duration_ns(run.trace.span_s * 1e9)),
    row("Changes to the trace", changes),
    row("Replay", replay),
    row("Seed", |run| run.replay.seed.to_string()),
    row("Drive", |run| run.drive.profile.clone()),
    row("Capacity", |run| bytes(run.drive.capacity_bytes)),
    row("Flash", |run| bytes(run.drive.raw_bytes)),
    row("Over-provisioning", |run| format!("{} %", significant(run.drive.over_provisioning_percent))),
    row("Channels, dies", |run| {
        format!("{}, {}", count(run.drive.channels.into()), count(run.drive.dies.into()))
    }),
    row("Page, block", |run| {
        format!("{}, {}", bytes(run.drive.page_bytes.into()), bytes(run.drive.block_bytes))
    }),
    row("Lines", |run| format!("{} of {}", count(run.drive.lines.into()), bytes(run.drive.line_bytes))),
    row("Mapping", |run| run.drive.map.clone()),
    row("Cleaning", |run| run.drive.gc.clone()),
    row("Write streams", |run| run.drive.streams.to_string()),
    row("Write buffer", |run| bytes(run.drive.buffer_bytes)),
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
    if runs.is_empty() {
        return "<p>There are no runs.</p>".into();
    }
    let rows: String = ROWS.iter().map(|row| row_html(row, runs)).collect();
    scrolling_table("Setup", runs, &format!("<tbody>\n{rows}</tbody>\n"))
}

fn row_html(row: &Row, runs: &[RunResult]) -> String {
    let texts: Vec<String> = runs.iter().map(|run| escape(&(row.text)(run))).collect();
    let same = texts.len() > 1 && texts.windows(2).all(|pair| pair[0] == pair[1]);
    let cells = if same {
        format!("<td class=\"same\" colspan=\"{}\">{}</td>", texts.len(), texts[0])
    } else {
        texts.iter().map(|text| format!("<td>{text}</td>")).collect()
    };
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_runs_share_stands_once() {
        let runs = ["a", "a"].map(|name| {
            let mut run = RunResult::default();
            run.trace.name = name.into();
            run
        });
        assert!(table(&runs).contains("<td class=\"same\" colspan=\"2\">a</td>"));
    }

    #[test]
    fn changes_name_only_what_was_changed() {
        let mut run = RunResult::default();
        assert_eq!(changes(&run), "none");
        run.trace.reordered = 1200;
        assert_eq!(changes(&run), "1,200 put in order");
    }
}
