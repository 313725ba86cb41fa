//! `dovetail compare`: what changed between two results, and the exit code that says so.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

const JOB: &str = "[a]\nrw=randwrite\nsize=8m\nio_size=24m\nfsync=8\n";
const STACK: &str = "name = \"small\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\npartition = \"192MiB\"\n";

fn dovetail(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.current_dir(folder).args(arguments.split_whitespace()).env("COLUMNS", "80");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A folder with results of three seeds on F2FS and on ext4, each as `small`.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("j.fio", JOB);
    write("f2fs.toml", STACK);
    write("ext4.toml", &STACK.replace("f2fs", "ext4"));
    for stack in ["f2fs", "ext4"] {
        let call = format!("bench j.fio -s {stack}.toml --repeat 3 --json={stack}.json");
        let output = dovetail(folder.path(), &call);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    folder
}

#[test]
fn what_changed_is_told_and_decides_the_exit_code() {
    let folder = folder();
    let same = dovetail(folder.path(), "compare f2fs.json f2fs.json");
    assert_eq!(same.status.code(), Some(0));
    assert_eq!(
        text(&same.stdout),
        "f2fs.json and f2fs.json are the same: 3 runs, no figure differs.\n"
    );
    let output = dovetail(folder.path(), "compare f2fs.json ext4.json");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("small, 3 runs each\n"), "{shown}");
    assert!(shown.contains("stack.filesystem f2fs -> ext4"), "{shown}");
    assert!(shown.lines().any(|line| line.contains("fs WAF") && line.contains("+1")), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let lenient = dovetail(folder.path(), "compare f2fs.json ext4.json --threshold 1000%");
    assert_eq!(lenient.status.code(), Some(0), "{}", text(&lenient.stdout));
    let json = dovetail(folder.path(), "compare f2fs.json ext4.json --all --json");
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["changed"], &json["identical"]), (&Value::Bool(true), &Value::Bool(false)));
    let figures = json["runs"][0]["figures"].as_array().unwrap();
    let calls = figures.iter().find(|figure| figure["figure"] == "totals.calls").unwrap();
    assert_eq!(calls["verdict"], "same", "--all has more than the headlines");
    assert_eq!(calls["a"]["runs"], 3);
}

#[test]
fn a_run_that_one_side_lacks_is_a_change() {
    let folder = folder();
    fs::write(folder.path().join("other.toml"), STACK.replace("small", "other")).unwrap();
    let call = "bench j.fio -s f2fs.toml,other.toml --repeat 3 --json=both.json";
    assert!(dovetail(folder.path(), call).status.success());
    let output = dovetail(folder.path(), "compare f2fs.json both.json");
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert!(shown.contains("only B has: other\n"), "{shown}");
    assert!(shown.contains("No figure changed"), "{shown}");
}

#[test]
fn a_note_of_one_side_alone_is_told() {
    let folder = folder();
    let results = fs::read_to_string(folder.path().join("f2fs.json")).unwrap();
    let mut noted: Value = serde_json::from_str(&results).unwrap();
    noted["runs"][1]["notes"] = serde_json::json!(["It was stopped."]);
    fs::write(folder.path().join("noted.json"), noted.to_string()).unwrap();
    let output = dovetail(folder.path(), "compare f2fs.json noted.json");
    let shown = text(&output.stdout);
    assert!(shown.contains("\n  note in B: It was stopped.\n"), "{shown}");
    let json = dovetail(folder.path(), "compare noted.json f2fs.json --json");
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["runs"][0]["notes_a"], serde_json::json!(["It was stopped."]));
    assert_eq!(json["runs"][0]["notes_b"], serde_json::json!([]));
}

#[test]
fn sweeps_are_compared_point_by_point() {
    let folder = folder();
    let sweep = "command = 'bench'\ninputs = ['j.fio']\n[options]\nstack = 'f2fs.toml'\n[axes]\nop = [7, 28]\nseed = [1, 2, 3]\n";
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.toml", sweep);
    write("b.toml", &sweep.replace("f2fs", "ext4"));
    for name in ["a", "b"] {
        assert!(dovetail(folder.path(), &format!("sweep {name}.toml")).status.success());
    }
    let output = dovetail(folder.path(), "compare a.sweep b.sweep");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("op=7, 3 runs each") && shown.contains("op=28, 3 runs each"), "{shown}");
    assert_eq!(dovetail(folder.path(), "compare a.sweep a.sweep/").status.code(), Some(0));
}

/// One point of two is finished in B, and of that one seed of three.
#[test]
fn of_a_sweep_that_is_not_finished_what_both_have_is_compared() {
    let folder = folder();
    let sweep = "command = 'bench'\ninputs = ['j.fio']\n[options]\nstack = 'f2fs.toml'\n[axes]\nop = [7, 28]\nseed = [1, 2, 3]\n";
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.toml", sweep);
    write("c.toml", &sweep.replace("'f2fs.toml'", "'ext4.toml'"));
    let done = |call: &str| assert!(dovetail(folder.path(), call).status.success(), "{call}");
    done("sweep a.toml");
    done("sweep a.toml --shard 1/6 --results b");
    done("sweep c.toml --shard 2/6 --results c");
    let output = dovetail(folder.path(), "compare a.sweep b");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let expected =
        "A  a.sweep\nB  b\n\n5 points of B are not finished: what both have is compared.\n\nop=7\n";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(!shown.contains("setup differs") && !shown.contains("gone"), "{shown}");
    assert!(shown.ends_with("\nNo figure changed by more than 2 %.\n"), "{shown}");
    let json = dovetail(folder.path(), "compare b a.sweep --json");
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["identical"], &json["changed"]), (&Value::Bool(false), &Value::Bool(false)));
    assert_eq!(json["unfinished_a"].as_array().unwrap()[..2], ["op=7 seed=2", "op=7 seed=3"]);
    assert_eq!(json["unfinished_b"], serde_json::json!([]));
    assert_eq!(json["runs"].as_array().unwrap().len(), 1);
    // what both have differs
    let output = dovetail(folder.path(), "compare a.sweep c");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("stack.filesystem f2fs -> ext4"), "{shown}");
    // each has what the other has not
    let output = dovetail(folder.path(), "compare b c");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("5 points of A are not finished, 5 points of B are not"), "{shown}");
    assert!(shown.ends_with("\nNo run is on both sides.\n"), "{shown}");
    let same = dovetail(folder.path(), "compare b b");
    assert!(text(&same.stdout).starts_with("b and b are the same: 1 run, no figure differs.\n5"));
    assert_eq!(same.status.code(), Some(0));
}

#[test]
fn what_cannot_be_compared_is_named_in_a_sentence() {
    let folder = folder();
    let results = fs::read_to_string(folder.path().join("f2fs.json")).unwrap();
    fs::write(
        folder.path().join("new.json"),
        results.replacen("\"version\": 2", "\"version\": 3", 1),
    )
    .unwrap();
    for (other, part) in [
        ("new.json", "new.json was written by a later version of dovetail"),
        ("j.fio", "j.fio is no JSON"),
        ("none.json", "none.json cannot be read"),
        (".", "holds no results of a sweep"),
    ] {
        let output = dovetail(folder.path(), &format!("compare f2fs.json {other}"));
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{other}");
        assert!(message.starts_with("dovetail: ") && message.contains(part), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(output.stdout.is_empty());
    }
    let output = dovetail(folder.path(), "compare f2fs.json f2fs.json --threshold much");
    assert_eq!(output.status.code(), Some(2));
}
