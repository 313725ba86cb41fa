//! Figures over time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Figures over time, one entry an interval in each column. Rates are means of the interval; null
/// where nothing happened. Of a Linux guest, whose calls fio counts at the end alone, the columns of
/// the workload are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of an interval in seconds; null where intervals end with a call.
    pub interval_s: Option<f64>,
    /// End of each interval in seconds since the start of the measurement.
    pub time_s: Vec<f64>,
    /// Bytes that the workload had written by then.
    pub written_bytes: Vec<u64>,
    /// Calls a second: those that ended; of a replay, requests that arrived.
    pub calls_per_s: Vec<f64>,
    /// Million bytes a second, by the workload.
    pub read_mb_per_s: Vec<f64>,
    /// Million bytes a second, by the workload.
    pub write_mb_per_s: Vec<f64>,
    /// Million bytes a second that the drive was asked to read, in whole blocks.
    pub drive_read_mb_per_s: Vec<f64>,
    /// Million bytes a second that the drive was asked to write, in whole blocks.
    pub drive_write_mb_per_s: Vec<f64>,
    /// Blocks written by the file system over blocks written by the workload, within the interval.
    pub fs_waf: Vec<Option<f64>>,
    /// Bytes programmed over bytes written to the drive, within the interval.
    pub device_waf: Vec<Option<f64>>,
    /// Blocks that the file system wrote within the interval, by cause.
    pub written: BTreeMap<String, Vec<u64>>,
    /// Events within the interval.
    pub events: BTreeMap<String, Vec<u64>>,
    /// Mean size of a write to the drive in KiB.
    pub write_kib: Vec<Option<f64>>,
    /// Calls under way, mean over arrivals, the arriving one included.
    pub queue_depth: Vec<Option<f64>>,
    /// Median read latency in microseconds.
    pub read_p50_us: Vec<Option<f64>>,
    /// 99th percentile of read latency in microseconds.
    pub read_p99_us: Vec<Option<f64>>,
    /// Median write latency in microseconds.
    pub write_p50_us: Vec<Option<f64>>,
    /// 99th percentile of write latency in microseconds.
    pub write_p99_us: Vec<Option<f64>>,
    /// Median flush latency in microseconds.
    pub flush_p50_us: Vec<Option<f64>>,
    /// 99th percentile of flush latency in microseconds.
    pub flush_p99_us: Vec<Option<f64>>,
    /// Median discard latency in microseconds.
    pub discard_p50_us: Vec<Option<f64>>,
    /// 99th percentile of discard latency in microseconds.
    pub discard_p99_us: Vec<Option<f64>>,
    /// Pages programmed.
    pub programmed_pages: Vec<u64>,
    /// Pages moved by cleaning and wear levelling.
    pub moved_pages: Vec<u64>,
    /// Blocks erased.
    pub erases: Vec<u64>,
    /// Share of the dies' time in which they worked. Of a replay it counts where it is issued, and
    /// cleaning in idle time when the next request comes, so an interval can exceed 1.
    pub die_busy: Vec<f64>,
    /// Free lines at the end of the interval.
    pub free_lines: Vec<u32>,
    /// Bytes of the drive's memory that its map takes at the end of the interval.
    pub map_bytes: Vec<u64>,
    /// Entries of a split map cache's write part at the end of the interval; 0 without one.
    pub cache_write_part: Vec<u64>,
    /// Its multiple access hard threshold then.
    pub cache_maht: Vec<u64>,
}

impl Series {
    /// Without what is known of the workload: its calls over time were not told.
    #[must_use]
    pub(crate) fn without_workload(self) -> Self {
        Self {
            written_bytes: Vec::new(),
            calls_per_s: Vec::new(),
            read_mb_per_s: Vec::new(),
            write_mb_per_s: Vec::new(),
            ..self
        }
    }
}

/// One request of the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScatterPoint {
    /// Its time, in seconds since the start of the measurement.
    pub t: f64,
    /// Its first byte.
    pub at: u64,
    /// Its bytes.
    pub len: u64,
    /// `r`, `w` or `d`.
    pub op: char,
}
