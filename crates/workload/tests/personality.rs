//! Personalities against the driver: the mix of flowops, the files, the ends of a run, and messages
//! about what is wrong.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use crate::driver;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::personality::{
    Ending, Personality, PersonalityWorkload, builtin_personalities,
};
use dovetail_workload::{Call, FileId, ThreadId, Workload};

fn builtin(name: &str, changes: &[(&str, &str)]) -> PersonalityWorkload {
    let mut personality = Personality::load(name).unwrap();
    personality.set(changes.iter().copied()).unwrap();
    PersonalityWorkload::new(&personality, 42).unwrap()
}

/// A personality of one set `files` of ten files of 64 KiB and one process `p` of threads `t`.
fn small(instances: u32, flowops: &str) -> Result<PersonalityWorkload, String> {
    with_head("runtime = 1", instances, flowops)
}

fn with_head(head: &str, instances: u32, flowops: &str) -> Result<PersonalityWorkload, String> {
    let text = format!(
        "name = 'small'\nabout = 'a test'\nsource = 'none'\n{head}\n\
         [[fileset]]\nname = 'files'\nentries = 10\nsize = '64k'\nfilesizegamma = 0\ndirwidth = 20\nprealloc = 50\n\
         [[process]]\nname = 'p'\n[[process.thread]]\nname = 't'\ninstances = {instances}\nflowops = [\n{flowops}\n]\n"
    );
    let personality = Personality::parse(&text, "small.toml").map_err(|error| error.to_string())?;
    PersonalityWorkload::new(&personality, 7).map_err(|error| error.to_string())
}

