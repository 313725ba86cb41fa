//! Results of the devirtualizer beside a workload.

use serde::{Deserialize, Serialize};

/// The work of a run of the devirtualizer, or of all its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DevirtualizeWork {
    /// Time of its batches, in seconds.
    pub time_s: f64,
    /// Mean time for which a call waits that comes to a block in work, all moments being alike: the
    /// rest of that block's batch. In seconds.
    pub block_wait_s: f64,
    /// Files dealt with.
    pub files: u64,
    /// Files left because they had just changed.
    pub hot_files: u64,
    /// Blocks of content renamed.
    pub content_blocks: u64,
    /// Blocks of pointers renamed.
    pub metadata_blocks: u64,
    /// Calls that came to blocks in work and had to wait.
    pub stalled_calls: u64,
    /// The time they did, in seconds, summed.
    pub stalled_s: f64,
}

impl DevirtualizeWork {
    pub(crate) fn add(&mut self, other: &Self) {
        let waits = self.block_wait_s * self.time_s + other.block_wait_s * other.time_s;
        self.time_s += other.time_s;
        self.block_wait_s = waits / self.time_s.max(f64::MIN_POSITIVE);
        self.files += other.files;
        self.hot_files += other.hot_files;
        self.content_blocks += other.content_blocks;
        self.metadata_blocks += other.metadata_blocks;
        self.stalled_calls += other.stalled_calls;
        self.stalled_s += other.stalled_s;
    }
}

/// A run of the devirtualizer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DevirtualizeRun {
    /// The reason for it: `interval`, `pressure` or `idle`.
    pub cause: String,
    /// The time it began, in seconds since the start of the measurement.
    pub start_s: f64,
    /// The end of its last batch.
    pub end_s: f64,
    /// Its work.
    #[serde(flatten)]
    pub work: DevirtualizeWork,
    /// Bytes of the drive's map when it began.
    pub map_bytes_before: u64,
    /// The same at its end.
    pub map_bytes_after: u64,
}

/// The devirtualizer beside a workload.
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
