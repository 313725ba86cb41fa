//! fio jobs on a raw drive: latencies that can be worked out by hand from the drive's profile, and
//! what a raw drive does not do.

use dovetail_lab::bench::{Experiment, Fill, FillAmount, FillWith, Source, Stack};
use dovetail_lab::results::{JobResult, RunResult};
use dovetail_workload::personality::Personality;

/// 64 MiB of a drive that is as fast as `femu-32g`, with some lines more.
fn stack(more: &str) -> Stack {
    let text = format!(
        "name = \"raw\"\nabout = \"\"\nfilesystem = \"none\"\ndrive = \"femu-32g\"\npartition = \"64MiB\"\n{more}"
    );
    Stack::parse(&text, "raw.toml").unwrap()
}

/// Costs nothing, so that what is left is the drive's.
const NO_HOST: &str = "[host]\nsyscall_ns = 0\nblock_ns = 0\nrequest_ns = 0\nwake_ns = 0\n";

fn source(job: &str) -> Source {
    let global = "[global]\nfilename=/dev/nvme0n1\ndirect=1\nioengine=libaio\n";
    Source::fio(&format!("{global}{job}"), "raw.fio", &[]).unwrap()
}

fn run(stack: &Stack, job: &str) -> RunResult {
    let source = source(job);
    let (results, failures) = Experiment::new(&source, std::slice::from_ref(stack)).run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    let run = results.runs.into_iter().next().unwrap();
    assert_eq!(run.error, None);
    run
}

fn refusal(stack: &Stack, source: &Source, fill: Option<Fill>) -> String {
    let stacks = std::slice::from_ref(stack);
    let experiment = Experiment { fill, ..Experiment::new(source, stacks) };
    let (results, failures) = experiment.run(1, &|_| {});
    assert!(results.runs.is_empty());
    failures[0].to_string()
}

/// A job that writes all of the partition, then another one.
fn after_writing(job: &str) -> String {
    format!("[fill]\nrw=write\nbs=256k\n{job}")
}

fn iops(job: &JobResult) -> f64 {
    job.latency.read.percentiles.count as f64 / job.elapsed_s
}

fn assert_near(found: f64, expected: f64, within: f64) {
    assert!((found / expected - 1.0).abs() < within, "{found}, not {expected}");
}

/// Four seconds of warming up and one that counts: file system and drive count what both write.
#[test]
fn what_a_ramp_writes_is_no_amplification() {
    let job = "[w]\nrw=write\nsize=32m\ntime_based\nruntime=1\n\
               [r]\nstonewall\nrw=write\nsize=32m\ntime_based\nruntime=1\nramp_time=4s\n";
    let run = run(&stack(""), job);
    assert!(run.totals.ramp_s > 3.9, "{}", run.totals.ramp_s);
    assert_near(run.totals.total_waf.unwrap(), run.totals.device_waf.unwrap(), 0.01);
}

/// The stack of that name, unlike a drive without a file system that says nothing.
#[test]
fn the_stack_raw_gives_each_write_hint_a_handle() {
    let mut raw = Stack::load("raw").unwrap();
    raw.drive = "femu-32g-fdp".into();
    let (source, stacks) = (
        source("rw=write\nsize=16m\n[a]\nwrite_hint=short\n[b]\noffset=16m\nwrite_hint=extreme\n"),
        [raw],
    );
    let scale = "1/16".parse().unwrap();
    let experiment = Experiment { scale, ..Experiment::new(&source, &stacks) };
    let (results, failures) = experiment.run(1, &|_| {});
    assert!(failures.is_empty(), "{failures:?}");
    let handles = &results.runs[0].totals.drive.placement.as_ref().unwrap().handles;
    let written = handles.iter().filter(|handle| handle.host_blocks > 0).count();
    assert_eq!(written, 2, "{handles:?}");
}

