//! From what was recorded to results.

use std::collections::BTreeMap;

use dovetail_block::BlockDevice;
use dovetail_ftl::stats::{Counters, Latencies};
use dovetail_host::Issued;
use dovetail_time::SimTime;
use dovetail_vfs::Count;

use super::Job;
use super::recorder::{Recorder, Sample, ThreadRecord};
use super::results::{
    BenchRun, BenchSeries, BenchTotals, Counts, FragmentationResult, JobResult, RemapResult, RepeatsResult,
    RequestResult, RequestsResult, StackResult,
};
use super::run::Run;
use crate::drive_results::{describe, latencies_by_kind, memory, programs, wear};
use crate::map_cache::map_cache;
use crate::results::ByKind;

const BLOCK: u64 = 4096;
/// Parts of the map of a volume.
const OCCUPANCY_CELLS: usize = 512;

/// The results of a run that has come to `end`.
pub(super) fn summarize(job: &Job<'_>, run: &mut Run<'_>, end: &Sample, jobs: &[String]) -> BenchRun {
    let fragmentation = fragmentation(run);
    let recorder = &run.recorder;
    let drive = &*run.machine.device();
    let parts = drive.geometry().parts_per_page();
    let counted = end.drive - recorder.first.drive;
    BenchRun {
        label: job.label.clone(),
        stack: StackResult {
            name: job.stack.name.clone(),
            filesystem: job.stack.filesystem.clone(),
            mount: job.stack.mount.clone(),
            partition_bytes: run.partition_blocks() * BLOCK,
            memory_bytes: job.stack.memory_bytes(job.scale),
        },
        seed: job.seed,
        error: None,
        totals: totals(recorder, end, parts, run.cpu.as_secs_f64()),
        written: counts(&end.written, &recorder.first.written),
        events: counts(&end.events, &recorder.first.events),
        requests: RequestsResult { repeats: run.scatter.repeats(), ..requests(recorder, end) },
        latency: latencies_by_kind(&all_latencies(recorder)),
        jobs: job_results(recorder, jobs),
        drive: describe(drive.config(), drive),
        map_cache: map_cache(drive.config(), drive, &counted),
        devirtualize: run.tool.as_ref().map(|tool| tool.result(recorder.first.at)),
        memory: memory(drive),
        wear: wear(drive.config(), drive),
        programs: programs(&counted),
        series: series(recorder, parts),
        fragmentation,
        occupancy: run.fs.occupancy(OCCUPANCY_CELLS),
        scatter: Vec::new(),
        fio: None,
    }
}

/// What was counted since `first`, by name.
fn counts(now: &[Count], first: &[Count]) -> Counts {
    let before =
        |now: &Count| first.iter().find(|then| then.figure == now.figure).map_or(0, |then| then.count);
    now.iter().map(|now| (now.figure.key.to_owned(), now.count - before(now))).collect()
}

fn sum(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.count).sum()
}

fn ratio(above: u64, below: u64) -> Option<f64> {
    (below > 0).then(|| above as f64 / below as f64)
}

/// Pages programmed, in blocks.
fn programmed(counters: &Counters, parts: u32) -> u64 {
    counters.programmed_pages() * u64::from(parts)
}

fn totals(recorder: &Recorder, end: &Sample, parts: u32, cpu_s: f64) -> BenchTotals {
    let first = &recorder.first;
    let counted = end.drive - first.drive;
    let elapsed_s = end.at.since(first.at).as_secs_f64();
    let seconds = elapsed_s.max(1e-9);
    let (read, written) = (end.read_bytes - first.read_bytes, end.written_bytes - first.written_bytes);
    let by_fs = sum(&end.written) - sum(&first.written);
    let request_cpu = end.traffic.cpu.as_secs_f64() - first.traffic.cpu.as_secs_f64();
    BenchTotals {
        elapsed_s,
        calls: end.calls - first.calls,
        calls_per_s: (end.calls - first.calls) as f64 / seconds,
        read_bytes: read,
        written_bytes: written,
        read_mb_per_s: read as f64 / 1e6 / seconds,
        write_mb_per_s: written as f64 / 1e6 / seconds,
        fs_waf: ratio(by_fs * BLOCK, written),
        device_waf: counted.waf(parts),
        total_waf: ratio(programmed(&counted, parts) * BLOCK, written),
        cpu_s: cpu_s + request_cpu,
        erases: counted.erases,
        gc_runs: counted.gc_runs,
    }
}

