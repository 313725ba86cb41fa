//! What an experiment yields, in the form in which it is written: the documented JSON (`docs/replay-json.md`).
//!
//! Everything here follows from configuration and seed; nothing tells the machine, the clock or the number of
//! threads. Times are virtual. Where a figure does not exist (write amplification without writes) it is null.

use dovetail_ftl::stats::Percentiles;
use serde::{Deserialize, Serialize};

use crate::map_cache::{Cached, beside_dftl};

/// The name of the schema in the field `schema`.
pub const SCHEMA: &str = "dovetail-replay";
/// The version of the schema. It rises when a field changes its meaning or goes; new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// The results of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`].
    pub version: u32,
    /// The seed of the whole call.
    pub seed: u64,
    /// One entry for each combination of trace, drive and options, in the order in which they were named.
    pub runs: Vec<RunResult>,
}

/// One trace on one drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// What sets this run apart from the others of the call.
    pub label: String,
    /// What was replayed.
    pub trace: TraceResult,
    /// The drive.
    pub drive: DriveResult,
    /// How it was replayed.
    pub replay: ReplayResult,
    /// How the drive was prepared; null without `--precondition`.
    pub precondition: Option<PreconditionResult>,
    /// Figures of the whole replay.
    pub totals: Totals,
    /// Latencies by kind of command, over the whole replay.
    pub latency: ByKind<LatencyResult>,
    /// The cache of a demand-paged map; null for a drive with its whole map in memory.
    #[serde(default)]
    pub map_cache: Option<MapCacheResult>,
    /// The drive's memory.
    pub memory: MemoryResult,
    /// Wear of the flash.
    pub wear: WearResult,
    /// Each die, in the order of channel, then die.
    pub dies: Vec<DieResult>,
    /// Figures over time.
    pub series: Series,
    /// A sample of the requests, in order of time.
    pub scatter: Vec<ScatterPoint>,
}

impl Cached for RunResult {
    fn is_alike(&self, other: &Self) -> bool {
        let without_policy = |run: &Self| {
            let sizes = run.map_cache.as_ref().map(|cache| cache.bytes);
            (sizes, run.drive.clone(), run.trace.name.clone(), run.replay.clone())
        };
        without_policy(self) == without_policy(other)
    }

    fn latencies(&self) -> ReadAndWrite {
        let mean = |of: &LatencyResult| (of.percentiles.count > 0).then(|| of.percentiles.mean_ns / 1e3);
        ReadAndWrite { read: mean(&self.latency.read), write: mean(&self.latency.write) }
    }

    fn cache(&self) -> Option<&MapCacheResult> {
        self.map_cache.as_ref()
    }

    fn cache_mut(&mut self) -> Option<&mut MapCacheResult> {
        self.map_cache.as_mut()
    }
}

impl Results {
    /// The results of runs, latencies of demand-paged maps beside those with `dftl`.
    pub fn of(seed: u64, mut runs: Vec<RunResult>) -> Self {
        beside_dftl(&mut runs);
        Self { schema: SCHEMA.into(), version: SCHEMA_VERSION, seed, runs }
    }
}

/// One value for each kind of command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByKind<T> {
    /// Reads.
    pub read: T,
    /// Writes.
    pub write: T,
    /// Flushes.
    pub flush: T,
    /// Discards.
    pub discard: T,
}

/// What was replayed.
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
    /// Requests whose time lay before that of the request before; they were issued at that one's time.
    pub reordered: u64,
    /// Requests beyond the drive's end that were folded into it (`--wrap`).
    pub wrapped: u64,
    /// Reads of the rest of a block for requests that cover it in part.
    pub partial_blocks: u64,
    /// From the first to the last request as recorded, in seconds.
    pub span_s: f64,
}

