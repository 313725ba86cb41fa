//! Figures of a drive, in the form of results.

use dovetail_block::{BLOCK_SIZE, PlacementEvent};
use dovetail_ftl::stats::{Cause, CommandKind, Counters, Latencies, ReadCause};
use dovetail_ftl::{DieUse, DriveConfig, Storage};
use dovetail_time::SimSpan;

use super::recorder::Recorder;
use crate::results::{
    ByKind, CellsResult, DieResult, DriveResult, DriveTiming, DriveTotals, HandleResult,
    LatencyResult, MemoryResult, MergesResult, PlacementResult, ProgramsByCause, ReadsByCause,
    WearResult,
};

/// Points of a latency curve.
const CDF_POINTS: usize = 120;
/// Columns of the wear map.
const WEAR_COLUMNS: u32 = 96;

/// The drive as it was built.
pub(super) fn describe(config: &DriveConfig, drive: &Storage) -> DriveResult {
    let geometry = drive.geometry();
    let page = u64::from(geometry.page_bytes);
    let capacity_bytes = config.user_blocks * BLOCK_SIZE;
    DriveResult {
        profile: config.name.clone(),
        capacity_bytes,
        raw_bytes: geometry.raw_bytes(),
        over_provisioning_percent: (geometry.raw_bytes() as f64 / capacity_bytes as f64 - 1.0)
            * 100.0,
        channels: geometry.channels,
        dies: geometry.dies(),
        page_bytes: geometry.page_bytes,
        block_bytes: page * u64::from(geometry.pages_per_block),
        line_bytes: page * u64::from(drive.pages_per_line()),
        lines: drive.lines(),
        map: config.map_name().into(),
        gc: config.policy.name.into(),
        streams: config.streams,
        buffer_bytes: page * u64::from(config.buffer_pages),
        zones: drive.zoned().map(|zoned| zoned.zones().zones().count.into()),
        timing: timing(config),
    }
}

/// The drive's timings.
fn timing(config: &DriveConfig) -> DriveTiming {
    let flash = &config.nand.timing;
    let cells = flash.cells.as_ref().filter(|cells| cells.bits > 1);
    let bits = cells.map_or(0, |cells| cells.bits as usize);
    let by_type = |times: &[SimSpan]| times[..bits].iter().map(|time| time.as_ns()).collect();
    DriveTiming {
        read_ns: flash.read.as_ns(),
        program_ns: flash.program.as_ns(),
        erase_ns: flash.erase.as_ns(),
        transfer_4k_ns: flash.transfer_4k.as_ns(),
        cell_read_ns: cells.map_or_else(Vec::new, |cells| by_type(&cells.read)),
        cell_program_ns: cells.map_or_else(Vec::new, |cells| by_type(&cells.program)),
        link_4k_ns: config.link_4k.as_ns(),
        link_write_4k_ns: config.link_write_4k.unwrap_or(config.link_4k).as_ns(),
        command_ns: config.command.as_ns(),
        write_command_ns: config.write_command.unwrap_or(config.command).as_ns(),
        command_serial_ns: config.command_serial.as_ns(),
        write_serial_4k_ns: config.write_serial_4k.as_ns(),
        request_serial_ns: config.request_serial.as_ns(),
        flush_ns: config.flush.as_ns(),
        fua_ns: config.fua.as_ns(),
        cores: config.cores,
        map_access_ns: config.map_access.as_ns(),
    }
}

/// The latencies of every kind.
pub(super) fn latencies_by_kind(latencies: &Latencies) -> ByKind<LatencyResult> {
    let latency = |kind| LatencyResult {
        percentiles: latencies.percentiles(kind),
        cdf: latencies.cdf(kind, CDF_POINTS),
    };
    ByKind {
        read: latency(CommandKind::Read),
        write: latency(CommandKind::Write),
        flush: latency(CommandKind::Flush),
        discard: latency(CommandKind::Discard),
    }
}

/// The drive's memory; the map's maximum is not known here.
pub(super) fn memory(drive: &Storage) -> MemoryResult {
    MemoryResult {
        map_bytes: drive.mapping_memory_bytes(),
        map_bytes_max: 0,
        other_bytes: drive.other_memory_bytes(),
    }
}

