//! The command as a user types it: what it prints, which code it returns.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn dovetail(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).current_dir(root).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const EXAMPLE: &str = "examples/f2fs-randwrite.blkparse.zst";

/// The arguments, split at spaces, after `replay EXAMPLE`.
fn replay(arguments: &str) -> Output {
    let all: Vec<_> = ["replay", EXAMPLE].into_iter().chain(arguments.split_whitespace()).collect();
    dovetail(&all)
}

#[test]
fn a_replay_prints_its_runs_side_by_side() {
    let output = replay("--drive femu-32g --scale 1/16 --gc greedy,cost-benefit");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("femu-32g, greedy") && text.contains("femu-32g, cost-benefit"), "{text}");
    assert!(text.contains("13,283 (453 MiB)") && text.contains("write amplification"), "{text}");
    assert_eq!(stderr(&output), "", "no progress bar in a pipe");
}

#[test]
fn json_and_csv_go_where_they_are_told() {
    let json = replay("--drive femu-32g --op 7,28 --json");
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (value["schema"].as_str(), value["version"].as_u64()),
        (Some("dovetail-results"), Some(2))
    );
    assert_eq!(value["runs"].as_array().map(Vec::len), Some(2));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> (PathBuf, String) {
        let path = folder.path().join(name);
        (path.clone(), path.display().to_string())
    };
    let ((csv, csv_arg), (report, report_arg)) = (path("out.csv"), path("out.html"));
    let output = replay(&format!("--drive femu-32g --csv={csv_arg} --report {report_arg}"));
    assert!(
        stdout(&output).contains("write amplification"),
        "the table still goes to the terminal"
    );
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("label,stack.name,") && csv.lines().count() == 2, "{csv}");
    assert!(std::fs::read_to_string(report).unwrap().starts_with("<!doctype html>"));
}

#[test]
fn the_same_call_writes_the_same_bytes_with_one_and_two_workers() {
    let call = |jobs: &str| {
        replay(&format!("--drive femu-32g,fsdv-5g --scale 1/16 --seed 3 --json --jobs {jobs}"))
            .stdout
    };
    let one = call("1");
    assert!(!one.is_empty() && one == call("1") && one == call("2"));
}

#[test]
fn a_log_goes_to_standard_error_and_changes_nothing_else() {
    let arguments = "--drive femu-32g --scale 1/16 --json";
    let quiet = replay(arguments);
    assert_eq!(stderr(&quiet), "");
    let loud = replay(&format!("{arguments} -v"));
    let log = stderr(&loud);
    assert!(quiet.stdout == loud.stdout && !quiet.stdout.is_empty());
    assert!(log.contains("INFO run{label=\"femu-32g") && log.contains("replaying"), "{log}");
}

