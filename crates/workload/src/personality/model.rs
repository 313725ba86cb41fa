//! A personality with all its values: what the threads are made of.

use dovetail_time::SimSpan;

/// A set of files, by its place in the personality's list.
pub(super) type SetId = usize;

#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// No limit if it is `None`.
    pub(super) runtime: Option<SimSpan>,
    /// Flowops that do I/O, over all threads.
    pub(super) operations: Option<u64>,
    /// Events a second; without it the limiting flowops do nothing.
    pub(super) event_rate: Option<u64>,
    pub(super) sets: Vec<SetSpec>,
    pub(super) threads: Vec<ThreadSpec>,
}

#[derive(Clone, Debug)]
pub(super) struct SetSpec {
    /// Directory of the set, from the root of the file system.
    pub(super) root: String,
    pub(super) name: String,
    pub(super) entries: u32,
    pub(super) mean_size: u64,
    /// Shape of the gamma distribution of sizes; 0: all files have the mean size.
    pub(super) size_gamma: f64,
    pub(super) dir_width: u64,
    /// Shape of the gamma distribution of widths and depths; 0: all have the mean.
    pub(super) dir_gamma: f64,
    pub(super) prealloc_percent: u64,
    pub(super) read_only: bool,
    /// Keeps pre-allocated files in the page cache.
    pub(super) cached: bool,
}

/// Threads that do the same.
#[derive(Clone, Debug)]
pub(super) struct ThreadSpec {
    pub(super) process: String,
    /// Processes times threads of a process.
    pub(super) instances: u32,
    pub(super) flowops: Vec<Flowop>,
}

#[derive(Clone, Debug)]
pub(super) struct Flowop {
    pub(super) name: String,
    /// Number of runs before the next one.
    pub(super) iters: u64,
    pub(super) action: Action,
}

/// File of an I/O, and its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io {
    pub(super) set: Option<SetId>,
    pub(super) fd: u32,
    /// `opennext`: another file of the set each time.
    pub(super) rotate: bool,
    /// Bytes; 0 means the whole working set where a whole file is read or written.
    pub(super) io_size: u64,
    /// Bytes from the start of the file; 0: the whole file.
    pub(super) working_set: u64,
    pub(super) random: bool,
    pub(super) direct: bool,
    /// As if opened with O_SYNC.
    pub(super) dsync: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Open { set: Option<SetId>, fd: u32, rotate: bool },
    Create { set: SetId, fd: u32 },
    Close { fd: u32 },
    Delete { set: Option<SetId>, fd: u32 },
    Stat { set: Option<SetId>, fd: u32 },
    Sync { fd: u32 },
    SyncSet { set: SetId },
    Read(Io),
    ReadWhole(Io),
    Write(Io),
    WriteWhole { io: Io, source: u32 },
    Append(Io),
    AioWrite(Io),
    AioWait,
    Pause(SimSpan),
    SemBlock { value: u64, highwater: u64 },
    SemPost { value: u64, target: String, blocking: bool },
    Limit { what: Measure, target: Option<usize> },
    EventLimit,
    Finish { what: Measure, value: u64, target: Option<usize> },
}

/// Unit in which a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Flowops that do I/O.
    Operations,
    /// Flowops that read or write.
    Transfers,
    /// Bytes read or written.
    Bytes,
}

impl Action {
    /// Filebench counts these as operations.
    pub(super) fn is_io(&self) -> bool {
        !matches!(
            self,
            Self::Pause(_)
                | Self::SemBlock { .. }
                | Self::SemPost { .. }
                | Self::Limit { .. }
                | Self::EventLimit
                | Self::Finish { .. }
        )
    }

    /// These read or write.
    pub(super) fn transfers(&self) -> bool {
        matches!(
            self,
            Self::Read(_)
                | Self::ReadWhole(_)
                | Self::Write(_)
                | Self::WriteWhole { .. }
                | Self::Append(_)
                | Self::AioWrite(_)
        )
    }
}
