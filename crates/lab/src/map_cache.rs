//! Costs of a demand-paged map: hit ratios, translation pages, and the service times of requests.

use dovetail_ftl::stats::{Cause, Counters, MapUse, ReadCause};
use dovetail_ftl::{DriveConfig, Storage};
use dovetail_time::SimSpan;

use crate::results::{
    ByUse, LatencyResult, MapCacheResult, ReadAndWrite, RequestResult, RunResult,
};

/// Of what was counted; `None` for a drive with its whole map in memory.
pub(crate) fn map_cache(
    config: &DriveConfig,
    drive: &Storage,
    counted: &Counters,
) -> Option<MapCacheResult> {
    let (cache, now) = (config.map_cache?, drive.map_cache()?);
    let hits = |access: usize| {
        let (hits, misses) = (counted.map_hits[access], counted.map_misses[access]);
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    };
    Some(MapCacheResult {
        policy: cache.policy.name.into(),
        bytes: cache.bytes,
        hit_ratio: ReadAndWrite { read: hits(0), write: hits(1) },
        translation_reads: by_use(counted.translation_reads),
        translation_writes: by_use(counted.translation_writes),
        entries: now.entries,
        dirty: now.dirty,
        write_part: now.write_part,
        maht: now.maht,
        summed_us: summed(config, counted),
        of_dftl: ReadAndWrite::default(),
        summed_of_dftl: ReadAndWrite::default(),
    })
}

fn by_use(counts: [u64; MapUse::ALL.len()]) -> ByUse {
    let of = |by: MapUse| counts[by as usize];
    ByUse {
        read: of(MapUse::Read),
        write: of(MapUse::Write),
        trimmed: of(MapUse::Trim),
        moved: of(MapUse::Move),
    }
}

/// The mean service time of a page read or written: every flash operation adds to it, as in
/// FlashSim's `calculate_delay_flash`, and no request waits for another, without parallelism, and
/// with a map that is on flash as a whole from the start. (FlashSim's response times also have the
/// queue before the drive.) What cleaning and the drive's records cost counts for the writes; trims,
/// which it does not have, count for nothing.
fn summed(config: &DriveConfig, counted: &Counters) -> ReadAndWrite {
    let timing = config.nand.timing;
    let us = |span: SimSpan| span.as_ns() as f64 / 1e3;
    let (read, program, erase) = (us(timing.read), us(timing.program), us(timing.erase));
    let map = |by: MapUse| {
        (counted.translation_reads[by as usize] + counted.translation_absent[by as usize]) as f64
            * read
            + counted.translation_writes[by as usize] as f64 * program
    };
    let reads = |cause: ReadCause| counted.flash_reads[cause as usize] as f64 * read;
    let programs = counted.programmed_pages() - counted.programs[Cause::Translation as usize];
    let of_reads = reads(ReadCause::Host) + map(MapUse::Read);
    let of_writes = reads(ReadCause::Merge)
        + reads(ReadCause::Move)
        + programs as f64 * program
        + counted.erases as f64 * erase
        + map(MapUse::Write)
        + map(MapUse::Move);
    let mean = |us: f64, blocks: u64| (blocks > 0).then(|| us / blocks as f64);
    ReadAndWrite {
        read: mean(of_reads, counted.read_blocks),
        write: mean(of_writes, counted.written_blocks),
    }
}

/// Puts latencies beside those of the run with `dftl` that is alike.
pub(crate) fn beside_dftl(runs: &mut [RunResult]) {
    let compared: Vec<_> = runs.iter().map(|run| against(run, runs)).collect();
    for (run, (latency, summed)) in runs.iter_mut().zip(compared) {
        if let Some(cache) = &mut run.map_cache {
            (cache.of_dftl, cache.summed_of_dftl) = (latency, summed);
        }
    }
}

fn against(run: &RunResult, runs: &[RunResult]) -> (ReadAndWrite, ReadAndWrite) {
    let cache = |run: &RunResult| {
        run.map_cache.as_ref().map(|cache| (cache.policy == "dftl", cache.summed_us))
    };
    let is_dftl = |other: &&RunResult| cache(other).is_some_and(|(is_dftl, _)| is_dftl);
    let dftl = runs.iter().filter(is_dftl).find(|other| is_alike(run, other));
    let both = dftl.and_then(|dftl| Some((cache(run)?.1, cache(dftl)?.1, dftl)));
    both.map_or_else(Default::default, |(mine, its, dftl)| {
        (latencies(run).over(latencies(dftl)), mine.over(its))
    })
}

/// The two differ in nothing but the cache's policy.
fn is_alike(one: &RunResult, other: &RunResult) -> bool {
    let without_policy = |run: &RunResult| {
        let sizes = run.map_cache.as_ref().map(|cache| cache.bytes);
        let trace = run.trace.as_ref().map(|trace| trace.name.clone());
        let drive = (run.drive.profile.clone(), run.drive.map.clone());
        let stack = (run.stack.filesystem.clone(), run.stack.mount.clone(), run.stack.host);
        (sizes, trace, run.replay.clone(), drive, stack, run.seed)
    };
    // the stacks of a bench name their drives by profile; a replay may have several of one profile
    without_policy(one) == without_policy(other)
        && (one.trace.is_none() || one.drive == other.drive)
}

/// Mean latencies of the commands that reached the drive; of a replay, those of the trace's.
pub fn latencies(run: &RunResult) -> ReadAndWrite {
    if run.trace.is_some() {
        let mean =
            |of: &LatencyResult| (of.percentiles.count > 0).then(|| of.percentiles.mean_ns / 1e3);
        return ReadAndWrite { read: mean(&run.latency.read), write: mean(&run.latency.write) };
    }
    let mean = |request: &RequestResult| (request.count > 0).then_some(request.mean_us);
    let by_kind = &run.requests.by_kind;
    ReadAndWrite { read: mean(&by_kind.read), write: mean(&by_kind.write) }
}
