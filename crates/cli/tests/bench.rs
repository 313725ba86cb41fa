//! `dovetail bench` and `dovetail stack` as a user types them.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
    command.args(arguments.split_whitespace()).current_dir(folder);
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Writes and reads 16 MiB in two threads.
const JOB: &str = "[mix]\nrw=randrw\nbs=4k\nsize=8m\nnumjobs=2\nfsync=64\ngroup_reporting\n";
/// Writes more than the stack of [`folder`] has room for.
const TOO_MUCH: &str = "[big]\nrw=write\nbs=1m\nsize=300m\nfallocate=none\n";

/// A folder with a stack that has little room, and a job.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("job.fio", JOB), ("big.fio", TOO_MUCH), ("small.toml", &stack(""))] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn stack(more: &str) -> String {
    format!(
        "name = \"small\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\npartition = \"192MiB\"\n{more}"
    )
}

/// The arguments after `bench`, in a folder as of [`folder`] with some more files.
fn bench_with(files: &[(&str, &str)], arguments: &str) -> Output {
    let folder = folder();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    command(folder.path(), &format!("bench {arguments}")).output().unwrap()
}

fn bench(arguments: &str) -> Output {
    bench_with(&[], arguments)
}

/// One sentence on standard error, and nothing on standard output.
fn assert_refused(output: &Output, code: i32, expected: &str) {
    let message = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.contains(expected), "\"{expected}\" is not in: {message}");
    assert!(message.starts_with("dovetail: ") && message.lines().count() == 1, "{message}");
    assert_eq!(stdout(output), "");
}

#[test]
fn a_bench_prints_its_runs_side_by_side() {
    let output = bench("job.fio --stack small.toml,f2fs-lfs --scale 1/2");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("small") && text.contains("f2fs-lfs"), "{text}");
    assert_eq!(stderr(&output), "", "no progress bar in a pipe");
}

#[test]
fn a_run_is_not_lost_to_what_is_shown() {
    let folder = folder();
    let bench = |arguments: &str| {
        command(folder.path(), &format!("bench job.fio --stack small.toml --scale 1/2 {arguments}"))
    };
    let unsorted = bench("--sort laetncy --json=sorted.json --fio-json=fio.json").output().unwrap();
    assert_eq!(unsorted.status.code(), Some(2));
    assert!(stderr(&unsorted).contains("some word is in no line of the table"));
    assert!(stdout(&unsorted).contains("elapsed"), "the table in its own order");
    assert!(folder.path().join("sorted.json").exists() && folder.path().join("fio.json").exists());
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let unshown = bench("--json=unshown.json").stdout(full()).stderr(full()).status().unwrap();
    assert_eq!(unshown.code(), Some(1));
    assert!(folder.path().join("unshown.json").exists());
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full")).unwrap();
    let unwritten = bench("--json=full --csv=figures.csv").output().unwrap();
    assert_eq!(unwritten.status.code(), Some(1));
    assert!(stderr(&unwritten).contains("full cannot be written"), "{}", stderr(&unwritten));
    assert!(stdout(&unwritten).contains("elapsed"), "the table is shown all the same");
    assert!(folder.path().join("figures.csv").exists());
    let refused = command(folder.path(), "bench nothing.fio").stderr(full()).status().unwrap();
    assert_eq!(refused.code(), Some(2), "no panic");
}

#[test]
fn the_tool_runs_beside_a_workload_where_file_system_and_drive_can() {
    let can = "name = \"can\"\nabout = \"\"\nfilesystem = \"ext3\"\ndrive = \"fsdv-5g\"\npartition = \"256MiB\"\n";
    let output = bench_with(
        &[("can.toml", can)],
        "job.fio --stack can.toml --devirtualize every=50ms,hot=5ms",
    );
    let text = stdout(&output);
    for row in [
        "runs of the devirtualizer",
        "blocks renamed",
        "calls that waited for it",
        "mean of the map",
    ] {
        assert!(text.contains(row), "{row}: {text}{}", stderr(&output));
    }
    let output = bench("job.fio --stack small.toml --devirtualize every=1s");
    assert_refused(&output, 1, "own addresses");
    let output = bench("job.fio --stack small.toml --devirtualize hot=1s");
    assert!(
        output.status.code() == Some(2) && stderr(&output).contains("at least one of every"),
        "{output:?}"
    );
}

