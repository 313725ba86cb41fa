//! `dovetail bench` on several drives, with several mount options, on raw and on aged drives.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::process::{Command, Output};

use serde_json::Value;

const FILES: [(&str, &str); 8] = [
    ("job.fio", "[w]\nrw=randwrite\nbs=4k\nsize=4m\nfsync=64\n"),
    (
        "raw.fio",
        "[global]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=libaio\nbs=4k\nio_size=8m\n\
         [qd1]\nrw=randread\n[qd32]\nstonewall\nrw=randrw\niodepth=32\n",
    ),
    (
        "aged.fio",
        "[global]\nfilename=/dev/sda\ndirect=1\nbs=4k\nio_size=2g\n[r]\nrw=randread\n[w]\nrw=randwrite\n",
    ),
    ("fill.fio", "[w]\nrw=write\nbs=64k\nsize=4g\nfsync=16\n"),
    (
        "small.toml",
        "name = \"small\"\nabout = \"\"\nfilesystem = \"f2fs\"\nmount = \"mode=lfs\"\ndrive = \"femu-32g\"\n",
    ),
    (
        "kept-f2fs.toml",
        "name = \"f2fs\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\n[mkfs]\ndiscard = false\n",
    ),
    (
        "kept-ext4.toml",
        "name = \"ext4\"\nabout = \"\"\nfilesystem = \"ext4\"\ndrive = \"femu-32g\"\n[mkfs]\ndiscard = false\n",
    ),
    (
        "own.toml",
        "name = \"own\"\nabout = \"\"\nfilesystem = \"none\"\ndrive = \"femu-32g\"\npartition = \"64MiB\"\n",
    ),
];

/// The arguments after `bench`, in a folder with the files.
fn bench(arguments: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.arg("bench").args(arguments.split_whitespace()).current_dir(folder.path());
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The runs of a bench as JSON.
fn runs(arguments: &str) -> Vec<Value> {
    let text = stdout(&bench(&format!("{arguments} --json")));
    let results: Value = serde_json::from_str(&text).unwrap();
    results["runs"].as_array().unwrap().clone()
}

/// The strings of one field of all runs.
fn all(runs: &[Value], field: &str) -> Vec<String> {
    let of = |run: &Value| run.pointer(field).and_then(Value::as_str).map(String::from);
    runs.iter().map(|run| of(run).unwrap()).collect()
}

fn refusal(arguments: &str, code: i32) -> String {
    let output = bench(arguments);
    assert_eq!(output.status.code(), Some(code));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("dovetail: ") && text.lines().count() == 1, "{text}");
    text
}

#[test]
fn each_combination_of_a_drives_choices_is_a_run_of_its_own() {
    let found = runs("job.fio --stack small.toml --scale 1/64 --op 7,28 --gc greedy,fifo");
    let expected = ["greedy, op 7 %", "greedy, op 28 %", "fifo, op 7 %", "fifo, op 28 %"];
    assert_eq!(all(&found, "/label"), expected.map(|choice| format!("small, {choice}")));
    assert_eq!(all(&found, "/drive/gc"), ["greedy", "greedy", "fifo", "fifo"]);
    for (run, op) in found.iter().zip([7.0, 28.0, 7.0, 28.0]) {
        let built = run["drive"]["over_provisioning_percent"].as_f64().unwrap();
        assert!((op - 0.5..op + 3.0).contains(&built), "{built}, not {op}");
    }
    let one = runs("job.fio --stack small.toml --scale 1/64 --op 28 --gc fifo");
    assert_eq!(all(&one, "/label"), ["small"]);
    assert_eq!(one[0]["totals"], found[3]["totals"]);
}

#[test]
fn several_drives_are_told_apart() {
    let found = runs("job.fio --stack small.toml --scale 1/16 --drive femu-32g,fsdv-5g");
    assert_eq!(all(&found, "/label"), ["small, femu-32g", "small, fsdv-5g"]);
    assert_eq!(all(&found, "/drive/profile"), ["femu-32g", "fsdv-5g"]);
    let text = refusal("job.fio --stack small.toml --drive femu-32g,femu", 2);
    assert!(text.contains("there is no drive profile 'femu'"), "{text}");
}

