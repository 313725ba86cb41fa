//! What a bench yields, in the form in which it is written: the documented JSON (`docs/bench-json.md`).
//!
//! Everything follows from configuration and seed. Times are virtual; a figure that does not exist is null.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::map_cache::Cached;
use crate::results::{
    ByKind, DriveResult, LatencyResult, MapCacheResult, MemoryResult, ProgramsByCause, ReadAndWrite,
    ScatterPoint, WearResult,
};

/// The name of the schema in the field `schema`.
pub const SCHEMA: &str = "dovetail-bench";
/// Its version. It rises when a field changes its meaning or goes; new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// Counts by name.
pub type Counts = BTreeMap<String, u64>;

/// The results of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchResults {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`].
    pub version: u32,
    /// What was run: the job file's name.
    pub workload: String,
    /// By how much drive, memory and workload were shrunk.
    pub scale: f64,
    /// The seed of the whole call.
    pub seed: u64,
    /// One entry for each stack and repetition, in the order in which they were named.
    pub runs: Vec<BenchRun>,
}

/// A workload on a stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchRun {
    /// What sets this run apart from the others of the call.
    pub label: String,
    /// The stack.
    pub stack: StackResult,
    /// The run's own seed.
    pub seed: u64,
    /// Why it ended early; what stands here was measured until then.
    pub error: Option<String>,
    /// Figures of the whole run.
    pub totals: BenchTotals,
    /// Blocks of 4 KiB that the file system wrote, by cause.
    pub written: Counts,
    /// What happened in the file system.
    pub events: Counts,
    /// Commands that reached the drive.
    pub requests: RequestsResult,
    /// Latencies of calls, all threads together: `flush` is fsync and its like, `discard` punching holes.
    pub latency: ByKind<LatencyResult>,
    /// Each job of the workload.
    pub jobs: Vec<JobResult>,
    /// How the files lie at the end.
    pub fragmentation: FragmentationResult,
    /// The volume at the end in equal parts, in the order of addresses: the share of blocks in use in each.
    pub occupancy: Vec<f64>,
    /// The drive.
    pub drive: DriveResult,
    /// The cache of a demand-paged map; null for a drive with its whole map in memory.
    #[serde(default)]
    pub map_cache: Option<MapCacheResult>,
    /// The tool that lets pointers lead to the drive's own addresses; null without it.
    #[serde(default)]
    pub devirtualize: Option<DevirtualizeResult>,
    /// The drive's memory.
    pub memory: MemoryResult,
    /// Wear of the flash.
    pub wear: WearResult,
    /// Pages programmed by cause.
    pub programs: ProgramsByCause,
    /// Figures over time.
    pub series: BenchSeries,
    /// A sample of the commands that reached the drive, in order of time.
    pub scatter: Vec<ScatterPoint>,
    /// The same in fio's own layout, if the workload is a fio job; not part of this format.
    #[serde(skip)]
    pub fio: Option<serde_json::Value>,
}

impl Cached for BenchRun {
    fn is_alike(&self, other: &Self) -> bool {
        let sizes = |run: &Self| run.map_cache.as_ref().map(|cache| cache.bytes);
        let drive =
            |run: &Self| (run.drive.profile.clone(), run.drive.map.clone(), run.stack.filesystem.clone());
        sizes(self) == sizes(other)
            && drive(self) == drive(other)
            && self.stack.mount == other.stack.mount
            && self.seed == other.seed
    }

    fn latencies(&self) -> ReadAndWrite {
        let mean = |request: &RequestResult| (request.count > 0).then_some(request.mean_us);
        let by_kind = &self.requests.by_kind;
        ReadAndWrite { read: mean(&by_kind.read), write: mean(&by_kind.write) }
    }

    fn cache(&self) -> Option<&MapCacheResult> {
        self.map_cache.as_ref()
    }

    fn cache_mut(&mut self) -> Option<&mut MapCacheResult> {
        self.map_cache.as_mut()
    }
}

/// The stack of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StackResult {
    /// Its name.
    pub name: String,
    /// The file system.
    pub filesystem: String,
    /// Mount options.
    pub mount: String,
    /// Bytes of the partition.
    pub partition_bytes: u64,
    /// Bytes of the page cache.
    pub memory_bytes: u64,
}

/// Figures of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchTotals {
    /// From the first call to the end of the last one, in seconds.
    pub elapsed_s: f64,
    /// Calls that read, write, sync or discard.
    pub calls: u64,
    /// Of these a second.
    pub calls_per_s: f64,
    /// Bytes that the workload read.
    pub read_bytes: u64,
    /// Bytes that the workload wrote.
    pub written_bytes: u64,
    /// Million bytes a second.
    pub read_mb_per_s: f64,
    /// Million bytes a second.
    pub write_mb_per_s: f64,
    /// Blocks written by the file system over blocks written by the workload.
    pub fs_waf: Option<f64>,
    /// Bytes programmed over bytes written to the drive.
    pub device_waf: Option<f64>,
    /// Bytes programmed over bytes written by the workload.
    pub total_waf: Option<f64>,
    /// CPU time of calls and requests in the model, in seconds.
    pub cpu_s: f64,
    /// Blocks of flash erased.
    pub erases: u64,
    /// Lines of flash cleaned.
    pub gc_runs: u64,
}

