//! Behaviour of threads in time: groups, delays, rates, depths, loops; and that no text makes the
//! parser panic.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::HashMap;

use crate::common::{CALL_NS, Played, play, workload};
use dovetail_time::SimTime;
use dovetail_workload::fio::{Direction, FioWorkload, JobFile, Variables};
use dovetail_workload::{Call, ThreadId, Workload};
use proptest::prelude::*;

fn run(options: &str) -> Vec<Played> {
    play(&mut workload(&format!("[a]\n{}\n", options.replace(' ', "\n")), 1))
}

fn data(played: &[Played]) -> Vec<&Played> {
    played.iter().filter(|played| Direction::of(&played.call).is_some()).collect()
}

fn offset(call: &Call) -> u64 {
    match *call {
        Call::Read { offset, .. } | Call::Write { offset, .. } | Call::PunchHole { offset, .. } => {
            offset
        }
        _ => panic!("{call:?} has no offset"),
    }
}

#[test]
fn a_stonewall_waits_for_all_before_it() {
    let text = "[global]\nsize=64k\n[a]\nrw=write\nnumjobs=2\n[b]\nstonewall\nrw=read\n[c]\nrw=write\n[d]\nstonewall\n";
    let played = play(&mut workload(text, 1));
    let first =
        |thread| played.iter().filter(|p| p.thread == thread).map(|p| p.begin).min().unwrap();
    let last =
        |thread| played.iter().filter(|p| p.thread == thread).map(|p| p.begin).max().unwrap();
    assert!(first(2) > last(0).max(last(1)));
    assert_eq!(first(2), first(3));
    assert!(first(4) > last(2).max(last(3)));
}

#[test]
fn groups_are_numbered_as_by_fio() {
    let text = "[global]\nsize=64k\n[a]\nnumjobs=2\n[b]\nnew_group\n[c]\n[d]\nstonewall\n";
    let workload = workload(text, 1);
    let groups: Vec<u32> =
        (0..workload.threads()).map(|thread| workload.info(ThreadId(thread)).group()).collect();
    assert_eq!(groups, [0, 0, 1, 1, 2]);
}

#[test]
fn a_rate_is_held() {
    let played = run("rw=write bs=4k size=4m rate=1m");
    let seconds = played.last().unwrap().begin.as_secs_f64();
    assert!((3.99..4.01).contains(&seconds), "{seconds}");
    let played = run("rw=randrw bs=4k size=1m rate_iops=100,50");
    for (direction, rate) in [(Direction::Read, 100.0), (Direction::Write, 50.0)] {
        let calls: Vec<_> = data(&played)
            .into_iter()
            .filter(|p| Direction::of(&p.call) == Some(direction))
            .collect();
        let seconds = calls.last().unwrap().begin.as_secs_f64();
        assert!(calls.len() as f64 <= rate * seconds + 1.0, "{direction:?}");
    }
}

/// As in fio: `rate_iops` is a bandwidth of the smallest blocks.
#[test]
fn larger_blocks_count_for_several_calls_of_a_rate() {
    let played = run("rw=randread bsrange=4k-64k size=4m rate_iops=100");
    let seconds = played.last().unwrap().begin.as_secs_f64();
    assert!((9.9..10.3).contains(&seconds), "{seconds}"); // 4 MiB at 400 KiB/s
}

/// Times between calls of a Poisson process have the mean that the rate gives, and a standard
/// deviation as large as their mean.
#[test]
fn a_poisson_process_has_the_rates_mean() {
    for rate in ["rate_iops=1000", "rate=4000k"] {
        let played =
            run(&format!("rw=randwrite bs=4k size=16m kb_base=1024 {rate} rate_process=poisson"));
        let begins: Vec<f64> = data(&played).iter().map(|p| p.begin.as_secs_f64()).collect();
        let waits: Vec<f64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>();
        let deviation = (variance / waits.len() as f64).sqrt();
        assert!((0.95e-3..1.05e-3).contains(&mean), "{rate}: {mean}");
        assert!((0.9..1.1).contains(&(deviation / mean)), "{rate}: {deviation} of {mean}");
    }
}

