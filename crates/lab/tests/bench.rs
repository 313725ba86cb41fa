//! Experiments on whole stacks: the same results again, and what a full volume leaves.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::sync::atomic::{AtomicBool, Ordering};

use dovetail_lab::bench::{
    BenchError, Experiment, Fill, FillAmount, FillWith, Source, Stack, new_drives,
};
use dovetail_lab::results::{Results, RunResult};
use dovetail_lab::{FinishedRuns, Prepared};
use dovetail_workload::personality::Personality;

const JOB: &str = "[global]\nsize=8m\nbs=4k\n[mix]\nrw=randrw\nnumjobs=2\nfsync=32\n\
                   [direct]\nrw=randwrite\ndirect=1\nioengine=libaio\niodepth=8\n";

fn stacks() -> [Stack; 2] {
    let stack = |mount: &str| {
        let text = format!(
            "name = \"{mount}\"\nabout = \"\"\nfilesystem = \"f2fs\"\nmount = \"{mount}\"\ndrive = \"femu-32g\"\n\
             partition = \"256MiB\"\nmemory = \"16MiB\"\n"
        );
        Stack::parse(&text, "test.toml").unwrap()
    };
    [stack("mode=adaptive"), stack("mode=lfs")]
}

fn experiment<'a>(source: &'a Source, stacks: &'a [Stack], stop: &'a AtomicBool) -> Experiment<'a> {
    let fill = Fill { amount: FillAmount::Share(0.2), with: FillWith::Impressions };
    Experiment {
        fill: Some(fill),
        seed: 11,
        repetitions: 2,
        stop,
        final_sync: true,
        ..Experiment::new(source, stacks)
    }
}

fn personality(name: &str) -> Source {
    let mut personality = Personality::load(name).unwrap();
    let known: Vec<String> = personality.parameters().map(|(name, _)| name.to_owned()).collect();
    let small = [
        ("nfiles", "400"),
        ("meanfilesize", "16k"),
        ("filesize", "100k"),
        ("nthreads", "4"),
        ("operations", "2000"),
    ];
    personality
        .set(small.into_iter().filter(|(name, _)| known.iter().any(|known| known == name)))
        .unwrap();
    Source::Personality(Box::new(personality))
}

fn text(results: &Results) -> String {
    serde_json::to_string(results).unwrap()
}

#[test]
fn the_same_experiment_gives_the_same_results_whatever_the_threads() {
    let fio = Source::fio(JOB, "test.fio", &[]).unwrap();
    let personalities = ["fileserver", "varmail", "webserver", "oltp"].map(personality);
    for source in [fio].iter().chain(&personalities) {
        let (stacks, stop) = (stacks(), AtomicBool::new(false));
        let experiment = experiment(source, &stacks, &stop);
        let (one, failures) = experiment.run(1, &|_| {});
        assert!(failures.is_empty(), "{}: {failures:?}", source.name());
        for run in &one.runs {
            assert!(run.totals.calls > 0, "{}", source.name());
            assert_eq!(run.error, None, "{}", source.name());
        }
        assert_eq!(one.runs.len(), 4);
        assert_ne!(
            one.runs[0].totals,
            one.runs[1].totals,
            "{}: repetitions have other seeds",
            source.name()
        );
        for threads in [2, 5] {
            let (again, _) = experiment.run(threads, &|_| {});
            assert!(text(&again) == text(&one), "{} with {threads} threads", source.name());
            assert!(again == one, "{}: fio's own layout with {threads} threads", source.name());
        }
    }
}