/// Pages programmed, by cause.
fn programs(counted: &Counters) -> ProgramsByCause {
    let programs = |cause: Cause| counted.programs[cause as usize];
    ProgramsByCause {
        host: programs(Cause::Host),
        gc: programs(Cause::Gc),
        wear: programs(Cause::Wear),
        retire: programs(Cause::Retire),
        journal: programs(Cause::Journal),
        remap: programs(Cause::Remap),
        translation: programs(Cause::Translation),
        fold: programs(Cause::Fold),
        refresh: programs(Cause::Refresh),
        merge: programs(Cause::Merge),
    }
}

/// Counts of cells of several bits; `None` where there is none.
fn cells(counted: &Counters) -> Option<CellsResult> {
    let cells = CellsResult {
        slc_pages: counted.single_programs,
        fold_runs: counted.fold_runs,
        fold_stalls: counted.fold_stalls,
        skipped_pages: counted.skipped_pages,
        refresh_runs: counted.refresh_runs,
    };
    (cells != CellsResult::default()).then_some(cells)
}

/// Counts of a log-block map; `None` where there is none, or nothing was merged.
fn merges(counted: &Counters) -> Option<MergesResult> {
    let merges = MergesResult {
        switch: counted.switch_merges,
        partial: counted.partial_merges,
        full: counted.full_merges,
    };
    (merges != MergesResult::default()).then_some(merges)
}

/// Reclaim units and their handles; `None` of a drive that has none.
fn placement(config: &DriveConfig, counted: &Counters) -> Option<PlacementResult> {
    let handles = config.reclaim_units()?.handles;
    let page = u64::from(config.nand.geometry.subpages_per_page());
    let handle = |number: usize| HandleResult {
        host_blocks: counted.handle_blocks[number],
        media_blocks: counted.handle_programs[number] * page,
    };
    let events = |kind: PlacementEvent| counted.placement_events[kind as usize];
    Some(PlacementResult {
        handles: (0..handles.into()).map(handle).collect(),
        units_not_full: events(PlacementEvent::UnitNotFull),
        invalid_handles: events(PlacementEvent::InvalidHandle),
        reallocations: events(PlacementEvent::MediaReallocated),
    })
}

/// Counts of the drive.
pub(super) fn totals(config: &DriveConfig, counted: &Counters) -> DriveTotals {
    let reads = |cause: ReadCause| counted.flash_reads[cause as usize];
    DriveTotals {
        read_blocks: counted.read_blocks,
        written_blocks: counted.written_blocks,
        discarded_blocks: counted.discarded_blocks,
        programs: programs(counted),
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
        cells: cells(counted),
        merges: merges(counted),
        placement: placement(config, counted),
    }
}

/// The load of each die in the time of the measurement.
pub(super) fn dies(drive: &Storage, recorder: &Recorder) -> Vec<DieResult> {
    let end = recorder.last().at;
    let elapsed = end.since(recorder.first.at).as_secs_f64();
    drive
        .die_use(end)
        .into_iter()
        .zip(&recorder.dies)
        .map(|(now, then)| die(now, *then, elapsed))
        .collect()
}

fn die(now: DieUse, then: DieUse, elapsed: f64) -> DieResult {
    let share = |span: SimSpan| if elapsed > 0.0 { span.as_secs_f64() / elapsed } else { 0.0 };
    DieResult {
        busy: share(now.busy - then.busy),
        queue_depth_mean: share(now.residence - then.residence),
        operations: now.operations - then.operations,
    }
}

/// Wear of its blocks.
pub(super) fn wear(config: &DriveConfig, drive: &Storage) -> WearResult {
    let geometry = drive.geometry();
    let counts = drive.erase_counts();
    let units = geometry.units();
    let columns = WEAR_COLUMNS.min(geometry.blocks_per_plane);
    let cell = |unit: u32, column: u32| {
        let from = u64::from(column) * u64::from(geometry.blocks_per_plane) / u64::from(columns);
        let to =
            (u64::from(column) + 1) * u64::from(geometry.blocks_per_plane) / u64::from(columns);
        let sum: u64 = (from..to)
            .map(|row| u64::from(counts[(row * u64::from(units)) as usize + unit as usize]))
            .sum();
        sum as f64 / (to - from) as f64
    };
    WearResult {
        erases_min: counts.iter().copied().min().unwrap_or(0),
        erases_mean: counts.iter().map(|&n| f64::from(n)).sum::<f64>() / counts.len().max(1) as f64,
        erases_max: counts.iter().copied().max().unwrap_or(0),
        endurance: config.nand.endurance,
        bad_blocks: drive.bad_blocks(),
        map: (0..units)
            .map(|unit| (0..columns).map(|column| cell(unit, column)).collect())
            .collect(),
    }
}
