//! A bench's results in fio's layout have the keys of fio's own, and say what our own results say.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::process::Command;

use dovetail_lab::bench::{Experiment, Fill, FillAmount, FillWith, Source, Stack};
use dovetail_lab::results::RunResult;
use serde_json::Value;

/// Two groups: one reported as a whole, one thread by thread.
const JOB: &str = "[global]\nsize=1m\nbs=4k\niodepth=4\nioengine=libaio\ndirect=1\n\
                   [a]\ndescription=first\nrw=randrw\nnumjobs=2\ngroup_reporting\n\
                   [b]\nrw=randwrite\nfsync=10\ngroup_reporting\n\
                   [c]\nstonewall\nrw=read\nnumjobs=2\n\
                   [d]\nstonewall\nrw=write\nsize=8m\nrate=10m\ngroup_reporting\n";

fn bench(fill: Option<Fill>) -> RunResult {
    bench_of(JOB, fill)
}

fn bench_of(job: &str, fill: Option<Fill>) -> RunResult {
    let source = Source::fio(job, "test.fio", &[]).unwrap();
    let stacks = [Stack::parse(&STACK.replace("PART", "512MiB"), "test.toml").unwrap()];
    let experiment = Experiment { fill, seed: 7, ..Experiment::new(&source, &stacks) };
    let (results, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    results.runs.into_iter().next().unwrap()
}

const STACK: &str = "name = \"test\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\npartition = \"PART\"\n";

fn theirs() -> Value {
    theirs_of(JOB)
}

fn theirs_of(job: &str) -> Value {
    // on a disk: /tmp may be in memory, which has no direct I/O
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::write(folder.path().join("test.fio"), job).unwrap();
    let output = Command::new("fio")
        .current_dir(folder.path())
        .args(["--output-format=json", "test.fio"])
        .output()
        .expect("the tests need fio: cargo xtask test installs it, or apt-get install fio");
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
}

/// Every path of keys, in the order of the document.
fn keys(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let path = format!("{path}/{key}");
            keys(value, &path, found);
            found.push(path);
        }),
        Value::Array(values) => {
            (0..)
                .zip(values)
                .for_each(|(at, value): (usize, _)| keys(value, &format!("{path}/{at}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn keys_of(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    keys(value, "", &mut found);
    found.retain(|key| !key.starts_with("/disk_util/"));
    found
}

fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing"))
}

/// A figure summed over all jobs.
fn sum(value: &Value, pointer: &str) -> u64 {
    value["jobs"].as_array().unwrap().iter().map(|job| at(job, pointer).as_u64().unwrap()).sum()
}

#[test]
fn keys_names_groups_and_options_are_those_of_fio() {
    let (ours, theirs) = (bench(None).fio.unwrap(), theirs());
    assert_eq!(keys_of(&ours), keys_of(&theirs));
    assert_eq!(ours["global options"], theirs["global options"]);
    for job in 0..theirs["jobs"].as_array().unwrap().len() {
        for key in ["jobname", "groupid", "error", "job options", "desc"] {
            assert_eq!(ours["jobs"][job][key], theirs["jobs"][job][key], "{key} of job {job}");
        }
        for key in ["read/total_ios", "read/io_bytes", "write/short_ios", "sync/total_ios"] {
            let pointer = format!("/jobs/{job}/{key}");
            if !key.starts_with("read") || job > 0 {
                assert_eq!(at(&ours, &pointer), at(&theirs, &pointer), "{pointer}");
            }
        }
        let both = |value| {
            at(value, &format!("/jobs/{job}/read/io_bytes")).as_u64().unwrap()
                + at(value, &format!("/jobs/{job}/write/io_bytes")).as_u64().unwrap()
        };
        assert_eq!(both(&ours), both(&theirs), "job {job}");
    }
}

#[test]
fn percentiles_are_those_that_the_job_asks_for() {
    let job =
        "[global]\nsize=1m\nrw=write\niodepth=4\nioengine=libaio\ndirect=1\nfsync=10\nstonewall\n";
    let options = [
        "percentile_list=99.999:50",
        "lat_percentiles=1\nclat_percentiles=0",
        "slat_percentiles=1\npercentile_list=12.5",
        "clat_percentiles=0",
    ];
    let jobs = options.map(|options| format!("[a]\n{options}\n")).concat();
    let job = format!("{job}{jobs}");
    let (ours, theirs) = (bench_of(&job, None).fio.unwrap(), theirs_of(&job));
    assert_eq!(keys_of(&ours), keys_of(&theirs));
    // to three digits, as of all percentiles
    let figure = |key: &str| at(&ours, &format!("/jobs/0/write/clat_ns/{key}")).as_f64().unwrap();
    let (tail, longest) = (figure("percentile/99.999000"), figure("max"));
    assert!((tail / longest - 1.0).abs() < 1e-3, "{tail} of {longest}");
}

#[test]
fn threads_share_logs_if_the_job_says_so() {
    let job =
        "[global]\nsize=64k\nrw=write\nwrite_iops_log=x\n[a]\nnumjobs=2\nper_job_logs=0\n[b]\n";
    let logs = bench_of(job, None).fio_logs;
    let logs: Vec<(String, usize)> = logs
        .iter()
        .map(|log| (format!("{}{}", log.prefix, log.ending), log.text.lines().count()))
        .collect();
    assert_eq!(logs, [("x_iops.log".to_owned(), 32), ("x_iops.3.log".to_owned(), 16)]);
}

#[test]
fn sums_are_those_of_the_run() {
    let fill = Fill { amount: FillAmount::Bytes(32 << 20), with: FillWith::Impressions };
    let run = bench(Some(fill));
    let fio = run.fio.unwrap();
    assert_eq!(sum(&fio, "/read/io_bytes"), run.totals.read_bytes);
    assert_eq!(sum(&fio, "/write/io_bytes"), run.totals.written_bytes);
    assert_eq!(sum(&fio, "/read/total_ios"), run.latency.read.percentiles.count);
    assert_eq!(sum(&fio, "/write/total_ios"), run.latency.write.percentiles.count);
    assert_eq!(sum(&fio, "/sync/total_ios"), run.latency.flush.percentiles.count);
    assert_eq!(sum(&fio, "/write/short_ios"), 0);
}

#[test]
fn latencies_and_rates_fit_together() {
    let run = bench(None);
    let fio = run.fio.unwrap();
    let figure = |pointer: &str| at(&fio, pointer).as_f64().unwrap();
    // Four threads' groups: libaio hands calls over, so its latency has two parts.
    let parts = figure("/jobs/0/write/slat_ns/mean") + figure("/jobs/0/write/clat_ns/mean");
    assert!((parts - figure("/jobs/0/write/lat_ns/mean")).abs() < 1.0);
    assert!(figure("/jobs/0/write/slat_ns/min") > 0.0);
    // 8 MiB at 10 MiB a second take 0.8 s: one window of 500 ms is over, and had that rate.
    let last = fio["jobs"].as_array().unwrap().len() - 1;
    assert_eq!(figure(&format!("/jobs/{last}/write/bw_samples")), 1.0);
    assert!((figure(&format!("/jobs/{last}/write/bw_mean")) - 10_240.0).abs() < 300.0);
    assert!((figure(&format!("/jobs/{last}/write/iops_mean")) - 2_560.0).abs() < 80.0);
    let p99 = figure(&format!("/jobs/{last}/write/clat_ns/percentile/99.000000"));
    assert!(p99 >= figure(&format!("/jobs/{last}/write/clat_ns/percentile/50.000000")));
    assert!(p99 <= figure(&format!("/jobs/{last}/write/clat_ns/max")) * 1.001);
    let levels: f64 = at(&fio, "/jobs/0/iodepth_level")
        .as_object()
        .unwrap()
        .values()
        .map(|v| v.as_f64().unwrap())
        .sum();
    assert!((levels - 100.0).abs() < 1e-6);
}

/// A direction's time is that of the whole phase: fio's is made of pauses and rates here, so that
/// the speed of its disk counts little.
#[test]
fn times_are_those_of_fio() {
    let job = "[global]\nsize=1m\nbs=4k\nstonewall\n\
               [thinks]\nrw=read\nthinktime=100ms\nnumber_ios=5\n\
               [overtime]\nrw=read\nthinktime=400ms\nruntime=1\n\
               [paced]\nrw=write\nbs=64k\nrate_iops=32\nverify=crc32c\n\
               [mixed]\nrw=rw\nthinktime=20ms\nnumber_ios=16\n";
    let (ours, theirs) = (bench_of(job, None).fio.unwrap(), theirs_of(job));
    for (name, at_job) in [("thinks", 0), ("overtime", 1), ("paced", 2), ("mixed", 3)] {
        for key in ["read/runtime", "write/runtime", "job_runtime"] {
            let figure = |of| at(of, &format!("/jobs/{at_job}/{key}")).as_f64().unwrap();
            let (ours, theirs) = (figure(&ours), figure(&theirs));
            assert!((ours - theirs).abs() < 0.1 * theirs + 40.0, "{name} {key}: {ours} {theirs}");
            assert_eq!(ours > 0.0, theirs > 0.0, "{name} {key}: {ours} {theirs}");
        }
    }
    let of = |key: &str| at(&ours, key).as_u64().unwrap();
    assert_eq!(of("/jobs/0/read/runtime"), 501, "five pauses and their reads, rounded up");
}

/// Counts that follow from a job's options alone.
#[test]
fn counts_are_those_of_fio() {
    let job = "[global]\nsize=64k\nbs=4k\nstonewall\n\
               [end]\nrw=write\nend_fsync=1\n\
               [both]\nrw=write\nend_fsync=1\nfsync=3\n\
               [close]\nrw=write\nfsync_on_close=1\nnrfiles=2\n\
               [psync]\nrw=read\niodepth=6\n\
               [aio]\nrw=read\nioengine=libaio\niodepth=6\n\
               [one]\nrw=read\nioengine=libaio\ndirect=1\n\
               [slow]\nrw=write\nrate_iops=1\nruntime=3\n";
    let (ours, theirs) = (bench_of(job, None).fio.unwrap(), theirs_of(job));
    for (at_job, of) in theirs["jobs"].as_array().unwrap().iter().enumerate() {
        let counts = [
            "sync/total_ios",
            "read/total_ios",
            "write/total_ios",
            "read/slat_ns/N",
            "write/slat_ns/N",
            "read/clat_ns/N",
            "latency_depth",
            "write/bw_min",
        ];
        for key in counts {
            let ours = at(&ours, &format!("/jobs/{at_job}/{key}"));
            if key != "write/bw_min" || of["jobname"] == "slow" {
                assert_eq!(ours, at(of, &format!("/{key}")), "{} {key}", of["jobname"]);
            }
        }
    }
}
