//! From what was recorded to results.

use dovetail_block::BLOCK_SIZE;
use dovetail_ftl::stats::{Counters, Latencies};
use dovetail_ftl::{DriveConfig, Storage};
use dovetail_host::Issued;
use dovetail_time::{SimSpan, SimTime};
use dovetail_vfs::Count;

use super::drive::{self, latencies_by_kind};
use super::recorder::{Recorder, ThreadRecord};
use super::series::{fs_waf, series};
use crate::map_cache::map_cache;
use crate::results::{
    ByKind, Counts, FloorResult, JobResult, LifetimeResult, MemoryResult, RemapResult,
    RequestResult, RequestsResult, RunResult, Totals,
};

/// The results of a measurement that took `elapsed`, as far as recorder and drive know them. `jobs`
/// are the names of the threads' jobs, `cpu` is the time of their calls.
pub(crate) fn summarize(
    recorder: &Recorder,
    drive: &Storage,
    (elapsed, cpu): (SimSpan, SimSpan),
    jobs: &[String],
) -> RunResult {
    let of_drive = summarize_drive(recorder, drive);
    with_workload(of_drive, recorder, (elapsed, cpu), jobs, drive.config())
}

/// The results of a measurement as far as the drive knows them, as it stands now.
pub(crate) fn summarize_drive(recorder: &Recorder, drive: &Storage) -> RunResult {
    let (first, last) = (&recorder.first, recorder.last());
    let counted = last.drive - first.drive;
    let memory = drive::memory(drive);
    let map_bytes_max = recorder.map_bytes_max.max(memory.map_bytes);
    RunResult {
        floors: drive.config().floors.iter().map(FloorResult::from).collect(),
        written: counts(&last.written, &first.written),
        events: counts(&last.events, &first.events),
        requests: requests(recorder),
        drive: drive::describe(drive.config(), drive),
        map_cache: map_cache(drive.config(), drive, &counted),
        memory: MemoryResult { map_bytes_max, ..memory },
        wear: drive::wear(drive.config(), drive),
        dies: drive::dies(drive, recorder),
        series: series(recorder, drive),
        ..RunResult::default()
    }
}

/// The same with what the workload did.
pub(crate) fn with_workload(
    of_drive: RunResult,
    recorder: &Recorder,
    (elapsed, cpu): (SimSpan, SimSpan),
    jobs: &[String],
    config: &DriveConfig,
) -> RunResult {
    let counted = recorder.last().drive - recorder.first.drive;
    let totals = totals(recorder, &counted, (elapsed, cpu), config);
    let programmed = counted.programmed_pages();
    RunResult {
        lifetime: LifetimeResult::of(&totals, programmed, &of_drive.drive, &of_drive.wear),
        totals,
        latency: latencies_by_kind(&all_latencies(recorder)),
        jobs: job_results(recorder, jobs),
        ..of_drive
    }
}

/// Counts since `first`, by key.
pub(super) fn counts(now: &[Count], first: &[Count]) -> Counts {
    let before = |now: &Count| {
        first.iter().find(|then| then.figure == now.figure).map_or(0, |then| then.count)
    };
    now.iter().map(|now| (now.figure.key.to_owned(), now.count - before(now))).collect()
}

pub(super) fn sum(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.count).sum()
}

pub(super) fn ratio(above: u64, below: u64) -> Option<f64> {
    (below > 0).then(|| above as f64 / below as f64)
}

/// Pages programmed, in blocks.
fn programmed(counters: &Counters, parts: u32) -> u64 {
    counters.programmed_pages() * u64::from(parts)
}

