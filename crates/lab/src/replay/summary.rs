//! From counts to results.

use dovetail_block::BLOCK_SIZE;
use dovetail_ftl::stats::{Cause, CommandKind, Counters, Latencies, ReadCause};
use dovetail_ftl::{DieUse, Drive, DriveConfig};
use dovetail_time::{SimSpan, SimTime};

use super::run::Tally;
use super::{Pacing, ReplayJob};
use crate::results::{
    ByKind, DieResult, DriveResult, LatencyResult, MemoryResult, ProgramsByCause, ReadsByCause, ReplayResult,
    RunResult, Totals, TraceResult, WearResult,
};

/// Points of a latency curve.
const CDF_POINTS: usize = 120;
/// Columns of the wear map.
const WEAR_COLUMNS: u32 = 96;

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
    result.memory = MemoryResult {
        map_bytes: drive.mapping_memory_bytes(),
        map_bytes_max: 0,
        other_bytes: drive.other_memory_bytes(),
    };
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
    result.latency = ByKind {
        read: latency(latencies, CommandKind::Read),
        write: latency(latencies, CommandKind::Write),
        flush: latency(latencies, CommandKind::Flush),
        discard: latency(latencies, CommandKind::Discard),
    };
}

fn describe(config: &DriveConfig, drive: &Drive) -> DriveResult {
    let geometry = drive.geometry();
    let page = u64::from(geometry.page_bytes);
    let capacity_bytes = config.user_blocks * BLOCK_SIZE;
    DriveResult {
        profile: config.name.clone(),
        capacity_bytes,
        raw_bytes: geometry.raw_bytes(),
        over_provisioning_percent: (geometry.raw_bytes() as f64 / capacity_bytes as f64 - 1.0) * 100.0,
        channels: geometry.channels,
        dies: geometry.dies(),
        page_bytes: geometry.page_bytes,
        block_bytes: page * u64::from(geometry.pages_per_block),
        line_bytes: page * u64::from(drive.lines().pages_per_line()),
        lines: drive.lines().count(),
        map: config.scheme.name.into(),
        gc: config.policy.name.into(),
        streams: config.streams,
        buffer_bytes: page * u64::from(config.buffer_pages),
    }
}

fn pacing(job: &ReplayJob) -> ReplayResult {
    let (mode, speed, queue_depth) = match job.pacing {
        Pacing::Timed { speed } => ("timed", Some(speed), None),
        Pacing::Closed { depth } => ("closed", None, Some(depth)),
    };
    ReplayResult { mode: mode.into(), speed, queue_depth, seed: job.drive.seed }
}

fn count(totals: &mut Totals, counted: Counters, parts: u32) {
    let programs = |cause: Cause| counted.programs[cause as usize];
    let reads = |cause: ReadCause| counted.flash_reads[cause as usize];
    *totals = Totals {
        waf: counted.waf(parts),
        read_blocks: counted.read_blocks,
        written_blocks: counted.written_blocks,
        discarded_blocks: counted.discarded_blocks,
        programs: ProgramsByCause {
            host: programs(Cause::Host),
            gc: programs(Cause::Gc),
            wear: programs(Cause::Wear),
            retire: programs(Cause::Retire),
            journal: programs(Cause::Journal),
        },
        flash_reads: ReadsByCause {
            host: reads(ReadCause::Host),
            merge: reads(ReadCause::Merge),
            moved: reads(ReadCause::Move),
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

fn wear(config: &DriveConfig, drive: &Drive) -> WearResult {
    let geometry = drive.geometry();
    let counts: Vec<u32> = drive.erase_counts().collect();
    let units = geometry.units();
    let columns = WEAR_COLUMNS.min(geometry.blocks_per_plane);
    let cell = |unit: u32, column: u32| {
        let from = u64::from(column) * u64::from(geometry.blocks_per_plane) / u64::from(columns);
        let to = (u64::from(column) + 1) * u64::from(geometry.blocks_per_plane) / u64::from(columns);
        let sum: u64 =
            (from..to).map(|row| u64::from(counts[(row * u64::from(units)) as usize + unit as usize])).sum();
        sum as f64 / (to - from) as f64
    };
    WearResult {
        erases_min: counts.iter().copied().min().unwrap_or(0),
        erases_mean: counts.iter().map(|&n| f64::from(n)).sum::<f64>() / counts.len().max(1) as f64,
        erases_max: counts.iter().copied().max().unwrap_or(0),
        endurance: config.nand.endurance,
        bad_blocks: drive.bad_blocks(),
        map: (0..units).map(|unit| (0..columns).map(|column| cell(unit, column)).collect()).collect(),
    }
}

fn die(now: DieUse, then: DieUse, elapsed: f64) -> DieResult {
    let share = |span: SimSpan| if elapsed > 0.0 { span.as_secs_f64() / elapsed } else { 0.0 };
    DieResult {
        busy: share(now.busy - then.busy),
        queue_depth_mean: share(now.residence - then.residence),
        operations: now.operations - then.operations,
    }
}

fn latency(latencies: &Latencies, kind: CommandKind) -> LatencyResult {
    LatencyResult { percentiles: latencies.percentiles(kind), cdf: latencies.cdf(kind, CDF_POINTS) }
}