#[test]
fn the_same_bench_gives_the_same_bytes_whatever_the_jobs() {
    for job in ["job.fio", "varmail --set nfiles=100 --set runtime=1"] {
        let call = |jobs: &str| {
            let output = bench(&format!(
                "{job} --stack small.toml,f2fs-lfs --seed 3 --repeat 2 --json --jobs {jobs}"
            ));
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            output.stdout
        };
        let one = call("1");
        assert!(one == call("1") && one == call("2"), "{job}");
        let value: Value = serde_json::from_slice(&one).unwrap();
        assert_eq!(value["runs"].as_array().map(Vec::len), Some(4));
    }
}

#[test]
fn another_seed_gives_other_results() {
    let call =
        |seed: u32| bench(&format!("job.fio --stack small.toml --json --seed {seed}")).stdout;
    assert_ne!(call(1), call(2));
}

#[test]
fn fio_json_goes_to_a_file_for_each_run() {
    let folder = folder();
    let run =
        |arguments: &str| command(folder.path(), &format!("bench {arguments}")).output().unwrap();
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(folder.path().join(name)).unwrap()).unwrap()
    };
    let output =
        run("job.fio --stack small.toml --stack f2fs-lfs --fio-json=out.json --json=all.json");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let ours = read("all.json");
    for (at, name) in ["out-small.json", "out-f2fs-lfs.json"].into_iter().enumerate() {
        let fio = read(name);
        assert_eq!(fio["jobs"][0]["jobname"], "mix");
        assert_eq!(fio["jobs"][0]["read"]["io_bytes"], ours["runs"][at]["totals"]["read_bytes"]);
    }
    let alone = run("job.fio --stack small.toml --fio-json");
    let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
    assert_eq!(alone, read("out-small.json"), "a run does not depend on the others");
    assert_refused(&run("job.fio --stack small.toml,f2fs --fio-json"), 2, "give --fio-json=FILE");
    assert_refused(&run("varmail --stack small.toml --fio-json"), 2, "varmail is a personality");
    assert_refused(&run("job.fio --stack small.toml --fio-json --json"), 2, "only one of");
}

#[test]
fn stacks_of_one_name_can_be_told_apart() {
    let output = bench("job.fio --stack small.toml,small.toml --json");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let labels = value["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["label"].as_str().unwrap().to_owned());
    assert_eq!(labels.collect::<Vec<_>>(), ["small (1)", "small (2)"]);
}

#[test]
fn a_wrong_job_is_refused_with_file_and_line() {
    for (text, expected) in [
        ("[a]\nrw=randwrte\nsize=1m\n", "bad.fio:2:"),
        ("[a]\nrw=write\nsize=1m\nno_such_option=1\n", "bad.fio:4:"),
        ("rw=write\n", "bad.fio:1:"),
        ("", "bad.fio"),
        ("[a]\nrw=write\n", "bad.fio"),
        ("[a]\nrw=write\nsize=${SIZE}\n", "bad.fio:3: ${SIZE} has no value here"),
    ] {
        assert_refused(
            &bench_with(&[("bad.fio", text)], "bad.fio --stack small.toml"),
            1,
            expected,
        );
    }
    assert_refused(&bench("missing.fio --stack small.toml"), 1, "missing.fio cannot be read");
}

#[test]
fn unknown_names_are_refused() {
    assert_refused(&bench("job.fio --stack f3fs"), 2, "there is no stack \"f3fs\"");
    assert_refused(
        &bench("job.fio --stack small.toml --drive femu"),
        2,
        "there is no drive profile 'femu'",
    );
    assert_refused(&bench("job.fio --stack missing.toml"), 1, "stack missing.toml: ");
    assert_refused(
        &bench("job.fio --stack small.toml --set SIZE=1"),
        1,
        "job.fio has no variable ${SIZE}",
    );
    assert_refused(&bench("varmail --stack small.toml --set nfile=1"), 1, "nfile");
    assert_refused(&bench("varmial --stack small.toml"), 1, "varmial");
}

#[test]
fn a_variable_is_put_into_the_job() {
    let job = [("var.fio", "[a]\nrw=write\nsize=${SIZE}\n")];
    let output = bench_with(&job, "var.fio --stack small.toml --set SIZE=3m --json");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["runs"][0]["totals"]["written_bytes"], 3 << 20);
}

