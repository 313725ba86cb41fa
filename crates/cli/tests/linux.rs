//! Linux stacks as a user runs them; they take the kernel of `dovetail linux build`.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(clippy::print_stdout, reason = "what is skipped is named")]

use std::path::Path;
use std::process::{Command, Output};

use dovetail_linux::default_kernel;
use serde_json::Value;

const JOB: &str = "[writer]\nrw=randwrite\nbs=4k\nsize=128m\nio_size=64m\nfsync=8\nnumjobs=2\n\
                   [reader]\nstonewall\nrw=randread\nbs=4k\nsize=64m\nioengine=libaio\niodepth=8\ndirect=1\n";

/// There is a kernel; says so if not.
fn has_kernel() -> bool {
    let kernel = default_kernel();
    if let Err(error) = &kernel {
        println!("linux: SKIPPED: {error}");
    }
    kernel.is_ok()
}

fn dovetail(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_bench_on_linux_gives_the_same_results_again() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.fio"), JOB).unwrap();
    let stacks = "linux-f2fs,linux-ext4,linux-btrfs,linux-xfs,f2fs";
    let bench = || {
        let arguments = ["bench", "a.fio", "-s", stacks, "--scale", "1/32", "--json"];
        let output = dovetail(folder.path(), &arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let first = bench();
    assert!(first == bench(), "two runs differ");
    let results: Value = serde_json::from_str(&first).unwrap();
    let runs = results["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 5);
    for run in runs {
        let totals = &run["totals"];
        assert_eq!(totals["calls"], runs[4]["totals"]["calls"], "{}", run["label"]);
        assert!(totals["written_bytes"].as_u64().unwrap() >= 4 << 20, "{}", run["label"]);
        assert!(run["requests"]["flush"]["count"].as_u64().unwrap() > 50, "{}", run["label"]);
    }
}

/// Time and reads of a recovery follow from how the kernel reads ahead.
#[test]
fn our_mounts_after_a_power_cut_take_as_long_as_the_kernels() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let job = "[a]\nrw=randwrite\nbs=4k\nsize=1g\nio_size=512m\nfsync=10\noverwrite=1\n";
    std::fs::write(folder.path().join("a.fio"), job).unwrap();
    let stacks = "linux-f2fs,f2fs,linux-ext4,ext4";
    let arguments = [
        "bench",
        "a.fio",
        "-s",
        stacks,
        "-d",
        "femu-32g",
        "--scale",
        "1/32",
        "--restart",
        "--json",
    ];
    let output = dovetail(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    for pair in results["runs"].as_array().unwrap().chunks_exact(2) {
        for (figure, most) in [("mount_s", 1.4), ("mount_read_blocks", 1.2)] {
            let [kernels, ours] =
                [&pair[0], &pair[1]].map(|run| run["restart"][figure].as_f64().unwrap());
            let ratio = ours / kernels;
            let context = format!("{} {figure}: {ours}, {kernels}", pair[1]["label"]);
            assert!((1.0 / most..most).contains(&ratio), "{context}");
            println!("{context}");
        }
    }
}

#[test]
fn a_seed_decides_all_that_is_random() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let drawn = |seed: &str| {
        let command = ["cat /proc/sys/kernel/random/uuid; mktemp -u; date +%N"];
        let arguments = ["linux", "run", "--scale", "1/32", "--seed", seed, "--"];
        let output = dovetail(folder.path(), &[&arguments[..], &command].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).lines().take(3).map(str::to_owned).collect::<Vec<_>>()
    };
    let [first, again, other] = ["1", "1", "2"].map(drawn);
    assert_eq!(first, again);
    assert_ne!((&first[0], &first[1]), (&other[0], &other[1]));
}

#[test]
fn a_volume_recovers_after_a_power_cut() {
    if !has_kernel() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let work =
        "for i in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=f$i bs=4k count=50 conv=fsync; done";
    let run = |at: &str| {
        let arguments =
            ["linux", "run", "-s", "linux-f2fs", "--scale", "1/32", "--power-cut", at, "--", work];
        dovetail(folder.path(), &arguments)
    };
    let cut = run("12");
    assert!(cut.status.success(), "{}", text(&cut.stderr));
    let told = text(&cut.stdout);
    assert!(told.contains("The power went after") && told.contains("checker says"), "{told}");
    assert!(text(&run("100000").stdout).contains("ended before the power was to be cut"));
}
