//! fio and we take the same job files, and refuse the same. Our examples run to their end.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::{Path, PathBuf};

use crate::common::{fio, play};
use dovetail_workload::fio::{FioWorkload, JobFile, Variables};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut examples: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "fio")).collect();
    examples.sort();
    examples
}

fn we_take(text: &str) -> bool {
    JobFile::parse(text, "test.fio", &Variables::new()).is_ok()
}

fn fio_takes(text: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    fio(folder.path(), text, &["--parse-only"]).is_ok()
}

#[test]
fn both_take_the_examples_and_they_end() {
    assert!(examples().len() >= 5);
    for path in examples() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(';'), "{} says what it is for", path.display());
        // those whose numbers of processes are given with --set
        let text = text.replace("${READERS}", "1").replace("${WRITERS}", "1");
        assert!(fio_takes(&text), "{}", path.display());
        let jobs = JobFile::parse(&text, "test.fio", &Variables::new()).unwrap();
        // an example that is as large as a drive says at which scale to run it
        let jobs = if text.contains("--scale 1/64") { jobs.scaled(1.0 / 64.0) } else { jobs };
        let is_raw = text.contains("filename=/dev/");
        let workload = if is_raw {
            FioWorkload::on_drive(jobs, 1, 256 << 20)
        } else {
            FioWorkload::new(jobs, 1)
        };
        let played = play(&mut workload.unwrap());
        assert!(played.len() > 100, "{}", path.display());
    }
}

#[test]
fn the_readme_lists_every_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for path in examples() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn both_take_these() {
    for options in [
        "size=1m # behind it",
        "size=1m ; and this",
        "size = 1m",
        "thread",
        "time_based=0",
        "bs=4k,8k,",
        "bs=,8k",
        "bs=0x1000",
        "bs=4KiB",
        "size=50%\nfilesize=1m",
        "rw=randread:8",
        "rw=write:-4k",
        "runtime=10ms\ntime_based",
        "rwmixread=70\nrwmixwrite=10",
        "thinktime=1s",
        "bssplit=4k/50:8k/:16k",
        "bsrange=16k-4k",
        "bsrange=4k:16k,1k-2k",
        "random_distribution=zipf:1.2:0.5",
        "random_distribution=pareto:0.2",
        "random_distribution=zoned:60/10:40/80",
        "size=4m\nrandom_distribution=zoned_abs:60/1m:40/2m",
        "random_distribution=normal:30",
        "file_service_type=random:4",
        "filename=x:y",
        "rate=1m,500k",
        "rate_iops=100,",
        "startdelay=1-5",
        "filesize=1k-4k",
        "kb_base=1000",
        "stonewall=0",
        "stonewall",
        "wait_for_previous",
        "new_group",
        "group_reporting",
        "size=$pagesize",
        "offset=10%",
        "size=1m\nsize=2m",
        "number_ios=1k",
        "fallocate=keep",
        "sync=dsync",
        "verify=crc32c",
        "name=b",
        "ramp_time=5",
        "ioengine=io_uring\niodepth=8",
        "percentage_random=50,20",
        "readwrite=randrw",
        "blocksize=8k",
        "io_limit=4k",
        "timeout=3",
    ] {
        let text = format!("[a]\nfilesize=8m\n{options}\n");
        assert!(fio_takes(&text), "fio refuses {options}");
        assert!(we_take(&text), "{options}: {:?}", JobFile::parse(&text, "f", &Variables::new()));
    }
}

#[test]
fn both_refuse_these() {
    for options in [
        "foo=1",
        "Size=1m",
        "size=",
        "size",
        "direct",
        "direct=2",
        "direct=yes",
        "bs=0",
        "bs=x",
        "rw=foo",
        "rw=",
        "rwmixread=101",
        "bsrange=4k",
        "random_distribution=zipf:1",
        "random_distribution=zipf:1.2:2",
        "random_distribution=pareto:1.2",
        "random_distribution=zoned:60/10:30/90",
        "random_distribution=foo",
        "fallocate=bar",
        "iodepth=0",
        "kb_base=1001",
        "randseed=abc",
        "verify=foo",
        "size=${NOT_THERE}",
        "sync=foo",
        "percentage_random=120",
        "unlink",
        "rw_sequencer=foo",
        "file_service_type=foo",
        "runtime=x",
    ] {
        let text = format!("[a]\n{options}\n");
        assert!(!fio_takes(&text), "fio takes {options}");
        assert!(!we_take(&text), "we take {options}");
    }
    assert!(!fio_takes("size=1m\n[a]\n") && !we_take("size=1m\n[a]\n"));
}

/// fio passes over the end of a number, and over what a job cannot do, until it runs. We say so at
/// once.
#[test]
fn these_slips_pass_fio_alone() {
    for options in [
        "bs=4x",
        "bs=1.5k",
        "size=1m junk",
        "bs=-1",
        "ioengine=foo",
        "numjobs=0",
        "size=150%",
        "time_based",
    ] {
        let text = format!("[a]\n{options}\n");
        assert!(fio_takes(&text) && !we_take(&text), "{options}");
    }
}

#[test]
fn impossible_jobs_end_in_a_sentence() {
    let message = |text: &str| {
        let jobs = JobFile::parse(text, "job.fio", &Variables::new());
        jobs.and_then(|jobs| FioWorkload::new(jobs, 1)).unwrap_err().to_string()
    };
    for (text, expected) in [
        (
            "[a]\nrw=read",
            "job.fio:1: job \"a\" does not say how large its files are, and no job before it makes them; add size=",
        ),
        (
            "\n[a]\nsize=2k",
            "job.fio:2: job \"a\" has files of 2048 bytes, less than a block of 4096; make size larger",
        ),
        ("[a]\nsize=2000t", "job.fio:1: job \"a\" has a file beyond 1 PiB; make size smaller"),
        (
            "[a]\nsize=1m\ndirect=1\nbs=512",
            "job.fio:1: job \"a\" has direct=1 with blocks or offsets that are not whole blocks of 4096 bytes; \
             change bs or offset",
        ),
        (
            "[a]\nsize=1m\nfilename=../x",
            "job.fio:1: job \"a\" has the file \"../x\" in \"\"; give a path without \"..\"",
        ),
        (
            "[a]\nsize=900t\nbs=1",
            "job.fio:1: job \"a\" has more random blocks than can be remembered; add norandommap or make bs larger",
        ),
    ] {
        let text =
            if text.contains("900t") { format!("{text}\nrw=randread") } else { text.to_owned() };
        assert_eq!(message(&text), expected);
    }
}
