//! The table of `dovetail bench` and `dovetail replay`.

use dovetail_lab::bench::{event_figures, written_figures};
use dovetail_lab::results::{
    FragmentationResult, LatencyResult, LifetimeResult, MapCacheResult, RunResult, TraceResult,
};
use dovetail_time::{SimSpan, format_bytes, format_count};

use crate::table::{Layout, Row, paragraph, row, some};

/// All lines; those of figures that no run has are not shown.
pub(super) const LAYOUT: Layout<RunResult> = Layout { label: |run| &run.label, groups: &GROUPS };

const GROUPS: [&[Row<RunResult>]; 13] = [
    TRACE,
    THROUGHPUT,
    LATENCIES,
    JOBS,
    FILE_SYSTEM,
    EVENTS,
    REQUESTS,
    MAP_ON_FLASH,
    DEVIRTUALIZER,
    RESTART,
    FLASH,
    LIFETIME,
    RESOURCES,
];

const TRACE: &[Row<RunResult>] = &[
    row("reads of the trace", |r| of_trace(r, |t| counted(t.requests.read, t.bytes.read))),
    row("writes of the trace", |r| of_trace(r, |t| counted(t.requests.write, t.bytes.write))),
    row("discards of the trace", |r| of_trace(r, |t| counted(t.requests.discard, t.bytes.discard))),
    row("flushes of the trace", |r| of_trace(r, |t| some(t.requests.flush))),
    row("read, but never written", |r| {
        let empty = some(r.totals.drive.empty_read_blocks).filter(|_| r.stack.is_raw());
        empty.map(|blocks| format!("{blocks} blocks"))
    }),
    row("preconditioned to WAF", |r| {
        let done = r.precondition.as_ref()?;
        Some(format!("{:.3}{}", done.waf, if done.steady { "" } else { ", not steady" }))
    }),
    row("folded into the drive", |r| of_trace(r, |t| some(t.wrapped))),
    row("put in order", |r| of_trace(r, |t| some(t.reordered))),
    row("lines skipped", |r| of_trace(r, |t| some(t.skipped_lines))),
];

const THROUGHPUT: &[Row<RunResult>] = &[
    row("elapsed", |r| seconds(r.totals.elapsed_s)),
    row("  of which ramps, not counted", |r| {
        seconds(r.totals.ramp_s).filter(|_| r.totals.ramp_s > 0.0)
    }),
    row("calls/s", |r| {
        (!r.stack.is_raw() && r.totals.calls > 0).then(|| rate(r.totals.calls_per_s))
    }),
    row("IOPS", |r| r.stack.is_raw().then(|| super::jobs::iops_of_run(r).map(rate))?),
    row("read", |r| bytes(r.totals.read_bytes)),
    row("read MB/s", |r| mb_per_s(r.totals.read_bytes, r.totals.read_mb_per_s)),
    row("written", |r| bytes(r.totals.written_bytes)),
    row("write MB/s", |r| mb_per_s(r.totals.written_bytes, r.totals.write_mb_per_s)),
    row("in flight, mean (max)", |r| {
        let (mean, max) = (r.totals.queue_depth_mean, r.totals.queue_depth_max);
        (max > 0).then(|| format!("{mean:.1} ({max})"))
    }),
];

const LATENCIES: &[Row<RunResult>] = &[
    row("read p50 / p99 / p99.9", |r| latency(&r.latency.read)),
    row("write p50 / p99 / p99.9", |r| latency(&r.latency.write)),
    row("sync p50 / p99 / p99.9", |r| (!r.stack.is_raw()).then(|| latency(&r.latency.flush))?),
    row("flush p50 / p99 / p99.9", |r| r.stack.is_raw().then(|| latency(&r.latency.flush))?),
    row("discard p50 / p99 / p99.9", |r| latency(&r.latency.discard)),
];

const JOBS: &[Row<RunResult>] = &[Row::Many(super::jobs::lines)];

const FILE_SYSTEM: &[Row<RunResult>] = &[
    row("file system's write amplification", |r| waf(r.totals.fs_waf)),
    Row::Figures { indent: "  ", of: written_figures, counts: |r| &r.written },
    row("host log's write amplification", |r| waf(r.zone_log.as_ref()?.waf)),
    row("  blocks moved by its cleaning", |r| some(r.zone_log.as_ref()?.moved_blocks)),
    row("  zones reset by it (stalls)", |r| {
        let log = r.zone_log.as_ref()?;
        Some(format!("{} ({})", format_count(log.resets), format_count(log.stalls)))
    }),
    row("  host memory of its map", |r| bytes(r.zone_log.as_ref()?.map_bytes)),
    row("drive's write amplification", |r| waf(r.totals.device_waf)),
    row("together", |r| waf(r.totals.total_waf)),
];

