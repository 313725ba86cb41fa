//! Replaying a trace on a drive.

mod ahead;
mod memory;
mod pending;
mod run;
mod trace_actor;

use std::path::PathBuf;

use dovetail_block::ZoneError;
use dovetail_ftl::{ConfigError, DriveConfig};
use dovetail_host::{HostCosts, HostError, NoZoneLog};
use dovetail_time::{SimSpan, format_bytes};
use dovetail_workload::trace::{TraceError, TraceOptions};

use crate::precondition::NotPrepared;
use crate::prepared::NewDrive;

pub use memory::memory_bytes;
pub use run::{replay, replay_shared, replay_until};

/// Rule for the times at which requests are issued.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// At their recorded times, divided by `speed`.
    Timed {
        /// Above 0; 2 replays twice as fast as recorded.
        speed: f64,
    },
    /// The next one when one of `depth` completes; recorded times do not matter.
    Closed {
        /// Requests in flight, at least 1.
        depth: u32,
    },
}

/// One replay.
#[derive(Clone, Debug)]
pub struct ReplayJob {
    /// Label that tells the replay from the others.
    pub label: String,
    /// The trace's file.
    pub trace: PathBuf,
    /// Options for reading the trace.
    pub trace_options: TraceOptions,
    /// The drive.
    pub drive: DriveConfig,
    /// Rule for the times at which requests are issued.
    pub pacing: Pacing,
    /// Folds requests beyond the drive's end into it instead of failing.
    pub wrap: bool,
    /// Fills the drive first, in order and then at random until it is steady.
    pub precondition: bool,
    /// Length of the intervals of the time series; `None` chooses one that gives 256 to 512 of
    /// them (of 0.1 ms and fewer for a replay below 25.6 ms).
    pub interval: Option<SimSpan>,
    /// Costs of the host's work; [`HostCosts::NONE`] for a raw drive.
    pub host: HostCosts,
    /// Ends after so many requests.
    pub limit: Option<u64>,
    /// Plays it on a zoned drive through a log in the host, which keeps so many percent of the
    /// host's blocks for itself; `None` for the drive as it is.
    pub zone_log: Option<f64>,
}

impl ReplayJob {
    /// The job's drive before its first command.
    pub fn new_drive(&self) -> NewDrive {
        NewDrive::new(self.drive.clone(), self.zone_log)
    }

    /// The trace's file without its folder.
    pub fn trace_name(&self) -> String {
        self.trace.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Reason why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The drive cannot be built.
    #[error("drive {name}: {source}")]
    Config {
        /// The drive's name.
        name: String,
        /// Fault of the configuration.
        source: ConfigError,
    },
    /// A request beyond the drive's end.
    #[error(
        "{trace}: request {number} ends at byte {end}, but the drive ends at {capacity} ({shown}): choose a larger \
         drive, or give --wrap to fold addresses into it",
        shown = format_bytes(*capacity)
    )]
    BeyondEnd {
        /// The trace's file.
        trace: String,
        /// The request's number, from 1.
        number: u64,
        /// The first byte after it.
        end: u64,
        /// The drive's size in bytes.
        capacity: u64,
    },
    /// A write that breaks the rules of the drive's zones.
    #[error(
        "{trace}: request {number}, a write at byte {at}, cannot be played on a drive with zones as it is: {source}. Give \
         --zone-translate to play the trace through a log in the host"
    )]
    Zones {
        /// The trace's file.
        trace: String,
        /// The request's number, from 1.
        number: u64,
        /// The first byte of its first block.
        at: u64,
        /// The rule, with the write pointer.
        source: ZoneError,
    },
    /// No log in the host fits the drive.
    #[error("drive {name}: {source}")]
    NoLog {
        /// The drive's name.
        name: String,
        /// The reason.
        source: NoZoneLog,
    },
    /// A request so late that virtual time would end.
    #[error(
        "{trace}: request {number} comes more than a hundred years after the first: check --format, or raise --speed"
    )]
    TooLong {
        /// The trace's file.
        trace: String,
        /// The request's number, from 1.
        number: u64,
    },
    /// It was ended from outside before the first request.
    #[error("stopped before the first request")]
    Stopped,
    /// The trace has no request.
    #[error("{0} holds no request: nothing was replayed (look at --format, --device and --event)")]
    NoRequest(String),
    /// The drive failed, or a read did not return what was last written.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The interval is so short that the time series would not fit.
    #[error("an interval of {0} gives more than {max} points: choose a longer one", max = trace_actor::MAX_FIXED_POINTS)]
    IntervalTooShort(SimSpan),
}

impl From<NotPrepared> for ReplayError {
    fn from(error: NotPrepared) -> Self {
        match error {
            NotPrepared::Stopped => Self::Stopped,
            NotPrepared::Host(error) => Self::Host(error),
        }
    }
}
