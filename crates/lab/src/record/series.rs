//! Figures over time: from intervals to columns.

use std::collections::BTreeMap;

use dovetail_block::BLOCK_SIZE;
use dovetail_ftl::Storage;
use dovetail_ftl::stats::{Cause, CommandKind};

use super::recorder::{Interval, Recorder, Rhythm};
use super::snapshot::Snapshot;
use super::summary::{counts, ratio, request, sum};
use super::window::Window;
use crate::results::{Counts, Series};

/// The columns of a recorder's intervals.
pub(super) fn series(recorder: &Recorder, drive: &Storage) -> Series {
    let geometry = drive.geometry();
    let mut rows = Rows {
        series: Series::default(),
        parts: geometry.subpages_per_page(),
        dies: f64::from(geometry.dies()),
    };
    match recorder.rhythm {
        Rhythm::Even(_) => rows.even(recorder),
        Rhythm::Calls => rows.by_calls(recorder),
    }
    rows.series
}

/// A last interval shorter than half of the one before counts with that one: its rates would be
/// chance.
fn without_short_end(intervals: &[Interval]) -> Vec<Interval> {
    let mut kept = intervals.to_vec();
    if let [.., a, b, c] = intervals
        && c.end.at.since(b.end.at).as_ns() < b.end.at.since(a.end.at).as_ns() / 2
    {
        let last = kept.pop();
        if let (Some(before), Some(last)) = (kept.last_mut(), last) {
            before.end = last.end;
            before.window.merge(&last.window);
        }
    }
    kept
}

struct Rows {
    series: Series,
    parts: u32,
    dies: f64,
}

impl Rows {
    fn by_calls(&mut self, recorder: &Recorder) {
        let (start, mut before) = (recorder.first.at, &recorder.first);
        let intervals = without_short_end(&recorder.intervals);
        for interval in &intervals {
            let end = &interval.end;
            if end.at == before.at {
                continue;
            }
            let seconds = end.at.since(before.at).as_secs_f64();
            self.series.time_s.push(end.at.since(start).as_secs_f64());
            self.row(before, interval, seconds);
            before = end;
        }
    }

    /// A row for each cell; in those without an end, nothing happened.
    fn even(&mut self, recorder: &Recorder) {
        self.series.interval_s = Some(recorder.length.as_secs_f64());
        let (mut before, mut next) = (&recorder.first, 0);
        for interval in &recorder.intervals {
            let cell = recorder.cell(before.at);
            while next < cell {
                let nothing = Interval { end: before.clone(), window: Window::default() };
                self.even_row(recorder, &mut next, before, &nothing);
            }
            self.even_row(recorder, &mut next, before, interval);
            before = &interval.end;
        }
    }

    fn even_row(
        &mut self,
        recorder: &Recorder,
        cell: &mut u64,
        before: &Snapshot,
        interval: &Interval,
    ) {
        *cell += 1;
        self.series.time_s.push((recorder.length * *cell).as_secs_f64());
        self.row(before, interval, recorder.length.as_secs_f64());
    }

    fn row(&mut self, before: &Snapshot, interval: &Interval, seconds: f64) {
        self.of_workload(before, interval, seconds);
        self.of_filesystem(before, &interval.end);
        self.of_drive(before, &interval.end, seconds);
    }

    fn of_workload(&mut self, before: &Snapshot, interval: &Interval, seconds: f64) {
        let (series, window) = (&mut self.series, &interval.window);
        let (now, then) = (interval.end.work, before.work);
        series.written_bytes.push(now.written_bytes);
        series.calls_per_s.push((now.calls - then.calls) as f64 / seconds);
        series.read_mb_per_s.push((now.read_bytes - then.read_bytes) as f64 / 1e6 / seconds);
        series.write_mb_per_s.push((now.written_bytes - then.written_bytes) as f64 / 1e6 / seconds);
        series.queue_depth.push(window.queue_depth());
        let columns = [
            (CommandKind::Read, &mut series.read_p50_us, &mut series.read_p99_us),
            (CommandKind::Write, &mut series.write_p50_us, &mut series.write_p99_us),
            (CommandKind::Flush, &mut series.flush_p50_us, &mut series.flush_p99_us),
            (CommandKind::Discard, &mut series.discard_p50_us, &mut series.discard_p99_us),
        ];
        for (kind, p50, p99) in columns {
            p50.push(window.quantile_us(kind, 0.5));
            p99.push(window.quantile_us(kind, 0.99));
        }
    }

    fn of_filesystem(&mut self, before: &Snapshot, now: &Snapshot) {
        self.series.fs_waf.push(fs_waf(now, before));
        push_all(&mut self.series.written, counts(&now.written, &before.written));
        push_all(&mut self.series.events, counts(&now.events, &before.events));
    }

    fn of_drive(&mut self, before: &Snapshot, now: &Snapshot, seconds: f64) {
        let (series, counted) = (&mut self.series, now.drive - before.drive);
        let mb_per_s = |blocks: u64| (blocks * BLOCK_SIZE) as f64 / 1e6 / seconds;
        let writes = request(&now.traffic.write, &before.traffic.write);
        let programs = |cause: Cause| counted.programs[cause as usize];
        series.drive_read_mb_per_s.push(mb_per_s(counted.read_blocks));
        series.drive_write_mb_per_s.push(mb_per_s(counted.written_blocks));
        series.device_waf.push(counted.waf(self.parts));
        series.write_kib.push((writes.count > 0).then_some(writes.mean_kib));
        series.programmed_pages.push(counted.programmed_pages());
        series.moved_pages.push(programs(Cause::Gc) + programs(Cause::Wear));
        series.erases.push(counted.erases);
        series
            .die_busy
            .push((now.die_busy - before.die_busy).as_secs_f64() / (seconds * self.dies));
        series.free_lines.push(now.free_lines);
        series.map_bytes.push(now.map_bytes);
        series.cache_write_part.push(now.map_cache.write_part);
        series.cache_maht.push(now.map_cache.maht);
    }
}

/// Blocks written by the file system over those written by the workload; `None` without either.
pub(super) fn fs_waf(now: &Snapshot, before: &Snapshot) -> Option<f64> {
    let blocks = sum(&now.written) - sum(&before.written);
    let written = now.work.all_written_since(&before.work);
    if now.written.is_empty() { None } else { ratio(blocks * BLOCK_SIZE, written) }
}

fn push_all(columns: &mut BTreeMap<String, Vec<u64>>, values: Counts) {
    values.into_iter().for_each(|(name, value)| columns.entry(name).or_default().push(value));
}