/// Times of first and last call of each thread, to the nearest ms.
fn spans(text: &str) -> Vec<(u64, u64)> {
    let mut workload = workload(text, 1);
    let played = play(&mut workload);
    let of = |thread| played.iter().filter(move |p| p.thread == thread && is_data(&p.call));
    let ms = |played: &Played| (played.begin.as_ns() + 500_000) / 1_000_000;
    let span =
        |thread| (of(thread).map(ms).min().unwrap_or(0), of(thread).map(ms).max().unwrap_or(0));
    (0..workload.threads()).map(span).collect()
}

fn is_data(call: &Call) -> bool {
    Direction::of(call).is_some()
}

/// As fio 3.33 does: `exitall` in one job holds for all, and the job that ends says which others
/// do.
#[test]
fn exitall_ends_the_others_with_the_first() {
    const JOBS: &str = "[global]\nsize=1m\nrw=read\ntime_based\n[a]\nruntime=10ms\nWHAT\n[b]\nruntime=40ms\n\
        exitall\n[c]\nnew_group\nruntime=30ms\n[d]\nstonewall\nruntime=20ms\n";
    let ends = |what| spans(&JOBS.replace("WHAT", what)).iter().map(|s| s.1).collect::<Vec<_>>();
    assert_eq!(ends(""), [10, 10, 30, 50], "its group");
    assert_eq!(ends("exit_what=stonewall"), [10, 10, 10, 30], "those that run");
    assert_eq!(ends("exit_what=all"), [10, 10, 10, 0], "all");
}

#[test]
fn a_job_waits_for_the_one_it_names() {
    let text = "[global]\nsize=1m\nrw=read\ntime_based\nruntime=10ms\n[a]\nnumjobs=2\n[b]\nruntime=50ms\n[c]\nwait_for=a\n";
    assert_eq!(spans(text), [(0, 10), (0, 10), (0, 50), (10, 20)]);
    let refused = |text: &str| {
        let jobs = JobFile::parse(text, "f", &Variables::new()).unwrap();
        FioWorkload::new(jobs, 1).unwrap_err().to_string()
    };
    let message = refused("[global]\nsize=1m\n[a]\nwait_for=b\n[b]\n");
    assert!(message.contains("waits for \"b\", but no job above it"), "{message}");
    let message = refused("[global]\nsize=1m\n[a]\n[a]\n[b]\nwait_for=a\n");
    assert!(message.contains("several jobs"), "{message}");
}

#[test]
fn depth_falls_to_the_low_mark_before_it_rises() {
    const DEEP: &str = "rw=randread bs=4k size=1m ioengine=libaio direct=1 iodepth=8";
    for (options, low) in [
        ("", 7),
        ("iodepth_low=3", 3),
        ("iodepth_batch_complete=8", 0),
        ("iodepth_batch_complete_min=2 iodepth_low=7", 6),
    ] {
        let played = run(&format!("{DEEP} {options}"));
        let depths: Vec<u32> = data(&played).iter().map(|p| p.under_way).collect();
        let after_full = depths.windows(2).filter(|pair| pair[0] == 8).map(|pair| pair[1] - 1);
        assert!(after_full.max().is_some_and(|most| most <= low), "{options}: {depths:?}");
    }
}

/// Files are read once from start to end, unmeasured, and stay in the page cache.
#[test]
fn what_is_pre_read_is_not_measured() {
    let mut workload =
        workload("[a]\nrw=randread\nsize=3m\nnrfiles=2\nbs=4k\nnumber_ios=10\npre_read=1\n", 1);
    let played = play(&mut workload);
    let lengths: Vec<u64> = (data(&played).iter())
        .map(|p| match p.call {
            Call::Read { len, .. } => len,
            _ => panic!("{:?} is no read", p.call),
        })
        .collect();
    assert_eq!(lengths[..4], [1 << 20, 512 << 10, 1 << 20, 512 << 10]);
    assert_eq!(lengths[4..], [4096; 10]);
    let is_measured = |p: &&Played| workload.measured(ThreadId(0), p.begin);
    assert_eq!(data(&played).into_iter().filter(is_measured).count(), 10);
    assert!(!played.iter().any(|p| matches!(p.call, Call::DropCache { .. })));
}