/// A drive as it was built.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveResult {
    /// The profile's name.
    pub profile: String,
    /// What the host can address, in bytes.
    pub capacity_bytes: u64,
    /// Flash in bytes.
    pub raw_bytes: u64,
    /// Spare flash over capacity, in percent.
    pub over_provisioning_percent: f64,
    /// Channels.
    pub channels: u32,
    /// Dies in all.
    pub dies: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Bytes of an erase block.
    pub block_bytes: u64,
    /// Bytes of a line, what is cleaned as one.
    pub line_bytes: u64,
    /// Lines.
    pub lines: u32,
    /// The mapping scheme.
    pub map: String,
    /// The victim policy.
    pub gc: String,
    /// Write streams.
    pub streams: u8,
    /// The volatile write buffer in bytes.
    pub buffer_bytes: u64,
}

/// How a trace was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// `timed` (requests at their recorded times) or `closed` (a fixed number in flight).
    pub mode: String,
    /// Recorded time over replayed time; null in a closed loop.
    pub speed: Option<f64>,
    /// Requests in flight; null when timed.
    pub queue_depth: Option<u32>,
    /// The run's seed.
    pub seed: u64,
}

/// How a drive was prepared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PreconditionResult {
    /// Bytes written in order, once over the whole drive.
    pub sequential_bytes: u64,
    /// Bytes written at random after that.
    pub random_bytes: u64,
    /// Write amplification in the last window of random writes.
    pub waf: f64,
    /// Whether it had become steady: the last windows' write amplification within 1 % of each other.
    pub steady: bool,
}

/// Figures of a whole replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// From the first request to the completion of the last one, in seconds.
    pub elapsed_s: f64,
    /// Requests completed a second.
    pub iops: f64,
    /// Million bytes read a second.
    pub read_mb_per_s: f64,
    /// Million bytes written a second.
    pub write_mb_per_s: f64,
    /// Requests in flight, mean over the requests' arrivals, the arriving one included.
    pub queue_depth_mean: f64,
    /// Requests in flight, at most.
    pub queue_depth_max: u64,
    /// Bytes programmed over bytes written by the host.
    pub waf: Option<f64>,
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
}

/// Pages programmed, by why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramsByCause {
    /// Written by the host.
    pub host: u64,
    /// Moved by cleaning.
    pub gc: u64,
    /// Moved by static wear levelling.
    pub wear: u64,
    /// Moved off bad blocks.
    pub retire: u64,
    /// The record of discards.
    pub journal: u64,
    /// The record of remaps.
    #[serde(default)]
    pub remap: u64,
    /// Translation pages of a demand-paged map.
    #[serde(default)]
    pub translation: u64,
}

/// Pages read from flash, by why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadsByCause {
    /// Read by the host.
    pub host: u64,
    /// To complete a page that is written in part.
    pub merge: u64,
    /// To move a page.
    #[serde(rename = "move")]
    pub moved: u64,
    /// Translation pages of a demand-paged map.
    #[serde(default)]
    pub translation: u64,
}

/// The cache of a demand-paged map, and what the map cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MapCacheResult {
    /// Its policy.
    pub policy: String,
    /// Its memory in bytes.
    pub bytes: u64,
    /// Share of the entries wanted for reads, and for writes, that were cached; null where none was wanted.
    pub hit_ratio: ReadAndWrite,
    /// Translation pages read.
    pub translation_reads: ByUse,
    /// Translation pages written.
    pub translation_writes: ByUse,
    /// Entries cached at the end.
    pub entries: u64,
    /// Of them, those that flash lacks.
    pub dirty: u64,
    /// Of a split cache: entries of the write part at the end.
    pub write_part: u64,
    /// Of a split cache: the multiple access hard threshold at the end.
    pub maht: u64,
    /// Mean time of a block read and of one written in microseconds if flash operations add up and none waits, as FlashSim
    /// counts.
    pub summed_us: ReadAndWrite,
    /// Mean latency of requests to the drive over that of the run with `dftl` that is else the same; null without one.
    pub of_dftl: ReadAndWrite,
    /// `summed_us` over that of the run with `dftl`.
    pub summed_of_dftl: ReadAndWrite,
}

