//! `dovetail report`: the report of results read back is the one that the run itself wrote.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dovetail_lab::results::Results;
use tempfile::{TempDir, tempdir};

const JOB: &str = "[a]\nrw=randrw\nsize=8m\nio_size=24m\nfsync=8\n[b]\nrw=write\nsize=4m\n";
const STACK: &str = "name = \"small\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\npartition = \"192MiB\"\n";
const TRACE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/f2fs-randwrite.blkparse.zst");

fn dovetail(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.current_dir(folder).args(arguments.split_whitespace()).output().unwrap()
}

fn done(folder: &Path, arguments: &str) -> String {
    let output = dovetail(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn read(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

/// Results read back are the results written, to the last byte, and so is their report.
fn is_read_back(folder: &TempDir, call: &str) {
    done(folder.path(), &format!("{call} --json=x.json --report=x.html"));
    let json = read(folder, "x.json");
    let results: Results = serde_json::from_str(&json).unwrap();
    assert!(serde_json::to_string_pretty(&results).unwrap() + "\n" == json, "{call}");
    done(folder.path(), "report x.json -o again.html");
    let (report, again) = (read(folder, "x.html"), read(folder, "again.html"));
    assert!(report.len() > 100_000);
    assert!(report == again, "{call}: the reports differ");
}

fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("j.fio", JOB);
    write("s.toml", STACK);
    write("e.toml", &STACK.replace("f2fs", "ext4").replace("small", "other"));
    folder
}

#[test]
fn the_report_of_a_bench_is_made_again() {
    is_read_back(&folder(), "bench j.fio -s s.toml,e.toml --repeat 2 --restart");
}

#[test]
fn the_report_of_a_replay_is_made_again() {
    let call =
        format!("replay {TRACE} --drive femu-32g --scale 1/64 --wrap --op 7,28 --precondition");
    is_read_back(&folder(), &call);
    is_read_back(
        &folder(),
        &format!("replay {TRACE} --drive femu-32g --scale 1/64 --wrap --map demand,page"),
    );
}

#[test]
fn the_report_of_a_papers_figure_is_made_again() {
    let folder = folder();
    let call = "reproduce rmipu-table-1 --scale 1/256 --json x.json --report x.html";
    done(folder.path(), call);
    done(folder.path(), "report x.json -o again.html");
    assert!(read(&folder, "x.html") == read(&folder, "again.html"));
}

#[test]
fn several_results_are_one_report() {
    let folder = folder();
    done(folder.path(), "bench j.fio -s s.toml --json=a.json");
    done(folder.path(), "bench j.fio -s e.toml --json=b.json");
    done(folder.path(), "bench j.fio -s s.toml,e.toml --report=both.html --json=both.json");
    let told = done(folder.path(), "report a.json b.json");
    assert!(told.starts_with("a.html: "), "{told}");
    let table = |html: &str| {
        let (_, rest) = html.split_once("<section id=\"summary\"").unwrap();
        rest.split_once("</section>").unwrap().0.to_owned()
    };
    assert_eq!(table(&read(&folder, "a.html")), table(&read(&folder, "both.html")));
    done(folder.path(), "report a.json both.json -o twice.html");
    assert!(read(&folder, "twice.html").contains("both: small"));
    done(folder.path(), "bench j.fio -s s.toml --seed 5 --json=c.json");
    let refused = dovetail(folder.path(), "report a.json c.json");
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("the seed is 1 in the one and 5 in the other"), "{message}");
    let refused = dovetail(folder.path(), "report a.json -o a.json");
    assert_eq!(refused.status.code(), Some(2), "results are not replaced");
}
