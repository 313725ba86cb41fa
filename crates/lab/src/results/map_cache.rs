//! Results of a demand-paged map.

use serde::{Deserialize, Serialize};

/// The cache of a demand-paged map, and what the map cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MapCacheResult {
    /// Its policy.
    pub policy: String,
    /// Its memory in bytes.
    pub bytes: u64,
    /// Share of the entries wanted for reads, and for writes, that were cached; null where none was
    /// wanted.
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
    /// Mean time of a block read and of one written in microseconds if flash operations add up and
    /// none waits: service times.
    pub summed_us: ReadAndWrite,
    /// Mean latency of requests to the drive over that of the run with `dftl` that is else the
    /// same; null without one.
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