const EVENTS: &[Row<RunResult>] =
    &[Row::Figures { indent: "", of: event_figures, counts: |r| &r.events }];

const REQUESTS: &[Row<RunResult>] = &[
    row("reads from the drive", |r| {
        requests(r.requests.by_kind.read.count, r.requests.by_kind.read.mean_kib)
    }),
    row("writes to the drive", |r| {
        requests(r.requests.by_kind.write.count, r.requests.by_kind.write.mean_kib)
    }),
    row("flushes issued (coalesced)", |r| {
        let (issued, coalesced) = (r.requests.by_kind.flush.count, r.requests.merged_flushes);
        some(issued).map(|issued| format!("{issued} ({})", format_count(coalesced)))
    }),
    row("discards", |r| {
        counted(r.requests.by_kind.discard.count, r.requests.by_kind.discard.bytes)
    }),
    row("remaps", |r| {
        let remap = &r.requests.remap;
        some(remap.count)
            .map(|count| format!("{count} of {} pairs in all", format_count(remap.pairs)))
    }),
    row("pieces a file", |r| pieces(r.fragmentation.as_ref()?)),
];

const RESTART: &[Row<RunResult>] = &[
    row("drive ready after a power cut", |r| seconds(r.restart?.drive_s)),
    row("then mounted after", |r| seconds(r.restart?.mount_s)),
    row("blocks read by the mount", |r| some(r.restart?.mount_read_blocks)),
];

const MAP_ON_FLASH: &[Row<RunResult>] = &[
    row("read hits in the map's cache", |r| of_cache(r, |cache| percent(cache.hit_ratio.read, 2))),
    row("write hits in the map's cache", |r| {
        of_cache(r, |cache| percent(cache.hit_ratio.write, 2))
    }),
    row("translation pages read", |r| of_cache(r, |cache| some(cache.translation_reads.total()))),
    row("translation pages written", |r| {
        of_cache(r, |cache| some(cache.translation_writes.total()))
    }),
    row("write part, MAHT at the end", |r| of_cache(r, split)),
    row("read latency of dftl's", |r| of_cache(r, |cache| percent(cache.of_dftl.read, 1))),
    row("write latency of dftl's", |r| of_cache(r, |cache| percent(cache.of_dftl.write, 1))),
    row("  of service alone, reads", |r| {
        of_cache(r, |cache| percent(cache.summed_of_dftl.read, 1))
    }),
    row("  of service alone, writes", |r| {
        of_cache(r, |cache| percent(cache.summed_of_dftl.write, 1))
    }),
];

const DEVIRTUALIZER: &[Row<RunResult>] = &[
    row("runs of the devirtualizer", |r| {
        let done = r.devirtualize.as_ref()?;
        let each = seconds(done.total.time_s / done.count.max(1) as f64)?;
        Some(format!("{} of {each}", format_count(done.count)))
    }),
    row("blocks renamed", |r| {
        let total = &r.devirtualize.as_ref()?.total;
        Some(format_count(total.content_blocks + total.metadata_blocks))
    }),
    row("calls that waited for it", |r| {
        let total = &r.devirtualize.as_ref()?.total;
        Some(format!(
            "{} for {} in all",
            format_count(total.stalled_calls),
            seconds(total.stalled_s)?
        ))
    }),
    row("mean of the map", |r| {
        let maps = r.devirtualize.as_ref().map(|_| &r.series.map_bytes)?;
        let count = u64::try_from(maps.len()).ok().filter(|count| *count > 0)?;
        Some(format_bytes(maps.iter().sum::<u64>() / count))
    }),
];