#[test]
fn a_wrong_stack_is_refused_in_a_sentence() {
    for (more, expected) in [
        ("colour = 1\n", "stack wrong.toml: line 6: unknown field `colour`"),
        ("[host]\nsyscall = 1\n", "stack wrong.toml: line 7: unknown field `syscall`"),
        ("[host]\nqueue_depth = 0\n", "[host] queue_depth is 0: a drive that takes no request"),
        ("[mkfs]\nbig = 1\n", "unknown field `big`"),
        ("[sysfs]\nbig = 1\n", "unknown field `big`"),
        ("memory = \"much\"\n", "memory: "),
        ("mount = \"mode=log\"\n", "mode"),
        ("name = \"twice\"\n", "stack wrong.toml: line 6: "),
    ] {
        assert_refused(
            &bench_with(&[("wrong.toml", &stack(more))], "job.fio --stack wrong.toml"),
            1,
            expected,
        );
    }
    for (from, to, expected) in [
        ("192MiB", "33GiB", "a partition of 33.0 GiB does not fit on a drive of 32.0 GiB"),
        ("192MiB", "some", "partition: "),
        ("192MiB", "1MiB", "stack small: "),
        ("\"f2fs\"", "\"f3fs\"", "there is no file system \"f3fs\" (there are: ext4"),
        ("femu-32g", "femu", "there is no drive profile 'femu'"),
    ] {
        let text = stack("").replace(from, to);
        assert_refused(
            &bench_with(&[("wrong.toml", &text)], "job.fio --stack wrong.toml"),
            1,
            expected,
        );
    }
}

#[test]
fn a_full_volume_ends_the_run_in_a_sentence() {
    let refused = bench("big.fio --stack small.toml --json");
    assert_refused(&refused, 1, "could not write big.0.0: ");
    let kept = bench("big.fio --stack small.toml --json --keep-going");
    assert_eq!(kept.status.code(), Some(1));
    assert_eq!(stderr(&kept), stderr(&refused));
    let value: Value = serde_json::from_slice(&kept.stdout).unwrap();
    let run = &value["runs"][0];
    assert!(stderr(&kept).contains(run["error"].as_str().unwrap()));
    assert!(run["totals"]["written_bytes"].as_u64().unwrap() > 64 << 20, "{}", run["totals"]);
    let table = bench("big.fio --stack small.toml --keep-going");
    assert!(stdout(&table).contains("small"), "{}", stdout(&table));
    let fio: Value =
        serde_json::from_slice(&bench("big.fio --stack small.toml --keep-going --fio-json").stdout)
            .unwrap();
    assert_eq!(fio["jobs"][0]["error"], 28, "ENOSPC");
}

#[test]
fn files_that_do_not_fit_are_told_before_the_run() {
    let read = [("read.fio", "[big]\nrw=read\nbs=1m\nsize=300m\n")];
    let output = bench_with(&read, "read.fio --stack small.toml");
    assert_refused(&output, 1, "stack small: ");
    assert!(stderr(&output).contains("big.0.0"), "{}", stderr(&output));
    assert_refused(&bench("job.fio --stack small.toml --fill 500MiB"), 1, "stack small: ");
}

