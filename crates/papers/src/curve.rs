//! A run's figures over the volume that its workload had written.

use dovetail_lab::results::RunResult;

const BLOCK: u64 = 4096;

/// The point of a run at which so much was written: intervals before it, and the share of the next.
#[derive(Clone, Copy)]
struct Point {
    intervals: usize,
    share: f64,
}

impl Point {
    /// The point at which `bytes` were written; the end if there were never as many.
    fn of(run: &RunResult, bytes: f64) -> Self {
        let written = &run.series.written_bytes;
        let intervals = written.partition_point(|written| (*written as f64) <= bytes);
        let before = intervals.checked_sub(1).map_or(0.0, |last| written[last] as f64);
        let share = |end: &u64| (bytes - before) / (*end as f64 - before);
        Self { intervals, share: written.get(intervals).map_or(0.0, share) }
    }

    /// The point in time; the end if the run was shorter.
    fn at_time(run: &RunResult, seconds: f64) -> Self {
        let ends = &run.series.time_s;
        let intervals = ends.partition_point(|end| *end <= seconds);
        let before = intervals.checked_sub(1).map_or(0.0, |last| ends[last]);
        let share = |end: &f64| (seconds - before) / (end - before);
        Self { intervals, share: ends.get(intervals).map_or(0.0, share) }
    }

    /// The value of a column that grows from 0 on, here.
    fn on(self, column: impl Fn(usize) -> Option<f64>) -> f64 {
        let before = self.intervals.checked_sub(1).and_then(&column).unwrap_or(0.0);
        before + column(self.intervals).map_or(0.0, |after| (after - before) * self.share)
    }

    /// The sum of a column of one value an interval, up to here.
    fn sum(self, column: &[u64]) -> f64 {
        let whole: u64 = column[..self.intervals].iter().sum();
        whole as f64 + column.get(self.intervals).map_or(0.0, |next| *next as f64 * self.share)
    }
}

/// Bytes that were written between two points.
fn written(run: &RunResult, from: Point, to: Point) -> f64 {
    let column = |interval| run.series.written_bytes.get(interval).map(|bytes| *bytes as f64);
    to.on(column) - from.on(column)
}

/// Mean write bandwidth of the workload between two points of the volume that it had written, in
/// MB/s.
pub(crate) fn bandwidth(run: &RunResult, from_bytes: f64, to_bytes: f64) -> f64 {
    let (from, to) = (Point::of(run, from_bytes), Point::of(run, to_bytes));
    let time = |interval| run.series.time_s.get(interval).copied();
    written(run, from, to) / 1e6 / (to.on(time) - from.on(time)).max(1e-9)
}

/// Bytes that the workload had written by a time.
pub(crate) fn written_by(run: &RunResult, seconds: f64) -> f64 {
    written(run, Point::at_time(run, 0.0), Point::at_time(run, seconds))
}

/// Mean write bandwidth of the workload in a span of time, in MB/s.
pub(crate) fn bandwidth_in(run: &RunResult, from_s: f64, to_s: f64) -> f64 {
    let bytes = written_by(run, to_s) - written_by(run, from_s);
    bytes / 1e6 / (to_s - from_s).max(1e-9)
}

/// A run that writes at one rate until something happens, and at others from then on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fall {
    /// Mean bandwidth before, in MB/s.
    pub(crate) before: f64,
    /// Bytes written before.
    pub(crate) onset_bytes: f64,
    /// The least bandwidth of a part of the time after it.
    pub(crate) trough: f64,
    /// Mean bandwidth from the first window after it on.
    pub(crate) after: f64,
}

/// Windows in which a run fills the page cache.
const FILLING: u32 = 2;
/// Windows that a fall lasts, at least: more than a wave of write-back.
const LASTING: u32 = 4;

/// Finds the fall of a run of `seconds` to less than half of its bandwidth until then, in `windows`
/// equal windows of time; the first ones are left out, since they fill caches. Write-back comes in
/// waves, so a fall lasts several windows. The trough is the least of `parts` parts of the time that
/// is left. A run that never falls is after it as it was before.
pub(crate) fn fall(run: &RunResult, seconds: f64, windows: u32, parts: u32) -> Fall {
    let end = |window: u32| seconds / f64::from(windows) * f64::from(window);
    let is_low = |&window: &u32| {
        let before = bandwidth_in(run, end(FILLING), end(window));
        let next = end((window + LASTING).min(windows));
        bandwidth_in(run, end(window), end(window + 1)) < before / 2.0
            && bandwidth_in(run, end(window), next) < before / 2.0
    };
    let Some(low) = (FILLING + 1..windows).find(is_low) else {
        let mean = bandwidth_in(run, end(FILLING), seconds);
        let onset_bytes = written_by(run, seconds);
        return Fall { before: mean, onset_bytes, trough: mean, after: mean };
    };
    let part = |n: u32| end(low) + (seconds - end(low)) * f64::from(n) / f64::from(parts);
    let trough = (0..parts).map(|n| bandwidth_in(run, part(n), part(n + 1)));
    let trough = trough.fold(f64::INFINITY, f64::min);
    Fall {
        before: bandwidth_in(run, end(FILLING), end(low.saturating_sub(1).max(FILLING + 1))),
        onset_bytes: written_by(run, end(low)),
        trough,
        after: bandwidth_in(run, end(low), seconds),
    }
}

