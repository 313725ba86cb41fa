//! Explorations that must find something, and such that must find nothing.

use dovetail_lab::bench::{Source as Job, Stack};
use dovetail_workload::personality::Personality;

use crate::{CrashResults, Cuts, Exploration, Progress, Source, ace, html, language};

const DRIVE: u64 = 52 << 20;

/// A stack that comes with dovetail, with other mount options.
fn stack(name: &str, mount: &str) -> Stack {
    let mut stack = Stack::load(name).unwrap();
    if !mount.is_empty() {
        stack.mount = mount.into();
    }
    stack
}

fn explore(source: &Source, stacks: &[Stack], cuts: Cuts) -> CrashResults {
    let exploration = Exploration { cuts, ..Exploration::new(source, stacks, DRIVE) };
    exploration.run(2, &Progress::default()).unwrap()
}

fn list(text: &str) -> Source {
    Source::Lists {
        name: "list".into(),
        lists: vec![language::parse(text).unwrap()],
        every_clock: true,
    }
}

/// A name and a file, each made durable twice.
const SYNCED: &str = "mkdir A\ncreate A/foo\nwrite A/foo 0 10000\nfsync A/foo\nmkfifo A/bar\nfsync A\n\
                      write A/foo 0 4096\nfdatasync A/foo\nrename A/foo A/baz\nfsync A\n";

#[test]
fn a_file_system_that_does_not_flush_is_found() {
    for (name, mount) in [("f2fs", "fsync_mode=nobarrier"), ("ext4", "nobarrier")] {
        let results = explore(&list(SYNCED), &[stack(name, mount)], Cuts::All);
        let violations = &results.stacks[0].violations;
        assert!(!violations.is_empty(), "{name}: {:?}", results.stacks[0]);
        let sequence = &violations[0].sequence;
        assert!(
            sequence.lines().count() < SYNCED.lines().count(),
            "it is made shorter: {sequence}"
        );
        assert!(sequence.contains("sync"), "{sequence}");
        let page = html(&results);
        assert!(page.contains(&violations[0].id), "the report tells it");
    }
}

#[test]
fn a_cut_is_played_again_by_its_name() {
    let (source, stacks) = (list(SYNCED), [stack("f2fs", "fsync_mode=nobarrier")]);
    let exploration = Exploration::new(&source, &stacks, DRIVE);
    let results = exploration.run(1, &Progress::default()).unwrap();
    let violation = &results.stacks[0].violations[0];
    let again = exploration.replay(&violation.id).unwrap();
    assert_eq!(again.violation.as_ref(), Some(&violation.what));
    assert!(again.timeline.contains("POWER CUT"), "{}", again.timeline);
    let nowhere = exploration.replay("f2fs/list-7-still/0").unwrap_err().to_string();
    assert!(nowhere.starts_with("there is no cut \"f2fs/list-7-still/0\""), "{nowhere}");
}

/// An overwrite whose name is there lies 40 s before the cut, in the page cache.
#[test]
fn content_that_is_missing_is_lost_work() {
    let text = "create a\nwrite a 0 40960\nfsync a\nwrite a 0 40960\nsleep 40s\n\
                write a 0 4096\nsync\n";
    let results = explore(&list(text), &[stack("f2fs", "")], Cuts::All);
    let found = &results.stacks[0];
    assert!(found.violations.is_empty() && found.old * 2 > found.cuts, "{found:?}");
    let (operations, ms) = (&found.lost_operations, &found.lost_ms);
    assert!(operations.max <= 2.0 && (40_000.0..41_000.0).contains(&ms.max), "{found:?}");
}

/// Every stack with a file system, and the promises that each of them makes.
fn all_stacks() -> Vec<Stack> {
    let mut stacks: Vec<Stack> = Stack::built_in().map(|name| stack(name, "")).collect();
    // a raw drive promises nothing beside its own, a real kernel is not played from here, zoned
    // drives are not explored yet
    stacks.retain(|stack| !stack.is_raw() && !stack.is_linux() && stack.name != "f2fs-zoned");
    let strict = Stack { name: "f2fs-strict".into(), ..stack("f2fs", "fsync_mode=strict") };
    let journal = Stack { name: "ext4-journal".into(), ..stack("ext4", "data=journal") };
    stacks.extend([strict, journal]);
    stacks
}

#[test]
fn what_is_promised_is_kept() {
    let mut lists = ace::sequences_of_one();
    lists.truncate(6);
    lists.extend(ace::sequences_of_two(12));
    let source = Source::Lists { name: "ace".into(), lists, every_clock: false };
    let results = explore(&source, &all_stacks(), Cuts::Sampled(2));
    for stack in &results.stacks {
        assert_eq!(stack.violations, [], "{}", stack.stack);
        assert!(stack.cuts >= 18 && stack.promises >= 18, "{stack:?}");
    }
}

/// The record of one fsync is what the next mount rolls forward. Only the last of few moments has it,
/// and runs begin to count with different ones.
#[test]
fn recoveries_of_short_runs_are_cut() {
    let list = language::parse("create a\nwrite a 0 8192\nfsync a\n").unwrap();
    let source = Source::Lists { name: "fsync".into(), lists: vec![list; 7], every_clock: true };
    let found = &explore(&source, &[stack("f2fs", "")], Cuts::All).stacks[0];
    assert_eq!(found.violations, []);
    assert!(found.cuts_in_recovery > 0 && found.cuts_in_recovery < found.cuts / 7, "{found:?}");
}

