//! fio as referee of the calls that its job files make: the log that it writes of a run
//! (`write_iolog`) is what we would call.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::common::{fio, play, prepared, workload};
use dovetail_workload::{Call, Workload};

/// The calls of fio's log: `FILE ACTION OFFSET LEN`, as `ACTION FILE OFFSET LEN`.
pub(crate) fn log_of_fio(folder: &Path, job: &str) -> Vec<String> {
    let logged = job.to_owned() + "write_iolog=log\n";
    fio(folder, &logged, &[]).unwrap();
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    log.lines().skip(1).filter_map(logged_call).collect()
}

fn logged_call(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let (file, action) = (words[1], words[2]);
    match action {
        "add" => None,
        "open" | "close" | "sync" | "datasync" => Some(format!("{action} {file}")),
        _ => Some(format!("{action} {file} {} {}", words[3], words[4])),
    }
}

/// Our calls, written as in the log.
pub(crate) fn our_log(job: &str) -> Vec<String> {
    let mut workload = workload(job, 1);
    let played = play(&mut workload);
    played.iter().filter_map(|played| our_call(&workload, &played.call)).collect()
}

fn our_call(workload: &impl Workload, call: &Call) -> Option<String> {
    let path = |file| workload.path(file);
    match *call {
        Call::Open { file } => Some(format!("open {}", path(file))),
        Call::Close { file } => Some(format!("close {}", path(file))),
        Call::Sync { file, data_only: false } => Some(format!("sync {}", path(file))),
        Call::Sync { file, data_only: true } => Some(format!("datasync {}", path(file))),
        Call::Read { file, offset, len, .. } => Some(format!("read {} {offset} {len}", path(file))),
        Call::Write { file, offset, len, .. } => {
            Some(format!("write {} {offset} {len}", path(file)))
        }
        _ => None,
    }
}

/// Sequential jobs: the same calls in the same order.
#[test]
fn sequential_jobs_make_the_calls_of_fio() {
    for options in [
        "rw=write bs=4k size=64k",
        "rw=read bs=16k size=1m",
        "rw=write bs=4k size=64k fsync=4",
        "rw=write bs=4k size=64k fdatasync=3",
        "rw=write bs=4k size=64k fsync=4 fdatasync=2",
        "rw=write bs=4k size=64k fsync=4 end_fsync=1 nrfiles=2",
        "rw=write bs=4k size=64k fsync_on_close=1 nrfiles=2",
        "rw=write bs=4k size=100k nrfiles=3",
        "rw=write bs=4k size=96k nrfiles=3 openfiles=2",
        "rw=write bs=4k size=96k nrfiles=3 file_service_type=sequential fsync=1",
        "rw=write bs=4k size=96k nrfiles=3 file_service_type=roundrobin:3",
        "rw=write bs=64k size=100k",
        "rw=write bs=4k size=32k loops=3 fsync=4",
        "rw=write bs=4k size=32k io_size=80k",
        "rw=write bs=4k size=32k io_size=12k fsync=2",
        "rw=write bs=4k size=16k filesize=32k nrfiles=2",
        "rw=write bs=4k size=64k offset=16k",
        "rw=write bs=4k size=64k number_ios=5",
        "rw=write:8k bs=4k size=64k",
        "rw=write:-8k bs=4k size=32k",
        "rw=read:4k bs=4k size=64k io_size=32k",
        "rw=write:8k bs=4k size=60k",
        "rw=write:8k bs=4k size=60k offset=8k",
        "rw=write:8k bs=4k size=60k offset=4k",
        "rw=write:8k bs=4k size=64k offset=16k",
        "rw=write:8k bs=4k size=64k offset=4k io_size=128k",
        "rw=write:8k bs=4k size=64k filesize=128k offset=16k",
        "rw=write:-8k bs=4k size=64k offset=16k",
        "rw=write:-8k bs=4k size=16k offset=32k",
        "rw=write:-4k bs=4k size=64k offset=8k",
        "rw=write:-8k bs=4k size=64k nrfiles=2",
        "rw=rw:8k rwmixread=0 bs=4k size=64k io_size=200k",
        "rw=rw rwmixread=100 bs=4k size=64k io_size=200k end_fsync=1",
        "rw=write bs=,8k size=64k filesize=20k io_size=30%",
        "rw=write:8k bs=4k size=64k verify=md5",
        "rw=write:-8k bs=4k size=64k io_size=128k",
        "rw=write bs=4k size=64k filesize=16k",
        "rw=write bs=4k size=64k filesize=16k nrfiles=3",
        "rw=write bs=4k size=64k filesize=16k io_size=40k",
        "rw=write bs=4k size=64k filesize=16k offset=4k loops=2",
        "rw=write:8k bs=4k size=64k filesize=20k nrfiles=2",
        "rw=write bs=4k size=64k verify=crc32c",
        "rw=write bs=4k size=64k overwrite=1 file_append=0 description=x",
        "rw=write bs=4k size=16k file_append=1 io_size=8k",
        "rw=write bs=4k size=64k filesize=64k offset=50%",
        "rw=write bs=4k filesize=32k nrfiles=2 offset=25%",
        "rw=write bs=,8k size=64k",
        "rw=write bs=4k size=64k thinktime=10us rate=100m",
        // a pass ends after `size` bytes where calls are queued, and where the file ends elsewhere
        "rw=write bs=4k size=32k filesize=128k io_size=96k ioengine=libaio",
        "rw=write bs=4k size=32k filesize=128k io_size=96k ioengine=psync",
        "rw=read bs=4k size=32k filesize=128k loops=3 ioengine=posixaio iodepth=4",
        "rw=write:4k bs=4k size=32k io_size=80k ioengine=libaio",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let job = format!("[a]\n{}\n", options.replace(' ', "\n"));
        assert_eq!(our_log(&job), log_of_fio(folder.path(), &job), "{options}");
    }
}

