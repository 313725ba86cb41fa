//! A run as a page draws it: a few figures, what they were over time, and two maps.

use dovetail_ftl::stats::Percentiles;
use dovetail_lab::Stage;
use dovetail_lab::bench::View;
use dovetail_lab::results::{ByKind, Counts, RunResult, Series, Totals};
use serde::Serialize;

use crate::{DriveMap, FREE};

/// Parts of a volume in its map at most.
const VOLUME_CELLS: usize = 1024;

/// Figures of a run, by the names of the documented results.
#[derive(Debug, Serialize)]
pub struct Figures {
    totals: Totals,
    written: Counts,
    events: Counts,
    latency: ByKind<Percentiles>,
    series: Columns,
}

/// Columns of the series that the page draws.
#[derive(Debug, Serialize)]
struct Columns {
    time_s: Vec<f64>,
    written_bytes: Vec<u64>,
    calls_per_s: Vec<f64>,
    read_mb_per_s: Vec<f64>,
    write_mb_per_s: Vec<f64>,
    fs_waf: Vec<Option<f64>>,
    device_waf: Vec<Option<f64>>,
    read_p99_us: Vec<Option<f64>>,
    write_p99_us: Vec<Option<f64>>,
    flush_p99_us: Vec<Option<f64>>,
}

impl From<Series> for Columns {
    fn from(series: Series) -> Self {
        Self {
            time_s: series.time_s,
            written_bytes: series.written_bytes,
            calls_per_s: series.calls_per_s,
            read_mb_per_s: series.read_mb_per_s,
            write_mb_per_s: series.write_mb_per_s,
            fs_waf: series.fs_waf,
            device_waf: series.device_waf,
            read_p99_us: series.read_p99_us,
            write_p99_us: series.write_p99_us,
            flush_p99_us: series.flush_p99_us,
        }
    }
}

impl From<RunResult> for Figures {
    fn from(run: RunResult) -> Self {
        let ByKind { read, write, flush, discard } = run.latency;
        Self {
            totals: run.totals,
            written: run.written,
            events: run.events,
            latency: ByKind {
                read: read.percentiles,
                write: write.percentiles,
                flush: flush.percentiles,
                discard: discard.percentiles,
            },
            series: run.series.into(),
        }
    }
}

/// A run as it stands.
#[derive(Debug, Serialize)]
pub struct Frame {
    /// The stage: `precondition`, `prepare` or `run`.
    pub stage: &'static str,
    /// The part of it that is done, 0 to 1; null if the end is not known.
    pub share: Option<f64>,
    /// Calls simulated so far.
    pub calls: u64,
    /// Figures of the measurement; null before it.
    pub figures: Option<Figures>,
    /// The volume in the order of addresses: the share of blocks in use in each part, in percent;
    /// or [`FREE`].
    pub volume: Vec<i8>,
    /// The volume in the order of addresses: how much was written to each part of late, in percent
    /// of the most; or [`FREE`].
    pub writes: Vec<i8>,
    /// The drive's lines.
    pub drive: DriveMap,
}

impl Frame {
    /// The run that is shown, with its `writes` of late.
    pub fn of(view: &View<'_>, writes: Vec<i8>) -> Self {
        let progress = view.progress();
        let percent = |share: f64| if share > 0.0 { (share * 100.0).ceil() as i8 } else { FREE };
        Self {
            stage: name_of(progress.stage),
            share: share(progress.done, progress.total),
            calls: progress.requests,
            figures: (progress.stage == Stage::Run).then(|| view.figures().into()),
            volume: view.occupancy(VOLUME_CELLS).into_iter().map(percent).collect(),
            writes,
            drive: DriveMap::of(&view.drive()),
        }
    }
}

/// A stage's name on the page.
pub(crate) const fn name_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Precondition => "precondition",
        Stage::Prepare => "prepare",
        Stage::Run => "run",
    }
}

/// The part that is done; `None` if the whole is not known.
pub(crate) fn share(done: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| (done as f64 / total as f64).min(1.0))
}