/// A figure for reads and one for writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadAndWrite {
    /// Of reads.
    pub read: Option<f64>,
    /// Of writes.
    pub write: Option<f64>,
}

impl ReadAndWrite {
    /// Each over the other's.
    pub fn over(self, other: Self) -> Self {
        let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b.filter(|b| *b > 0.0)?);
        Self { read: ratio(self.read, other.read), write: ratio(self.write, other.write) }
    }
}

/// Translation pages, by what they were read or written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByUse {
    /// The host's reads.
    pub read: u64,
    /// The host's writes.
    pub write: u64,
    /// The host's trims and remaps.
    #[serde(rename = "trim", default)]
    pub trimmed: u64,
    /// Pages that the drive moved.
    #[serde(rename = "move")]
    pub moved: u64,
}

impl ByUse {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.read + self.write + self.trimmed + self.moved
    }
}

/// Latencies of one kind of command; all 0 without commands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// `count`, `mean_ns`, `min_ns`, `p50_ns`, `p90_ns`, `p99_ns`, `p999_ns`, `p9999_ns` and `max_ns`.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// The cumulative distribution: pairs of latency in ns and the share of commands at or below it.
    pub cdf: Vec<(u64, f64)>,
}

/// The drive's memory in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryResult {
    /// The map at the end.
    pub map_bytes: u64,
    /// The map at most, looked at when intervals of the series end.
    pub map_bytes_max: u64,
    /// Validity of pages and parts, valid counts, and the write buffer.
    pub other_bytes: u64,
}

/// Wear in erases of a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WearResult {
    /// The least worn block.
    pub erases_min: u32,
    /// The mean.
    pub erases_mean: f64,
    /// The most worn block.
    pub erases_max: u32,
    /// Erases that a block survives.
    pub endurance: u32,
    /// Blocks that are bad, when new or grown.
    pub bad_blocks: u32,
    /// A row for each plane (channel first, then die, then plane), in each the mean erases of equal shares of its
    /// blocks, in the order of their numbers.
    pub map: Vec<Vec<f64>>,
}

/// One die.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DieResult {
    /// Share of the time in which it worked, from the first request until all its work is done (the final emptying
    /// of the write buffer included).
    pub busy: f64,
    /// Operations waiting or under way, mean over time.
    pub queue_depth_mean: f64,
    /// Operations.
    pub operations: u64,
}

/// Figures over time, one entry an interval in each column; `interval_s` apart. Rates are means of the interval and
/// count whole blocks of 4 KiB, the last interval counting as a whole one; null where nothing happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// End of each interval in seconds since the first request.
    pub time_s: Vec<f64>,
    /// Requests arrived a second.
    pub iops: Vec<f64>,
    /// Million bytes read a second.
    pub read_mb_per_s: Vec<f64>,
    /// Million bytes written a second.
    pub write_mb_per_s: Vec<f64>,
    /// Write amplification within the interval.
    pub waf: Vec<Option<f64>>,
    /// Requests in flight, mean over arrivals, the arriving one included.
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
    /// Share of the dies' time in which they worked. Work counts when it is issued: a burst can exceed 1.
    pub die_busy: Vec<f64>,
    /// Free lines at the end of the interval.
    pub free_lines: Vec<u32>,
    /// The map's bytes at the end of the interval.
    pub map_bytes: Vec<u64>,
    /// Entries of a split map cache's write part at the end of the interval; 0 without one.
    #[serde(default)]
    pub cache_write_part: Vec<u64>,
    /// Its multiple access hard threshold then.
    #[serde(default)]
    pub cache_maht: Vec<u64>,
}

/// One request of the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScatterPoint {
    /// When it arrived, in seconds since the first request.
    pub t: f64,
    /// Its first byte.
    pub at: u64,
    /// Its bytes.
    pub len: u64,
    /// `r`, `w` or `d`.
    pub op: char,
}