#[test]
fn thinktime_lies_between_blocks() {
    let played = run("rw=write bs=4k size=32k thinktime=1ms thinktime_blocks=2");
    let begins: Vec<u64> = data(&played).iter().map(|p| p.begin.as_ns()).collect();
    let gaps: Vec<u64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (short, long) = (CALL_NS, CALL_NS + 1_000_000);
    assert_eq!(gaps, [short, long, short, long, short, long, short]);
    let (last, close) = (begins[7], played.last().unwrap());
    assert!(matches!(close.call, Call::Close { .. }));
    assert_eq!(close.begin.as_ns() - last, long, "fio thinks after the last one, too");
}

#[test]
fn time_ends_a_job() {
    let played = run("rw=randwrite bs=4k size=64k runtime=10ms time_based");
    let last = data(&played).last().unwrap().begin.as_ns();
    assert!((9_900_000..10_000_000).contains(&last), "{last}");
    let short = run("rw=write bs=4k size=64m runtime=10ms");
    assert!(data(&short).last().unwrap().begin.as_ns() < 10_000_000);
    let startdelay = run("rw=write bs=4k size=64k startdelay=5ms");
    assert_eq!(startdelay[0].begin, SimTime::from_ns(5_000_000));
}

#[test]
fn a_ramp_is_not_measured_and_comes_on_top() {
    let text = "[a]\nrw=write\nsize=64k\ntime_based\nruntime=10ms\nramp_time=5ms\n";
    let mut workload = workload(text, 1);
    let played = play(&mut workload);
    assert!(played.last().unwrap().begin.as_ns() > 14_000_000);
    let measured = |ns| workload.measured(ThreadId(0), SimTime::from_ns(ns));
    assert!(!measured(4_999_999) && measured(5_000_000));
}

/// As in fio: at the end of the ramp `number_ios` and `fsync` begin to count anew.
#[test]
fn a_ramp_is_not_counted() {
    let job = "[a]\nrw=write\nsize=64m\nbs=4k\nrate_iops=1000\nramp_time=100ms\nnumber_ios=150\nfsync=7\n";
    let mut workload = workload(job, 1);
    let played = play(&mut workload);
    let measured = played.iter().filter(|p| workload.measured(ThreadId(0), p.begin));
    let measured: Vec<&Played> = measured.collect();
    assert_eq!(data(&played).len() - 150, 100, "those of the ramp");
    let writes = measured.iter().take_while(|p| is_data(&p.call)).count();
    assert_eq!(writes, 7);
    assert_eq!(measured.iter().filter(|p| is_data(&p.call)).count(), 150);
    assert_eq!(measured.iter().filter(|p| matches!(p.call, Call::Sync { .. })).count(), 21);
}

#[test]
fn only_direct_asynchronous_jobs_go_deep() {
    for (options, depth) in
        [("ioengine=libaio direct=1", 8), ("ioengine=libaio", 1), ("ioengine=psync direct=1", 1)]
    {
        let played = run(&format!("rw=randread bs=4k size=1m iodepth=8 {options}"));
        assert_eq!(data(&played).iter().map(|p| p.under_way).max(), Some(depth), "{options}");
    }
}

#[test]
fn each_synchronous_write_is_synced_beside_others() {
    let played = run("rw=write bs=4k size=32k sync=dsync ioengine=libaio iodepth=4 direct=1");
    let syncs =
        played.iter().filter(|p| matches!(p.call, Call::Sync { data_only: true, .. })).count();
    assert_eq!(syncs, 8);
    assert_eq!(data(&played).iter().map(|p| p.under_way).max(), Some(4), "others go on meanwhile");
}