/// Shares are of what the file has when the job begins, and a job appends once; fio opens the file
/// once more and then finds nothing to do.
#[test]
fn a_job_on_the_file_of_another_writes_what_fio_does() {
    for options in [
        "filesize=64k offset=50%",
        "filesize=64k offset=25% size=50%",
        "offset=25% size=50%",
        "offset=75% size=50%",
        "filesize=64k offset=33% size=16k",
        "filesize=64k offset=33% bs=8k size=16k",
        "filesize=64k offset=33% bs=4k,16k size=16k",
        "size=16k file_append=1",
        "size=16k file_append=1 loops=2",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let first = "[global]\nbs=4k\nrw=write\n[a]\nsize=64k\n";
        let options = options.replace(' ', "\n");
        let job = format!("{first}[b]\nstonewall\nfilename=a.0.0\n{options}\n");
        let writes = |mut calls: Vec<String>| {
            calls.retain(|call| call.starts_with("write"));
            calls
        };
        // the log is of the last job alone, ours of both: the first makes 16 writes
        let (ours, theirs) = (writes(our_log(&job)), writes(log_of_fio(folder.path(), &job)));
        assert!(!theirs.is_empty(), "{options}");
        assert_eq!(ours[16..], theirs, "{options}");
    }
}

/// Random jobs draw other numbers than fio, but as many calls of each kind, on the same blocks.
#[test]
fn random_jobs_cover_what_fio_covers() {
    for options in [
        "rw=randwrite bs=4k size=256k",
        "rw=randread bs=4k size=256k nrfiles=2",
        "rw=randwrite bs=4k size=256k fsync=10",
        "rw=randwrite bs=4k size=64k loops=2 fsync=8",
        "rw=randwrite bs=4k size=64k verify=md5",
        "rw=randwrite:4 rw_sequencer=identical bs=4k size=64k",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let job = format!("[a]\n{}\n", options.replace(' ', "\n"));
        let sorted = |mut calls: Vec<String>| {
            calls.sort();
            calls
        };
        let (ours, theirs) = (sorted(our_log(&job)), sorted(log_of_fio(folder.path(), &job)));
        if options.contains("identical") {
            assert_eq!(ours.len(), theirs.len(), "{options}");
        } else {
            assert_eq!(ours, theirs, "{options}");
        }
    }
}

