//! The state of a drive that is served, as its SMART log would tell it.

use dovetail_block::{BLOCK_SIZE, BlockDevice};
use dovetail_ftl::Storage;
use dovetail_ftl::stats::ReadCause;
use serde::{Deserialize, Serialize};

/// The drive and its server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The drive and its wear.
    pub drive: DriveStatus,
    /// Work of the drive since it was switched on.
    pub since_power_on: DriveWork,
    /// Work of the server since it began.
    pub server: ServerStatus,
}

/// A drive and its wear.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveStatus {
    /// Name of the profile.
    pub name: String,
    /// Serial number.
    pub serial: String,
    /// Size of what it can hold.
    pub capacity_bytes: u64,
    /// Addresses of the host, in blocks of 4 KiB.
    pub address_blocks: u64,
    /// Memory of its map.
    pub map_bytes: u64,
    /// A zoned drive: its lines are zones.
    pub zoned: bool,
    /// Lines, or zones of a zoned drive.
    pub lines: u64,
    /// Lines that are free, or zones that are empty.
    pub lines_free: u64,
    /// Erases of the block that was erased least.
    pub erases_least: u32,
    /// Erases of the block that was erased most.
    pub erases_most: u32,
    /// Mean erases of a block.
    pub erases_mean: f64,
    /// Blocks that are marked bad.
    pub bad_blocks: u32,
}

/// Work of a drive since it was switched on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriveWork {
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Discard commands.
    pub discards: u64,
    /// Bytes that the host read.
    pub read_bytes: u64,
    /// Bytes that the host wrote.
    pub written_bytes: u64,
    /// Bytes that discards unmapped.
    pub discarded_bytes: u64,
    /// Bytes programmed, whatever the cause.
    pub flash_written_bytes: u64,
    /// Flash pages that the host's reads needed.
    pub flash_pages_read: u64,
    /// Bytes programmed for each byte that the host wrote; `None` when it wrote nothing.
    pub write_amplification: Option<f64>,
    /// Blocks erased.
    pub erases: u64,
    /// Lines cleaned.
    pub lines_cleaned: u64,
    /// Programs and erases that failed.
    pub failures: u64,
    /// Bytes that were lost on the flash.
    pub lost_bytes: u64,
}

/// Work of a server since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Seconds since it began.
    pub seconds: f64,
    /// Time of the drive in seconds.
    pub drive_seconds: f64,
    /// Connections at the moment.
    pub connections: u64,
    /// Connections so far.
    pub connections_total: u64,
    /// Requests by kind.
    pub requests: Requests,
}

/// Requests by kind, those that failed too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Reads.
    pub read: u64,
    /// Writes.
    pub write: u64,
    /// Flushes.
    pub flush: u64,
    /// Discards.
    pub discard: u64,
    /// Writes of zeros.
    pub write_zeroes: u64,
    /// Questions about the allocation.
    pub block_status: u64,
    /// Commands on zones, and reports of them.
    pub zone: u64,
    /// Of all these, those that were answered with an error.
    pub failed: u64,
}

impl DriveStatus {
    /// The state of a drive.
    pub fn of(drive: &Storage) -> Self {
        let (config, erases) = (drive.config(), drive.erase_counts());
        let sum: u64 = erases.iter().copied().map(u64::from).sum();
        Self {
            name: config.name.clone(),
            serial: config.serial.to_string(),
            capacity_bytes: config.user_blocks * BLOCK_SIZE,
            address_blocks: drive.info().blocks,
            map_bytes: drive.mapping_memory_bytes(),
            zoned: drive.info().capabilities.zones.is_some(),
            lines: drive.lines().into(),
            lines_free: drive.free_lines().into(),
            erases_least: erases.iter().min().copied().unwrap_or(0),
            erases_most: erases.iter().max().copied().unwrap_or(0),
            erases_mean: sum as f64 / erases.len().max(1) as f64,
            bad_blocks: drive.bad_blocks(),
        }
    }
}

impl DriveWork {
    /// Work of a drive.
    pub fn of(drive: &Storage) -> Self {
        let (counters, page_bytes) = (drive.counters(), drive.geometry().page_bytes);
        let subpages = page_bytes / BLOCK_SIZE as u32;
        Self {
            reads: counters.reads,
            writes: counters.writes,
            flushes: counters.flushes,
            discards: counters.discards,
            read_bytes: counters.read_blocks * BLOCK_SIZE,
            written_bytes: counters.written_blocks * BLOCK_SIZE,
            discarded_bytes: counters.discarded_blocks * BLOCK_SIZE,
            flash_written_bytes: counters.programmed_pages() * u64::from(page_bytes),
            flash_pages_read: counters.flash_reads[ReadCause::Host as usize],
            write_amplification: counters.waf(subpages),
            erases: counters.erases,
            lines_cleaned: counters.gc_runs,
            failures: counters.program_failures + counters.erase_failures,
            lost_bytes: counters.lost_blocks * BLOCK_SIZE,
        }
    }
}
