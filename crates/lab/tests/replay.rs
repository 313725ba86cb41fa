//! Replays as a user sees them: counts, determinism, preconditioning, errors.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;
use std::path::{Path, PathBuf};

use dovetail_ftl::{Overrides, Profile};
use dovetail_lab::HostCosts;
use dovetail_lab::replay::{Pacing, ReplayError, ReplayJob, replay, replay_until};
use dovetail_lab::results::{ByKind, RunResult, TraceResult};
use dovetail_lab::run_all;
use dovetail_workload::trace::{BlkEvent, TraceOptions};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn job(trace: &Path, profile: &str, overrides: &Overrides) -> ReplayJob {
    ReplayJob {
        label: profile.into(),
        trace: trace.into(),
        trace_options: TraceOptions::default(),
        drive: Profile::load(profile).unwrap().resolve(overrides).unwrap(),
        pacing: Pacing::Timed { speed: 1.0 },
        wrap: true,
        precondition: false,
        interval: None,
        host: HostCosts::NONE,
        limit: None,
        zone_log: None,
    }
}

fn example() -> PathBuf {
    root().join("examples/f2fs-randwrite.blkparse.zst")
}

fn run(job: &ReplayJob) -> RunResult {
    replay(job, &mut |_| {}).unwrap()
}

fn trace(result: &RunResult) -> &TraceResult {
    result.trace.as_ref().unwrap()
}

fn small() -> Overrides {
    Overrides { scale: "1/64".parse().ok(), seed: 5, ..Overrides::default() }
}

/// Trace, and its requests and bytes by kind as counted where it was recorded.
type Counted = (&'static str, [u64; 4], [u64; 3]);

/// Dispatched requests (read, write, discard, flush) and bytes (read, written, discarded).
const TRACES: [Counted; 8] = [
    ("f2fs-randwrite.blkparse.zst", [75, 13_283, 0, 6_494], [307_200, 475_021_312, 0]),
    ("ext4-randwrite.blkparse.zst", [1, 66_243, 0, 6_342], [4_096, 385_990_656, 0]),
    ("f2fs-sqlite-wal.blkparse.zst", [3, 16_961, 0, 4_083], [12_288, 248_881_152, 0]),
    (
        "ext4-sqlite-delete.blkparse.zst",
        [7, 56_142, 4_003, 12_033],
        [32_768, 635_179_008, 230_957_056],
    ),
    ("f2fs-files.blkparse.zst", [19, 1_294, 0, 4], [77_824, 197_410_816, 0]),
    ("ext4-files.blkparse.zst", [8, 1_071, 80, 44], [49_152, 319_221_760, 2_842_832_896]),
    ("mqsim-tpcc-small.trace", [4_381, 2_618, 0, 0], [36_315_136, 23_403_520, 0]),
    ("mqsim-wsrch-small.trace", [24_779, 4, 0, 0], [382_085_120, 32_768, 0]),
];

#[test]
fn the_example_replays_with_the_counts_of_its_recording() {
    let with_buffer = Overrides { buffer: Some(8 << 20), ..Overrides::default() };
    let result = run(&job(&example(), "femu-32g", &with_buffer));
    check_counts(&TRACES[0], &result);
    assert!(
        result.totals.device_waf.is_some_and(|waf| (1.0..1.01).contains(&waf)),
        "{:?}",
        result.totals.device_waf
    );
    assert_eq!(result.latency.flush.percentiles.count, 6_494);
    assert!(
        result.latency.flush.percentiles.p50_ns > 500_000,
        "a flush waits for a program of 500 us"
    );
    assert_eq!(result.series.time_s.len(), result.series.device_waf.len());
    let writes = &result.latency.write.percentiles;
    for p50 in result.series.write_p50_us.iter().flatten() {
        // The series keeps two significant digits.
        let ns = p50 * 1000.0;
        assert!(
            (writes.min_ns as f64 * 0.98..=writes.max_ns as f64 * 1.02).contains(&ns),
            "{p50} us"
        );
    }
    assert!((256..=512).contains(&result.series.time_s.len()), "{}", result.series.time_s.len());
}

#[test]
fn a_replay_that_was_stopped_says_so() {
    let job = job(&example(), "femu-32g", &Overrides::default());
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) >= 100;
    let result = replay_until(&job, &stop, &mut |_| {}).unwrap();
    let ByKind { read, write, flush, discard } = trace(&result).requests;
    assert_eq!(read + write + flush + discard, 100);
    assert!(result.notes[0].contains("stopped before its end"), "{:?}", result.notes);
    assert!(
        run(&ReplayJob { limit: Some(100), ..job }).notes.iter().all(|n| !n.contains("stopped"))
    );
}

