//! Results side by side in a terminal.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use dovetail_lab::results::{LatencyResult, RunResult};
use dovetail_time::{SimSpan, format_bytes, format_count};

/// One line of the table; `show` gives `None` where a run has no such figure.
struct Row {
    name: &'static str,
    show: fn(&RunResult) -> Option<String>,
}

const fn row(name: &'static str, show: fn(&RunResult) -> Option<String>) -> Row {
    Row { name, show }
}

/// The lines, in groups set apart by an empty one. A line that no run has a figure for is left out.
const GROUPS: [&[Row]; 6] = [
    &[
        row("reads", |r| counted(r.trace.requests.read, r.trace.bytes.read)),
        row("writes", |r| counted(r.trace.requests.write, r.trace.bytes.write)),
        row("discards", |r| counted(r.trace.requests.discard, r.trace.bytes.discard)),
        row("flushes", |r| some(r.trace.requests.flush)),
        row("read, but never written", |r| {
            (r.totals.empty_read_blocks > 0)
                .then(|| format!("{} blocks", format_count(r.totals.empty_read_blocks)))
        }),
        row("preconditioned to WAF", |r| {
            r.precondition
                .as_ref()
                .map(|p| format!("{:.3}{}", p.waf, if p.steady { "" } else { ", not steady" }))
        }),
        row("folded into the drive", |r| some(r.trace.wrapped)),
        row("lines skipped", |r| some(r.trace.skipped_lines)),
    ],
    &[
        row("elapsed", |r| Some(SimSpan::from_ns((r.totals.elapsed_s * 1e9) as u64).to_string())),
        row("IOPS", |r| Some(format_count(r.totals.iops.round() as u64))),
        row("read MB/s", |r| (r.trace.requests.read > 0).then(|| format!("{:.1}", r.totals.read_mb_per_s))),
        row("write MB/s", |r| {
            (r.trace.requests.write > 0).then(|| format!("{:.1}", r.totals.write_mb_per_s))
        }),
        row("in flight, mean (max)", |r| {
            Some(format!("{:.1} ({})", r.totals.queue_depth_mean, r.totals.queue_depth_max))
        }),
    ],
    &[
        row("read p50 / p99 / p99.9", |r| latency(&r.latency.read)),
        row("write p50 / p99 / p99.9", |r| latency(&r.latency.write)),
        row("flush p50 / p99 / p99.9", |r| latency(&r.latency.flush)),
        row("discard p50 / p99 / p99.9", |r| latency(&r.latency.discard)),
    ],
    &[
        row("write amplification", |r| r.totals.waf.map(|waf| format!("{waf:.3}"))),
        row("  pages for the host", |r| some(r.totals.programs.host)),
        row("  moved by cleaning", |r| some(r.totals.programs.gc)),
        row("  moved by wear levelling", |r| some(r.totals.programs.wear)),
        row("  moved off bad blocks", |r| some(r.totals.programs.retire)),
        row("  journal of discards", |r| some(r.totals.programs.journal)),
        row("  reads to merge", |r| some(r.totals.flash_reads.merge)),
        row("lines cleaned (stalls)", |r| {
            (r.totals.gc_runs > 0)
                .then(|| format!("{} ({})", format_count(r.totals.gc_runs), format_count(r.totals.gc_stalls)))
        }),
        row("blocks lost", |r| some(r.totals.lost_blocks)),
    ],
    &[
        row("erases", |r| some(r.totals.erases)),
        row("wear since new, min / mean / max", |r| {
            let w = &r.wear;
            (w.erases_max > 0).then(|| format!("{} / {:.1} / {}", w.erases_min, w.erases_mean, w.erases_max))
        }),
        row("bad blocks", |r| some(r.wear.bad_blocks.into())),
        row("dies busy", |r| {
            let busy: f64 = r.dies.iter().map(|die| die.busy).sum::<f64>() / r.dies.len().max(1) as f64;
            Some(format!("{:.1} %", busy * 100.0))
        }),
    ],
    &[
        row("mapping memory", |r| Some(format_bytes(r.memory.map_bytes_max))),
        row("other drive memory", |r| Some(format_bytes(r.memory.other_bytes))),
    ],
];

fn some(n: u64) -> Option<String> {
    (n > 0).then(|| format_count(n))
}

fn counted(requests: u64, bytes: u64) -> Option<String> {
    (requests > 0).then(|| format!("{} ({})", format_count(requests), format_bytes(bytes)))
}

fn latency(latency: &LatencyResult) -> Option<String> {
    let p = latency.percentiles;
    let span = SimSpan::from_ns;
    (p.count > 0).then(|| format!("{} / {} / {}", span(p.p50_ns), span(p.p99_ns), span(p.p999_ns)))
}

/// The runs as columns, as many beside each other as fit into `width` (all, if it is not known).
pub(crate) fn text(runs: &[RunResult], width: Option<usize>) -> String {
    let mut out = String::new();
    let mut rest = runs;
    while !rest.is_empty() {
        let fits = |count: &usize| {
            let widest = columns(&rest[..*count]).lines().map(|line| line.chars().count()).max();
            width.is_none_or(|width| widest.is_none_or(|widest| widest <= width))
        };
        let count = (1..=rest.len()).rev().find(fits).unwrap_or(1);
        if !out.is_empty() {
            out.push('\n');
        }
        out += &columns(&rest[..count]);
        rest = &rest[count..];
    }
    out
}

fn columns(runs: &[RunResult]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let labels = runs.iter().map(|run| run.label.clone());
    table.set_header(std::iter::once(String::new()).chain(labels));
    for (i, group) in GROUPS.iter().enumerate() {
        let rows: Vec<_> = group.iter().filter_map(|row| cells(row, runs)).collect();
        if i > 0 && !rows.is_empty() {
            table.add_row([""]);
        }
        table.add_rows(rows);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let trimmed: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
    trimmed.join("\n") + "\n"
}

/// The name of a row and its figures; `None` when no run has one.
fn cells(row: &Row, runs: &[RunResult]) -> Option<Vec<String>> {
    let figures: Vec<_> = runs.iter().map(row.show).collect();
    figures.iter().any(Option::is_some).then(|| {
        let shown = figures.into_iter().map(|figure| figure.unwrap_or_else(|| "-".into()));
        std::iter::once(row.name.to_string()).chain(shown).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_do_not_fit_beside_each_other_come_below() {
        let run = |label: &str| RunResult { label: label.into(), ..RunResult::default() };
        let runs = [run("first"), run("second"), run("third")];
        let first_line = |width| text(&runs, width).lines().next().unwrap_or_default().to_string();
        assert!(["first", "second", "third"].iter().all(|label| first_line(None).contains(label)));
        let narrow = text(&runs, Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(!first_line(Some(40)).contains("third") && narrow.contains("third"), "{narrow}");
        assert!(text(&runs, Some(3)).contains("third"), "too narrow for anything: one below the other");
    }
}