#[test]
fn a_bad_level_is_told_in_a_sentence() {
    for (arguments, code) in [(["drive", "list"], 2), (["fsck", "no-image"], 16)] {
        let output = Command::new(env!("CARGO_BIN_EXE_dovetail"))
            .args(arguments)
            .env("RUST_LOG", "dovetail_front=loud")
            .output();
        let output = output.unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.starts_with("dovetail: RUST_LOG: ") && text.lines().count() == 1, "{text}");
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn wrong_usage_of_fsck_has_the_code_of_fsck() {
    for arguments in [["fsck", "-Z", "image"], ["fsck", "-ny", "image"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_dovetail")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(16), "{}", stderr(&output));
    }
}

#[test]
fn wrong_usage_is_told_in_a_sentence_with_code_2() {
    for (arguments, expected) in [
        ("--drive femu", "'femu' (did you mean \"femu-32g\"?): give one of femu-32g"),
        ("--drive femu-32g --gc best", "greedy, cost-benefit, fifo, d-choices"),
        ("--drive femu-32g --op no", "give a percentage from 0.1 to 1000"),
        ("--drive femu-32g --scale 0", "write 1/16 or 0.0625"),
        ("--drive femu-32g --scale 2", "give a ratio from 1/1000000 to 1"),
        ("--drive femu-32g --cache-size 0", "--cache none keeps the whole map in memory"),
        ("--drive femu-32g --speed 1e-300", "give a number from 0.000001"),
        ("--drive femu-32g --json --csv", "cannot both go to standard output"),
        ("", "--drive"),
    ] {
        let output = replay(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments}: {}", stderr(&output));
    }
}

#[test]
fn an_exploration_that_tests_nothing_fails() {
    let crash = |job: &str, more: &[&str]| {
        dovetail(&[&["crash", job, "--stack", "f2fs", "--cuts", "all"], more].concat())
    };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.tsv");
    std::fs::write(&trace, "F\t1\t40960\ta\n0\t1\tr\t1\t0\t4096\t10\n").unwrap();
    for (job, option, value, refused) in [
        ("ace-1", "--count", "3", "--count is for the job ace-2"),
        ("ace-2", "--steps", "3", "--steps is not for the job ace-2"),
        ("random", "-D", "n=3", "--set is not for the job random"),
        ("varmail", "-D", "threads=3", "no parameter"),
        (trace.to_str().unwrap(), "-D", "n=3", "has no variable 'n'"),
    ] {
        let stray = crash(job, &[option, value]);
        assert_ne!(stray.status.code(), Some(0));
        assert!(stderr(&stray).contains(refused), "{}", stderr(&stray));
    }
    let uncut = crash(trace.to_str().unwrap(), &[]);
    assert_eq!(uncut.status.code(), Some(1));
    assert!(stderr(&uncut).contains("nothing was cut on f2fs"), "{}", stderr(&uncut));
}

#[test]
fn failures_are_told_in_a_sentence_with_code_1() {
    let missing = dovetail(&["replay", "no-such-trace", "--drive", "femu-32g"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        stderr(&missing).starts_with("dovetail: cannot open no-such-trace"),
        "{}",
        stderr(&missing)
    );
    let unwritable = replay("--drive femu-32g --json=no-such-folder/out.json");
    assert_eq!(unwritable.status.code(), Some(1));
    assert!(stdout(&unwritable).is_empty() && stderr(&unwritable).contains("choose another path"));
    let huge = replay("--drive femu-32g --buffer 15T");
    assert_eq!(huge.status.code(), Some(1));
    assert!(
        stderr(&huge).contains("--buffer is '16492674416640', allowed is 0, or 4096"),
        "{}",
        stderr(&huge)
    );
    let beyond = replay("--drive femu-32g --scale 1/256");
    assert_eq!(beyond.status.code(), Some(1));
    assert!(stderr(&beyond).contains("--wrap"), "{}", stderr(&beyond));
    assert_eq!(stderr(&beyond).lines().count(), 1);
    assert_eq!(replay("--drive femu-32g --scale 1/256 --wrap").status.code(), Some(0));
}

#[test]
fn a_malformed_line_names_file_line_and_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.trace");
    std::fs::write(&path, "1000 0 8 8 0\n2000 0 16 8 1\n3000 0 sixteen 8 1\n4000 0 24 8 0\n")
        .unwrap();
    let path = path.display().to_string();
    let run = |extra: &[&str]| {
        let all: Vec<_> =
            ["replay", &path, "--drive", "femu-32g"].iter().chain(extra).copied().collect();
        dovetail(&all)
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(1));
    let message = stderr(&refused);
    assert!(message.contains("bad.trace:3:") && message.contains("--skip-bad"), "{message}");
    let skipped = run(&["--skip-bad"]);
    assert_eq!(skipped.status.code(), Some(0));
    assert!(stdout(&skipped).contains("lines skipped"), "{}", stdout(&skipped));
}

#[test]
fn assumed_figures_are_varied_and_their_weight_is_shown() {
    let output = replay("--drive femu-32g --scale 1/64 --wrap --sensitivity");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let line =
        text.lines().find(|line| line.contains("host.link_mb_per_s") && line.contains("1600"));
    let write_p50 = line.and_then(|line| line.split_whitespace().nth(4));
    assert!(
        write_p50.is_some_and(|change| change.starts_with('+')),
        "half the link makes writes slower: {text}"
    );
    assert!(!text.contains("timing.program_us"), "the paper gives it: {text}");
}

#[test]
fn drives_can_be_listed_and_shown_with_their_sources() {
    let list = stdout(&dovetail(&["drive", "list"]));
    for name in ["femu-32g", "openssd-230g", "flashsim-100g", "fsdv-5g", "nvme-250g"] {
        assert!(list.contains(name), "{list}");
    }
    let show = stdout(&dovetail(&["drive", "show", "femu-32g", "--scale", "1/16"]));
    assert!(
        show.contains("timing.program_us")
            && show.contains("RM-IPU paper")
            && show.contains("2.00 GiB"),
        "{show}"
    );
}

/// Writes requests to a pipe until nobody reads it any more.
fn iplfs_trace(pipe: PathBuf) -> std::thread::JoinHandle<()> {
    use std::io::Write;
    std::thread::spawn(move || {
        let mut out =
            std::io::BufWriter::new(std::fs::OpenOptions::new().write(true).open(pipe).unwrap());
        let line = |n: u64| format!("{} 0 {} 8 0\n", n * 10_000, n * 7919 % 1_000_000 * 8);
        (0..).take_while(|&n| out.write_all(line(n).as_bytes()).is_ok()).count();
    })
}

#[test]
fn ctrl_c_and_sigterm_leave_what_a_replay_has_measured() {
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let writer = iplfs_trace(pipe);
        let child = Command::new(env!("CARGO_BIN_EXE_dovetail"))
            .args(["replay", "pipe", "--format", "mqsim", "--drive", "femu-32g", "--json=out.json"])
            .args(["--csv=out.csv", "--report", "out.html"])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert!(
            Command::new("kill")
                .args([signal, &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert_eq!(stderr(&output), "dovetail: stopped; what is shown was measured until then\n");
        assert!(stdout(&output).contains("write amplification"), "{}", stdout(&output));
        let json = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(json["runs"][0]["trace"]["requests"]["write"].as_u64() > Some(0), "{json}");
        assert_eq!(
            std::fs::read_to_string(folder.path().join("out.csv")).unwrap().lines().count(),
            2
        );
        assert!(
            std::fs::read_to_string(folder.path().join("out.html"))
                .unwrap()
                .starts_with("<!doctype html>")
        );
    }
}

#[test]
fn preconditioning_can_be_stopped() {
    let child = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["replay", EXAMPLE, "--drive", "femu-32g", "--precondition"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success()
    );
    let begin = std::time::Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begin.elapsed() < std::time::Duration::from_secs(5));
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(1), ""),
        "nothing was measured"
    );
    assert_eq!(stderr(&output), "dovetail: stopped before anything was measured\n");
}

#[test]
fn a_reproduction_that_is_stopped_keeps_the_figures_before() {
    use std::io::{BufRead, BufReader, Read};
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(["reproduce", "iplfs-tables-1-2", "rmipu-figure-3", "--full", "--json", "out.json"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.starts_with("iplfs-tables-1-2"), "{first}");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success()
    );
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said =
        "dovetail: stopped at rmipu-figure-3, which is left out; 1 figures before it are shown\n";
    assert_eq!(stderr(&output), said);
    let json = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["iplfs-tables-1-2"]);
}

