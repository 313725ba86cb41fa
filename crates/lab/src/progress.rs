//! Progress of a run, for callers that wait for it.

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Writing the drive full.
    Precondition,
    /// Making the files that a workload starts with.
    Prepare,
    /// Replaying the trace, or running the workload.
    Run,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The present stage.
    pub stage: Stage,
    /// The part of `total` that is done: bytes of the drive or of files to write, or of the trace's
    /// file to read; millionths of a workload.
    pub done: u64,
    /// The whole of it, as far as it is known; 0 if it is not.
    pub total: u64,
    /// Requests or calls simulated so far in this stage.
    pub requests: u64,
}
