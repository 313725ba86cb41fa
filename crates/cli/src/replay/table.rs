//! The table of a replay.

use dovetail_lab::results::RunResult;
use dovetail_time::{SimSpan, format_bytes, format_count};

use crate::table::{Layout, MapOnFlash, Row, counted, latency, row, some};

/// The table of `dovetail replay`.
pub(crate) const LAYOUT: Layout<RunResult> = Layout { label: |run| &run.label, groups: &GROUPS };

const GROUPS: [&[Row<RunResult>]; 7] = [
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
        row("  translation pages", |r| some(r.totals.programs.translation)),
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
    RunResult::ROWS,
    &[
        row("mapping memory", |r| Some(format_bytes(r.memory.map_bytes_max))),
        row("other drive memory", |r| Some(format_bytes(r.memory.other_bytes))),
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_do_not_fit_beside_each_other_come_below() {
        let run = |label: &str| RunResult { label: label.into(), ..RunResult::default() };
        let runs = [run("first"), run("second"), run("third")];
        let first_line = |width| LAYOUT.text(&runs, width).lines().next().unwrap_or_default().to_string();
        assert!(["first", "second", "third"].iter().all(|label| first_line(None).contains(label)));
        let narrow = LAYOUT.text(&runs, Some(40));
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(!first_line(Some(40)).contains("third") && narrow.contains("third"), "{narrow}");
        assert!(
            LAYOUT.text(&runs, Some(3)).contains("third"),
            "too narrow for anything: one below the other"
        );
    }
}