fn request(now: &Issued, first: &Issued) -> RequestResult {
    let (count, blocks) = (now.requests - first.requests, now.blocks - first.blocks);
    let mean = |total: f64| if count > 0 { total / count as f64 } else { 0.0 };
    RequestResult {
        count,
        bytes: blocks * BLOCK,
        mean_kib: mean((blocks * BLOCK) as f64 / 1024.0),
        mean_us: mean((now.time.as_ns() - first.time.as_ns()) as f64 / 1e3),
        sizes: now.sizes.iter().zip(first.sizes).map(|(now, first)| now - first).collect(),
    }
}

fn remap(now: &Issued, first: &Issued) -> RemapResult {
    let request = request(now, first);
    RemapResult { count: request.count, pairs: now.blocks - first.blocks, mean_us: request.mean_us }
}

fn requests(recorder: &Recorder, end: &Sample) -> RequestsResult {
    let (now, first) = (&end.traffic, &recorder.first.traffic);
    RequestsResult {
        by_kind: ByKind {
            read: request(&now.read, &first.read),
            write: request(&now.write, &first.write),
            flush: request(&now.flush, &first.flush),
            discard: request(&now.discard, &first.discard),
        },
        merged_flushes: now.merged_flushes - first.merged_flushes,
        remap: remap(&now.remap, &first.remap),
        repeats: RepeatsResult::default(),
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

fn fragmentation(run: &mut Run<'_>) -> FragmentationResult {
    let first = run.workload.first_file();
    let inodes: Vec<_> = run.files.inodes(first).collect();
    let blocks: u64 = run.files.blocks(first);
    let pieces: u64 = inodes.iter().filter_map(|ino| run.fs.pieces(*ino).ok()).sum();
    FragmentationResult {
        files: inodes.len() as u64,
        pieces,
        mean_piece_kib: ratio(blocks * 4, pieces).unwrap_or(0.0),
    }
}

fn series(recorder: &Recorder, parts: u32) -> BenchSeries {
    let mut series = BenchSeries::default();
    let mut before = &recorder.first;
    for sample in interval_ends(&recorder.samples) {
        if sample.at == before.at {
            continue;
        }
        interval(&mut series, recorder.first.at, before, sample, parts);
        before = sample;
    }
    series
}

/// A last interval shorter than half of the one before counts with that one: its rates would be chance.
fn interval_ends(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    let left_out = match samples {
        [.., a, b, c] if c.at.since(b.at).as_ns() < b.at.since(a.at).as_ns() / 2 => samples.len() - 2,
        _ => samples.len(),
    };
    samples.iter().enumerate().filter(move |(index, _)| *index != left_out).map(|(_, sample)| sample)
}

fn interval(series: &mut BenchSeries, start: SimTime, before: &Sample, now: &Sample, parts: u32) {
    let seconds = now.at.since(before.at).as_secs_f64();
    let counted = now.drive - before.drive;
    let (read, written) = (now.read_bytes - before.read_bytes, now.written_bytes - before.written_bytes);
    let by_fs = sum(&now.written) - sum(&before.written);
    let requests = request(&now.traffic.write, &before.traffic.write);
    series.time_s.push(now.at.since(start).as_secs_f64());
    series.written_bytes.push(now.written_bytes);
    series.calls_per_s.push((now.calls - before.calls) as f64 / seconds);
    series.read_mb_per_s.push(read as f64 / 1e6 / seconds);
    series.write_mb_per_s.push(written as f64 / 1e6 / seconds);
    series.fs_waf.push(ratio(by_fs * BLOCK, written));
    series.device_waf.push(counted.waf(parts));
    series.write_kib.push((requests.count > 0).then_some(requests.mean_kib));
    series.map_bytes.push(now.map_bytes);
    series.cache_write_part.push(now.map_cache.write_part);
    series.cache_maht.push(now.map_cache.maht);
    push_all(&mut series.written, counts(&now.written, &before.written));
    push_all(&mut series.events, counts(&now.events, &before.events));
}

fn push_all(columns: &mut BTreeMap<String, Vec<u64>>, values: Counts) {
    values.into_iter().for_each(|(name, value)| columns.entry(name).or_default().push(value));
}

impl Run<'_> {
    fn partition_blocks(&self) -> u64 {
        self.planner.info().capacity()
    }
}
