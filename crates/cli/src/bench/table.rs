//! The table of a bench.

use dovetail_lab::bench::results::BenchRun;
use dovetail_lab::bench::{event_figures, written_figures};
use dovetail_time::{SimSpan, format_bytes, format_count};

use crate::table::{Layout, MapOnFlash, Row, counted, latency, row, some};

/// The table of `dovetail bench`.
pub(crate) const LAYOUT: Layout<BenchRun> = Layout { label: |run| &run.label, groups: &GROUPS };

const GROUPS: [&[Row<BenchRun>]; 8] = [
    &[
        row("elapsed", |r| Some(SimSpan::from_ns((r.totals.elapsed_s * 1e9) as u64).to_string())),
        row("calls/s", |r| Some(format_count(r.totals.calls_per_s.round() as u64))),
        row("read", |r| (r.totals.read_bytes > 0).then(|| format_bytes(r.totals.read_bytes))),
        row("read MB/s", |r| (r.totals.read_bytes > 0).then(|| format!("{:.1}", r.totals.read_mb_per_s))),
        row("written", |r| (r.totals.written_bytes > 0).then(|| format_bytes(r.totals.written_bytes))),
        row("write MB/s", |r| {
            (r.totals.written_bytes > 0).then(|| format!("{:.1}", r.totals.write_mb_per_s))
        }),
    ],
    &[
        row("read p50 / p99 / p99.9", |r| latency(&r.latency.read)),
        row("write p50 / p99 / p99.9", |r| latency(&r.latency.write)),
        row("sync p50 / p99 / p99.9", |r| latency(&r.latency.flush)),
    ],
    &[
        row("file system's write amplification", |r| r.totals.fs_waf.map(|waf| format!("{waf:.3}"))),
        Row::Figures { indent: "  ", of: written_figures, counts: |r| &r.written },
        row("drive's write amplification", |r| r.totals.device_waf.map(|waf| format!("{waf:.3}"))),
        row("together", |r| r.totals.total_waf.map(|waf| format!("{waf:.3}"))),
    ],
    &[Row::Figures { indent: "", of: event_figures, counts: |r| &r.events }],
    &[
        row("reads from the drive", |r| {
            requests(r.requests.by_kind.read.count, r.requests.by_kind.read.mean_kib)
        }),
        row("writes to the drive", |r| {
            requests(r.requests.by_kind.write.count, r.requests.by_kind.write.mean_kib)
        }),
        row("flushes (for several threads)", |r| {
            let flushes = r.requests.by_kind.flush.count;
            (flushes > 0)
                .then(|| format!("{} ({})", format_count(flushes), format_count(r.requests.merged_flushes)))
        }),
        row("discards", |r| counted(r.requests.by_kind.discard.count, r.requests.by_kind.discard.bytes)),
        row("remaps", |r| {
            let remap = &r.requests.remap;
            let pairs = || format_count(remap.pairs);
            (remap.count > 0).then(|| format!("{} of {} pairs in all", format_count(remap.count), pairs()))
        }),
        row("pieces a file", |r| {
            let f = &r.fragmentation;
            (f.files > 0)
                .then(|| format!("{:.1} of {:.1} KiB", f.pieces as f64 / f.files as f64, f.mean_piece_kib))
        }),
    ],
    BenchRun::ROWS,
    &[
        row("runs of the tool", |r| {
            let tool = r.devirtualize.as_ref()?;
            let mean = tool.total.time_s / tool.count.max(1) as f64;
            let each = SimSpan::from_ns((mean * 1e9) as u64);
            Some(format!("{} of {each}", format_count(tool.count)))
        }),
        row("blocks renamed", |r| {
            let total = &r.devirtualize.as_ref()?.total;
            Some(format_count(total.content_blocks + total.metadata_blocks))
        }),
        row("calls that waited for it", |r| {
            let total = &r.devirtualize.as_ref()?.total;
            let time = SimSpan::from_ns((total.stalled_s * 1e9) as u64);
            Some(format!("{} for {time} in all", format_count(total.stalled_calls)))
        }),
        row("mean of the map", |r| {
            let maps = r.devirtualize.as_ref().map(|_| &r.series.map_bytes)?;
            let count = u64::try_from(maps.len()).ok().filter(|count| *count > 0)?;
            Some(format_bytes(maps.iter().sum::<u64>() / count))
        }),
    ],
    &[
        row("drive's lines cleaned", |r| some(r.totals.gc_runs)),
        row("drive's pages moved", |r| some(r.programs.gc)),
        row("erases", |r| some(r.totals.erases)),
        row("mapping memory", |r| Some(format_bytes(r.memory.map_bytes))),
        row("CPU time in the model", |r| Some(SimSpan::from_ns((r.totals.cpu_s * 1e9) as u64).to_string())),
        row("ended early", |r| r.error.as_ref().map(|_| "yes".into())),
    ],
];

fn requests(count: u64, mean_kib: f64) -> Option<String> {
    (count > 0).then(|| format!("{} of {mean_kib:.1} KiB", format_count(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_of_a_file_system_has_its_line() {
        for (name, figures) in dovetail_lab::bench::figures_by_file_system() {
            let mut run = BenchRun::default();
            run.stack.filesystem = name.into();
            let mut next = 1_000;
            let mut count = |figure: &dovetail_vfs::Figure| {
                next += 1;
                (figure.key.to_string(), next)
            };
            run.written = figures.written.iter().map(&mut count).collect();
            run.events = figures.events.iter().map(&mut count).collect();
            let text = LAYOUT.text(&[run], None);
            for (figure, count) in figures.written.iter().chain(figures.events).zip(1_001..) {
                let line = text.lines().find(|line| line.ends_with(&format_count(count)));
                let title = line.and_then(|line| line.trim_start().strip_prefix(figure.title));
                assert!(title.is_some(), "{name}: no line {:?} in\n{text}", figure.title);
            }
        }
    }
}