/// Calls in a row leave the random map alone: the blocks are drawn again. Blocks that a job hits
/// are as many as with fio, within what chance makes of a thousand calls.
#[test]
fn random_jobs_hit_as_many_blocks_as_fio() {
    for options in [
        "rw=randwrite percentage_random=50",
        "rw=randwrite:3",
        "rw=randread percentage_random=20",
        "rw=randread loops=4 norandommap ioengine=posixaio",
        "rw=randwrite io_size=16m norandommap ioengine=posixaio",
        "rw=randread filesize=16m io_size=16m ioengine=posixaio",
        "rw=randread filesize=16m io_size=16m ioengine=psync",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let job = format!("[a]\nbs=4k\nsize=4m\n{}\n", options.replace(' ', "\n"));
        let blocks = |calls: Vec<String>| {
            let blocks = calls.into_iter().filter(|call| call.starts_with(['r', 'w']));
            blocks.collect::<HashSet<_>>().len() as f64
        };
        let (ours, theirs) = (blocks(our_log(&job)), blocks(log_of_fio(folder.path(), &job)));
        assert!((ours / theirs - 1.0).abs() < 0.08, "{options}: {ours} {theirs}");
    }
}

/// [`play`] holds the blocks that are written against those that the job names beforehand.
#[test]
fn writes_off_the_grid_are_reckoned_with() {
    for options in [
        "rw=write bs=4k size=64k offset=1k",
        "rw=write:-8k bs=4k size=33k",
        "rw=write bs=16k size=100k io_size=200k",
        "rw=write bs=1k,4k bs_is_seq_rand=1 size=64k",
        "rw=randtrimwrite bs=4k,4k,512 size=64k",
    ] {
        let played = play(&mut workload(&format!("[a]\n{}\n", options.replace(' ', "\n")), 1));
        assert!(played.iter().any(|played| matches!(played.call, Call::Write { .. })), "{options}");
    }
}

/// fio's log leaves out what `fsync_on_close` syncs where a file is closed before the job ends. The
/// calls are those that strace saw of fio 3.33.
#[test]
fn files_are_synced_when_they_are_closed() {
    for (options, expected) in [
        ("rw=write nrfiles=2 filesize=8k", "w0 w1 w0 w1 S0 S1 c0 c1"),
        (
            "rw=write nrfiles=2 filesize=8k loops=2",
            "w0 w1 w0 w1 S0 c0 S1 c1 S0 c0 S1 c1 w0 w1 w0 w1 S0 S1 c0 c1",
        ),
        (
            "rw=write nrfiles=3 filesize=8k fsync=1 file_service_type=sequential",
            "w0 S0 w0 S0 c0 w1 S1 w1 S1 c1 w2 S2 w2 S0 c0 S1 c1 S2 c2",
        ),
        ("rw=write size=16k verify=md5", "w0 w0 w0 w0 S0 S0 c0 r0 r0 r0 r0 S0 c0"),
        (
            "rw=write nrfiles=3 size=40k",
            "w0 w1 w2 w0 w1 w2 w0 w1 w2 S0 c0 S1 c1 S2 c2 S0 c0 S1 c1 S2 c2",
        ),
    ] {
        let job = format!("[a]\nbs=4k\nfsync_on_close=1\n{}\n", options.replace(' ', "\n"));
        let calls = our_log(&job);
        let short = |call: &String| {
            let (action, file) = call.split_once(" a.0.")?;
            let letter = if action == "sync" { "S" } else { &action[..1] };
            (action != "open").then(|| format!("{letter}{}", &file[..1]))
        };
        let short: Vec<String> = calls.iter().filter_map(short).collect();
        assert_eq!(short.join(" "), expected, "{options}");
    }
}

/// Share of each size in the calls of its direction, in percent.
fn shares_of_sizes(calls: &[String]) -> HashMap<(String, u64), f64> {
    let mut counts: HashMap<(String, u64), f64> = HashMap::new();
    let mut all: HashMap<String, f64> = HashMap::new();
    for words in calls.iter().map(|call| call.split(' ').collect::<Vec<_>>()) {
        if let [action @ ("read" | "write"), _, _, len] = words[..] {
            *counts.entry((action.into(), len.parse().unwrap())).or_default() += 1.0;
            *all.entry(action.into()).or_default() += 1.0;
        }
    }
    let share = |(kind, count): ((String, u64), f64)| (kind.clone(), 100.0 * count / all[&kind.0]);
    counts.into_iter().map(share).collect()
}