#[test]
fn one_stack_that_fails_does_not_take_the_others_with_it() {
    let output = bench("big.fio --stack small.toml,f2fs --keep-going --json");
    assert_eq!(output.status.code(), Some(1));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(value["runs"][0]["error"].is_string() && value["runs"][1]["error"].is_null());
    assert_eq!(value["runs"][1]["totals"]["written_bytes"], 300 << 20);
}

#[test]
fn ctrl_c_and_sigterm_write_what_is_there() {
    ["-INT", "-TERM"].into_iter().for_each(stop_a_bench);
}

fn stop_a_bench(signal: &str) {
    let folder = folder();
    let job = "[long]\nrw=randwrite\nbs=4k\nsize=16m\ntime_based\nruntime=100d\n";
    std::fs::write(folder.path().join("long.fio"), job).unwrap();
    let mut command = command(folder.path(), "bench long.fio --stack small.toml --json=out.json");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let begin = Instant::now();
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(stderr(&output), "dovetail: stopped; what is shown was measured until then\n");
    assert!(stdout(&output).contains("small"));
    let text = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value["runs"][0]["totals"]["written_bytes"].as_u64().unwrap() > 0);
    assert!(value["runs"][0]["error"].is_null());
}

#[test]
fn assumed_costs_are_varied_and_their_weight_is_shown() {
    let output = bench("job.fio --stack small.toml,f2fs-lfs --sensitivity");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("job.fio on small\n") && text.contains("job.fio on f2fs-lfs\n"),
        "{text}"
    );
    let row = |key: &str, to: &str| -> Vec<String> {
        let words =
            text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        words
            .into_iter()
            .find(|words| words.len() > 2 && words[0] == key && words[2] == to)
            .unwrap()
    };
    assert!(row("host.syscall_ns", "2000")[3].starts_with('-'), "dearer calls are fewer: {text}");
    assert!(row("host.syscall_ns", "500")[3].starts_with('+'), "{text}");
    assert!(!text.contains("max_request_kib"), "Linux gives it: {text}");
}

#[test]
fn help_names_every_way_out() {
    let folder = folder();
    let text = stdout(&command(folder.path(), "bench --help").output().unwrap());
    for option in [
        "--stack",
        "--json",
        "--csv",
        "--fio-json",
        "--report",
        "--keep-going",
        "--fill",
        "--scale",
    ] {
        assert!(text.contains(option), "{option} is not in: {text}");
    }
}