fn check_counts(counted: &Counted, result: &RunResult) {
    let (name, [read, write, discard, flush], bytes) = *counted;
    assert_eq!(trace(result).requests, ByKind { read, write, flush, discard }, "{name}");
    let found = &trace(result).bytes;
    assert_eq!([found.read, found.write, found.discard], bytes, "{name}");
}

/// Larger traces lie beside the project where they were recorded; without them only the example is
/// checked.
#[test]
fn every_recorded_trace_replays() {
    let folder =
        std::env::var_os("DOVETAIL_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    for counted in &TRACES {
        let path = folder.join("traces").join(counted.0);
        if !path.exists() {
            println!("{} is not there: not checked", counted.0);
            continue;
        }
        for profile in ["femu-32g", "openssd-230g", "fsdv-5g"] {
            check_counts(counted, &run(&job(&path, profile, &small())));
        }
    }
}

#[test]
fn the_same_job_gives_the_same_bytes_with_any_number_of_threads() {
    let overrides = |gc: &str| Overrides { gc: Some(gc.into()), ..small() };
    let jobs: Vec<_> = ["greedy", "cost-benefit", "d-choices", "fifo"]
        .iter()
        .map(|gc| ReplayJob { precondition: true, ..job(&example(), "femu-32g", &overrides(gc)) })
        .collect();
    let text = |threads| {
        let runs = run_all(&jobs, threads, |_, job| run(job));
        serde_json::to_string(&runs).unwrap()
    };
    let one = text(1);
    assert!(one == text(1) && one == text(2), "results differ from run to run");
}

#[test]
fn a_preconditioned_drive_cleans() {
    let fresh = job(&example(), "femu-32g", &small());
    let aged = ReplayJob { precondition: true, ..fresh.clone() };
    let (fresh, aged) = (run(&fresh), run(&aged));
    let prepared = aged.precondition.clone().unwrap();
    assert!(prepared.steady && prepared.waf > 3.0, "{prepared:?}");
    assert!(aged.totals.device_waf.unwrap() > fresh.totals.device_waf.unwrap() + 0.5);
    assert!(aged.totals.drive.gc_runs > 0 && aged.wear.erases_min > 0);
}

#[test]
fn a_drive_with_much_spare_flash_is_not_steady_before_it_cleans() {
    let overrides = Overrides { over_provisioning: Some(100.0), ..small() };
    let aged = ReplayJob { precondition: true, ..job(&example(), "femu-32g", &overrides) };
    let prepared = run(&aged).precondition.unwrap();
    assert!(prepared.steady && prepared.waf > 1.1, "{prepared:?}");
}

#[test]
fn a_closed_loop_keeps_its_depth() {
    let closed = |depth| {
        let job =
            ReplayJob { pacing: Pacing::Closed { depth }, ..job(&example(), "femu-32g", &small()) };
        run(&job)
    };
    let (one, many) = (closed(1), closed(16));
    assert_eq!((one.totals.queue_depth_max, many.totals.queue_depth_max), (1, 16));
    assert!(many.totals.elapsed_s < one.totals.elapsed_s);
}

#[test]
fn a_request_beyond_the_end_is_an_error_that_says_what_to_do() {
    let tight = Overrides { scale: "1/256".parse().ok(), ..Overrides::default() };
    let job = ReplayJob { wrap: false, ..job(&example(), "femu-32g", &tight) };
    let error = replay(&job, &mut |_| {}).unwrap_err();
    assert!(matches!(error, ReplayError::BeyondEnd { .. }));
    let text = error.to_string();
    assert!(text.contains("--wrap") && text.contains("larger drive"), "{text}");
}