/// Sizes are drawn by other numbers than fio's, but come as often.
#[test]
fn blocks_have_the_sizes_of_fio() {
    for options in [
        "bs=64k bssplit=,4k/50:8k/50",
        "bssplit=,4k/50:8k/50 bs=64k",
        "bsrange=,4k-8k bs=16k",
        "bsrange=4k-16k bs=8k",
        "bssplit=4k/20:64k/30",
        "bssplit=4k/30:8k/20:64k/10",
        "bssplit=64k/20:16k/20:4k/20",
        "bssplit=16k/0:64k/30",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("rw=randrw norandommap size=256m {options}").replace(' ', "\n");
        let job = format!("[a]\n{options}\n");
        let without_files = job.clone() + "ioengine=null\n";
        let (ours, theirs) = (our_log(&job), log_of_fio(folder.path(), &without_files));
        let (ours, theirs) = (shares_of_sizes(&ours), shares_of_sizes(&theirs));
        let both = ours.keys().chain(theirs.keys());
        let share = |of: &HashMap<_, f64>, kind| of.get(kind).copied().unwrap_or(0.0);
        for kind in both {
            let (ours, theirs) = (share(&ours, kind), share(&theirs, kind));
            assert!((ours - theirs).abs() < 4.0, "{options} {kind:?}: {ours} {theirs}");
        }
    }
}

/// Alignment to the smallest block keeps the random map, any other drops it.
#[test]
fn random_blocks_are_aligned_as_by_fio() {
    for options in [
        "bs=4k ba=4k size=1m",
        "bs=16k ba=,8k size=4m",
        "bs=16k ba=8k,16k size=4m",
        "bs=4k,8k ba=4k size=1m",
        "bs=4k size=1m",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let job = format!("[a]\nrw=randread\n{}\n", options.replace(' ', "\n"));
        let facts = |calls: Vec<String>| {
            let offsets =
                calls.iter().filter_map(|call| call.strip_prefix("read")?.split(' ').nth(2));
            let offsets: Vec<u64> = offsets.map(|offset| offset.parse().unwrap()).collect();
            let distinct: HashSet<u64> = offsets.iter().copied().collect();
            let has_odd = offsets.iter().any(|offset| !offset.is_multiple_of(16384));
            (offsets.len(), distinct.len() < offsets.len(), has_odd)
        };
        let (ours, theirs) = (facts(our_log(&job)), facts(log_of_fio(folder.path(), &job)));
        assert_eq!(ours, theirs, "{options}");
    }
}

/// Clones take turns with folders only if they name their files themselves.
#[test]
fn files_are_in_the_folders_of_fio() {
    for options in ["numjobs=2", "numjobs=2 filename=x:y", "filename_format=x numjobs=3"] {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("directory=a:b rw=write size=16k {options}").replace(' ', "\n");
        let job = format!("[j]\n{options}\n");
        let mut theirs = Vec::new();
        for part in ["a", "b"] {
            std::fs::create_dir(folder.path().join(part)).unwrap();
        }
        fio(folder.path(), &(job.clone() + "create_only=1\n"), &[]).unwrap();
        for part in ["a", "b"] {
            for entry in std::fs::read_dir(folder.path().join(part)).unwrap() {
                theirs.push(format!("{part}/{}", entry.unwrap().file_name().to_str().unwrap()));
            }
        }
        theirs.sort();
        let mut ours: Vec<String> = sizes_after_layout(&job).into_keys().collect();
        ours.sort();
        assert_eq!(ours, theirs, "{options}");
    }
}