/// Of the command 5 us, of the cells 50, of the link 4096 B / 3200 MB/s = 1.28: 56.28 us. Of the
/// host 1 us for each of libaio's two system calls and 0.5 for the block before, 3 us for waking up
/// after: 61.78.
#[test]
fn one_random_read_at_a_time_takes_what_the_profile_says() {
    let job = after_writing("[r]\nstonewall\nrw=randread\nbs=4k\nnumber_ios=2000\n");
    for (costs, us) in [(NO_HOST, 56.28), ("", 61.78)] {
        let run = run(&stack(costs), &job);
        let read = &run.jobs[1].latency.read.percentiles;
        assert_eq!(read.count, 2000);
        // latencies have three digits, the time of all has nine
        assert_near(read.min_ns as f64 / 1e3, us, 0.001);
        assert_near(read.p999_ns as f64 / 1e3, us, 0.001);
        assert_near(iops(&run.jobs[1]), 1e6 / us, 1e-6);
        assert_eq!(run.totals.queue_depth_max, 1);
        assert_eq!((run.totals.read_bytes, run.totals.written_bytes), (2000 * 4096, 64 << 20));
        assert_eq!(run.totals.drive.flash_reads.host, 2000);
        assert_eq!(run.totals.drive.empty_read_blocks, 0);
    }
}

/// A controller that takes a command every 10 us does no more than 100,000 a second, and with 32
/// in flight each takes 32 * 10 us.
#[test]
fn thirty_two_random_reads_are_in_flight_at_a_time() {
    let job = after_writing(
        "[r]\nstonewall\nrw=randread\nbs=4k\niodepth=32\nio_size=128m\nnorandommap\n",
    );
    let slow = stack(&format!("{NO_HOST}[drive-figures]\n\"host.command_serial_us\" = 10\n"));
    let run_of = run(&slow, &job);
    assert_near(iops(&run_of.jobs[1]), 100_000.0, 0.002);
    assert_near(run_of.jobs[1].latency.read.percentiles.mean_ns, 320_000.0, 0.002);
    assert_eq!(run_of.totals.queue_depth_max, 32);
}

/// Neighbours lie on different ones of the 64 dies, so that 32 in flight never meet, and the link
/// carries 32 blocks in 41 us: each read takes as long as one alone.
#[test]
fn thirty_two_reads_in_a_row_find_their_dies_free() {
    let job = after_writing("[r]\nstonewall\nrw=read\nbs=4k\niodepth=32\n");
    let run = run(&stack(NO_HOST), &job);
    let read = &run.jobs[1].latency.read.percentiles;
    assert_near(read.min_ns as f64, 56_280.0, 0.001);
    assert_near(read.max_ns as f64, 56_280.0, 0.001);
    assert_near(iops(&run.jobs[1]), 32.0 / 56.28e-6, 1e-4);
}

/// A thread hands over one call at a time: two system calls of 1 us and 0.5 us for the block, and
/// reads of what was never written wait for no die.
#[test]
fn one_thread_is_on_one_cpu_at_a_time() {
    let job = "[r]\nrw=randread\nbs=4k\niodepth=64\nio_size=128m\nnorandommap\n";
    for cpus in [0, 8] {
        let run = run(&stack(&format!("[host]\ncpus = {cpus}\n")), job);
        assert_near(iops(&run.jobs[0]), 400_000.0, 0.01);
    }
}

/// A die works for 500 us a program, whenever the job begins; what it does after the run's end, or
/// did before the measurement, is not the run's.
#[test]
fn dies_are_busy_for_a_share_of_the_elapsed_time() {
    let job = "[w]\nrw=randwrite\nbs=4k\niodepth=4\nio_size=16m\n";
    let run_of = |more: &str| run(&stack(NO_HOST), &format!("{job}{more}"));
    let dies = |run: &RunResult| run.dies.iter().map(|die| die.busy).collect::<Vec<_>>();
    let (at_once, later) = (run_of(""), run_of("startdelay=1\n"));
    assert_near(later.totals.elapsed_s, at_once.totals.elapsed_s, 1e-6);
    assert_eq!(dies(&later), dies(&at_once));
    let busy: f64 = dies(&at_once).iter().sum();
    let programs = at_once.totals.drive.written_blocks as f64;
    assert_near(busy * at_once.totals.elapsed_s, programs * 500e-6, 0.001);
    let idle_end =
        run_of("[r]\nstonewall\nrw=randread\nbs=4k\nio_size=64m\nnorandommap\noffset=32m\n");
    let busy: f64 = dies(&idle_end).iter().sum();
    let worked = programs * 500e-6 + 50e-6 * idle_end.totals.drive.flash_reads.host as f64;
    assert_near(busy * idle_end.totals.elapsed_s, worked, 0.01);
    assert!(
        idle_end.totals.elapsed_s > 1.3 * at_once.totals.elapsed_s,
        "{}",
        idle_end.totals.elapsed_s
    );
}

