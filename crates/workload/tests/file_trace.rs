//! File-level traces: the calls of each thread in their order, at their pace, in several passes and
//! in smaller files.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::driver;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use dovetail_time::SimTime;
use dovetail_workload::file_trace::{
    ClosedLoop, FileTrace, FileTraceOptions, FileTraceWorkload, Pace,
};
use dovetail_workload::{Call, FileId, ThreadId};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mariadb-tpcc.file.tsv")
}

fn run(trace: &FileTrace, options: &FileTraceOptions) -> driver::Report {
    driver::run(&mut FileTraceWorkload::new(trace, options).unwrap(), 1_000_000)
}

fn run_sample(options: &FileTraceOptions) -> driver::Report {
    run(&FileTrace::open(&sample()).unwrap(), options)
}

/// The columns of each call of the sample, by thread in the order of their first calls.
fn columns() -> Vec<Vec<[String; 7]>> {
    let text = std::fs::read_to_string(sample()).unwrap();
    let lines = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let mut order = Vec::new();
    let mut threads: BTreeMap<String, Vec<[String; 7]>> = BTreeMap::new();
    for line in lines {
        let columns: Vec<String> = line.split('\t').map(String::from).collect();
        let columns: [String; 7] = columns.try_into().unwrap();
        if !threads.contains_key(&columns[1]) {
            order.push(columns[1].clone());
        }
        threads.entry(columns[1].clone()).or_default().push(columns);
    }
    order.iter().map(|thread| threads.remove(thread).unwrap()).collect()
}

/// The call that the trace's columns stand for; files are numbered from 0 in the sample.
fn call_of([_, _, op, file, offset, bytes, _]: &[String; 7]) -> Call {
    let number = |text: &str| text.parse::<u64>().unwrap();
    let file = FileId(number(file) as u32);
    match op.as_str() {
        "r" => Call::Read { file, offset: number(offset), len: number(bytes), direct: false },
        "w" => Call::Write { file, offset: number(offset), len: number(bytes), direct: false },
        "d" => Call::Sync { file, data_only: true },
        "a" => Call::Allocate { file, len: number(offset) + number(bytes), keep_size: false },
        other => panic!("{other}"),
    }
}

fn of_thread(report: &driver::Report, thread: usize) -> Vec<driver::Ended> {
    let own = report.calls.iter().filter(|ended| ended.thread == ThreadId(thread as u32));
    own.filter(|ended| !matches!(ended.call, Call::Open { .. })).copied().collect()
}

#[test]
fn each_thread_makes_its_calls_in_their_order() {
    for gaps in [0.0, 1.0] {
        let report =
            run_sample(&FileTraceOptions { pace: Pace::Gaps(gaps), ..FileTraceOptions::default() });
        assert!(!report.cut_off && report.created == 0, "all files are there before");
        let threads = columns();
        assert_eq!(threads.iter().map(Vec::len).sum::<usize>(), 2000);
        for (thread, recorded) in threads.iter().enumerate() {
            let made: Vec<Call> =
                of_thread(&report, thread).iter().map(|ended| ended.call).collect();
            assert_eq!(made, recorded.iter().map(call_of).collect::<Vec<_>>(), "thread {thread}");
        }
    }
}

#[test]
fn gaps_between_calls_are_kept_and_scaled() {
    for factor in [0.0, 0.5, 1.0] {
        let report = run_sample(&FileTraceOptions {
            pace: Pace::Gaps(factor),
            ..FileTraceOptions::default()
        });
        for (thread, recorded) in columns().iter().enumerate() {
            let us = |text: &str| text.parse::<u64>().unwrap();
            let mut recorded_end = 0;
            let mut end = SimTime::ZERO;
            for ([start, .., duration], made) in recorded.iter().zip(of_thread(&report, thread)) {
                let gap = us(start).saturating_sub(recorded_end) as f64 * 1e3 * factor;
                recorded_end = recorded_end.max(us(start)) + us(duration);
                // an open of the file may come before the call
                let waited = made.outcome.begin.since(end).as_ns() as f64;
                assert!(
                    waited == gap.floor() || waited == gap.floor().max(0.0) + 100_000.0,
                    "{waited} {gap}"
                );
                end = made.outcome.end;
            }
        }
    }
}

