//! Everything that is counted, as it stands at a point in time.

use dovetail_ftl::Storage;
use dovetail_ftl::cache::Occupancy;
use dovetail_ftl::stats::Counters;
use dovetail_host::Traffic;
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::{Count, Simulated};

/// The work of a workload so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) calls: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    /// Of calls that are not counted: file system and drive count what follows from them.
    pub(crate) ramp_read_bytes: u64,
    pub(crate) ramp_written_bytes: u64,
}

impl Work {
    /// Bytes that were written since `before`, by counted calls or others.
    pub(crate) const fn all_written_since(&self, before: &Self) -> u64 {
        self.written_bytes + self.ramp_written_bytes
            - before.written_bytes
            - before.ramp_written_bytes
    }
}

/// The drive at a point in time, and what has reached it.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) at: SimTime,
    pub(crate) drive: &'a Storage,
    pub(crate) traffic: Traffic,
}

/// Counts until a point in time, and the state of the drive then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) at: SimTime,
    pub(crate) work: Work,
    /// Of the file system; nothing without one.
    pub(crate) written: Vec<Count>,
    pub(crate) events: Vec<Count>,
    pub(crate) drive: Counters,
    pub(crate) traffic: Traffic,
    pub(crate) die_busy: SimSpan,
    pub(crate) free_lines: u32,
    pub(crate) map_cache: Occupancy,
    pub(crate) map_bytes: u64,
}

impl Snapshot {
    /// Takes down what is counted outside the recorder.
    pub(crate) fn of(fs: Option<&dyn Simulated>, seen: &Seen<'_>) -> Self {
        let drive = seen.drive;
        Self {
            at: seen.at,
            work: Work::default(),
            written: fs.map(Simulated::written).unwrap_or_default(),
            events: fs.map(Simulated::events).unwrap_or_default(),
            drive: drive.counters(),
            traffic: seen.traffic,
            die_busy: drive.die_use(seen.at).iter().fold(SimSpan::ZERO, |sum, die| sum + die.busy),
            free_lines: drive.free_lines(),
            map_cache: drive.map_cache().unwrap_or_default(),
            map_bytes: drive.mapping_memory_bytes(),
        }
    }
}