#[test]
fn a_replay_does_not_write_to_its_trace_nor_make_iplfs_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv");
    let text: String =
        (0..100_u64).map(|n| format!("{} 0 {} 8 0\n", n * 1_000_000, n * 8)).collect();
    std::fs::write(&trace, &text).unwrap();
    let name = trace.to_str().unwrap();
    let output = dovetail(&["replay", name, "--drive", "femu-32g", &format!("--json={name}")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("it is the input "), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), text);
    // 500 MB before it said no
    let script = format!(
        "ulimit -v 600000; exec {} replay {name} --drive femu-32g --scale 1/64 --interval 1ns -j 1",
        env!("CARGO_BIN_EXE_dovetail")
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let said = stderr(&output);
    assert!(output.status.code() == Some(1) && said.contains("interval"), "{said}");
}

#[test]
fn a_strict_reproduction_fails_where_a_statement_differs() {
    let agreeing = dovetail(&["reproduce", "iplfs-tables-1-2", "--strict"]);
    assert_eq!(agreeing.status.code(), Some(0), "{}", stderr(&agreeing));
    let figures = dovetail(&["reproduce", "iplfs-figure-16a", "--strict", "--scale", "1/64"]);
    let differs = stdout(&figures).contains("DIFFERS");
    assert_eq!(figures.status.code(), Some(i32::from(differs)), "{}", stdout(&figures));
    assert_eq!(stderr(&figures).contains("statements differ"), differs);
}
