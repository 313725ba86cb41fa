//! Buffered reads with read-ahead: what is read, how soon, and that nothing else changes.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_lab::results::RunResult;

const STACKS: [&str; 3] = ["f2fs", "ext4", "rm-ipu"];

/// A job on the stacks with windows of so many KiB.
fn runs(job: &str, window_kib: u32) -> Vec<RunResult> {
    let source = Source::fio(job, "read.fio", &[]).unwrap();
    let stacks = STACKS.map(|name| {
        let mut stack = Stack::load(name).unwrap();
        stack.host.read_ahead_kib = window_kib;
        stack
    });
    let scale = "1/64".parse().unwrap();
    let experiment = Experiment { scale, seed: 3, ..Experiment::new(&source, &stacks) };
    let (results, failures) = experiment.run(2, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    assert!(results.runs.iter().all(|run| run.error.is_none()), "{:?}", results.runs[0].error);
    results.runs
}

fn job(options: &str) -> String {
    format!("[read]\nfilename=file\nsize=1g\n{options}\n")
}

/// Runs without read-ahead, and with it.
fn beside(options: &str) -> Vec<(RunResult, RunResult)> {
    let job = job(options);
    runs(&job, 0).into_iter().zip(runs(&job, 128)).collect()
}

#[test]
fn a_reader_of_small_blocks_in_order_finds_them_in_memory() {
    for (without, with) in beside("rw=read\nbs=4k") {
        let faster = with.totals.read_mb_per_s / without.totals.read_mb_per_s;
        assert!(faster > 5.0, "{}: {faster}", with.label);
        let (reads, single) = (&with.requests.by_kind.read, &without.requests.by_kind.read);
        assert!(reads.mean_kib > 100.0 && single.mean_kib < 5.0, "{}: {reads:?}", with.label);
        assert_eq!(with.totals.read_bytes, without.totals.read_bytes);
        assert!(with.latency.read.percentiles.p50_ns * 5 < without.latency.read.percentiles.p50_ns);
    }
}

#[test]
fn what_is_read_ahead_is_read_once() {
    for (without, with) in beside("rw=read\nbs=64k\nnumjobs=2") {
        let bytes = |run: &RunResult| run.requests.by_kind.read.bytes as f64;
        let more = bytes(&with) / bytes(&without);
        assert!((0.99..1.02).contains(&more), "{}: {more}", with.label);
        assert!(with.totals.read_mb_per_s > without.totals.read_mb_per_s, "{}", with.label);
    }
}

#[test]
fn direct_reads_do_not_read_ahead() {
    for (without, with) in beside("rw=read\nbs=4k\ndirect=1") {
        assert_eq!(with.totals, without.totals, "{}", with.label);
        assert_eq!(with.requests, without.requests, "{}", with.label);
    }
}

#[test]
fn reads_at_random_read_little_more() {
    for (without, with) in beside("rw=randread\nbs=4k\nio_size=64m") {
        let bytes = |run: &RunResult| run.requests.by_kind.read.bytes as f64;
        let more = bytes(&with) / bytes(&without);
        assert!((0.9..1.3).contains(&more), "{}: {more}", with.label);
    }
}

/// Reads are checked by file system and drive: a page that came ahead of a write would be found.
#[test]
fn pages_read_ahead_are_those_written_last() {
    let writers = "[global]\nfilename=file\nsize=512m\nbs=4k\n[write]\nrw=randwrite\nfsync=20\nio_size=256m\n\
                   [read]\nrw=read\nloops=4\n";
    let (first, again) = (runs(writers, 128), runs(writers, 128));
    assert_eq!(first, again, "the same bytes");
    assert!(first.iter().all(|run| run.requests.by_kind.read.count > 0));
}