/// Commands of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestResult {
    /// How many.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
    /// Mean size in KiB.
    pub mean_kib: f64,
    /// Mean time from issue to completion in microseconds.
    pub mean_us: f64,
    /// How many of 4 to below 8 KiB, of 8 to below 16 KiB, and so on; the last class has all that are larger.
    pub sizes: Vec<u64>,
}

/// Commands that reached the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsResult {
    /// By kind.
    #[serde(flatten)]
    pub by_kind: ByKind<RequestResult>,
    /// Flushes that another thread's flush did as well.
    pub merged_flushes: u64,
    /// Remap commands.
    #[serde(default)]
    pub remap: RemapResult,
    /// How many blocks were accessed again and again.
    #[serde(default)]
    pub repeats: RepeatsResult,
}

/// Blocks by how often they were accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatsResult {
    /// By reads.
    pub read: RepeatResult,
    /// By writes.
    pub write: RepeatResult,
}

/// Blocks that were accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatResult {
    /// At all.
    pub blocks: u64,
    /// More than two times.
    pub multiple: u64,
}

/// Remap commands that reached the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RemapResult {
    /// How many.
    pub count: u64,
    /// Pairs of addresses in them.
    pub pairs: u64,
    /// Mean time from issue to completion in microseconds.
    pub mean_us: f64,
}

/// What a run of the tool did, or all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DevirtualizeWork {
    /// Time of its batches, in seconds.
    pub time_s: f64,
    /// Files dealt with.
    pub files: u64,
    /// Files left because they had just changed.
    pub hot_files: u64,
    /// Blocks of content renamed.
    pub content_blocks: u64,
    /// Blocks of pointers renamed.
    pub metadata_blocks: u64,
    /// Calls that had to wait for a batch.
    pub stalled_calls: u64,
    /// How long they did, in seconds, summed.
    pub stalled_s: f64,
}

impl DevirtualizeWork {
    pub(super) fn add(&mut self, other: &Self) {
        self.time_s += other.time_s;
        self.files += other.files;
        self.hot_files += other.hot_files;
        self.content_blocks += other.content_blocks;
        self.metadata_blocks += other.metadata_blocks;
        self.stalled_calls += other.stalled_calls;
        self.stalled_s += other.stalled_s;
    }
}

/// A run of the tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DevirtualizeRun {
    /// Why it began: `interval`, `pressure` or `idle`.
    pub cause: String,
    /// When it began, in seconds since the start of the measurement.
    pub start_s: f64,
    /// When its last batch was through.
    pub end_s: f64,
    /// What it did.
    #[serde(flatten)]
    pub work: DevirtualizeWork,
    /// Bytes of the drive's map when it began.
    pub map_bytes_before: u64,
    /// The same at its end.
    pub map_bytes_after: u64,
}

/// The tool beside a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DevirtualizeResult {
    /// Runs begun.
    pub count: u64,
    /// All of them together.
    #[serde(flatten)]
    pub total: DevirtualizeWork,
    /// Each of them.
    pub each: Vec<DevirtualizeRun>,
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

/// How the workload's files lie on the volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FragmentationResult {
    /// Files that are there.
    pub files: u64,
    /// Pieces of neighbouring blocks, all files together.
    pub pieces: u64,
    /// Mean length of a piece in KiB.
    pub mean_piece_kib: f64,
}

/// Figures over time, one entry an interval in each column. Rates are means of the interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchSeries {
    /// End of each interval in seconds since the start of the measurement.
    pub time_s: Vec<f64>,
    /// Bytes that the workload had written by then.
    pub written_bytes: Vec<u64>,
    /// Calls a second.
    pub calls_per_s: Vec<f64>,
    /// Million bytes a second, by the workload.
    pub read_mb_per_s: Vec<f64>,
    /// Million bytes a second, by the workload.
    pub write_mb_per_s: Vec<f64>,
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
    /// Bytes of the drive's memory that its map takes at the end of the interval.
    #[serde(default)]
    pub map_bytes: Vec<u64>,
    /// Entries of a split map cache's write part at the end of the interval; 0 without one.
    #[serde(default)]
    pub cache_write_part: Vec<u64>,
    /// Its multiple access hard threshold then.
    #[serde(default)]
    pub cache_maht: Vec<u64>,
}