/// A shift register goes the same way as fio's, from the same place.
#[test]
fn registers_draw_the_blocks_of_fio() {
    for options in [
        "rw=randwrite bs=4k size=256k",
        "rw=randwrite bs=4k size=4000k norandommap",
        "rw=randread bs=512 size=3m",
        "rw=randrw bs=4k size=1m nrfiles=2",
        "rw=randwrite bs=4k size=64k loops=2",
        "rw=randwrite bs=4k size=64m io_size=1m",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let job = format!("[a]\nrandom_generator=lfsr\n{}\n", options.replace(' ', "\n"));
        let (ours, theirs) = (our_log(&job), log_of_fio(folder.path(), &job));
        // what is a read and what a write is drawn, by other numbers than fio's
        let places = |calls: Vec<String>| -> Vec<String> {
            calls.iter().map(|call| call.replace("read", "write")).collect()
        };
        assert_eq!(places(ours), places(theirs), "{options}");
    }
}

/// A register for each size: a block of one is not a block of another.
#[test]
fn registers_of_blocks_of_several_sizes_reach_the_whole_file() {
    for seed in 1..9 {
        let job = "[a]\nrandom_generator=lfsr\nrw=randrw\nbs=4k,8k\nsize=256k\nio_size=1m\n";
        let mut workload = workload(job, seed);
        let mut ends = [0, 0];
        for played in play(&mut workload) {
            match played.call {
                Call::Read { offset, len, .. } => ends[0] = ends[0].max(offset + len),
                Call::Write { offset, len, .. } => ends[1] = ends[1].max(offset + len),
                _ => {}
            }
        }
        assert!(ends.iter().all(|end| (200 << 10..=256 << 10).contains(end)), "{seed}: {ends:?}");
    }
}

/// Each thread of a run begins in a place of its own.
#[test]
fn registers_of_later_threads_begin_where_those_of_fio_do() {
    let folder = tempfile::tempdir().unwrap();
    let job =
        "[global]\nrw=randwrite\nbs=4k\nsize=1m\nrandom_generator=lfsr\n[a]\nnumjobs=2\n[b]\n";
    let of_b = |calls: Vec<String>| -> Vec<String> {
        calls.into_iter().filter(|call| call.contains(" b.")).collect()
    };
    let theirs = of_b(log_of_fio(folder.path(), job));
    assert_eq!(of_b(our_log(job)), theirs);
    assert_eq!(theirs.len(), 2 + 256, "a file that is opened, written and closed");
}

/// Every file as large as fio makes it, before and after the run.
#[test]
fn files_are_laid_out_as_by_fio() {
    for options in [
        "rw=read bs=4k size=100k",
        "rw=randrw bs=4k size=100k nrfiles=3",
        "rw=write bs=4k size=100k",
        "rw=write bs=4k size=100k fallocate=none",
        "rw=write bs=4k size=100k fallocate=truncate offset=8k",
        "rw=write bs=4k size=100k overwrite=1 fallocate=none",
        "rw=write bs=4k size=100k filesize=32k nrfiles=5",
        "rw=read bs=4k size=64k numjobs=3 offset_increment=64k filename=shared",
        "rw=read bs=4k size=64k filename=x:y",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let job = format!("[a]\n{}\n", options.replace(' ', "\n"));
        fio(folder.path(), &(job.clone() + "create_only=1\n"), &[]).unwrap();
        let mut theirs = HashMap::new();
        for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            theirs
                .insert(entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len());
        }
        theirs.retain(|name, _| name != "test.fio");
        assert_eq!(sizes_after_layout(&job), theirs, "{options}");
    }
}

fn sizes_after_layout(job: &str) -> HashMap<String, u64> {
    let mut workload = workload(job, 1);
    let mut sizes = HashMap::new();
    for call in prepared(&mut workload) {
        let (file, at_least) = match call {
            Call::Open { file } => (file, 0),
            Call::Allocate { file, len, keep_size: false } => (file, len),
            Call::Write { file, offset, len, .. } => (file, offset + len),
            Call::Truncate { file, size } => (file, size),
            _ => continue,
        };
        let size: &mut u64 = sizes.entry(file).or_default();
        *size = at_least.max(*size);
    }
    sizes.into_iter().map(|(file, size)| (workload.path(file).to_owned(), size)).collect()
}
