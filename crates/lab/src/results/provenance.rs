//! Origin of results: the program, the call, and the options that decide them beside stack and
//! drive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Name of the program and of the call: all that may differ between two results that are else the
/// same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit that the program was built from; empty if it is not known.
    pub commit: String,
    /// Command line that gives these results, without the options that say only where they go and how
    /// many run at a time, and without the folders of files.
    pub command: String,
}

/// A workload as it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSource {
    /// The text of the job file or of the personality, as it was read; null of a trace.
    pub text: Option<String>,
    /// Values that were put into it: variables of the job file, parameters of the personality, pace
    /// and loops of a trace.
    pub definitions: BTreeMap<String, String>,
}

/// Options of the call that decide the results, beside those of stacks, drives and the replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OptionsResult {
    /// Runs of each stack, each with another seed.
    pub repeat: u32,
    /// Content of the volume before the workload: a share of the partition or bytes at full scale,
    /// and the kind of files; null for none.
    pub fill: Option<String>,
    /// The drive was filled and aged first.
    pub precondition: bool,
    /// The file system was synced at the end.
    pub final_sync: bool,
    /// The power was cut at the end.
    pub restart: bool,
    /// Addresses beyond the drive's end were folded into it.
    pub wrap: bool,
    /// Lines of the trace that cannot be read were left out.
    pub skip_bad: bool,
    /// Requests after which the replay ends; null for all.
    pub limit: Option<u64>,
    /// Event of blkparse that is a request; null in a bench.
    pub event: Option<String>,
    /// The only device of the trace that was replayed; null for all.
    pub device: Option<String>,
    /// Length of the intervals of the series as asked for, in seconds; null if it was not.
    pub interval_s: Option<f64>,
}
