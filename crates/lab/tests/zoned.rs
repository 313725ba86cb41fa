//! F2FS on a zoned drive, beside F2FS as a log on the same flash with a page map.

use dovetail_lab::bench::Stack;
use dovetail_lab::results::RunResult;

use crate::fio_runs::fio_runs;

/// The same job on stacks, at 1/32.
fn run(job: &str, stacks: &[Stack]) -> Vec<RunResult> {
    fio_runs(job, stacks, false)
}

/// Both clean their sections; only the drive with a page map cleans below them, too. Each read is
/// checked on the way, and a write that is not at a write pointer would end the run.
#[test]
fn zones_leave_the_drive_nothing_to_clean() {
    let job = "[update]\nrw=randwrite\nbs=4k\nnumjobs=2\nsize=8g\nio_size=16g\nnorandommap\nfsync=10\noverwrite=1\n";
    let stacks = ["f2fs-lfs", "f2fs-zoned"].map(|name| Stack::load(name).unwrap());
    let runs = run(job, &stacks);
    assert_eq!(runs.len(), 2);
    for run in &runs {
        assert_eq!(run.error, None, "{}", run.label);
    }
    let waf = |run: &RunResult| {
        let drive = &run.totals.drive;
        let pages = &drive.programs;
        (pages.host + pages.gc + pages.journal) as f64 / drive.written_blocks as f64
    };
    let (log, zoned) = (waf(&runs[0]), waf(&runs[1]));
    assert!(log > 1.5, "the log on a page map is cleaned below: {log}");
    // what is left is the page-mapped part with the file system's tables
    assert!(zoned < 1.3, "{zoned}");
    let memory = |run: &RunResult| run.memory.map_bytes;
    assert!(memory(&runs[1]) * 4 < memory(&runs[0]), "a record a zone, not an entry a page");
}

/// As many active zones as logs: all threads' plans find a place, and none waits for long.
#[test]
fn six_active_zones_are_enough_for_six_logs() {
    let folder = tempfile::tempdir().unwrap();
    let drive = folder.path().join("six.toml");
    let limits = "max_open = 6\nmax_active = 6\n";
    let sources = "\"zones.max_open\" = \"test\"\n\"zones.max_active\" = \"test\"\n";
    let profile = format!(
        "name = \"six\"\nabout = \"\"\nbase = \"femu-32g-zoned\"\n[zones]\n{limits}[sources]\n{sources}"
    );
    std::fs::write(&drive, profile).unwrap();
    let stack = format!("name = \"six\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = {drive:?}\n");
    let six = Stack::parse(&stack, "six.toml").unwrap();
    let job = "[update]\nrw=randwrite\nbs=4k\nnumjobs=8\nsize=2g\nio_size=4g\nnorandommap\nfsync=10\noverwrite=1\n";
    let runs = run(job, &[six, Stack::load("f2fs-zoned").unwrap()]);
    assert!(runs.iter().all(|run| run.error.is_none()), "{:?}", runs[0].error);
    let ratio = runs[0].totals.elapsed_s / runs[1].totals.elapsed_s;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}

#[test]
fn a_job_that_overwrites_a_zone_is_told_so() {
    let job =
        "[global]\nfilename=/dev/nvme0n1\ndirect=1\n[r]\nrw=randwrite\nbs=4k\nnumber_ios=100\n";
    let text = "name = \"raw\"\nabout = \"\"\nfilesystem = \"none\"\ndrive = \"femu-32g-zoned\"\n";
    let stack = Stack::parse(text, "raw.toml").unwrap();
    let told = run(job, &[stack])[0].error.clone().unwrap();
    assert!(told.contains("write there, or reset the zone first"), "{told}");
    assert!(told.contains("rw=write") && told.contains("f2fs-zoned"), "{told}");
}
