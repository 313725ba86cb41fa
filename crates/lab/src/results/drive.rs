//! Results of a drive: how it was built, and what became of it.

use dovetail_ftl::stats::Percentiles;
use serde::{Deserialize, Serialize};

/// A drive as it was built.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveResult {
    /// The profile's name.
    pub profile: String,
    /// Bytes that the host can address.
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
    /// Zones that are written in order; null for a drive without.
    #[serde(default)]
    pub zones: Option<u64>,
    /// Its timings.
    #[serde(default)]
    pub timing: DriveTiming,
}

/// The timings of a drive, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveTiming {
    /// Cell array to page register; the mean of a page where their types differ.
    pub read_ns: u64,
    /// Page register to cell array, as `read_ns`.
    pub program_ns: u64,
    /// Erasing a block.
    pub erase_ns: u64,
    /// Moving 4 KiB over a channel.
    pub transfer_4k_ns: u64,
    /// Reads by type of the page, where they differ.
    pub cell_read_ns: Vec<u64>,
    /// Programs by type of the page, where they differ.
    pub cell_program_ns: Vec<u64>,
    /// Moving 4 KiB of a read over the host's link.
    pub link_4k_ns: u64,
    /// Moving 4 KiB of a write over it.
    pub link_write_4k_ns: u64,
    /// Handling a command, beside others.
    pub command_ns: u64,
    /// Handling a write command, beside others.
    pub write_command_ns: u64,
    /// Time in which a core of the controller takes no other command.
    pub command_serial_ns: u64,
    /// Added to it for each 4 KiB of a write.
    pub write_serial_4k_ns: u64,
    /// Time of a core for each 4 KiB over the link, and for each page read or programmed.
    #[serde(default)]
    pub request_serial_ns: u64,
    /// A flush, from the end of the programs that it waits for.
    #[serde(default)]
    pub flush_ns: u64,
    /// A write with FUA, from the end of its programs.
    #[serde(default)]
    pub fua_ns: u64,
    /// Cores that take commands side by side.
    pub cores: u32,
    /// An access to the drive's memory.
    pub map_access_ns: u64,
}

/// Latencies of one kind of command; all 0 without commands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// `count`, `mean_ns`, `min_ns`, `p50_ns`, `p90_ns`, `p99_ns`, `p999_ns`, `p9999_ns` and
    /// `max_ns`.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// The cumulative distribution: pairs of latency in ns and the share of commands at or below
    /// it.
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
    /// A row for each plane (channel first, then die, then plane), in each the mean erases of equal
    /// shares of its blocks, in the order of their numbers.
    pub map: Vec<Vec<f64>>,
}

/// One die.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DieResult {
    /// Share of the measured time (of a replay to the end of its final flush) in which it worked.
    /// Cleaning in idle time counts when the next request comes.
    pub busy: f64,
    /// Operations waiting or under way, mean over the elapsed time; one that goes on beyond it counts
    /// whole.
    pub queue_depth_mean: f64,
    /// Operations.
    pub operations: u64,
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
    /// Folded out of the SLC cache. Left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fold: u64,
    /// Moved because their blocks had been read often. Left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refresh: u64,
    /// Copied by merges of a log-block map. Left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub merge: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Counts of a drive on cells of several bits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellsResult {
    /// Pages programmed at one bit a cell.
    pub slc_pages: u64,
    /// Lines of the SLC cache that were folded.
    pub fold_runs: u64,
    /// Of these, lines that writes had to wait for.
    pub fold_stalls: u64,
    /// Pages used up empty, because their word line had to be programmed.
    pub skipped_pages: u64,
    /// Lines rewritten because they had been read often.
    pub refresh_runs: u64,
}

/// Merges of a log-block map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MergesResult {
    /// Log lines that became data lines as they were.
    pub switch: u64,
    /// Log lines that became data lines when the rest of their block was copied behind.
    pub partial: u64,
    /// Logical blocks that were copied to a free line.
    pub full: u64,
}

/// Reclaim units of a drive with flexible data placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacementResult {
    /// The handles, in order.
    pub handles: Vec<HandleResult>,
    /// Units left by an update of their handle though there was room in them.
    pub units_not_full: u64,
    /// Writes that named a handle that is not there.
    pub invalid_handles: u64,
    /// Units of which something was moved.
    pub reallocations: u64,
}

/// A reclaim unit handle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HandleResult {
    /// Blocks that the host wrote by it.
    pub host_blocks: u64,
    /// Blocks of its data that were programmed, by the host or by cleaning: not the drive's own pages,
    /// nor pages left empty.
    pub media_blocks: u64,
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