#[test]
fn bytes_that_a_drive_is_not_sent_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.csv");
    fs::write(&path, "1,W,0,1099511627776,100\n1,W,0,4096,200\n").unwrap();
    let result = run(&job(&path, "femu-32g", &small()));
    let capacity = result.drive.capacity_bytes;
    assert_eq!(result.totals.written_bytes, capacity + 4096);
    assert_eq!(trace(&result).bytes.write, (1 << 40) + 4096);
}

/// With capacitors a flush programs nothing; what is in the buffer at the end counts all the same.
#[test]
fn pages_that_capacitors_keep_are_written_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in-order.csv");
    let lines = (0..3000).map(|n| format!("1,W,{},4096,{}\n", n * 4096, 100 * n));
    fs::write(&path, lines.collect::<String>()).unwrap();
    for profile in ["pm9a3-960g", "pm9d3-1880g-fdp"] {
        let result = run(&job(&path, profile, &small()));
        let waf = result.totals.device_waf.unwrap();
        assert!((1.0..1.01).contains(&waf), "{profile}: {waf}");
    }
}

#[test]
fn requests_that_cover_blocks_in_part_read_the_rest_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("partial.csv");
    // Alibaba: device, opcode, offset, length, microseconds.
    fs::write(&path, "1,W,512,512,100\n1,W,4096,8192,200\n1,W,6144,4096,300\n1,R,0,12288,400\n")
        .unwrap();
    let result = run(&job(&path, "femu-32g", &small()));
    assert_eq!(trace(&result).partial_blocks, 3, "one for the first, two for the third");
    assert_eq!(result.totals.drive.written_blocks, 1 + 2 + 2);
    assert_eq!(trace(&result).bytes.write, 512 + 8192 + 4096);
}

#[test]
fn a_write_with_a_preflush_waits_for_its_flush() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("preflush.txt");
    let lines = [
        "8,0 0 1 0.000000000 1 Q W 0 + 8 [a]",
        "8,0 0 2 0.000001000 1 Q FWFS 8 + 8 [a]",
        "8,0 0 3 0.000002000 1 Q R 8 + 8 [a]",
        "8,0 0 4 0.100000000 1 Q R 8 + 8 [a]",
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let blk_event = BlkEvent::Queue;
    for pacing in [Pacing::Timed { speed: 1.0 }, Pacing::Closed { depth: 3 }] {
        let trace_options = TraceOptions { blk_event, ..TraceOptions::default() };
        let result = run(&ReplayJob { trace_options, pacing, ..job(&path, "femu-32g", &small()) });
        assert_eq!((trace(&result).requests.flush, trace(&result).requests.write), (1, 2));
        let slowest = result.latency.write.percentiles.max_ns;
        assert!(slowest > 1_000_000, "a program for the flush, then one for FUA: {slowest} ns");
    }
}

#[test]
fn a_trace_without_requests_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.csv");
    fs::write(&path, "1,W,0,4096,100\n").unwrap();
    let options = TraceOptions { device: Some("7".into()), ..TraceOptions::default() };
    let job = ReplayJob { trace_options: options, ..job(&path, "femu-32g", &small()) };
    assert!(replay(&job, &mut |_| {}).unwrap_err().to_string().contains("holds no request"));
}

#[test]
fn a_host_costs_time_and_its_flushes_share_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flushes.txt");
    let mut lines = vec!["8,0 0 1 0.000000000 1 Q W 0 + 8 [a]".to_string()];
    lines.extend((1..6).map(|n| format!("8,0 0 {} 0.00000{n}000 1 Q FN [a]", n + 1)));
    fs::write(&path, lines.join("\n")).unwrap();
    let trace_options = TraceOptions { blk_event: BlkEvent::Queue, ..TraceOptions::default() };
    let job = ReplayJob { trace_options, ..job(&path, "femu-32g", &small()) };
    let (raw, hosted) = (run(&job), run(&ReplayJob { host: HostCosts::default(), ..job }));
    let flushes = |run: &RunResult| (run.requests.by_kind.flush.count, run.requests.merged_flushes);
    assert_eq!(
        (flushes(&raw), flushes(&hosted)),
        ((6, 0), (3, 3)),
        "five of the trace, one at the end"
    );
    assert_eq!(hosted.latency.flush.percentiles.count, 5);
    assert!(raw.totals.cpu_s == 0.0 && hosted.totals.cpu_s > 0.0);
    assert!(hosted.totals.elapsed_s > raw.totals.elapsed_s);
}
