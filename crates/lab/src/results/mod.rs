//! Results of a bench or a replay, in the form in which they are written: the documented JSON
//! (`docs/results-json.md`).
//!
//! Everything follows from configuration and seed; nothing tells the machine, the clock or the
//! number of threads. Times are virtual. A figure that does not exist is null.

mod beside;
mod devirtualize;
mod drive;
mod floor;
mod lifetime;
mod map_cache;
mod notes;
mod provenance;
mod requests;
mod schema;
mod series;
mod totals;
mod workload;
mod zone_log;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bench::FioLog;
use crate::map_cache::beside_dftl;
pub use crate::map_cache::latencies;

pub use beside::{BesideError, beside};
pub use devirtualize::{DevirtualizeResult, DevirtualizeRun, DevirtualizeWork};
pub use drive::{
    CellsResult, DieResult, DriveResult, DriveTiming, HandleResult, LatencyResult, MemoryResult,
    MergesResult, PlacementResult, ProgramsByCause, ReadsByCause, WearResult,
};
pub use floor::{FloorResult, floor_notes};
pub use lifetime::LifetimeResult;
pub use map_cache::{ByUse, MapCacheResult, ReadAndWrite};
pub(crate) use notes::notes;
pub use provenance::{JobSource, OptionsResult, Provenance};
pub use requests::{RemapResult, RepeatResult, RepeatsResult, RequestResult, RequestsResult};
pub use schema::{SCHEMA, SCHEMA_VERSION, SchemaError, check_schema};
pub use series::{ScatterPoint, Series};
pub use totals::{DriveTotals, Totals};
pub use workload::{
    FragmentationResult, JobResult, PreconditionResult, ReplayResult, RestartResult, StackResult,
    TraceResult,
};

pub use zone_log::ZoneLogResult;

/// Counts by name.
pub type Counts = BTreeMap<String, u64>;

/// The results of one call of the command line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`].
    pub version: u32,
    /// The workload: a job file's or a personality's name, or the names of the traces.
    pub workload: String,
    /// By how much drive, memory and workload were shrunk.
    pub scale: f64,
    /// The seed of the whole call.
    pub seed: u64,
    /// The program and the call; null where nobody told. Comparisons leave it out.
    #[serde(default)]
    pub provenance: Option<Provenance>,
    /// Options that decide the results; null where nobody told.
    #[serde(default)]
    pub options: Option<OptionsResult>,
    /// The workload as it was given; null in a replay.
    #[serde(default)]
    pub job: Option<JobSource>,
    /// One entry for each run, in the order in which they were named.
    pub runs: Vec<RunResult>,
}

impl Results {
    /// The figures that stand at their floors because of the scale, in a sentence for each.
    pub fn floor_notes(&self) -> Vec<String> {
        floor_notes(self.runs.iter().map(|run| (run.label.as_str(), run.floors.as_slice())))
    }

    /// The results of runs, latencies of demand-paged maps beside those with `dftl`.
    pub fn of(workload: String, scale: f64, seed: u64, mut runs: Vec<RunResult>) -> Self {
        beside_dftl(&mut runs);
        for run in &mut runs {
            let sentence = notes::shrunk(run, scale);
            run.notes.extend(sentence);
        }
        Self {
            schema: SCHEMA.into(),
            version: SCHEMA_VERSION,
            workload,
            scale,
            seed,
            provenance: None,
            options: None,
            job: None,
            runs,
        }
    }
}

/// A workload on a stack, or a trace on a drive: a stack without a file system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// A label that sets this run apart from the others of the call.
    pub label: String,
    /// The stack.
    pub stack: StackResult,
    /// The run's own seed.
    pub seed: u64,
    /// The reason why it ended early; what stands here was measured until then.
    pub error: Option<String>,
    /// Sentences that keep its figures from being taken for more than they are.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The trace that was replayed; null in a bench.
    pub trace: Option<TraceResult>,
    /// The way in which it was replayed; null in a bench.
    pub replay: Option<ReplayResult>,
    /// The preparation of the drive; null without `--precondition`.
    pub precondition: Option<PreconditionResult>,
    /// Figures that stand at their floors because of the scale.
    #[serde(default)]
    pub floors: Vec<FloorResult>,
    /// Figures of the whole run.
    pub totals: Totals,
    /// Blocks of 4 KiB that the file system wrote, by cause.
    pub written: Counts,
    /// The host's log over the drive's zones; null without one.
    #[serde(default)]
    pub zone_log: Option<ZoneLogResult>,
    /// Events in the file system, by kind.
    pub events: Counts,
    /// Commands that reached the drive.
    pub requests: RequestsResult,
    /// Latencies of calls, all threads together: `flush` is fsync and its like, `discard` punching
    /// holes. Of a replay, latencies of the trace's commands.
    pub latency: ByKind<LatencyResult>,
    /// Each job of the workload; a trace is one job.
    pub jobs: Vec<JobResult>,
    /// The layout of the files at the end; null without a file system.
    pub fragmentation: Option<FragmentationResult>,
    /// The volume at the end in equal parts, in the order of addresses: the share of blocks in use
    /// in each.
    pub occupancy: Vec<f64>,
    /// The drive.
    pub drive: DriveResult,
    /// The cache of a demand-paged map; null for a drive with its whole map in memory.
    pub map_cache: Option<MapCacheResult>,
    /// The devirtualizer; null without one.
    pub devirtualize: Option<DevirtualizeResult>,
    /// A power cut at the end; null where there was none.
    #[serde(default)]
    pub restart: Option<RestartResult>,
    /// The drive's memory.
    pub memory: MemoryResult,
    /// Wear of the flash.
    pub wear: WearResult,
    /// Lifetime of the drive if all its life were like this run.
    #[serde(default)]
    pub lifetime: LifetimeResult,
    /// Each die, in the order of channel, then die.
    pub dies: Vec<DieResult>,
    /// Figures over time.
    pub series: Series,
    /// A sample of the commands that reached the drive, in order of time; of a replay, of the
    /// requests as they arrived.
    pub scatter: Vec<ScatterPoint>,
    /// The same in fio's own layout, if the workload is a fio job; not part of this format.
    #[serde(skip)]
    pub fio: Option<serde_json::Value>,
    /// Logs that the fio job asks for; not part of this format.
    #[serde(skip)]
    pub fio_logs: Vec<FioLog>,
}

/// One value for each kind of command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByKind<T> {
    /// Reads.
    pub read: T,
    /// Writes.
    pub write: T,
    /// Flushes.
    pub flush: T,
    /// Discards.
    pub discard: T,
}
