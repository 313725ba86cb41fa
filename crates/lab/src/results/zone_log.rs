//! Results of a log in the host over the zones of a drive.

use serde::{Deserialize, Serialize};

/// A log in the host, by which a trace that writes anywhere is played on a zoned drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ZoneLogResult {
    /// Blocks that it keeps for itself, in percent of those that it shows.
    pub spare_percent: f64,
    /// Blocks of 4 KiB that were written to it.
    pub written_blocks: u64,
    /// Blocks that its cleaning has moved.
    pub moved_blocks: u64,
    /// Blocks that it wrote for each block written to it; the drive's amplification comes on top.
    pub waf: Option<f64>,
    /// Zones that it has reset.
    pub resets: u64,
    /// Writes that waited for its cleaning.
    pub stalls: u64,
    /// Bytes of the host's memory that its map takes.
    pub map_bytes: u64,
}
