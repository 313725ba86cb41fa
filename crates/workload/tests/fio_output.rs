//! Our JSON has the keys of fio's, and a reader that is not ours reads it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::{fio, workload};
use dovetail_workload::ThreadId;
use dovetail_workload::fio::output::{
    Depths, JobReport, Latency, PERCENTILES, Samples, Spread, Totals, to_json,
};
use serde_json::Value;

const JOB: &str = "[global]\nsize=1m\nbs=4k\n[a]\ndescription=a test\nrw=randrw\nfsync=10\niodepth=1\nnumjobs=1\n";

fn latency(calls: u64) -> Latency {
    let percentiles_ns = PERCENTILES.map(|percent| (percent, (1_000.0 * percent) as u64)).into();
    Latency {
        calls,
        min_ns: 1_000,
        max_ns: 17_000,
        mean_ns: 9_000.0,
        stddev_ns: 4_000.0,
        percentiles_ns,
    }
}

fn totals(calls: u64) -> Totals {
    Totals {
        bytes: calls * 4096,
        calls,
        runtime_ns: 2_000_000_000,
        completion: latency(calls),
        total: Latency { percentiles_ns: Vec::new(), ..latency(calls) },
        bandwidth: Samples { count: 4, min: 100, max: 300, mean: 200.0, deviation: 10.0 },
        bandwidth_share: 100.0,
        ..Totals::default()
    }
}

/// Output that a run of [`JOB`] might give.
fn ours() -> Value {
    let workload = workload(JOB, 1);
    let info = workload.info(ThreadId(0));
    let (mut depths, mut spread) = (Depths::default(), Spread::default());
    for call in 0..256 {
        depths.record(1);
        spread.record(call * 1_000);
    }
    let report = JobReport {
        name: info.job_name().to_owned(),
        group: info.group(),
        description: info.description().map(str::to_owned),
        options: info.options().to_vec(),
        directions: [totals(128), totals(128), Totals::default()],
        syncs: latency(12),
        runtime_ns: 2_000_000_000,
        elapsed_ns: 2_000_000_000,
        depths,
        spread,
        ..JobReport::default()
    };
    to_json(workload.job_file().global_options(), 0, &[report])
}

/// Every path of keys, in the order of the document.
fn keys(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let path = format!("{path}/{key}");
            keys(value, &path, found);
            found.push(path);
        }),
        Value::Array(values) => values.iter().for_each(|value| keys(value, path, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn keys_of(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    keys(value, "", &mut found);
    found.retain(|key| !key.starts_with("/disk_util/"));
    found
}

fn theirs() -> Value {
    // on a disk: /tmp may be in memory, which has no direct I/O
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let text = fio(folder.path(), JOB, &["--output-format=json"]).unwrap();
    serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
}

#[test]
fn the_keys_are_those_of_fio_in_its_order() {
    assert_eq!(keys_of(&ours()), keys_of(&theirs()));
}

#[test]
fn numbers_have_the_types_of_fio() {
    let types = |value: &Value| {
        keys_of(value)
            .into_iter()
            .filter_map(|key| {
                let pointer = key.replace("/jobs/", "/jobs/0/");
                value.pointer(&pointer).map(|value| (key, value.is_f64(), value.is_string()))
            })
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(types(&ours()), types(&theirs()));
}

/// fio-plot (PyPI) draws latency and IOPS from it.
#[test]
#[ignore = "needs fio-plot from PyPI: cargo xtask fio-plot"]
fn fio_plot_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("randrw-1-1.json"), ours().to_string()).unwrap();
    for mode in ["-l", "-H"] {
        let picture = folder.path().join(format!("chart{mode}.png"));
        let output = Command::new("fio-plot")
            .args(["-i", folder.path().to_str().unwrap(), "-T", "test", mode, "-r", "randrw"])
            .args(["-d", "1", "-n", "1", "-o", picture.to_str().unwrap()])
            .args(["-f", "write"])
            .output()
            .expect("fio-plot, from PyPI");
        assert!(output.status.success() && picture.exists(), "{mode}: {output:?}");
    }
}
