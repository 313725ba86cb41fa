//! Single figures of a whole run.

use serde::{Deserialize, Serialize};

use super::{CellsResult, MergesResult, PlacementResult, ProgramsByCause, ReadsByCause};

/// Figures of a whole run. A *call* is one that reads, writes, syncs or discards; of a replay, a
/// request of the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// From the first call to the end of the last one, in seconds.
    pub elapsed_s: f64,
    /// Seconds of these in which jobs warmed up (`ramp_time`) and no call counted: rates are those
    /// of the rest. Left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ramp_s: f64,
    /// Calls.
    pub calls: u64,
    /// Calls a second.
    pub calls_per_s: f64,
    /// Bytes that the workload read.
    pub read_bytes: u64,
    /// Bytes that the workload wrote.
    pub written_bytes: u64,
    /// Bytes that ramps behind the first counted call read.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ramp_read_bytes: u64,
    /// Bytes that they wrote.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ramp_written_bytes: u64,
    /// Million bytes a second.
    pub read_mb_per_s: f64,
    /// Million bytes a second.
    pub write_mb_per_s: f64,
    /// Calls under way, mean over the calls' arrivals, the arriving one included.
    pub queue_depth_mean: f64,
    /// Calls under way, at most.
    pub queue_depth_max: u64,
    /// Blocks written by the file system over those written by the workload, ramps included.
    pub fs_waf: Option<f64>,
    /// Bytes programmed over bytes written to the drive.
    pub device_waf: Option<f64>,
    /// Bytes programmed over bytes written by the workload, ramps included.
    pub total_waf: Option<f64>,
    /// CPU time of calls and requests in the model, in seconds.
    pub cpu_s: f64,
    /// Figures of the drive.
    #[serde(flatten)]
    pub drive: DriveTotals,
}

fn is_none(bytes: &u64) -> bool {
    *bytes == 0
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Figures of the drive over a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveTotals {
    /// Blocks of 4 KiB that the host read, wrote, and discarded from the map.
    pub read_blocks: u64,
    /// See `read_blocks`.
    pub written_blocks: u64,
    /// See `read_blocks`.
    pub discarded_blocks: u64,
    /// Pages programmed by cause.
    pub programs: ProgramsByCause,
    /// Pages read from flash by cause.
    pub flash_reads: ReadsByCause,
    /// Blocks erased.
    pub erases: u64,
    /// Lines cleaned.
    pub gc_runs: u64,
    /// Lines whose cleaning or levelling writes had to wait for.
    pub gc_stalls: u64,
    /// Lines emptied by static wear levelling.
    pub wear_runs: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Blocks of data lost on the medium.
    pub lost_blocks: u64,
    /// Blocks read that hold nothing (never written, or discarded): answered without flash.
    pub empty_read_blocks: u64,
    /// Blocks read that the write buffer held.
    pub buffer_read_hits: u64,
    /// Blocks written over ones still in the write buffer.
    pub buffer_overwrites: u64,
    /// Accesses to the map.
    pub map_accesses: u64,
    /// Counts of a drive on cells of several bits; left out of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<CellsResult>,
    /// Merges of a log-block map; left out where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merges: Option<MergesResult>,
    /// Reclaim units of a drive with flexible data placement; null of others.
    #[serde(default)]
    pub placement: Option<PlacementResult>,
}