const FLASH: &[Row<RunResult>] = &[
    row("pages for the host", |r| some(r.totals.drive.programs.host)),
    row("pages moved by cleaning", |r| some(r.totals.drive.programs.gc)),
    row("pages moved by wear levelling", |r| some(r.totals.drive.programs.wear)),
    row("pages moved off bad blocks", |r| some(r.totals.drive.programs.retire)),
    row("journal of discards", |r| some(r.totals.drive.programs.journal)),
    row("translation pages", |r| some(r.totals.drive.programs.translation)),
    row("pages folded out of the SLC cache", |r| some(r.totals.drive.programs.fold)),
    row("pages rewritten after many reads", |r| some(r.totals.drive.programs.refresh)),
    row("pages copied by merges", |r| some(r.totals.drive.programs.merge)),
    row("merges: switch / partial / full", |r| {
        let merges = r.totals.drive.merges.as_ref()?;
        Some(format!("{} / {} / {}", merges.switch, merges.partial, merges.full))
    }),
    row("handles written / units moved from", |r| {
        let placement = r.totals.drive.placement.as_ref()?;
        let written = placement.handles.iter().filter(|handle| handle.host_blocks > 0).count();
        Some(format!("{written} / {}", format_count(placement.reallocations)))
    }),
    row("pages into the SLC cache", |r| some(r.totals.drive.cells.as_ref()?.slc_pages)),
    row("pages left empty in word lines", |r| some(r.totals.drive.cells.as_ref()?.skipped_pages)),
    row("reads to merge", |r| some(r.totals.drive.flash_reads.merge)),
    row("drive's lines cleaned (stalls)", |r| {
        let drive = &r.totals.drive;
        some(drive.gc_runs).map(|runs| format!("{runs} ({})", format_count(drive.gc_stalls)))
    }),
    row("blocks lost", |r| some(r.totals.drive.lost_blocks)),
    row("erases", |r| some(r.totals.drive.erases)),
    row("wear since new, min / mean / max", |r| {
        let w = &r.wear;
        (w.erases_max > 0)
            .then(|| format!("{} / {:.1} / {}", w.erases_min, w.erases_mean, w.erases_max))
    }),
    row("bad blocks", |r| some(r.wear.bad_blocks.into())),
    row("dies busy", |r| {
        let busy: f64 = r.dies.iter().map(|die| die.busy).sum::<f64>() / r.dies.len().max(1) as f64;
        Some(format!("{:.1} %", busy * 100.0))
    }),
];

const LIFETIME: &[Row<RunResult>] = &[
    row("written by the host (TBW)", |r| of_writes(r, |l| Some(decimal_bytes(l.host_tb)))),
    row("drive writes a day (DWPD)", |r| of_writes(r, |l| Some(digits(l.drive_writes_per_day)))),
    row("TBW until the rated erases", |r| of_writes(r, |l| l.rated_tb.map(decimal_bytes))),
    row("rated erases at this rate after", |r| of_writes(r, |l| l.rated_years.map(years))),
];

const RESOURCES: &[Row<RunResult>] = &[
    row("mapping memory", |r| Some(format_bytes(r.memory.map_bytes_max))),
    row("other drive memory", |r| Some(format_bytes(r.memory.other_bytes))),
    row(
        "CPU time in the model",
        |r| if r.totals.cpu_s > 0.0 { seconds(r.totals.cpu_s) } else { None },
    ),
    row("ended early", |r| r.error.as_ref().map(|_| "yes".into())),
];

fn bytes(n: u64) -> Option<String> {
    (n > 0).then(|| format_bytes(n))
}

pub(super) fn rate(per_second: f64) -> String {
    format_count(per_second.round() as u64)
}

fn mb_per_s(bytes: u64, rate: f64) -> Option<String> {
    (bytes > 0).then(|| format!("{rate:.1}"))
}

fn seconds(seconds: f64) -> Option<String> {
    Some(SimSpan::from_ns((seconds * 1e9) as u64).to_string())
}

fn waf(waf: Option<f64>) -> Option<String> {
    waf.map(|waf| format!("{waf:.3}"))
}

fn counted(requests: u64, bytes: u64) -> Option<String> {
    (requests > 0).then(|| format!("{} ({})", format_count(requests), format_bytes(bytes)))
}

fn requests(count: u64, mean_kib: f64) -> Option<String> {
    (count > 0).then(|| format!("{} of {mean_kib:.1} KiB", format_count(count)))
}

fn pieces(files: &FragmentationResult) -> Option<String> {
    let mean = files.pieces as f64 / files.files as f64;
    (files.files > 0).then(|| format!("{mean:.1} of {:.1} KiB", files.mean_piece_kib))
}

pub(super) fn latency(latency: &LatencyResult) -> Option<String> {
    let p = latency.percentiles;
    let span = SimSpan::from_ns;
    let shown = [p.p50_ns, p.p99_ns, p.p999_ns, p.max_ns].map(|ns| span(ns).to_string());
    let [p50, p99, p999, max] = &shown;
    (p.count > 0).then(|| match p50 == p999 {
        true if p50 == max => format!("constant {p50}"),
        true => format!("{p50}, at most {max}"),
        false => format!("{p50} / {p99} / {p999}"),
    })
}

/// Of a run that wrote to the drive.
fn of_writes(run: &RunResult, show: fn(&LifetimeResult) -> Option<String>) -> Option<String> {
    (run.lifetime.cycles > 0.0).then(|| show(&run.lifetime))?
}

