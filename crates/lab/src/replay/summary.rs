//! From counts to results.

use dovetail_ftl::stats::{Counters, Latencies, ReadCause};
use dovetail_ftl::{DieUse, Drive, DriveConfig};
use dovetail_time::{SimSpan, SimTime};

use super::run::Tally;
use super::{Pacing, ReplayJob};
use crate::drive_results::{describe, latencies_by_kind, memory, programs, wear};
use crate::map_cache::map_cache;
use crate::results::{DieResult, ReadsByCause, ReplayResult, RunResult, Totals, TraceResult};

/// The state of the drive when the replay begins.
#[derive(Debug)]
pub(super) struct Baseline {
    counters: Counters,
    dies: Vec<DieUse>,
    at: SimTime,
}

impl Baseline {
    pub(super) fn of(drive: &Drive) -> Self {
        Self { counters: drive.counters(), dies: drive.die_use().collect(), at: drive.idle_from() }
    }
}

/// Fills in what the drive knows.
pub(super) fn fill(
    result: &mut RunResult,
    job: &ReplayJob,
    config: &DriveConfig,
    drive: &Drive,
    before: &Baseline,
) {
    result.drive = describe(config, drive);
    result.replay = pacing(job);
    let counted = drive.counters() - before.counters;
    count(&mut result.totals, counted, drive.geometry().parts_per_page());
    result.map_cache = map_cache(config, drive, &counted);
    result.memory = memory(drive);
    result.wear = wear(config, drive);
    let elapsed = drive.idle_from().since(before.at).as_secs_f64();
    result.dies = drive.die_use().zip(&before.dies).map(|(now, then)| die(now, *then, elapsed)).collect();
}

/// Fills in what the replayer has counted.
pub(super) fn fill_requests(result: &mut RunResult, tally: &Tally, latencies: &Latencies, elapsed: SimSpan) {
    result.trace = TraceResult {
        requests: tally.requests.clone(),
        bytes: tally.bytes.clone(),
        wrapped: tally.wrapped,
        partial_blocks: tally.partial_blocks,
        span_s: tally.span.as_secs_f64(),
        ..TraceResult::default()
    };
    let seconds = elapsed.as_secs_f64().max(1e-9);
    let totals = &mut result.totals;
    totals.elapsed_s = elapsed.as_secs_f64();
    totals.iops = tally.number as f64 / seconds;
    totals.read_mb_per_s = tally.bytes.read as f64 / 1e6 / seconds;
    totals.write_mb_per_s = tally.bytes.write as f64 / 1e6 / seconds;
    totals.queue_depth_mean = tally.in_flight_sum as f64 / tally.number.max(1) as f64;
    totals.queue_depth_max = tally.in_flight_max;
    result.latency = latencies_by_kind(latencies);
}

fn pacing(job: &ReplayJob) -> ReplayResult {
    let (mode, speed, queue_depth) = match job.pacing {
        Pacing::Timed { speed } => ("timed", Some(speed), None),
        Pacing::Closed { depth } => ("closed", None, Some(depth)),
    };
    ReplayResult { mode: mode.into(), speed, queue_depth, seed: job.drive.seed }
}

fn count(totals: &mut Totals, counted: Counters, parts: u32) {
    let reads = |cause: ReadCause| counted.flash_reads[cause as usize];
    *totals = Totals {
        waf: counted.waf(parts),
        read_blocks: counted.read_blocks,
        written_blocks: counted.written_blocks,
        discarded_blocks: counted.discarded_blocks,
        programs: programs(&counted),
        flash_reads: ReadsByCause {
            host: reads(ReadCause::Host),
            merge: reads(ReadCause::Merge),
            moved: reads(ReadCause::Move),
            translation: reads(ReadCause::Translation),
        },
        erases: counted.erases,
        gc_runs: counted.gc_runs,
        gc_stalls: counted.gc_stalls,
        wear_runs: counted.wear_runs,
        program_failures: counted.program_failures,
        erase_failures: counted.erase_failures,
        lost_blocks: counted.lost_blocks,
        empty_read_blocks: counted.empty_read_blocks,
        buffer_read_hits: counted.buffer_read_hits,
        buffer_overwrites: counted.buffer_overwrites,
        map_accesses: counted.map_accesses,
        ..Totals::default()
    };
}

fn die(now: DieUse, then: DieUse, elapsed: f64) -> DieResult {
    let share = |span: SimSpan| if elapsed > 0.0 { span.as_secs_f64() / elapsed } else { 0.0 };
    DieResult {
        busy: share(now.busy - then.busy),
        queue_depth_mean: share(now.residence - then.residence),
        operations: now.operations - then.operations,
    }
}
