use dovetail_lab::results::{ReplayResult, Results, RunResult, TraceResult};

use super::sentences;
use super::side::latency;

/// A run on files that wrote 100 MB at so many MB/s, of which the file system made so many times as
/// much, and the drive again.
fn run(label: &str, mb_per_s: f64, fs_waf: f64, device_waf: f64) -> RunResult {
    let mut run = RunResult { label: label.into(), ..RunResult::default() };
    run.stack.filesystem = "f2fs".into();
    let totals = &mut run.totals;
    (totals.write_mb_per_s, totals.calls_per_s) = (mb_per_s, mb_per_s * 250.0);
    totals.elapsed_s = 100.0 / mb_per_s;
    totals.written_bytes = 100_000_000;
    totals.drive.written_blocks = (100e6 * fs_waf / 4096.0) as u64;
    totals.device_waf = Some(device_waf);
    totals.drive.programs.gc = 7;
    run.written = [("data".into(), 20_000), ("node".into(), 9_000), ("sit".into(), 10)].into();
    run.latency.write = latency(1_200_000, 25_000);
    run
}

fn replayed(label: &str, mode: &str, device_waf: f64, p99_ns: u64) -> RunResult {
    let mut run = run(label, 10.0, 1.0, device_waf);
    run.stack.filesystem = "none".into();
    run.trace = Some(TraceResult::default());
    run.replay = Some(ReplayResult { mode: mode.into(), ..ReplayResult::default() });
    run.latency.write = latency(p99_ns, 25_000);
    run
}

fn of(runs: Vec<RunResult>) -> Vec<String> {
    let found = sentences(&Results::of("job.fio".into(), 1.0, 1, runs));
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|sentence| sentence.ends_with(['.', ')'])), "{found:#?}");
    assert!(found.iter().all(|it| !it.contains("NaN") && !it.contains('–')), "{found:#?}");
    found
}

#[test]
fn one_run_is_described() {
    let found = of(vec![run("f2fs", 120.0, 1.5, 2.0)]);
    assert_eq!(
        found[0],
        "f2fs moved 120 MB/s in 30,000 calls/s; 99 % of its writes ended within 1.20 ms."
    );
    assert_eq!(
        found[1],
        "Each byte of the workload became 3.00 on flash: the file system wrote 1.50, nodes \
         above all, and the drive 2.00 for each of those, cleaning above all."
    );
    assert!(found[2].starts_with("Writes took 100 % of the time in calls on f2fs; "), "{found:#?}");
}

#[test]
fn of_two_runs_the_faster_one_stands_beside_the_other() {
    let found = of(vec![run("ext4", 60.0, 1.25, 1.0), run("f2fs", 120.0, 1.5, 2.0)]);
    assert_eq!(found[0], "f2fs is faster: 120 MB/s, 2.00 times ext4 (60.0 MB/s).");
    assert_eq!(
        found[1],
        "For each byte written, the flash took 3.00 on f2fs (file system 1.50 x drive 2.00) and \
         1.25 on ext4 (file system 1.25 x drive 1.00); most of the difference is the drive's: cleaning above all."
    );
    assert!(
        found[2].starts_with("Writes took 100 % of the time in calls on f2fs and 100 % on ext4; "),
        "{found:#?}"
    );
}

#[test]
fn a_rate_of_reads_and_writes_is_called_so() {
    let mut mixed = run("f2fs", 120.0, 1.0, 1.0);
    mixed.totals.read_mb_per_s = 40.0;
    assert!(of(vec![mixed])[0].starts_with("f2fs moved 160 MB/s of reads and writes in 30,000"));
}

#[test]
fn of_three_runs_the_next_and_the_slowest_are_named() {
    let runs =
        [("a", 50.0), ("b", 100.0), ("c", 80.0)].map(|(name, rate)| run(name, rate, 1.0, 1.0));
    let found = of(runs.into());
    assert_eq!(
        found[0],
        "b is the fastest: 100 MB/s, 1.25 times c (80.0 MB/s), the next, and 2.00 times a (50.0 MB/s), \
         the slowest."
    );
    assert!(found[1].ends_with(": the same, within 2 %."), "{found:#?}");
}

#[test]
fn within_two_percent_nobody_wins() {
    let found = of(vec![run("a", 100.0, 1.0, 1.0), run("b", 101.5, 1.0, 1.0)]);
    assert_eq!(
        found[0],
        "a and b are level, within 2 %: 100 MB/s and a p99 of 1.20 ms for writes."
    );
    let near =
        [("a", 100.0), ("b", 101.5), ("c", 50.0)].map(|(name, rate)| run(name, rate, 1.0, 1.0));
    let found = of(near.into());
    assert!(
        found[0].starts_with("b and a lead together, within 2 %: 102 MB/s, 2.03 times c"),
        "{found:#?}"
    );
    let apart = of(vec![run("a", 100.0, 1.0, 1.0), run("b", 102.5, 1.0, 1.0)]);
    assert!(apart[0].starts_with("b is faster"), "{apart:#?}");
}