fn totals(
    recorder: &Recorder,
    counted: &Counters,
    (elapsed, cpu): (SimSpan, SimSpan),
    config: &DriveConfig,
) -> Totals {
    let parts = config.nand.geometry.subpages_per_page();
    let (first, last) = (&recorder.first, recorder.last());
    let elapsed_s = elapsed.as_secs_f64();
    let warming_up = recorder.warming_up();
    let seconds = (elapsed - warming_up).as_secs_f64().max(1e-9);
    let (read, written) = (
        last.work.read_bytes - first.work.read_bytes,
        last.work.written_bytes - first.work.written_bytes,
    );
    let calls = last.work.calls - first.work.calls;
    let request_cpu = last.traffic.cpu.as_secs_f64() - first.traffic.cpu.as_secs_f64();
    Totals {
        elapsed_s,
        ramp_s: warming_up.as_secs_f64(),
        calls,
        calls_per_s: calls as f64 / seconds,
        read_bytes: read,
        written_bytes: written,
        ramp_read_bytes: last.work.ramp_read_bytes - first.work.ramp_read_bytes,
        ramp_written_bytes: last.work.ramp_written_bytes - first.work.ramp_written_bytes,
        read_mb_per_s: read as f64 / 1e6 / seconds,
        write_mb_per_s: written as f64 / 1e6 / seconds,
        queue_depth_mean: recorder.queue_depth(),
        queue_depth_max: recorder.in_flight_max,
        fs_waf: fs_waf(last, first),
        device_waf: counted.waf(parts),
        total_waf: ratio(
            programmed(counted, parts) * BLOCK_SIZE,
            last.work.all_written_since(&first.work),
        ),
        cpu_s: cpu.as_secs_f64() + request_cpu,
        drive: drive::totals(config, counted),
    }
}

pub(super) fn request(now: &Issued, first: &Issued) -> RequestResult {
    let (count, blocks) = (now.requests - first.requests, now.blocks - first.blocks);
    let mean = |total: f64| if count > 0 { total / count as f64 } else { 0.0 };
    RequestResult {
        count,
        bytes: blocks * BLOCK_SIZE,
        mean_kib: mean((blocks * BLOCK_SIZE) as f64 / 1024.0),
        mean_us: mean((now.time.as_ns() - first.time.as_ns()) as f64 / 1e3),
        sizes: now.sizes.iter().zip(first.sizes).map(|(now, first)| now - first).collect(),
    }
}

fn remap(now: &Issued, first: &Issued) -> RemapResult {
    let request = request(now, first);
    RemapResult { count: request.count, pairs: now.blocks - first.blocks, mean_us: request.mean_us }
}

fn requests(recorder: &Recorder) -> RequestsResult {
    let (now, first) = (&recorder.last().traffic, &recorder.first.traffic);
    RequestsResult {
        by_kind: ByKind {
            read: request(&now.read, &first.read),
            write: request(&now.write, &first.write),
            flush: request(&now.flush, &first.flush),
            discard: request(&now.discard, &first.discard),
        },
        merged_flushes: now.merged_flushes - first.merged_flushes,
        remap: remap(&now.remap, &first.remap),
        repeats: None,
    }
}

fn all_latencies(recorder: &Recorder) -> Latencies {
    let mut all = Latencies::new();
    recorder.threads.iter().for_each(|thread| all.add(&thread.latencies));
    all
}

/// Threads of the same job, in the order of their first thread.
fn job_results(recorder: &Recorder, jobs: &[String]) -> Vec<JobResult> {
    let mut names: Vec<&String> = Vec::new();
    jobs.iter().for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    let of = |name: &String| {
        let threads = recorder.threads.iter().zip(jobs).filter(|(_, job)| *job == name);
        job_result(name, threads.map(|(thread, _)| thread).collect(), recorder.first.at)
    };
    names.into_iter().map(of).collect()
}

fn job_result(name: &str, threads: Vec<&ThreadRecord>, start: SimTime) -> JobResult {
    let mut latencies = Latencies::new();
    threads.iter().for_each(|thread| latencies.add(&thread.latencies));
    let spans = || threads.iter().filter_map(|thread| thread.span);
    let begin = spans().map(|(begin, _)| begin).min().unwrap_or(start);
    let end = spans().map(|(_, end)| end).max().unwrap_or(begin);
    JobResult {
        name: name.into(),
        threads: threads.len() as u32,
        start_s: begin.since(start).as_secs_f64(),
        elapsed_s: end.since(begin).as_secs_f64(),
        read_bytes: threads.iter().map(|thread| thread.read_bytes).sum(),
        written_bytes: threads.iter().map(|thread| thread.written_bytes).sum(),
        latency: latencies_by_kind(&latencies),
    }
}