#[test]
fn a_pass_begins_when_all_threads_have_ended_the_last_one() {
    let options = FileTraceOptions { pace: Pace::Gaps(0.0), loops: 2.25, scale: 1.0 };
    let report = run_sample(&options);
    let threads = columns();
    let made: usize = (0..threads.len()).map(|thread| of_thread(&report, thread).len()).sum();
    assert_eq!(made, 4500);
    let ends = |pass: usize| {
        let of =
            |thread: usize| of_thread(&report, thread)[pass * threads[thread].len()..].to_vec();
        (0..threads.len()).map(of).collect::<Vec<_>>()
    };
    let first_end =
        (0..threads.len()).map(|thread| of_thread(&report, thread)[threads[thread].len() - 1]);
    let last = first_end.map(|ended| ended.outcome.end).max().unwrap();
    let begins = ends(1).into_iter().map(|rest| rest[0].outcome.begin);
    assert_eq!(begins.min().unwrap(), last, "none begins before the last has ended");
    let third = ends(2).iter().map(Vec::len).sum::<usize>();
    assert_eq!(third, 500, "the rest of a pass");
}

#[test]
fn a_smaller_scale_has_smaller_files_and_fewer_calls() {
    let whole = run_sample(&FileTraceOptions::default());
    let report = run_sample(&FileTraceOptions { scale: 0.25, ..FileTraceOptions::default() });
    let calls =
        report.calls.iter().filter(|ended| !matches!(ended.call, Call::Open { .. })).count();
    assert_eq!(calls, 500);
    let sum = |report: &driver::Report| report.files.values().sum::<u64>() as f64;
    let share = sum(&report) / sum(&whole);
    assert!((0.25..0.26).contains(&share), "{share}");
    let (mut at, mut writes) = (BTreeSet::new(), 0);
    for ended in &report.calls {
        if let Call::Write { file, offset, len, .. } = ended.call {
            assert!(
                offset + len <= report.files[&file],
                "{:?} in {}",
                ended.call,
                report.files[&file]
            );
            at.insert((file, offset));
            writes += 1;
        }
    }
    assert!(at.len() * 10 > writes * 9, "{writes} writes go to {} places", at.len());
}