/// Threads that wait for one command after the other run at one rate; latencies differ.
#[test]
fn at_equal_rates_latency_decides() {
    let mut slow = run("slow", 10.0, 1.0, 1.0);
    slow.latency.flush = latency(9_000_000, 25_000);
    let mut quick = run("quick", 10.1, 1.0, 1.0);
    quick.latency.flush = latency(3_000_000, 25_000);
    let found = of(vec![slow, quick]);
    assert_eq!(
        found[0],
        "All run at 10.1 MB/s, within 2 %; quick has the quickest syncs: p99 3.00 ms against \
         9.00 ms on slow (3.00 times)."
    );
    assert!(found[2].ends_with("threads mostly wait for syncs."), "{found:#?}");
}

/// Pauses between the calls level the rates; what a sync takes is far apart.
#[test]
fn at_near_rates_a_latency_that_is_far_apart_decides() {
    let mut slow = run("f2fs", 154.0, 1.0, 1.0);
    slow.latency.flush = latency(783_000, 25_000);
    let mut quick = run("ext4", 148.0, 1.0, 1.0);
    quick.latency.flush = latency(62_600, 25_000);
    let found = of(vec![slow.clone(), quick.clone()]);
    assert_eq!(
        found[0],
        "All run at 148 MB/s, within 5 %; ext4 has the quickest syncs: p99 62.6 µs against \
         783 µs on f2fs (12.5 times)."
    );
    // few of them say nothing on the whole
    slow.latency.flush = latency(783_000, 10);
    quick.latency.flush = latency(62_600, 10);
    assert!(of(vec![slow, quick])[0].starts_with("f2fs is faster"));
}

#[test]
fn a_job_that_only_reads_writes_nothing_twice() {
    let reads = |name: &str, rate: f64| {
        let mut run = run(name, 1.0, 1.0, 1.0);
        run.totals.write_mb_per_s = 0.0;
        run.totals.read_mb_per_s = rate;
        (run.totals.written_bytes, run.totals.drive.written_blocks) = (0, 0);
        run.totals.device_waf = None;
        run.latency.read = latency(80_000, 25_000);
        run.latency.write = latency(0, 0);
        run
    };
    let found = of(vec![reads("a", 200.0), reads("b", 100.0)]);
    assert_eq!(found[0], "a is faster: 200 MB/s, 2.00 times b (100 MB/s).");
    assert_eq!(found[1], "Nothing was written, so nothing was written twice.");
    assert!(found[2].starts_with("Reads took 100 % of the time in calls on a"), "{found:#?}");
    let mut own = reads("a", 1.0);
    own.totals.drive.written_blocks = 256;
    let found = of(vec![own]);
    assert_eq!(
        found[1],
        "The workload wrote nothing; the file system wrote up to 1.00 MiB of its own."
    );
}

#[test]
fn what_is_still_in_memory_is_said() {
    let mut held = run("f2fs", 10.0, 1.0, 1.0);
    held.totals.drive.written_blocks = 0;
    held.totals.device_waf = None;
    assert_eq!(of(vec![held])[1], "Nothing that was written had reached the drive by the end.");
    assert!(
        of(vec![run("f2fs", 10.0, 0.5, 1.0)])[1].contains("(the rest was overwritten or still in")
    );
}

#[test]
fn a_trace_that_sets_the_pace_is_won_by_latency() {
    let runs = vec![
        replayed("op 5 %", "timed", 3.0, 4_000_000),
        replayed("op 28 %", "timed", 1.2, 1_000_000),
    ];
    let found = of(runs);
    assert_eq!(
        found[0],
        "The trace sets the pace; op 28 % has the quickest writes: p99 1.00 ms against 4.00 ms on \
         op 5 % (4.00 times)."
    );
    assert_eq!(
        found[1],
        "For each byte that reached the drive, the flash took 1.20 on op 28 % and 3.00 on op 5 %: cleaning above all."
    );
    let closed = of(vec![replayed("a", "closed", 1.0, 9), replayed("b", "closed", 1.0, 9)]);
    assert!(closed[0].starts_with("a and b are level"), "{closed:#?}");
}

#[test]
fn different_traces_have_no_winner() {
    let mut other = replayed("b", "timed", 1.0, 9);
    other.trace = Some(TraceResult { name: "other".into(), ..TraceResult::default() });
    assert!(of(vec![replayed("a", "timed", 1.0, 9), other])[0].contains("none of them wins"));
}

#[test]
fn runs_that_ended_early_do_not_win() {
    let mut failed = run("ext4", 900.0, 1.0, 1.0);
    failed.error = Some("full".into());
    let found = of(vec![failed.clone(), run("f2fs", 10.0, 1.0, 1.0)]);
    assert!(
        found[0].starts_with("f2fs moved")
            && found[0].ends_with("(1 ended early and is left out.)")
    );
    assert_eq!(of(vec![failed])[0], "No run came to its end.");
    assert_eq!(of(Vec::new())[0], "No run came to its end.");
}