#[test]
fn mount_options_are_added_to_the_stacks_and_override_them() {
    let found = runs(
        "job.fio --stack small.toml --scale 1/64 --mount mode=adaptive --mount active_logs=2,lazytime",
    );
    assert_eq!(all(&found, "/label"), ["small, mode=adaptive", "small, active_logs=2,lazytime"]);
    let mounts = ["mode=lfs,mode=adaptive", "mode=lfs,active_logs=2,lazytime"];
    assert_eq!(all(&found, "/stack/mount"), mounts);
    let in_place = |run: &Value| run["events"]["in_place_blocks"].as_u64();
    assert_eq!(in_place(&found[1]), Some(0), "mode=lfs writes nothing in place");
    let one = runs("job.fio --stack small.toml --scale 1/64 --mount mode=adaptive");
    assert_eq!(one[0]["totals"], found[0]["totals"]);
    let text = refusal("job.fio --stack small.toml --mount mode=fast", 1);
    assert!(text.contains("mode"), "{text}");
}

#[test]
fn a_raw_drive_takes_a_fio_job_on_dev() {
    let text = stdout(&bench("raw.fio --stack own.toml"));
    for line in ["qd1: IOPS", "qd32: IOPS", "qd32: write p50", "read, but never written"] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(!text.contains("calls/s") && !text.contains("file system's"), "{text}");
    assert!(text.contains("of the blocks read held nothing"), "{text}");
    assert!(text.contains("The drive never cleaned in this run"), "{text}");
    let found = runs("raw.fio --stack own.toml");
    assert_eq!(found[0]["totals"]["queue_depth_max"], 32);
    assert_eq!(found[0]["fragmentation"], Value::Null);
    let fio = stdout(&bench("raw.fio --stack own.toml --fio-json"));
    let fio: Value = serde_json::from_str(&fio).unwrap();
    assert_eq!(fio["jobs"][0]["read"]["total_ios"], 2048);
}

#[test]
fn what_belongs_to_files_is_refused_on_a_raw_drive() {
    for (arguments, says) in [
        ("job.fio --stack raw", "add filename=/dev/nvme0n1"),
        ("varmail --stack raw", "varmail works on files"),
        ("raw.fio --stack raw --fill 50%", "give --precondition"),
        ("raw.fio --stack raw --mount mode=lfs", "mount is of a file system"),
        ("raw.fio --stack raw --devirtualize every=1s", "own addresses"),
    ] {
        let text = refusal(arguments, 1);
        assert!(text.contains(says), "{arguments}: {text}");
    }
}

#[test]
fn an_aged_drive_is_steady_and_says_what_mkfs_took_from_it() {
    let aged = runs("aged.fio --stack raw --scale 1/64 --precondition");
    let fresh = runs("aged.fio --stack raw --scale 1/64");
    assert_eq!(aged[0]["precondition"]["steady"], true);
    assert_eq!(fresh[0]["precondition"], Value::Null);
    assert_eq!(aged[0]["totals"]["empty_read_blocks"], 0);
    let waf = |runs: &[Value]| runs[0]["totals"]["device_waf"].as_f64().unwrap();
    assert!(waf(&fresh) == 1.0 && waf(&aged) > 3.0, "{} {}", waf(&fresh), waf(&aged));
    let rated = |runs: &[Value]| runs[0]["lifetime"]["rated_tb"].as_f64().unwrap();
    assert!(rated(&fresh) > 3.0 * rated(&aged));
    let notes = aged[0]["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "that it is shrunk: {notes:?}");
    let volume = runs("fill.fio --stack f2fs,ext4 --scale 1/64 --precondition");
    for run in &volume {
        assert_eq!(run["precondition"]["steady"], true);
        assert!(run["wear"]["erases_min"].as_u64().unwrap() > 0, "it is worn");
        let notes = run["notes"].to_string();
        assert!(notes.contains("which mkfs had emptied"), "{notes}");
    }
}

#[test]
fn a_mkfs_that_does_not_discard_leaves_the_drive_as_full_as_it_was() {
    let moved = |stacks: &str| {
        let job = format!("fill.fio --stack {stacks} --scale 1/64 --precondition");
        let found = runs(&job);
        let moved = found.iter().map(|run| run["totals"]["programs"]["gc"].as_u64().unwrap());
        let kept = found.iter().map(|run| run["precondition"]["kept"].as_bool().unwrap());
        (moved.collect::<Vec<_>>(), kept.collect::<Vec<_>>())
    };
    let (kept, discarded) = (moved("kept-f2fs.toml,kept-ext4.toml"), moved("f2fs,ext4"));
    assert_eq!((kept.1, discarded.1), (vec![true; 2], vec![false; 2]));
    assert!(kept.0.iter().all(|pages| *pages > 10_000), "{:?}", kept.0);
    assert_eq!(discarded.0, [0, 0], "what is cleaned holds nothing");
}
