//! Results of the block layer: commands that reached the drive.

use serde::{Deserialize, Serialize};

use super::ByKind;

/// Commands of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestResult {
    /// Number of commands.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
    /// Mean size in KiB.
    pub mean_kib: f64,
    /// Mean time from issue to completion in microseconds.
    pub mean_us: f64,
    /// Numbers of commands of 4 to below 8 KiB, of 8 to below 16 KiB, and so on; the last class has
    /// all larger ones.
    pub sizes: Vec<u64>,
}

/// Commands that reached the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsResult {
    /// By kind.
    #[serde(flatten)]
    pub by_kind: ByKind<RequestResult>,
    /// Flushes that were not issued because another one did their work.
    pub merged_flushes: u64,
    /// Remap commands.
    pub remap: RemapResult,
    /// Numbers of blocks accessed again and again; null where they were not counted.
    pub repeats: Option<RepeatsResult>,
}

/// Blocks by how often they were accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatsResult {
    /// By reads.
    pub read: RepeatResult,
    /// By writes.
    pub write: RepeatResult,
    /// Blocks that were read or written.
    #[serde(default)]
    pub footprint: u64,
}

/// Blocks that were accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatResult {
    /// At all.
    pub blocks: u64,
    /// More than two times.
    pub multiple: u64,
    /// Accesses of those.
    #[serde(default)]
    pub multiple_accesses: u64,
}

/// Remap commands that reached the drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RemapResult {
    /// Number of commands.
    pub count: u64,
    /// Pairs of addresses in them.
    pub pairs: u64,
    /// Mean time from issue to completion in microseconds.
    pub mean_us: f64,
}