/// A sync of `fsync` takes a place among the calls under way; a file's last one waits for them.
#[test]
fn other_calls_go_on_beside_a_sync() {
    let played = run("rw=randwrite bs=4k size=128k fsync=1 ioengine=io_uring iodepth=8 direct=1");
    let syncs = played.iter().filter(|p| matches!(p.call, Call::Sync { .. }));
    assert_eq!(syncs.clone().count(), 31, "none after the last");
    assert!(played.iter().all(|p| p.under_way <= 8));
    let deep = data(&played).iter().filter(|p| p.under_way >= 7).count();
    assert!(deep > 20, "{deep}");
    assert!(syncs.filter(|p| p.under_way >= 7).count() > 20);
}

#[test]
fn synchronous_writes_go_with_other_syncs_and_ends() {
    for (options, own) in [
        ("fsync=3", 10),
        ("end_fsync=1", 1),
        ("fsync=5 iodepth_low=1", 6),
        ("runtime=1 rate_iops=20", 0),
    ] {
        let job = "rw=randwrite bs=4k size=128k sync=sync ioengine=libaio iodepth=4 direct=1";
        let played = run(&format!("{job} {options}"));
        let writes = data(&played).len();
        let syncs = played.iter().filter(|p| matches!(p.call, Call::Sync { .. })).count();
        assert_eq!(syncs, writes + own, "{options}");
        assert!(data(&played).iter().all(|p| p.under_way <= 4), "{options}");
    }
}

/// As in fio 3.33: who ran out of time reads nothing back.
#[test]
fn jobs_whose_time_is_over_read_nothing_back() {
    for (options, reads) in
        [("", 16), ("runtime=1 rate_iops=4", 0), ("runtime=1 rate_iops=4 time_based", 0)]
    {
        let played = run(&format!("rw=write bs=4k size=64k verify=crc32c {options}"));
        let found = played.iter().filter(|p| matches!(p.call, Call::Read { .. })).count();
        assert_eq!(found, reads, "{options}");
    }
}

#[test]
fn random_jobs_hit_every_block_once_a_pass() {
    for options in [
        "bs=4k",
        "bsrange=4k-16k",
        "bssplit=4k/50:64k/50",
        "bs=4k random_distribution=zoned:60/10:40/90",
    ] {
        let played = run(&format!("rw=randwrite size=1m {options}"));
        let mut hit = vec![0; 256];
        for call in data(&played) {
            let Call::Write { offset, len, .. } = call.call else { panic!("{call:?}") };
            (offset / 4096..(offset + len) / 4096).for_each(|block| hit[block as usize] += 1);
        }
        assert!(hit.iter().all(|hits| *hits == 1), "{options} {hit:?}");
    }
}

#[test]
fn sections_of_one_name_are_jobs_of_their_own() {
    let workload = workload("[global]\nsize=64k\n[a]\nnumjobs=2\n[a (2)]\n[a]\nrw=write\n", 1);
    let names: Vec<&str> = (0..4).map(|thread| workload.job(ThreadId(thread))).collect();
    assert_eq!(names, ["a", "a", "a (2)", "a (3)"]);
    assert_eq!(workload.info(ThreadId(3)).job_name(), "a", "fio's own output");
}

#[test]
fn zones_are_within_their_file() {
    let job = |size: &str| {
        format!(
            "[a]\nrw=randwrite\nbs=4k\nrandom_distribution=zoned_abs:50/32k:50/64k\nsize={size}\n"
        )
    };
    assert_eq!(data(&play(&mut workload(&job("96k"), 1))).len(), 24);
    let file = JobFile::parse(&job("64k"), "test.fio", &Variables::new()).unwrap();
    let message = FioWorkload::new(file, 1).unwrap_err().to_string();
    assert!(message.contains("zones of 98304 bytes together"), "{message}");
}