/// The file system's write amplification between two such points.
pub(crate) fn fs_waf(run: &RunResult, from_bytes: f64, to_bytes: f64) -> f64 {
    let (from, to) = (Point::of(run, from_bytes), Point::of(run, to_bytes));
    let columns = run.series.written.values();
    let blocks: f64 = columns.map(|column| to.sum(column) - from.sum(column)).sum();
    blocks * BLOCK as f64 / written(run, from, to).max(1.0)
}

/// The drive's write amplification between two such points.
pub(crate) fn device_waf(run: &RunResult, from_bytes: f64, to_bytes: f64) -> f64 {
    let (from, to) = (Point::of(run, from_bytes), Point::of(run, to_bytes));
    let series = &run.series;
    let begins = std::iter::once(0.0).chain(series.time_s.iter().copied());
    let spans = series.time_s.iter().zip(begins).map(|(end, begin)| end - begin);
    let rates = series.drive_write_mb_per_s.iter();
    let asked: Vec<u64> =
        rates.zip(spans).map(|(mb_per_s, s)| (mb_per_s * s * 1e6) as u64).collect();
    let wafs = series.device_waf.iter().map(|waf| waf.unwrap_or(0.0));
    let programmed: Vec<u64> =
        asked.iter().zip(wafs).map(|(bytes, waf)| (*bytes as f64 * waf) as u64).collect();
    let between = |column: &[u64]| to.sum(column) - from.sum(column);
    between(&programmed) / between(&asked).max(1.0)
}

/// A figure in each of `parts` equal parts of the first `bytes` written.
pub(crate) fn parts(
    run: &RunResult,
    bytes: f64,
    parts: u32,
    figure: fn(&RunResult, f64, f64) -> f64,
) -> Vec<f64> {
    let end = |part: u32| bytes / f64::from(parts) * f64::from(part);
    (0..parts).map(|part| figure(run, end(part), end(part + 1))).collect()
}

/// Least and greatest.
pub(crate) fn span(values: &[f64]) -> (f64, f64) {
    let fold = |with: fn(f64, f64) -> f64, from| values.iter().copied().fold(from, with);
    (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_parts_are_those_of_their_intervals() {
        let mut run = RunResult::default();
        run.series.time_s = vec![1.0, 2.0, 4.0, 8.0];
        run.series.written_bytes = [1, 2, 3, 4].map(|mb| mb * 1_000_000).to_vec();
        run.series.written.insert("data".into(), vec![250; 4]);
        run.series.written.insert("node".into(), vec![0, 0, 250, 250]);
        assert_eq!(parts(&run, 4e6, 2, bandwidth), [1.0, 1.0 / 3.0]);
        assert!((fs_waf(&run, 2e6, 4e6) - 2.048).abs() < 1e-9);
        run.series.drive_write_mb_per_s = vec![2.0, 2.0, 1.0, 1.0];
        run.series.device_waf = vec![Some(1.0), Some(2.0), None, Some(3.0)];
        assert_eq!(parts(&run, 4e6, 2, device_waf), [1.5, 2.0]);
        assert_eq!(span(&[2.0, 1.0, 3.0]), (1.0, 3.0));
    }

    #[test]
    fn a_fall_is_where_the_bandwidth_is_halved() {
        let mut run = RunResult::default();
        let rates = [9, 10, 10, 10, 10, 10, 1, 2, 3, 4_u64];
        run.series.time_s = (1..=10).map(f64::from).collect();
        let sum = rates.iter().scan(0, |sum, mb| {
            *sum += mb * 1_000_000;
            Some(*sum)
        });
        run.series.written_bytes = sum.collect();
        let fall = fall(&run, 10.0, 10, 2);
        let found = (fall.before, fall.onset_bytes, fall.trough, fall.after);
        assert_eq!(found, (10.0, 59e6, 1.5, 2.5));
        let wave = [9, 10, 2, 18, 2, 18, 2, 18, 10, 10].iter().scan(0, |sum, mb| {
            *sum += mb * 1_000_000;
            Some(*sum)
        });
        run.series.written_bytes = wave.collect();
        assert_eq!(super::fall(&run, 10.0, 10, 2).onset_bytes, 99e6, "waves are no fall");
        run.series.written_bytes = (1..=10).map(|n| n * 1_000_000).collect();
        let steady = super::fall(&run, 10.0, 10, 2);
        assert_eq!((steady.before, steady.trough, steady.after), (1.0, 1.0, 1.0));
    }

    /// Both ends may lie in one interval.
    #[test]
    fn a_part_of_an_interval_has_the_figures_of_the_interval() {
        let mut run = RunResult::default();
        run.series.time_s = vec![1.0, 3.0];
        run.series.written_bytes = vec![1_000_000, 9_000_000];
        run.series.written.insert("data".into(), vec![1000, 4000]);
        assert!((bandwidth(&run, 2e6, 3e6) - 4.0).abs() < 1e-9);
        assert!((fs_waf(&run, 2e6, 3e6) - 2.048).abs() < 1e-9);
        assert!((bandwidth(&run, 0.0, 5e6) - 2.5).abs() < 1e-9, "from the start");
        assert!((bandwidth(&run, 5e6, 1e9) - 4.0).abs() < 1e-9, "to the end");
    }
}