/// Three significant digits, or all of a whole number.
fn digits(value: f64) -> String {
    match value {
        v if v >= 100.0 => format_count(v.round() as u64),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// So many TB in TB, GB or MB.
fn decimal_bytes(tb: f64) -> String {
    match tb {
        tb if tb >= 1.0 => format!("{} TB", digits(tb)),
        tb if tb >= 1e-3 => format!("{} GB", digits(tb * 1e3)),
        tb => format!("{} MB", digits(tb * 1e6)),
    }
}

/// So many years in years, days or hours.
fn years(years: f64) -> String {
    let days = years * 365.0;
    match days {
        days if days >= 365.0 => format!("{} years", digits(years)),
        days if days >= 1.0 => format!("{} days", digits(days)),
        days => format!("{} h", digits(days * 24.0)),
    }
}

/// The sentences about the runs, those of several runs once.
pub(super) fn notes(runs: &[RunResult], width: Option<usize>) -> String {
    let mut sentences: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in runs {
        for note in &run.notes {
            match sentences.iter_mut().find(|(known, _)| *known == note.as_str()) {
                Some((_, labels)) => labels.push(&run.label),
                None => sentences.push((note, vec![&run.label])),
            }
        }
    }
    let line = |(sentence, labels): (&str, Vec<&str>)| {
        let is_of_all = labels.len() == runs.len();
        let of = if is_of_all { String::new() } else { format!("{}: ", labels.join("; ")) };
        String::from("\n") + &paragraph(&format!("{of}{sentence}"), width)
    };
    sentences.into_iter().map(line).collect()
}

fn of_trace(run: &RunResult, show: fn(&TraceResult) -> Option<String>) -> Option<String> {
    run.trace.as_ref().and_then(show)
}

fn of_cache(run: &RunResult, show: fn(&MapCacheResult) -> Option<String>) -> Option<String> {
    run.map_cache.as_ref().and_then(show)
}

fn percent(ratio: Option<f64>, digits: usize) -> Option<String> {
    ratio.map(|ratio| format!("{:.digits$} %", ratio * 100.0))
}

fn split(cache: &MapCacheResult) -> Option<String> {
    let is_split = ["split", "split-bounded"].contains(&cache.policy.as_str());
    is_split.then(|| format!("{}, {}", format_count(cache.write_part), format_count(cache.maht)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_do_not_fit_beside_each_other_come_below() {
        let run = |label: &str| RunResult { label: label.into(), ..RunResult::default() };
        let runs = [run("first"), run("second"), run("third")];
        let first_line =
            |width| LAYOUT.text(&runs, width).lines().next().unwrap_or_default().to_string();
        assert!(["first", "second", "third"].iter().all(|label| first_line(None).contains(label)));
        let narrow = LAYOUT.text(&runs, Some(36));
        assert!(narrow.lines().all(|line| line.chars().count() <= 36), "{narrow}");
        assert!(!first_line(Some(36)).contains("third") && narrow.contains("third"), "{narrow}");
        assert!(
            LAYOUT.text(&runs, Some(3)).contains("third"),
            "too narrow for anything: one below the other"
        );
    }

    #[test]
    fn sentences_stand_once_with_the_runs_that_they_are_about() {
        let run = |label: &str, notes: &[&str]| RunResult {
            label: label.into(),
            notes: notes.iter().map(ToString::to_string).collect(),
            ..RunResult::default()
        };
        let runs = [run("a", &["All.", "Two."]), run("b", &["All."]), run("c", &["All.", "Two."])];
        assert_eq!(notes(&runs, None), "\nAll.\n\na; c: Two.\n");
        assert_eq!(notes(&runs, Some(8)), "\nAll.\n\na; c:\nTwo.\n");
        assert_eq!(notes(&[run("a", &[])], None), "");
    }

    #[test]
    fn a_latency_that_does_not_vary_is_called_constant() {
        let with = |p50_ns, p999_ns, max_ns| {
            let mut found = LatencyResult::default();
            let p = &mut found.percentiles;
            (p.count, p.p50_ns, p.p99_ns, p.p999_ns, p.max_ns) =
                (9, p50_ns, p50_ns, p999_ns, max_ns);
            latency(&found).unwrap()
        };
        assert_eq!(with(1500, 1500, 1500), "constant 1.50 us");
        assert_eq!(with(1500, 1500, 8_000_000), "1.50 us, at most 8.00 ms");
        assert_eq!(with(1500, 3000, 3000), "1.50 us / 1.50 us / 3.00 us");
        assert_eq!(latency(&LatencyResult::default()), None);
    }

    #[test]
    fn lifetimes_have_three_digits_in_a_unit_that_suits_them() {
        let bytes = [0.000_004_29, 0.0429, 4.286, 4_286.4].map(decimal_bytes);
        assert_eq!(bytes, ["4.29 MB", "42.9 GB", "4.29 TB", "4,286 TB"]);
        let times = [0.001, 0.1, 4.286].map(years);
        assert_eq!(times, ["8.76 h", "36.5 days", "4.29 years"]);
    }

    #[test]
    fn every_count_of_a_file_system_has_its_line() {
        for (name, figures) in dovetail_lab::bench::figures_by_file_system() {
            let mut run = RunResult::default();
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