#[test]
fn skewed_jobs_hit_some_blocks_often() {
    let played = run("rw=randread bs=4k size=1m io_size=16m random_distribution=zipf:1.2");
    let mut hits: HashMap<u64, u32> = HashMap::new();
    data(&played).iter().for_each(|p| *hits.entry(offset(&p.call)).or_default() += 1);
    let most = *hits.values().max().unwrap();
    assert!(most > 600, "{most} of 4096");
}

#[test]
fn trims_come_before_their_writes() {
    for rw in ["trimwrite", "randtrimwrite"] {
        let played = run(&format!("rw={rw} bs=4k size=64k"));
        let calls = data(&played);
        assert_eq!(calls.len(), 32, "{rw}");
        for pair in calls.chunks(2) {
            assert!(
                matches!(pair[0].call, Call::PunchHole { .. })
                    && matches!(pair[1].call, Call::Write { .. })
            );
            assert_eq!(offset(&pair[0].call), offset(&pair[1].call));
        }
    }
}

#[test]
fn a_mix_has_its_share() {
    let played = run("rw=randrw rwmixread=70 bs=4k size=16m");
    let reads = data(&played).iter().filter(|p| matches!(p.call, Call::Read { .. })).count();
    assert!((2_780..2_960).contains(&reads), "{reads} of 4096");
}

#[test]
fn the_last_user_unlinks() {
    let text = "[a]\nrw=write\nsize=64k\nfilename=x\nunlink=1\nnumjobs=3\n";
    let played = play(&mut workload(text, 1));
    assert!(matches!(played.last().unwrap().call, Call::Unlink { .. }));
    assert_eq!(played.iter().filter(|p| matches!(p.call, Call::Unlink { .. })).count(), 1);
}

#[test]
fn seeds_decide() {
    let offsets = |options: &str, seed| {
        let mut workload = workload(&format!("[a]\nrw=randwrite\nsize=256k\n{options}"), seed);
        let played = play(&mut workload);
        data(&played).iter().map(|p| offset(&p.call)).collect::<Vec<u64>>()
    };
    assert_eq!(offsets("", 1), offsets("", 1));
    assert_ne!(offsets("", 1), offsets("", 2));
    assert_ne!(offsets("randseed=5", 1), offsets("", 1));
    let loops = offsets("loops=2", 1);
    assert_eq!(loops[..64], loops[64..]);
    let loops = offsets("loops=2\nrandrepeat=0", 1);
    assert_ne!(loops[..64], loops[64..]);
}

/// Lines that are nearly right, since arbitrary text rarely gets beyond the first line.
fn line() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> =
        dovetail_workload::fio::OPTIONS.iter().map(|option| option.name).collect();
    let value = prop_oneof![
        "[0-9]{1,20}[kmgtp%]?",
        "[a-z0-9_:,/.%=$-]{0,12}",
        Just("randrw".to_owned()),
        Just("1".to_owned()),
        Just("4k".to_owned()),
        Just("zipf:1.2".to_owned()),
    ];
    prop_oneof![
        4 => (prop::sample::select(names), value).prop_map(|(name, value)| format!("{name}={value}")),
        1 => "\\[[a-z]{0,3}\\]?",
        1 => "\\PC{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}", lines in prop::collection::vec(line(), 0..6)) {
        let parse = |text: &str| JobFile::parse(text, "f", &Variables::new());
        let _ = parse(&text);
        let _ = parse(&format!("[a]\n{}", lines.join("\n")));
        // One good line at a time, so that jobs get planned too.
        for line in &lines {
            let Ok(jobs) = parse(&format!("[a]\nsize=64k\n{line}")) else { continue };
            if let Ok(mut workload) = FioWorkload::new(jobs, 1) {
                for _ in 0..20 {
                    workload.prepare();
                    workload.next(ThreadId(0), SimTime::ZERO);
                }
            }
        }
    }
}