#[test]
fn a_full_volume_leaves_what_was_measured_until_then() {
    let job = "[big]\nrw=write\nbs=64k\nsize=300m\nfallocate=none\n";
    let (stacks, stop) = (stacks(), AtomicBool::new(false));
    let source = Source::fio(job, "big.fio", &[]).unwrap();
    let (results, failures) =
        Experiment { fill: None, ..experiment(&source, &stacks, &stop) }.run(2, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    for run in &results.runs {
        let error = run.error.as_deref().unwrap();
        assert!(error.contains("thread 0 could not write big.0.0"), "{error}");
        assert!(run.totals.written_bytes > 100 << 20 && run.totals.written_bytes < 256 << 20);
        let blocks: u64 = run.written.values().sum();
        assert!(blocks * 4096 > 64 << 20, "what reached the drive: {:?}", run.written);
        let jobs: u64 = run.jobs.iter().map(|job| job.written_bytes).sum();
        assert_eq!(jobs, run.totals.written_bytes);
        let used: f64 = run.occupancy.iter().sum::<f64>() / run.occupancy.len() as f64;
        assert!(used > 0.5, "{used}");
        assert_eq!(run.fio.as_ref().unwrap()["jobs"][0]["error"], 28, "ENOSPC");
    }
}

#[test]
fn a_fill_that_does_not_fit_is_told_with_its_stack() {
    let (stacks, stop) = (stacks(), AtomicBool::new(false));
    let source = Source::fio(JOB, "test.fio", &[]).unwrap();
    let fill = Fill { amount: FillAmount::Bytes(1 << 30), with: FillWith::Large };
    let (results, failures) =
        Experiment { fill: Some(fill), ..experiment(&source, &stacks, &stop) }.run(1, &|_| {});
    assert!(results.runs.is_empty());
    let [BenchError::Setup { stack, .. }, ..] = failures.as_slice() else { panic!("{failures:?}") };
    assert_eq!(stack, "mode=adaptive");
}

#[test]
fn runs_that_had_not_begun_when_it_was_stopped_are_left_out() {
    let (stacks, stop) = (stacks(), AtomicBool::new(false));
    let source = Source::fio(JOB, "test.fio", &[]).unwrap();
    let experiment = experiment(&source, &stacks, &stop);
    let (results, failures) = experiment.run(1, &|_| stop.store(true, Ordering::Relaxed));
    assert!(failures.is_empty());
    assert_eq!(results.runs.len(), 1);
}

fn one_run(source: &Source, fill: Option<Fill>) -> RunResult {
    let (stacks, stop) = (stacks(), AtomicBool::new(false));
    let experiment = Experiment { fill, repetitions: 1, ..experiment(source, &stacks[..1], &stop) };
    let (results, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    results.runs.into_iter().next().unwrap()
}

#[test]
fn what_warms_up_is_not_in_the_scatter() {
    let job = "[a]\nrw=randwrite\nbs=4k\nsize=8m\nfsync=8\ntime_based\nruntime=1\nramp_time=3\n";
    let run = one_run(&Source::fio(job, "ramp.fio", &[]).unwrap(), None);
    assert!((0.9..1.5).contains(&run.totals.elapsed_s), "{}", run.totals.elapsed_s);
    let (first, last) = (run.scatter.first().unwrap().t, run.scatter.last().unwrap().t);
    assert!(first < 0.1 && last <= run.totals.elapsed_s, "{first} to {last}");
}

/// The measurement's intervals begin anew behind a ramp, however long those of the ramp were.
#[test]
fn a_ramp_makes_no_interval_longer() {
    let job = "[a]\nrw=randwrite\nbs=4k\nsize=8m\nfsync=8\ntime_based\nruntime=1\nramp_time=20\n";
    let run = one_run(&Source::fio(job, "ramp.fio", &[]).unwrap(), None);
    assert!((256..=512).contains(&run.series.time_s.len()), "{}", run.series.time_s.len());
}

/// fio ends threads that sleep, too.
#[test]
fn a_run_ends_with_the_job_that_ends_all_others() {
    for sleeps in ["startdelay=60", "thinktime=60s"] {
        let job = format!("[global]\nrw=write\nbs=4k\nsize=1m\n[a]\nexitall\n[b]\n{sleeps}\n");
        let run = one_run(&Source::fio(&job, "exitall.fio", &[]).unwrap(), None);
        assert!(run.totals.elapsed_s < 1.0, "{sleeps}: {}", run.totals.elapsed_s);
    }
}

#[test]
fn fragmentation_is_that_of_the_workloads_files() {
    let source =
        Source::fio("[a]\nrw=write\nbs=64k\nsize=4m\nnumjobs=3\n", "write.fio", &[]).unwrap();
    let fill = Fill { amount: FillAmount::Share(0.2), with: FillWith::Impressions };
    let (alone, filled) = (one_run(&source, None), one_run(&source, Some(fill)));
    let files = |run: &RunResult| run.fragmentation.as_ref().unwrap().files;
    assert_eq!((files(&alone), files(&filled)), (3, 3));
}

#[test]
fn a_run_says_how_far_it_has_come() {
    use dovetail_lab::{Progress, Stage};
    let text = "[timed]\nrw=randwrite\nsize=8m\ntime_based\nruntime=200ms\nthinktime=1\n\
                [sized]\nstonewall\nrw=write\nbs=4k\nsize=64m\n";
    let (source, stacks, stop) =
        (Source::fio(text, "two.fio", &[]).unwrap(), stacks(), AtomicBool::new(false));
    let told = std::sync::Mutex::new(Vec::<Progress>::new());
    let tell = |number: usize, progress: Progress| {
        if number == 0 {
            told.lock().unwrap().push(progress);
        }
    };
    let experiment =
        Experiment { progress: &tell, repetitions: 1, ..experiment(&source, &stacks[..1], &stop) };
    let (_, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    let told = told.into_inner().unwrap();
    for stage in [Stage::Prepare, Stage::Run] {
        let of_stage = told.iter().filter(|progress| progress.stage == stage);
        let shares: Vec<f64> = of_stage.map(|p| p.done as f64 / p.total as f64).collect();
        assert!(shares.len() > 2 && shares.is_sorted(), "{stage:?}: {shares:?}");
        assert!(shares[0] < 0.6 && shares.iter().all(|share| *share <= 1.0), "{shares:?}");
        assert!(shares.last().is_some_and(|last| *last > 0.6), "{stage:?}: {shares:?}");
    }
}

/// Two stacks and three seeds make six runs on three drives.
#[test]
fn runs_that_share_preconditioned_drives_have_the_results_of_their_own() {
    let job = JOB.replace("size=8m", "size=1g");
    let source = Source::fio(&job, "test.fio", &[]).unwrap();
    let whole = |stack| Stack { partition: None, memory: "1GiB".into(), ..stack };
    let (stacks, stop) = (stacks().map(whole), AtomicBool::new(false));
    let alone = Experiment {
        precondition: true,
        repetitions: 3,
        scale: "1/128".parse().unwrap(),
        fill: None,
        ..experiment(&source, &stacks, &stop)
    };
    let (results, failures) = alone.run(2, &|_| {});
    assert!(failures.is_empty() && results.runs.iter().all(|run| run.error.is_none()));
    assert!(results.runs.len() == 6 && results.runs.iter().all(|run| run.precondition.is_some()));
    let expected = text(&results);
    for threads in [1, 2] {
        let drives = Prepared::within(1 << 30);
        let new = new_drives(&stacks, alone.scale, (alone.seed, alone.repetitions)).unwrap();
        new.iter().for_each(|drive| drives.expect(drive));
        let (results, failures) = Experiment { drives: &drives, ..alone }.run(threads, &|_| {});
        assert!(failures.is_empty(), "{failures:?}");
        assert_eq!((text(&results) == expected, drives.aged()), (true, 3), "{threads}");
    }
}

/// The runs that begin, and the results.
fn begun(experiment: &Experiment<'_>) -> (Vec<usize>, Results) {
    let begun = std::sync::Mutex::new(std::collections::BTreeSet::new());
    let tell = |number, progress| {
        (experiment.progress)(number, progress);
        begun.lock().unwrap().insert(number);
    };
    let (results, failures) = Experiment { progress: &tell, ..*experiment }.run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    (begun.into_inner().unwrap().into_iter().collect(), results)
}

#[test]
fn an_experiment_that_was_stopped_goes_on_with_the_runs_that_are_left() {
    let (source, stacks) = (Source::fio(JOB, "test.fio", &[]).unwrap(), stacks());
    let (never, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let whole = experiment(&source, &stacks, &never);
    let (expected, folder) = (text(&whole.run(1, &|_| {}).0), tempfile::tempdir().unwrap());
    let kept = FinishedRuns::open(folder.path(), "test".into()).unwrap();

    let stop_third = |number, _| stop.store(number == 2, Ordering::Relaxed);
    let stopped = Experiment { stop: &stop, progress: &stop_third, finished: Some(&kept), ..whole };
    assert_eq!(begun(&stopped).0, [0, 1, 2]);

    let resumed = Experiment { finished: Some(&kept), ..whole };
    let (left, results) = begun(&resumed);
    assert_eq!((left, text(&results) == expected), (vec![2, 3], true));
    let (left, results) = begun(&resumed);
    assert_eq!((left, text(&results) == expected), (vec![], true));
    for other in [Experiment { seed: 12, ..resumed }, Experiment { restart: true, ..resumed }] {
        assert_eq!(begun(&other).0, [0, 1, 2, 3]);
    }
}

/// A run of a job on a file system with a page cache of 32 MiB, of which a fifth may be dirty.
fn run_with_a_small_cache(filesystem: &str, job: &str) -> RunResult {
    let text = format!(
        "name = \"t\"\nabout = \"\"\nfilesystem = \"{filesystem}\"\ndrive = \"femu-32g\"\n\
         partition = \"256MiB\"\nmemory = \"32MiB\"\n"
    );
    let stacks = [Stack::parse(&text, "test.toml").unwrap()];
    let (source, stop) = (Source::fio(job, "test.fio", &[]).unwrap(), AtomicBool::new(false));
    let experiment = Experiment { stop: &stop, ..Experiment::new(&source, &stacks) };
    let (mut results, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{filesystem}: {failures:?}");
    results.runs.remove(0)
}

/// Pages are dirty until the drive has written them. (They were until its queue, which takes 320
/// MiB, had them: the burst returned at the speed of memory.)
#[test]
fn a_burst_that_fits_into_the_drives_queue_takes_as_long_as_the_drive() {
    for filesystem in ["f2fs", "ext4"] {
        let elapsed = ["", "end_fsync=1\n"].map(|sync| {
            let job = format!("[w]\nrw=write\nbs=1m\nsize=96m\n{sync}");
            run_with_a_small_cache(filesystem, &job).totals.elapsed_s
        });
        let share = elapsed[0] / elapsed[1];
        assert!(share > (96.0 - 6.4) / 96.0 - 0.05, "{filesystem}: {share}: all but a fifth of 32");
        assert!(share < 1.0, "{filesystem}: {share}");
    }
}

/// Writers go on when an eighth of what may be dirty has been written, all alike. (They waited for
/// all that was dirty, one after another.)
#[test]
fn buffered_writers_wait_for_a_part_of_the_write_back_and_all_alike() {
    const JOB: &str = "[w]\nfilename=file\nrw=randwrite\nbs=4k\nnumjobs=4\nsize=64m\nnorandommap\n\
                       time_based\nruntime=2s\n";
    let part_bytes = f64::from(32 << 20) * 0.2 / 8.0;
    for filesystem in ["f2fs", "ext4"] {
        let run = run_with_a_small_cache(filesystem, JOB);
        let write = &run.latency.write.percentiles;
        let part_ns = part_bytes * run.totals.elapsed_s * 1e9 / (write.count as f64 * 4096.0);
        let waits = [write.p99_ns as f64 / part_ns, write.max_ns as f64 / part_ns];
        assert!(waits[0] > 0.5, "{filesystem}: {waits:?}: one writer in a hundred waits");
        assert!(waits[1] < 8.0, "{filesystem}: {waits:?}: nobody waits for all that may be dirty");
    }
}