#[test]
fn every_personality_runs_to_its_number_of_operations() {
    for name in builtin_personalities() {
        let has_turns = Personality::load(name)
            .unwrap()
            .parameters()
            .any(|(parameter, _)| parameter == "turns");
        let endless = if has_turns {
            [("turns", "1000000"), ("runtime", "0")]
        } else {
            [("runtime", "0"); 2]
        };
        let parameters = [endless[0], endless[1], ("operations", "10000")];
        let mut workload = builtin(name, &parameters);
        let report = driver::run(&mut workload, 1_000_000);
        assert!(!report.cut_off, "{name}");
        assert_eq!(workload.ending(), Some(&Ending::Operations), "{name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_calls_and_another_does_not() {
    let personality = Personality::load("varmail").unwrap();
    let calls = |seed| {
        let mut workload = PersonalityWorkload::new(&personality, seed).unwrap();
        driver::run(&mut workload, 20_000).calls
    };
    assert_eq!(calls(1), calls(1));
    assert_ne!(calls(1), calls(2));
}

#[test]
fn the_run_time_ends_a_run() {
    for name in ["varmail", "webserver"] {
        let mut workload = builtin(name, &[("runtime", "1"), ("nthreads", "10")]);
        let report = driver::run(&mut workload, 10_000_000);
        assert_eq!(workload.ending(), Some(&Ending::Runtime), "{name}");
        assert!((0.99..1.2).contains(&report.end.as_secs_f64()), "{name}: {}", report.end);
    }
}

#[test]
fn the_share_done_is_that_of_the_runtime_or_of_the_operations() {
    let read = "{ flowop = 'readwholefile', name = 'r', filesetname = 'files', iosize = '64k' }";
    let begin = SimTime::ZERO + SimSpan::from_ms(70);
    let mut of_time = with_head("runtime = 2", 1, read).unwrap();
    assert_eq!(of_time.share_done(begin), None, "it has not begun");
    of_time.next(ThreadId(0), begin);
    let after = |ms| of_time.share_done(begin + SimSpan::from_ms(ms));
    assert_eq!([0, 500, 3000].map(after), [0.0, 0.25, 1.0].map(Some));
    let mut of_operations = with_head("operations = 40", 1, read).unwrap();
    assert_eq!(of_operations.share_done(begin), Some(0.0));
    driver::run(&mut of_operations, 1_000_000);
    assert_eq!(of_operations.share_done(begin), Some(1.0));
}

/// Each flowop of a loop ran as often as the others, but for threads that are within the loop.
#[test]
fn the_mix_is_that_of_the_list() {
    for (name, threads) in [("fileserver", 50), ("varmail", 16), ("webserver", 100)] {
        let mut workload = builtin(name, &[("operations", "50000")]);
        driver::run(&mut workload, 10_000_000);
        let counts: Vec<u64> = workload.tallies().iter().map(|tally| tally.count).collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= threads, "{name}: {counts:?}");
        assert!(*least > 1000, "{name}: {counts:?}");
    }
}

/// The applications of the F2FS-aware mapping cache's paper end with their turns, and write the
/// bytes of its table I.
#[test]
fn media_office_and_code_write_what_table_i_says() {
    const GB: f64 = 1e9;
    for (name, wanted) in
        [("media", 0.945 * 4.7 * GB), ("office", 0.971 * 0.8672 * GB), ("code", 0.637 * 2.4 * GB)]
    {
        let mut workload = builtin(name, &[]);
        let report = driver::run(&mut workload, 10_000_000);
        let written = |call: &Call| if let Call::Write { len, .. } = call { *len } else { 0 };
        let bytes = report.calls.iter().map(|it| written(&it.call)).sum::<u64>() as f64;
        assert!((bytes / wanted - 1.0).abs() < 0.08, "{name}: {bytes} of {wanted}");
    }
}

/// Calls of a loop, by kind: from the list of flowops, whole files being a read and one more that
/// finds the end.
#[test]
fn calls_come_in_the_ratios_of_the_list() {
    let mut workload = builtin("varmail", &[("operations", "60000")]);
    let report = driver::run(&mut workload, 10_000_000);
    let count =
        |kind: fn(&Call) -> bool| report.calls.iter().filter(|it| kind(&it.call)).count() as f64;
    let syncs = count(|call| matches!(call, Call::Sync { .. }));
    for (what, counted, wanted) in [
        ("open", count(|call| matches!(call, Call::Open { .. })), 1.5),
        ("close", count(|call| matches!(call, Call::Close { .. })), 1.5),
        ("append", count(|call| matches!(call, Call::Append { .. })), 1.0),
        ("read", count(|call| matches!(call, Call::Read { .. })), 2.0),
        ("unlink", count(|call| matches!(call, Call::Unlink { .. })), 0.5),
    ] {
        assert!(
            (counted / syncs / wanted - 1.0).abs() < 0.01,
            "{what}: {counted} with {syncs} syncs"
        );
    }
}

#[test]
fn appends_are_uniform_below_their_size() {
    let mut workload = builtin("varmail", &[("operations", "60000")]);
    let report = driver::run(&mut workload, 10_000_000);
    let lens: Vec<u64> = report
        .calls
        .iter()
        .filter_map(|it| if let Call::Append { len, .. } = it.call { Some(len) } else { None })
        .collect();
    assert!(lens.iter().all(|len| (1..16384).contains(len)));
    let mean = lens.iter().sum::<u64>() as f64 / lens.len() as f64;
    assert!((mean / 8192.0 - 1.0).abs() < 0.03, "{mean}");
}

#[test]
fn as_many_files_as_asked_are_there_at_the_start_and_have_the_mean_size() {
    let mut workload = builtin("fileserver", &[]);
    let report = driver::run(&mut workload, 0);
    let files = report.files.len() as f64;
    assert!((files / 8000.0 - 1.0).abs() < 0.02, "{files}");
    let mean = report.files.values().sum::<u64>() as f64 / files;
    assert!((mean / 131_072.0 - 1.0).abs() < 0.03, "{mean}");
    let paths: BTreeSet<String> =
        report.files.keys().map(|file| workload.path(*file).to_string()).collect();
    assert_eq!(paths.len(), report.files.len());
}

/// The driver checks that each file is open where it is read; here, that nobody else had it open
/// when it was deleted.
#[test]
fn no_file_is_deleted_that_a_thread_has_open() {
    let mut workload = builtin("fileserver", &[("nfiles", "1000"), ("operations", "50000")]);
    let report = driver::run(&mut workload, 1_000_000);
    assert_eq!(workload.ending(), Some(&Ending::Operations));
    let mut open: BTreeMap<FileId, i64> = BTreeMap::new();
    let mut deleted = 0;
    for ended in &report.calls {
        match ended.call {
            Call::Open { file } => *open.entry(file).or_default() += 1,
            Call::Close { file } => *open.entry(file).or_default() -= 1,
            Call::Unlink { file } => {
                deleted += 1;
                assert_eq!(open.get(&file).copied().unwrap_or(0), 0, "{file:?} is open");
            }
            _ => {}
        }
    }
    assert!(deleted > 1000, "{deleted}");
}

/// Files that are opened to be read or appended to exist: files come by createfile alone.
#[test]
fn only_createfile_makes_files() {
    for (name, create) in [("fileserver", "createfile1"), ("varmail", "createfile2")] {
        let mut workload = builtin(name, &[("operations", "50000")]);
        let report = driver::run(&mut workload, 1_000_000);
        let tally = workload.tallies().into_iter().find(|tally| tally.name == create).unwrap();
        // A thread may have made its file, and not have gone on when the run ended.
        assert!(
            report.created - tally.count <= u64::from(workload.threads()),
            "{}",
            report.created
        );
        assert!(tally.count > 3000, "{}", tally.count);
    }
}

#[test]
fn a_thread_deletes_its_own_file_by_its_descriptor() {
    let flowops = "{ flowop = 'createfile', name = 'c', filesetname = 'files', fd = 1 }, \
                   { flowop = 'writewholefile', name = 'w', fd = 1, srcfd = 1, iosize = '24k', dsync = true }, \
                   { flowop = 'closefile', name = 'x', fd = 1 }, { flowop = 'deletefile', name = 'd', fd = 1 }";
    let mut workload = with_head("operations = 40", 1, flowops).unwrap();
    let report = driver::run(&mut workload, 1000);
    assert_eq!(workload.ending(), Some(&Ending::Operations));
    let lens: Vec<u64> = report.calls.iter().map(|it| it.outcome.bytes >> 10).collect();
    assert_eq!(
        lens[..8],
        [0, 24, 24, 16, 0, 0, 0, 0],
        "open, three writes, a sync, close, unlink, open"
    );
    assert!(matches!(report.calls[6].call, Call::Unlink { .. }));
}

/// 200 shadows post to each of ten writers; a writer passes its semblock once per 1000 posts, the
/// log once per 3200.
#[test]
fn database_writers_follow_the_shadows() {
    let mut workload = builtin("oltp", &[("runtime", "1")]);
    let report = driver::run(&mut workload, 10_000_000);
    assert!(!report.cut_off && workload.ending() == Some(&Ending::Runtime));
    let count =
        |name: &str| workload.tallies().into_iter().find(|tally| tally.name == name).unwrap().count;
    let posts = count("shadow-post-dbwr");
    assert!(posts > 100_000, "{posts}");
    let passes = count("dbwr-block");
    assert!((posts / 1000 * 10).abs_diff(passes) <= 20, "{posts} posts, {passes} passes");
    assert!((posts / 3200).abs_diff(count("lg-block")) <= 1);
    assert!(count("dbwrite-a").abs_diff((passes + 10) * 100) <= 1000);
    let syncs =
        report.calls.iter().filter(|it| matches!(it.call, Call::Sync { .. })).count() as u64;
    assert!(
        syncs.abs_diff(count("dbwrite-a") + count("lg-write")) <= 20,
        "each such write is made durable"
    );
}

#[test]
fn an_event_rate_limits_the_shadows() {
    let mut workload = builtin("oltp", &[("runtime", "5"), ("eventrate", "100")]);
    driver::run(&mut workload, 10_000_000);
    let reads =
        workload.tallies().into_iter().find(|tally| tally.name == "shadowread").unwrap().count;
    assert!(
        (500..=710).contains(&reads),
        "{reads}: 500 events, and 200 threads that wait for the next"
    );
}

#[test]
fn parameters_change_the_run() {
    let mut workload =
        builtin("fileserver", &[("nfiles", "100"), ("meanfilesize", "4k"), ("nthreads", "2")]);
    assert_eq!(workload.threads(), 2);
    let report = driver::run(&mut workload, 0);
    assert!(report.files.len() <= 100);
    assert!(report.files.values().sum::<u64>() < 100 * 8192);
}

#[test]
fn a_set_without_files_for_a_flowop_ends_the_run_early() {
    let mut workload =
        small(1, "{ flowop = 'deletefile', name = 'd', filesetname = 'files' }").unwrap();
    driver::run(&mut workload, 1000);
    let ending = workload.ending().unwrap();
    assert!(ending.is_early());
    assert!(ending.to_string().starts_with("d finds no file in files"), "{ending}");
}

#[test]
fn a_thread_that_nobody_posts_to_is_a_deadlock() {
    let mut workload = small(
        2,
        "{ flowop = 'statfile', name = 's', filesetname = 'files' }, { flowop = 'semblock', name = 'b', value = 1 }",
    )
    .unwrap();
    driver::run(&mut workload, 1000);
    assert_eq!(workload.ending(), Some(&Ending::Deadlock));
}

#[test]
fn a_descriptor_is_closed_before_it_is_opened() {
    let open = "{ flowop = 'openfile', name = 'o', filesetname = 'files', fd = 1 }";
    let mut workload = small(1, open).unwrap();
    driver::run(&mut workload, 1000);
    assert_eq!(
        workload.ending().unwrap().to_string(),
        "o opens fd 1, which is open: close it first"
    );
    let mut workload = small(1, "{ flowop = 'fsync', name = 's', fd = 3 }").unwrap();
    driver::run(&mut workload, 1000);
    assert_eq!(workload.ending().unwrap().to_string(), "s uses fd 3, which is not open");
}

#[test]
fn sequential_reads_walk_the_file_and_begin_again() {
    let mut workload =
        small(1, "{ flowop = 'read', name = 'r', filesetname = 'files', iosize = '24k' }").unwrap();
    let report = driver::run(&mut workload, 9);
    let offsets: Vec<u64> = report
        .calls
        .iter()
        .filter_map(
            |it| if let Call::Read { offset, .. } = it.call { Some(offset >> 10) } else { None },
        )
        .collect();
    assert_eq!(offsets, [0, 24, 48, 64, 0, 24, 48, 64]);
}

#[test]
fn a_count_ends_the_run_and_a_delay_takes_its_time() {
    let mut workload = with_head(
        "",
        3,
        "{ flowop = 'statfile', name = 's', filesetname = 'files' }, { flowop = 'delay', name = 'd', value = 2 }, \
         { flowop = 'finishoncount', name = 'f', value = 9 }",
    )
    .unwrap();
    let report = driver::run(&mut workload, 1000);
    assert_eq!(workload.ending(), Some(&Ending::Finished("f".into())));
    assert_eq!(report.calls.len(), 9);
    assert!((6.0..6.1).contains(&report.end.as_secs_f64()), "{}", report.end);
}

#[test]
fn limits_hold_the_rate() {
    for (limit, wanted) in
        [("opslimit", 100u64..=104), ("iopslimit", 100..=104), ("bwlimit", 1580..=1664)]
    {
        let flowops = format!(
            "{{ flowop = 'read', name = 'r', filesetname = 'files', iosize = '64k', random = true }}, \
             {{ flowop = '{limit}', name = 'l' }}"
        );
        let mut workload = with_head("runtime = 10\neventrate = 10", 1, &flowops).unwrap();
        driver::run(&mut workload, 100_000);
        let reads = workload.tallies()[0].count;
        assert!(wanted.contains(&reads), "{limit}: {reads}");
    }
}

#[test]
fn a_list_that_does_nothing_still_ends() {
    let mut workload = small(1, "{ flowop = 'eventlimit', name = 'e' }").unwrap();
    driver::run(&mut workload, 10);
    assert_eq!(workload.ending(), Some(&Ending::Runtime));
}

#[test]
fn messages_name_the_file_the_key_and_what_is_allowed() {
    let message = |flowops: &str| small(1, flowops).unwrap_err();
    assert_eq!(
        message("{ flowop = 'read', name = 'r', filesetname = 'files' }"),
        "small.toml: process.p.t.r.iosize is missing"
    );
    assert_eq!(
        message("{ flowop = 'read', name = 'r', filesetname = 'other', iosize = '4k' }"),
        "small.toml: process.p.t.r.filesetname is 'other', allowed is files"
    );
    assert!(
        message("{ flowop = 'reed', name = 'r' }")
            .contains("flowop is 'reed', allowed is one of createfile")
    );
    let direct =
        "{ flowop = 'read', name = 'r', filesetname = 'files', iosize = '2k', directio = true }";
    assert!(
        message(direct)
            .ends_with("r.iosize is '2048', allowed is a multiple of 4096, as directio is set")
    );
    assert!(
        message("{ flowop = 'delay', name = 'd', value = '$pause' }")
            .contains("has no parameter 'pause'")
    );
    let unknown = message("{ flowop = 'delay', name = 'd', valu = 1 }");
    assert!(unknown.starts_with("small.toml:18: unknown field `valu`"), "{unknown}");
    let post = "{ flowop = 'sempost', name = 's', value = 1, target = 'nobody' }";
    assert!(message(post).contains("s.target is 'nobody'"));
}

#[test]
fn a_parameter_that_is_not_there_or_not_allowed_changes_nothing() {
    let mut personality = Personality::load("varmail").unwrap();
    let error = personality.set([("nfiles", "5000"), ("nfile", "1")]).unwrap_err().to_string();
    assert!(error.contains("has no parameter 'nfile': it has gamma, iosize,"), "{error}");
    let error = personality.set([("nfiles", "none")]).unwrap_err().to_string();
    assert!(
        error.contains("fileset.bigfileset.entries is 'none', allowed is a whole number"),
        "{error}"
    );
    assert!(personality.parameters().any(|parameter| parameter == ("nfiles", "1000")));
    let error = Personality::load("mailserver").unwrap_err().to_string();
    assert!(
        error.contains("(there are fileserver, varmail, webserver, oltp, media, office, code)"),
        "{error}"
    );
}