#[test]
fn what_is_wrong_with_a_trace_is_told_with_its_line() {
    for (text, expected) in [
        (
            "F\t0\t4096\ta\n1\t0\tw\t0\t4096\t1\t1\n",
            "t.tsv:2: expected a write that ends within the size of its file",
        ),
        (
            "F\t0\t4096\ta\nF\t0\t1\tb\n",
            "t.tsv:2: expected a number that no other file has, found '0'",
        ),
        (
            "F\t0\t4096\ta\nF\t1\t1\ta\n",
            "t.tsv:2: expected a name that no other file has, found 'a'",
        ),
        (
            "# x\nF\t0\t4096\ta\n1\t0\tr\t9\t0\t1\t1\n",
            "t.tsv:3: expected the number of a file, found '9'",
        ),
        ("F\t0\t4096\ta\n", "t.tsv has no calls"),
        ("hello\n", "t.tsv:1: expected 'START THREAD OP"),
    ] {
        let error = FileTrace::read("t.tsv", Cursor::new(text)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let mut text = String::from("F\t0\t4096\ta\n");
    (0..1025).for_each(|thread| text += &format!("1\t{thread}\tr\t0\t0\t1\t1\n"));
    let error = FileTrace::read("t.tsv", Cursor::new(text)).unwrap_err().to_string();
    assert_eq!(error, "t.tsv:1026: expected one of 1024 threads at most, found '1024'");
    let damaged = Cursor::new([0x28, 0xB5, 0x2F, 0xFD, 1, 2, 3]);
    assert!(FileTrace::read("t.zst", damaged).is_err());
}

#[test]
fn appends_go_behind_the_end() {
    let text = "F\t7\t100\tlogs/a\n0\t5\tw\t7\t-1\t50\t1\n9\t5\ts\t7\t0\t0\t1\n";
    let trace = FileTrace::read("t.tsv", Cursor::new(text)).unwrap();
    let report = run(&trace, &FileTraceOptions { loops: 2.0, ..FileTraceOptions::default() });
    assert_eq!(report.files[&FileId(0)], 200);
    let file = FileId(0);
    let pass = [Call::Append { file, len: 50 }, Call::Sync { file, data_only: false }];
    let made: Vec<Call> = of_thread(&report, 0).iter().map(|ended| ended.call).collect();
    assert_eq!(made, [pass, pass].concat());
}

#[test]
fn a_file_begins_at_its_first_size_and_grows() {
    let text = "F\t0\t40960\ta\t4096\n0\t0\tw\t0\t36864\t4096\t1\n";
    let trace = FileTrace::read("t.tsv", Cursor::new(text)).unwrap();
    for (scale, begins, reaches) in [(1.0, 4096, 40960), (0.5, 4096, 20480)] {
        let report = run(&trace, &FileTraceOptions { scale, ..FileTraceOptions::default() });
        let prepared = report.prepared.iter().map(|call| match call {
            Call::Write { len, .. } => *len,
            _ => 0,
        });
        assert_eq!(prepared.sum::<u64>(), begins);
        assert_eq!(report.files[&FileId(0)], reaches);
    }
}

/// The end is where the calls before have put it.
#[test]
fn space_is_allocated_at_the_end_of_the_file() {
    let text = "F\t0\t40960\ta\t4096\n0\t0\ta\t0\t-1\t100\t1\n1\t0\tw\t0\t-1\t4096\t1\n\
                2\t0\tw\t0\t0\t12288\t1\n3\t0\ta\t0\t-1\t8192\t1\n";
    let trace = FileTrace::read("t.tsv", Cursor::new(text)).unwrap();
    let calls = of_thread(&run(&trace, &FileTraceOptions::default()), 0);
    let ends = calls.iter().filter_map(|ended| match ended.call {
        Call::Allocate { len, .. } => Some(len),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [4096 + 100, 12288 + 8192]);
}

/// A file of 40 KiB, or of 20, whose end is read as recorded: half a call, and none.
#[test]
fn reads_beyond_the_end_of_a_file_stay_there() {
    let text = "F\t0\t40960\ta\n0\t0\tr\t0\t36864\t8192\t1\n9\t0\tr\t0\t81920\t8192\t1\n";
    let trace = FileTrace::read("t.tsv", Cursor::new(text)).unwrap();
    let half = [(16384, 4096), (20480, 8192)];
    for (scale, loops, expected) in [(1.0, 1.0, [(36864, 8192), (81920, 8192)]), (0.5, 2.0, half)] {
        let options = FileTraceOptions { scale, loops, ..FileTraceOptions::default() };
        let calls = of_thread(&run(&trace, &options), 0);
        let reads = calls.iter().map(|ended| match ended.call {
            Call::Read { offset, len, .. } => (offset, len),
            other => panic!("{other:?}"),
        });
        assert_eq!(reads.collect::<Vec<_>>(), expected, "{scale}");
    }
    let empty = "F\t0\t100\ta\n0\t0\tr\t0\t50\t0\t1\n";
    let trace = FileTrace::read("t.tsv", Cursor::new(empty)).unwrap();
    let options = FileTraceOptions { scale: 0.005, loops: 200.0, ..FileTraceOptions::default() };
    assert_eq!(of_thread(&run(&trace, &options), 0).len(), 1, "a file that shrinks to nothing");
}

/// A page cache keeps what is not on the drive yet.
#[test]
fn the_page_cache_forgets_the_first_content_once_it_is_synced() {
    let prepared = run_sample(&FileTraceOptions::default()).prepared;
    let synced = prepared.iter().position(|call| *call == Call::SyncAll).unwrap();
    let is_write = |call: &Call| matches!(call, Call::Write { .. });
    let forgets = |call: &Call| matches!(call, Call::DropCache { .. });
    assert!(prepared[..synced].iter().any(is_write) && !prepared[..synced].iter().any(forgets));
    assert!(prepared[synced..].iter().any(forgets) && !prepared[synced..].iter().any(is_write));
}

/// Two threads that each compute for a millisecond before each of their reads.
fn computing() -> FileTrace {
    let mut text = String::from("F\t0\t4096\ta\n");
    for call in 0..40 {
        text += &format!("{call}\t{}\tr\t0\t0\t512\t1\t1000\n", call % 2);
    }
    FileTrace::read("t.tsv", Cursor::new(text)).unwrap()
}

fn closed(cpus: u32, lead: u32) -> FileTraceOptions {
    let pace = Pace::Closed(ClosedLoop { cpus, lead });
    FileTraceOptions { pace, ..FileTraceOptions::default() }
}

#[test]
fn threads_share_the_cpus_of_their_host() {
    let end = |cpus: u32| run(&computing(), &closed(cpus, 1024)).end.as_ns() as f64 / 1e6;
    assert!((40.0..41.0).contains(&end(1)), "{} ms for 40 ms of work on a CPU", end(1));
    assert!((20.0..27.0).contains(&end(2)), "{} ms on two", end(2));
    assert!(end(3) == end(2), "two threads need no third");
}

#[test]
fn no_thread_runs_far_ahead_of_the_order_of_the_trace() {
    let mut text = String::from("F\t0\t4096\ta\n");
    for call in 0..200 {
        // one thread computes, the other could make all its calls at once
        let (thread, cpu_us) = (call % 2, call % 2 * 500);
        text += &format!("{call}\t{thread}\tr\t0\t0\t512\t1\t{cpu_us}\n");
    }
    let trace = FileTrace::read("t.tsv", Cursor::new(text)).unwrap();
    for lead in [1, 7, 64] {
        let report = run(&trace, &closed(1, lead));
        let (ahead, behind) = (of_thread(&report, 0), of_thread(&report, 1));
        assert_eq!((ahead.len(), behind.len()), (100, 100));
        for (place, ended) in ahead.iter().enumerate() {
            let number = 2 * place as u32;
            let Some(before) = number.checked_sub(lead) else { continue };
            // of the other thread, the last call that stands `lead` lines or more above
            let Some(last) = before.checked_sub(1).map(|before| before / 2) else { continue };
            let last = &behind[last as usize];
            assert!(ended.outcome.begin >= last.outcome.end, "call {number}, lead {lead}");
        }
    }
}

#[test]
fn a_closed_loop_needs_cpu_times() {
    let trace = FileTrace::open(&sample()).unwrap();
    let error = FileTraceWorkload::new(&trace, &closed(4, 1024)).unwrap_err().to_string();
    assert!(error.contains("has no CPU times"), "{error}");
    for (cpus, lead, expected) in
        [(0, 1, "cpus is 0: give 1 to 1024"), (1, 0, "lead is 0: give at least 1")]
    {
        let error = FileTraceWorkload::new(&computing(), &closed(cpus, lead)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn options_out_of_range_are_refused() {
    let trace = FileTrace::open(&sample()).unwrap();
    let default = FileTraceOptions::default();
    for (options, expected) in [
        (FileTraceOptions { pace: Pace::Gaps(-1.0), ..default }, "gaps is -1: give 0 to 1000"),
        (
            FileTraceOptions { loops: f64::NAN, ..default },
            "loops is NaN: give more than 0, at most 1000000",
        ),
        (FileTraceOptions { scale: 2.0, ..default }, "scale is 2: give more than 0, at most 1"),
    ] {
        assert_eq!(FileTraceWorkload::new(&trace, &options).unwrap_err().to_string(), expected);
    }
}

#[test]
fn it_is_known_by_its_content() {
    assert!(FileTrace::is_one(&sample()));
    for other in ["tests/data/README.md", "tests/data/mqsim-tpcc-small.trace", "tests/data", "none"]
    {
        assert!(!FileTrace::is_one(&Path::new(env!("CARGO_MANIFEST_DIR")).join(other)), "{other}");
    }
}

/// The directory of the full traces: `traces` in `DOVETAIL_SHARED`, or in `shared` beside the
/// project.
fn full_traces() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("DOVETAIL_SHARED").map_or_else(beside, PathBuf::from);
    Some(shared.join("traces")).filter(|traces| traces.is_dir())
}

#[test]
fn full_traces_have_their_counts() {
    let Some(traces) = full_traces() else {
        println!("skipped: no full traces; DOVETAIL_SHARED names the directory that holds traces/");
        return;
    };
    for (name, threads, counts) in [
        ("mariadb-tpcc", 24, [141_496, 77_558, 9_344, 4]),
        ("mariadb-ycsb-a", 56, [46_344, 28_728, 7_129, 0]),
    ] {
        let trace = FileTrace::open(&traces.join(format!("{name}.file.tsv.zst"))).unwrap();
        let options = FileTraceOptions { pace: Pace::Gaps(0.0), ..FileTraceOptions::default() };
        let report = run(&trace, &options);
        let count =
            |kind: fn(&Call) -> bool| report.calls.iter().filter(|ended| kind(&ended.call)).count();
        let made = [
            count(|call| matches!(call, Call::Read { .. })),
            count(|call| matches!(call, Call::Write { .. })),
            count(|call| matches!(call, Call::Sync { data_only: true, .. })),
            count(|call| matches!(call, Call::Allocate { .. })),
        ];
        assert_eq!(made, counts, "{name}");
        let seen: BTreeSet<ThreadId> = report.calls.iter().map(|ended| ended.thread).collect();
        assert_eq!(seen.len(), threads);
    }
}