#[test]
fn random_operations_keep_what_is_promised() {
    let source = Source::Random { seeds: 0..2, steps: 60 };
    let results = explore(&source, &all_stacks(), Cuts::Sampled(6));
    for stack in &results.stacks {
        assert_eq!(stack.violations, [], "{}", stack.stack);
        assert!(stack.cuts > 10, "{stack:?}");
    }
}

/// With so small a page cache a turn of the background is 3 pages, a part of this file. The fsync
/// that follows promises the rest, too.
#[test]
fn a_file_of_which_a_part_was_written_back_is_durable_after_its_fsync() {
    let source = list("create a\nwrite a 0 40960\nfsync a\nwrite a 0 40960\nsleep 1s\nfsync a\n");
    let stacks = ["f2fs", "ext4"].map(|name| stack(name, ""));
    let exploration =
        Exploration { memory_bytes: Some(160 << 10), ..Exploration::new(&source, &stacks, DRIVE) };
    for stack in &exploration.run(2, &Progress::default()).unwrap().stacks {
        assert_eq!(stack.violations, [], "{}", stack.stack);
        assert!(stack.cuts > 100, "{stack:?}");
    }
}

/// The unlink waits for its commit, the write to the open file goes to its place before that, as in
/// Linux: with the power cut between the two the name leads to content that was written after the
/// unlink.
#[test]
fn an_open_file_without_a_name_is_overwritten_in_place() {
    let source = list(
        "create c\nwrite c 0 8192 1\nfsync c\nopen c 0\nunlink c\nwrite @0 4096 1 212\nsync\n",
    );
    let stacks = ["f2fs", "ext4", "rm-ipu"].map(|name| stack(name, ""));
    for stack in &explore(&source, &stacks, Cuts::All).stacks {
        assert_eq!(stack.violations, [], "{}", stack.stack);
        assert!(stack.cuts > 30, "{stack:?}");
    }
}

/// A directory without a name has no parent to be read.
#[test]
fn open_directories_without_a_name_are_no_states() {
    let source = list(
        "mkdir A\nmkdir A/B\nopen A/B 0\nrmdir A/B\nrmdir A\nchmod @0 700\ncreate f\nopen f 1\n\
         write f 0 8192\nfsync f\npunch @1 0 4096\nfsync f\n",
    );
    for stack in &explore(&source, &[stack("f2fs", ""), stack("ext4", "")], Cuts::All).stacks {
        assert_eq!(stack.violations, [], "{}", stack.stack);
    }
}

fn job(job: Job) -> Source {
    Source::Job { job: Box::new(job), calls: 1000 }
}

fn personality(name: &str, parameters: &[(&str, &str)]) -> Source {
    let mut personality = Personality::load(name).unwrap();
    personality.set(parameters.iter().copied()).unwrap();
    job(Job::Personality(Box::new(personality)))
}

/// At the scale of so small a drive a file set of thousands would have one file.
#[test]
fn each_thread_of_a_personality_finds_files() {
    let stacks = [stack("f2fs", "")];
    for name in ["varmail", "fileserver"] {
        let source = personality(name, &[("nthreads", "4"), ("meanfilesize", "16k")]);
        let exploration = Exploration {
            cuts: Cuts::Sampled(2),
            part: (0, 8),
            ..Exploration::new(&source, &stacks, DRIVE)
        };
        let found = exploration.run(1, &Progress::default()).unwrap().stacks.remove(0);
        assert_eq!(found.violations, [], "{name}");
        assert!(found.operations > 200 && found.moments > 1000, "{name}: {found:?}");
    }
}

/// A job takes each call for done: what it does after one without room is no workload of anybody's,
/// and says nothing of promises.
#[test]
fn a_job_without_room_says_so() {
    let stacks = [stack("f2fs", "")];
    for (name, operation) in [("office", "documents/"), ("fileserver", "bigfileset/")] {
        let source = personality(name, &[]);
        let error = Exploration::new(&source, &stacks, DRIVE)
            .run(1, &Progress::default())
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("stack f2fs: \"write ") && error.contains(operation), "{error}");
        assert!(error.contains("no room on a drive of 52.0 MiB: give a larger drive"), "{error}");
    }
}

#[test]
fn a_job_is_explored_and_does_not_depend_on_threads() {
    let text = "[global]\nsize=2g\nbs=4k\nrw=randwrite\nnumber_ios=25000\nfsync=4\n[one]\n[two]\n";
    let source = job(Job::fio(text, "job.fio", &[]).unwrap());
    let stacks = [stack("f2fs", "")];
    let exploration =
        Exploration { cuts: Cuts::Sampled(20), ..Exploration::new(&source, &stacks, DRIVE) };
    let (one, two) = (
        exploration.run(1, &Progress::default()).unwrap(),
        exploration.run(2, &Progress::default()).unwrap(),
    );
    assert_eq!(one, two);
    let found = &one.stacks[0];
    assert_eq!(found.violations, []);
    assert!(found.runs == 1 && found.cuts > 20 && found.promises >= 16, "{found:?}");
}
