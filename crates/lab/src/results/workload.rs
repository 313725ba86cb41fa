//! Results of a workload: what was run, and how it was prepared.

use dovetail_host::HostCosts;
use serde::{Deserialize, Serialize};

use super::{ByKind, LatencyResult};

/// The stack of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StackResult {
    /// Its name; of a replay, that of the drive's profile.
    pub name: String,
    /// The file system; `none` for a raw drive.
    pub filesystem: String,
    /// Mount options.
    pub mount: String,
    /// Bytes of the partition.
    pub partition_bytes: u64,
    /// Bytes of the page cache.
    pub memory_bytes: u64,
    /// Costs and limits of the host.
    pub host: HostCosts,
    /// All of the stack as its file has it, in TOML; empty without a stack.
    #[serde(default)]
    pub file: String,
}

impl StackResult {
    /// It is a drive without a file system.
    pub fn is_raw(&self) -> bool {
        self.filesystem == "none"
    }
}

/// A trace that was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceResult {
    /// The file's name without its folder.
    pub name: String,
    /// Its format.
    pub format: String,
    /// Requests by kind. A write with a preflush counts as a flush, too.
    pub requests: ByKind<u64>,
    /// Bytes by kind; 0 for flushes.
    pub bytes: ByKind<u64>,
    /// Lines that could not be read and were left out (`--skip-bad`).
    pub skipped_lines: u64,
    /// Requests whose time lay before that of the request before; they were issued at that one's
    /// time.
    pub reordered: u64,
    /// Requests beyond the drive's end that were folded into it (`--wrap`).
    pub wrapped: u64,
    /// Reads of the rest of a block for requests that cover it in part.
    pub partial_blocks: u64,
    /// From the first to the last request as recorded, in seconds.
    pub span_s: f64,
}

/// The way in which a trace was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// `timed` (requests at their recorded times) or `closed` (a fixed number in flight).
    pub mode: String,
    /// Recorded time over replayed time; null in a closed loop.
    pub speed: Option<f64>,
    /// Requests in flight; null when timed.
    pub queue_depth: Option<u32>,
}

/// The preparation of a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PreconditionResult {
    /// Bytes written in order, once over the whole drive.
    pub sequential_bytes: u64,
    /// Bytes written at random after that.
    pub random_bytes: u64,
    /// Write amplification in the last window of random writes.
    pub waf: f64,
    /// True if it had become steady: the last windows' write amplification within 1 % of each
    /// other.
    pub steady: bool,
    /// True if the drive still held all of it when the run began: no mkfs discarded it.
    #[serde(default)]
    pub kept: bool,
}

/// One job: threads that are reported together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Its name.
    pub name: String,
    /// Threads.
    pub threads: u32,
    /// Begin of its first call since the start of the measurement, in seconds.
    pub start_s: f64,
    /// From there to the end of its last call.
    pub elapsed_s: f64,
    /// Bytes.
    pub read_bytes: u64,
    /// Bytes.
    pub written_bytes: u64,
    /// Latencies of its calls.
    pub latency: ByKind<LatencyResult>,
}

/// The layout of the workload's files on the volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FragmentationResult {
    /// Files that are there.
    pub files: u64,
    /// Pieces of neighbouring blocks, all files together.
    pub pieces: u64,
    /// Mean length of a piece in KiB.
    pub mean_piece_kib: f64,
}

/// The way from a power cut to a mounted volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RestartResult {
    /// Seconds until the drive takes commands.
    pub drive_s: f64,
    /// Pages that the drive looks at for that.
    pub drive_pages_read: u64,
    /// Seconds from then until the volume is mounted.
    pub mount_s: f64,
    /// Blocks of 4 KiB that the mount reads.
    pub mount_read_blocks: u64,
    /// Blocks that it writes.
    pub mount_written_blocks: u64,
}