#[test]
fn results_can_be_had_again_by_the_command_that_they_name() {
    let folder = folder();
    let run = |arguments: &str| {
        let output = command(folder.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output.stdout
    };
    let first = run("bench job.fio --stack small.toml --seed 3 --fill 20% --json --jobs 1");
    let value: Value = serde_json::from_slice(&first).unwrap();
    let provenance = &value["provenance"];
    let named = provenance["command"].as_str().unwrap().strip_prefix("dovetail ").unwrap();
    assert_eq!(named, "bench job.fio --stack small.toml --seed 3 --fill 20%");
    assert!(first == run(&format!("{named} --json")));
    assert_eq!(provenance["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(value["options"]["fill"], "20% impressions");
    assert!(value["job"]["text"].as_str().unwrap().starts_with('['), "{}", value["job"]);
    let shown = std::fs::read_to_string(folder.path().join("small.toml")).unwrap();
    let own = value["runs"][0]["stack"]["file"].as_str().unwrap();
    let memory = shown.lines().find(|line| line.starts_with("partition")).unwrap();
    assert!(own.contains(memory), "{own}");
}

#[test]
fn a_stack_that_is_shown_can_be_given_back() {
    let folder = folder();
    let run = |arguments: &str| command(folder.path(), arguments).output().unwrap();
    let list = stdout(&run("stack list"));
    for name in list.lines().skip(1).filter_map(|line| line.split_whitespace().next()) {
        let shown = run(&format!("stack show {name}"));
        assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
        std::fs::write(folder.path().join("mine.toml"), &shown.stdout).unwrap();
        assert_eq!(run("stack show mine.toml").stdout, shown.stdout);
        let bench = |stack: &str| {
            let output = run(&format!("bench job.fio --scale 1/4 --stack {stack} --json"));
            // a stack of a real kernel has no results without that kernel
            let mut value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            value.as_object_mut().map(|results| results.remove("provenance"));
            value
        };
        assert!(bench(name) == bench("mine.toml"), "{name}");
    }
    assert!(list.contains("f2fs-lfs"), "{list}");
    assert_refused(&run("stack show none"), 2, "there is no stack \"none\"");
}

#[test]
fn a_file_level_trace_is_a_workload() {
    let trace =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../workload/tests/data/mariadb-tpcc.file.tsv");
    let trace = std::fs::read_to_string(trace).unwrap();
    let bench = |arguments: &str| bench_with(&[("calls.txt", &trace)], arguments);
    let run = |arguments: &str| -> Value {
        let output = bench(&format!("calls.txt --stack f2fs,ext4 --scale 1/16 --json {arguments}"));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (paced, fast) = (run("--loops 16"), run("--loops 16 --gaps 0"));
    for at in 0..2 {
        let totals = |results: &Value| results["runs"][at]["totals"].clone();
        let (paced, fast) = (totals(&paced), totals(&fast));
        assert_eq!(paced["written_bytes"], 5_468_160);
        assert_eq!(paced["written_bytes"], fast["written_bytes"]);
        assert!(fast["elapsed_s"].as_f64() < paced["elapsed_s"].as_f64());
    }
    assert_refused(&bench("calls.txt --stack f2fs --gaps=-1"), 2, "gaps is -1: give 0 to 1000");
    assert_refused(&bench("calls.txt --stack f2fs --cpus 2"), 1, "has no CPU times");
    assert_refused(&bench("calls.txt --stack f2fs --cpus 0"), 2, "cpus is 0: give 1 to 1024");
    assert_refused(
        &bench("calls.txt --stack f2fs --set a=1"),
        2,
        "calls.txt is a file-level trace",
    );
    assert_refused(&bench("job.fio --stack f2fs --loops 2"), 2, "--loops is for file-level traces");
    assert_refused(
        &bench("calls.txt --stack f2fs --fio-json"),
        2,
        "calls.txt is a file-level trace",
    );
}

#[test]
fn sensitivity_is_for_figures_that_have_one() {
    let folder = folder();
    let output = command(folder.path(), "reproduce rmipu-metadata --sensitivity").output().unwrap();
    assert_refused(&output, 2, "--sensitivity is for rmipu-figure-1, rmipu-figure-3");
}

#[test]
fn filling_a_volume_can_be_stopped() {
    let folder = folder();
    std::fs::write(folder.path().join("a.fio"), "[a]\nrw=write\nbs=4k\nsize=16m\n").unwrap();
    std::fs::write(folder.path().join("out.json"), "of an earlier run").unwrap();
    let arguments = "bench a.fio --stack f2fs --fill 80% --json=out.json";
    let child = command(folder.path(), arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let begin = Instant::now();
    assert!(
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(stderr(&output), "dovetail: stopped before anything was measured\n");
    let kept = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
    assert_eq!(kept, "of an earlier run");
}

#[test]
fn no_output_takes_the_place_of_an_input_or_of_another_output() {
    let folder = folder();
    let job = "[a]\nrw=write\nbs=4k\nsize=1m\n";
    std::fs::write(folder.path().join("a.fio"), job).unwrap();
    for (arguments, words) in [
        ("--report a.fio", "--report cannot write to a.fio: it is the input a.fio"),
        ("--json=./a.fio", "it is the input a.fio"),
        ("--csv=small.toml", "it is the input small.toml"),
        ("--fio-json=a.fio", "--fio-json cannot write to a.fio: it is the input a.fio"),
        ("--json=out --csv=out", "--csv cannot write to out: --json writes to it too"),
    ] {
        let output = command(folder.path(), &format!("bench a.fio --stack small.toml {arguments}"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{arguments}: {}", stderr(&output));
        assert!(!folder.path().join("out").exists() && stdout(&output).is_empty());
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("a.fio")).unwrap(), job);
}

#[test]
fn a_job_without_end_a_byte_order_mark_and_a_long_name_are_told_in_sentences() {
    let folder = folder();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.fio")).unwrap();
    let run = |job: &str| {
        command(folder.path(), &format!("bench {job} --stack small.toml")).output().unwrap()
    };
    let zero = run("zero.fio");
    assert_eq!(
        stderr(&zero),
        "dovetail: zero.fio cannot be read: it has more than 16 MiB, which no such text has\n"
    );
    let device = run("/dev/zero");
    assert!(
        device.status.code() == Some(1) && stderr(&device).contains("it has more than 16 MiB"),
        "{}",
        stderr(&device)
    );
    let job = "\u{feff}[a]\nrw=write\nbs=4k\nsize=64k\n";
    std::fs::write(folder.path().join("mark.fio"), job).unwrap();
    let marked = run("mark.fio");
    assert_eq!(marked.status.code(), Some(0), "{}", stderr(&marked));
    let long = format!("[a]\nrw=write\n{}=1\n", "k".repeat(1_000_000));
    std::fs::write(folder.path().join("long.fio"), long).unwrap();
    let long = stderr(&run("long.fio"));
    assert!(
        long.len() < 3000 && long.contains("characters are left out here]"),
        "{} bytes",
        long.len()
    );
    assert!(long.starts_with("dovetail: long.fio:3: "), "{}", &long[..100]);
}

/// A drive of 2 TiB, all of which is written before the run, takes 7.6 GiB of memory; there are 6.
#[test]
fn a_drive_that_memory_cannot_hold_is_refused_before_it_is_made() {
    let folder = folder();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let profile = std::fs::read_to_string(root.join("profiles/femu-32g.toml")).unwrap();
    let lines = profile
        .lines()
        .map(|line| if line.starts_with("user =") { "user = \"2TiB\"" } else { line });
    let profile: String = lines.map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.path().join("large.toml"), profile).unwrap();
    std::fs::write(folder.path().join("a.fio"), "[a]\nrw=write\nbs=4k\nsize=1m\n").unwrap();
    let trace = root.join("examples/f2fs-randwrite.blkparse.zst");
    let trace = trace.to_str().unwrap();
    let dovetail = env!("CARGO_BIN_EXE_dovetail");
    for arguments in [
        format!("replay {trace} --drive large.toml"),
        "bench a.fio --stack f2fs --drive large.toml".into(),
    ] {
        let run = |more: &str| {
            let script = format!("ulimit -v 6291456; exec {dovetail} {arguments} {more}");
            Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap()
        };
        let refused = run("--precondition");
        assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
        let said = stderr(&refused);
        assert!(
            said.contains("takes up to 7.61 GiB") && said.contains("of memory to simulate"),
            "{said}"
        );
        let scale = said.split("--scale ").nth(1).unwrap().split(' ').next().unwrap();
        let shrunk = run(&format!("--scale {scale}"));
        assert_eq!(shrunk.status.code(), Some(0), "--scale {scale}: {}", stderr(&shrunk));
    }
}

/// A trace that writes little needs little, however large the drive is.
#[test]
fn a_replay_takes_what_its_trace_writes() {
    let folder = folder();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let profile = std::fs::read_to_string(root.join("profiles/femu-32g.toml")).unwrap();
    let profile = profile.replace("user = \"32GiB\"", "user = \"4TiB\"");
    std::fs::write(folder.path().join("large.toml"), profile).unwrap();
    // MQSim's format: a write of 4 KiB each 8 MiB apart, and one in the last GiB
    let line = |n: u64| format!("{} 0 {} 8 0\n", n * 1000, n * 16384);
    let lines: String = (0..1000).chain([524_160]).map(line).collect();
    std::fs::write(folder.path().join("a.trace"), lines).unwrap();
    let dovetail = env!("CARGO_BIN_EXE_dovetail");
    let run = |kib: u32, more: &str| {
        let call = format!("{dovetail} replay a.trace --drive large.toml {more}");
        let script = format!("ulimit -v {kib}; exec {call}");
        Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap()
    };
    let done = run(1_200_000, "");
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(!stderr(&done).contains("of memory, of"), "{}", stderr(&done));
    let told = run(600_000, "");
    assert!(stderr(&told).contains("note: this takes up to"), "{}", stderr(&told));
    // the replay says of a write beyond the drive's end where it stands; no memory is missing
    let long = format!("0 0 0 {} 0\n", u64::MAX / 1024);
    std::fs::write(folder.path().join("a.trace"), long).unwrap();
    let said = stderr(&run(1_200_000, ""));
    assert!(said.contains("a.trace") && !said.contains("of memory to simulate"), "{said}");
    let refused = run(1_200_000, "--precondition");
    assert!(stderr(&refused).contains("of memory to simulate"), "{}", stderr(&refused));
}

/// A drive that does not fit when it is full takes a job that writes little of it, on a file system
/// and raw; not one that ends by time.
#[test]
fn a_bench_takes_what_its_job_writes() {
    let folder = folder();
    let profile =
        "name = \"large\"\nabout = \"4 TiB\"\nbase = \"femu-32g\"\n[capacity]\nuser = \"4TiB\"\n";
    std::fs::write(folder.path().join("large.toml"), profile).unwrap();
    let job = "[a]\nfilename=/dev/nvme0n1\nrw=randwrite\nbs=4k\nsize=100%\nio_size=16m\n";
    std::fs::write(folder.path().join("raw.fio"), job.to_owned() + "direct=1\n").unwrap();
    let little = "[a]\nrw=write\nbs=4k\nsize=16m\nfsync=10\n";
    std::fs::write(folder.path().join("little.fio"), little).unwrap();
    let endless = little.to_owned() + "time_based\nruntime=1ms\n";
    std::fs::write(folder.path().join("endless.fio"), endless).unwrap();
    let dovetail = env!("CARGO_BIN_EXE_dovetail");
    let run = |job: &str| {
        let call = format!("{dovetail} bench {job} --drive large.toml -j 1");
        let script = format!("ulimit -v 3500000; exec {call}");
        Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap()
    };
    for job in ["raw.fio --stack raw", "little.fio --stack f2fs"] {
        let done = run(job);
        assert_eq!(done.status.code(), Some(0), "{job}: {}", stderr(&done));
    }
    let refused = run("endless.fio --stack f2fs");
    assert!(stderr(&refused).contains("of memory to simulate"), "{}", stderr(&refused));
}

/// A job of one write takes what it needs, not four histograms.
#[test]
fn a_thousand_jobs_take_little_memory() {
    let folder = folder();
    let sections: String = (0..1000).map(|n| format!("[j{n}]\n")).collect();
    let job = format!("[global]\nrw=write\nbs=4k\nsize=4k\n{sections}");
    std::fs::write(folder.path().join("many.fio"), job).unwrap();
    // 1,150 MB before; 60 MB are used
    let dovetail = env!("CARGO_BIN_EXE_dovetail");
    let script =
        format!("ulimit -v 614400; exec {dovetail} bench many.fio --stack small.toml -j 1");
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
