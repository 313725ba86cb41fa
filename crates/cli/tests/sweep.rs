//! `dovetail sweep`: ended anywhere, and in parts, it ends in the same table.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::{TempDir, tempdir};

const SWEEP: &str = "command = 'bench'\ninputs = ['j.fio']\n[options]\nstack = 's.toml'\n\
    [axes]\nop = [7, 28]\nseed = { from = 1, to = 6 }\n";
const JOB: &str = "[a]\nrw=randwrite\nsize=8m\nio_size=24m\nfsync=8\n";
const STACK: &str = "name = \"small\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\npartition = \"192MiB\"\n";

fn folder(sweep: &str) -> TempDir {
    let folder = tempdir().unwrap();
    for (name, text) in [("j.fio", JOB), ("s.toml", STACK), ("a.toml", sweep)] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.current_dir(folder).args(arguments.split(' ')).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn done(folder: &Path, arguments: &str) -> Output {
    let output = command(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn refused(folder: &Path, arguments: &str) -> String {
    let output = command(folder, arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

fn undisturbed() -> String {
    let folder = folder(SWEEP);
    let told = String::from_utf8(done(folder.path(), "sweep a.toml").stdout).unwrap();
    assert!(told.starts_with("12 of 12 points in a.sweep/table.csv\n"), "{told}");
    assert!(told.contains("dovetail report a.sweep\n"), "{told}");
    let table = fs::read_to_string(folder.path().join("a.sweep/table.csv")).unwrap();
    assert_eq!(table.lines().count(), 13);
    assert!(table.starts_with("point,op,seed,label,"), "{table}");
    table
}

/// Killed after each quarter of the time that it takes, and interrupted once.
#[test]
fn a_killed_sweep_goes_on_and_ends_in_the_same_table() {
    let expected = undisturbed();
    let folder = folder(SWEEP);
    let lines = folder.path().join("a.sweep/points-1-of-1.jsonl");
    let finished = || fs::read_to_string(&lines).map_or(0, |text| text.lines().count());
    for kill in 1..=4 {
        let mut sweep = command(folder.path(), "sweep a.toml --jobs 1").spawn().unwrap();
        while finished() < 2 * kill && sweep.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        if kill == 2 {
            let pid = rustix::process::Pid::from_child(&sweep);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        } else {
            sweep.kill().unwrap();
        }
        let output = sweep.wait_with_output().unwrap();
        assert!(!output.status.success() || finished() == 12, "it was ended");
    }
    let before = finished();
    assert!(before >= 7, "{before}");
    done(folder.path(), "sweep a.toml");
    assert_eq!(finished(), 12, "no point twice");
    assert_eq!(fs::read_to_string(folder.path().join("a.sweep/table.csv")).unwrap(), expected);
}

#[test]
fn parts_are_merged_to_the_same_table() {
    let folder = folder(SWEEP);
    done(folder.path(), "sweep a.toml --shard 1/2 --results one");
    done(folder.path(), "sweep a.toml --shard 2/2 --results two");
    done(folder.path(), "sweep merge all one two");
    let table = fs::read_to_string(folder.path().join("all/table.csv")).unwrap();
    assert_eq!(table, undisturbed());
}

#[test]
fn slips_are_named_before_anything_runs() {
    let with = |axis: &str| folder(&SWEEP.replace("op = [7, 28]", axis));
    let says = |axis: &str| {
        let folder = with(axis);
        let message = refused(folder.path(), "sweep a.toml");
        assert!(!folder.path().join("a.sweep").exists(), "{axis}");
        message
    };
    let message = says("opp = [7]");
    assert!(message.contains("point 0 (opp=7 seed=1): unexpected argument '--opp'"), "{message}");
    let message = says("op = [7, 'much']");
    assert!(message.contains("op=much seed=1"), "{message}");
    let message = says("json = ['x']");
    assert!(message.contains("--json=x is not for a sweep"), "{message}");
    let folder = folder(SWEEP);
    done(folder.path(), "sweep a.toml --results r --shard 1/6");
    fs::write(folder.path().join("b.toml"), SWEEP.replace("28", "27")).unwrap();
    let message = refused(folder.path(), "sweep b.toml --results r");
    assert!(message.contains("r has the results of another sweep (its point 6 is"), "{message}");
}

#[test]
fn results_do_not_take_the_place_of_the_sweep() {
    let folder = folder(SWEEP);
    fs::rename(folder.path().join("a.toml"), folder.path().join("a.sweep")).unwrap();
    let told = refused(folder.path(), "sweep a.sweep");
    assert!(told.contains("the place of a.sweep itself: give --results FOLDER"), "{told}");
}

#[test]
fn the_report_of_a_sweep_needs_nothing_but_its_folder() {
    let folder = folder(SWEEP);
    done(folder.path(), "sweep a.toml");
    fs::remove_file(folder.path().join("j.fio")).unwrap();
    let told = String::from_utf8(done(folder.path(), "report a.sweep").stdout).unwrap();
    assert!(told.starts_with("a.html: "), "{told}");
    let html = fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert!(html.contains("a: bench of j.fio over op, 12 points."), "the first sentence");
    assert!(html.len() < 400_000, "{} bytes", html.len());
    assert!(html.contains("\"values\":[\"7\",\"28\"]") && !html.contains("drive.capacity"));
}

#[test]
fn a_failed_point_is_a_row_and_the_others_go_on() {
    // a job that the volume has no room for
    let folder = folder(&SWEEP.replace("op = [7, 28]", "define.SIZE = ['8m', '1g']"));
    fs::write(folder.path().join("j.fio"), JOB.replace("size=8m", "size=${SIZE}")).unwrap();
    let message = refused(folder.path(), "sweep a.toml");
    assert!(message.contains("6 points failed: their rows say why"), "{message}");
    // nothing is left to do, and it has failed still
    let message = refused(folder.path(), "sweep a.toml");
    assert!(message.contains("--retry-failed runs them again"), "{message}");
    let table = fs::read_to_string(folder.path().join("a.sweep/table.csv")).unwrap();
    assert_eq!(table.lines().filter(|line| line.contains("no space")).count(), 6, "{table}");
    assert_eq!(table.lines().count(), 13);
}
