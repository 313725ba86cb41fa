//! Jobs drawn at random: the calls of fio, in its order. `DOVETAIL_SEED=n` draws job n alone,
//! `DOVETAIL_SEEDS=n` the first n.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::ops::Range;
use std::path::Path;

use dovetail_time::Rng;
use dovetail_workload::fio::{FioWorkload, JobFile, Variables};

use crate::common::fio;
use crate::fio_calls::{log_of_fio, our_log};

/// Jobs a run, 0.3 s each.
const JOBS: u64 = 40;

/// One of each list; the first of a list is the commonest.
const CHOICES: &[&[&str]] = &[
    &[
        "rw=write",
        "rw=read",
        "rw=write\nverify=crc32c",
        "rw=write:8k\nverify=crc32c",
        "rw=write:8k",
        "rw=read:4k",
        "rw=write:-8k",
        "rw=read:-4k",
    ],
    &["size=64k", "size=60k", "size=100k", "size=1m", "size=33k"],
    &["bs=4k", "bs=8k", "bs=16k", "bs=3k", "bs=1k", "bs=8k,4k", "bs=,8k"],
];

/// One of each list, or none.
const MAYBE: &[&[&str]] = &[
    &["nrfiles=2", "nrfiles=3", "nrfiles=5"],
    &["offset=4k", "offset=16k", "offset=48k", "offset=128k"],
    &["filesize=48k", "filesize=128k", "filesize=20k"],
    &["io_size=40k", "io_size=200k", "io_size=50%"],
    &["loops=2", "loops=3"],
    &["number_ios=7", "number_ios=20"],
    &["fsync=4", "fdatasync=3", "fsync=5\nfdatasync=2"],
    &["end_fsync=1"],
    &["file_service_type=sequential", "file_service_type=roundrobin:3", "openfiles=1"],
    &["overwrite=1", "thinktime=5"],
];

fn job(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut lines = vec!["[a]"];
    for choices in CHOICES {
        let likely = rng.below(2) == 0;
        lines.push(if likely {
            choices[0]
        } else {
            choices[rng.below(choices.len() as u64) as usize]
        });
    }
    for choices in MAYBE {
        if rng.below(4) == 0 {
            lines.push(choices[rng.below(choices.len() as u64) as usize]);
        }
    }
    lines.join("\n") + "\n"
}

fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    match (number("DOVETAIL_SEED"), number("DOVETAIL_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(JOBS),
    }
}

#[test]
fn drawn_jobs_make_the_calls_of_fio() {
    for seed in seeds() {
        let job = job(seed);
        let folder = tempfile::tempdir().unwrap();
        let parsed = JobFile::parse(&job, "test.fio", &Variables::new()).unwrap();
        if let Err(error) = FioWorkload::new(parsed, 1) {
            assert!(refuses(folder.path(), &job), "DOVETAIL_SEED={seed}: {error}\n{job}");
            continue;
        }
        let (ours, theirs) = (our_log(&job), log_of_fio(folder.path(), &job));
        assert_eq!(ours, theirs, "DOVETAIL_SEED={seed}\n{job}");
    }
}

/// fio fails, or has nothing to read or write.
fn refuses(folder: &Path, job: &str) -> bool {
    let does = |text: String| text.contains("read:") || text.contains("write:");
    !fio(folder, job, &[]).is_ok_and(does)
}