#[test]
fn a_drive_has_neither_files_nor_a_page_cache() {
    let run = run(&stack(""), "[w]\nrw=randwrite\nbs=4k\niodepth=8\nfsync=16\nsize=50%\n");
    assert_eq!((run.stack.filesystem.as_str(), run.stack.memory_bytes), ("none", 0));
    assert_eq!(run.totals.written_bytes, 32 << 20);
    assert_eq!(run.totals.drive.written_blocks, 8192, "nothing else is written");
    assert_eq!((run.totals.fs_waf, run.fragmentation, run.occupancy.len()), (None, None, 0));
    let flushes = &run.requests;
    assert_eq!(flushes.by_kind.flush.count + flushes.merged_flushes, 511, "none after the last");
    assert_eq!(run.requests.by_kind.write.count, 8192);
}

#[test]
fn sizes_and_offsets_are_those_of_the_partition() {
    let bytes = |options: &str| {
        run(&stack(""), &format!("[w]\nrw=write\nbs=64k\n{options}")).totals.written_bytes >> 20
    };
    let found = ["", "offset=25%\n", "size=25%\n", "offset=8m\nsize=4m\n", "unlink=1\n"].map(bytes);
    assert_eq!(found, [64, 48, 16, 4, 64]);
}

/// A block that was trimmed reads as empty, one that was written again as that.
#[test]
fn trims_are_discards_and_every_read_is_checked() {
    let job = after_writing(
        "[t]\nstonewall\nrw=randtrim\nbs=64k\nsize=32m\n\
         [rw]\nstonewall\nrw=randrw\nbs=16k\niodepth=16\nio_size=256m\nverify=crc32c\n\
         [both]\nstonewall\nrw=randtrimwrite\nbs=16k\n",
    );
    let run = run(&stack(""), &job);
    assert_eq!(run.jobs[1].latency.discard.percentiles.count, 512);
    assert_eq!(run.requests.by_kind.discard.count, 512 + 4096);
    assert!(run.totals.drive.discarded_blocks >= 8192, "{}", run.totals.drive.discarded_blocks);
    assert!(run.totals.drive.empty_read_blocks > 0);
}

#[test]
fn what_a_raw_drive_cannot_do_is_refused_in_a_sentence() {
    let fio = |text: &str| Source::fio(text, "job.fio", &[]).unwrap();
    let on = |text: &str| refusal(&stack(""), &fio(text), None);
    for (text, says) in [
        ("[a]\nrw=write\nsize=1m\n", "is on files of its own, and a raw drive has none"),
        ("[a]\nrw=write\nfilename=x\nsize=1m\n", "the file \"x\""),
        ("[a]\nrw=write\nfilename=/dev/sda\n", "is buffered"),
        ("[a]\nrw=read\ndirect=1\nfilename=/dev/sda:/dev/sdb\n", "is on /dev/sdb, another one"),
        (
            "[a]\nrw=read\ndirect=1\nfilename=/dev/sda\nsize=65m\n",
            "ends at byte 68157440 of a drive of 67108864",
        ),
        ("[a]\nrw=read\ndirect=1\nfilename=/dev/sda\noffset=60m\nsize=5m\n", "ends at byte"),
        ("[a]\nrw=write\ndirect=1\nfilename=/dev/sda\nfile_append=1\n", "remove file_append"),
    ] {
        let refusal = on(text);
        assert!(
            refusal.starts_with("job.fio:1: job \"a\" ") && refusal.contains(says),
            "{refusal}"
        );
    }
    let varmail = Source::Personality(Box::new(Personality::load("varmail").unwrap()));
    assert!(refusal(&stack(""), &varmail, None).contains("varmail works on files"));
    let fill = Fill { amount: FillAmount::Share(0.5), with: FillWith::Large };
    let read = fio("[a]\nrw=read\ndirect=1\nfilename=/dev/sda\n");
    assert!(refusal(&stack(""), &read, Some(fill)).contains("give --precondition"));
    let text =
        "name = \"x\"\nabout = \"\"\nfilesystem = \"none\"\nmount = \"ro\"\ndrive = \"femu-32g\"\n";
    let error = Stack::parse(text, "x.toml").unwrap_err().to_string();
    assert!(error.contains("mount is of a file system"), "{error}");
}
