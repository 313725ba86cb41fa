//! Tests of runs: wrong data is found, and the devirtualizer works beside a workload.

use dovetail_block::{BLOCK_SIZE, Content, Pattern};
use dovetail_host::HostCosts;
use dovetail_time::Ratio;
use dovetail_vfs::Caller;
use dovetail_workload::FileId;
use dovetail_workload::fio::{FioWorkload, JobFile, Variables};

use super::*;

const STACK: &str = "name = \"test\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\npartition = \"128MiB\"\n";

/// Runs a job after block 5 of its file was replaced behind its back by `content`, if there is one.
fn run_after_a_stray_write(job: &str, content: Option<Content>) -> Result<(), BenchError> {
    let jobs = JobFile::parse(job, "test.fio", &Variables::new()).unwrap();
    let mut workload = FioWorkload::new(jobs, 1).unwrap();
    let stack = Stack::parse(STACK, "test.toml").unwrap();
    let job = Job {
        label: "test".into(),
        stack: &stack,
        scale: Ratio::ONE,
        seed: 1,
        stop: &|| false,
        precondition: None,
        final_sync: false,
        restart: false,
        progress: &|_| {},
    };
    let mut run = set_up(&job, &mut workload, Watchers::default()).unwrap();
    if let Some(content) = content {
        let ino = run.threads.files.inodes(FileId(0)).next().unwrap();
        let range = (5 * BLOCK_SIZE, BLOCK_SIZE);
        run.system.fs.write_pages(&Caller::default(), ino, range, &[content], false).unwrap();
    }
    run.run()
}

#[test]
fn a_block_that_reads_back_wrong_is_found() {
    let another_block = Content::Pattern(Pattern::named(0, 6, 1));
    for content in [Content::Empty, another_block] {
        for how in ["", "direct=1\n", "invalidate=0\n"] {
            let job = format!("[a]\nrw=randread\nbs=16k\nsize=1m\n{how}");
            let error = run_after_a_stray_write(&job, Some(content.clone())).unwrap_err();
            let BenchError::WrongData { block: 5, path, .. } = &error else {
                panic!("{how}{error}")
            };
            assert_eq!(path, "a.0.0");
            assert!(error.to_string().contains("block 5 of a.0.0 read back wrong"), "{error}");
        }
    }
}

#[test]
fn what_was_written_again_reads_back_right() {
    let write_then_read = "[a]\nrw=write\nbs=4k\nsize=1m\noverwrite=1\n[b]\nstonewall\nrw=read\nbs=4k\nsize=1m\nfilename=a.0.0\n";
    let another_block = Content::Pattern(Pattern::named(0, 6, 1));
    run_after_a_stray_write(write_then_read, Some(another_block)).unwrap();
    run_after_a_stray_write("[a]\nrw=randread\nbs=16k\nsize=1m\n", None).unwrap();
}

#[test]
fn a_stack_in_results_is_the_stack_that_was_run() {
    for name in Stack::built_in() {
        let stack = Stack::load(name).unwrap();
        assert_eq!(Stack::parse(&stack.to_file(), name).unwrap(), stack, "{name}");
    }
    let drive = "/some/folder/drive.toml".into();
    let stack = Stack { drive, ..Stack::load("f2fs").unwrap() };
    assert!(stack.to_file().contains("drive = \"drive.toml\""), "{}", stack.to_file());
}

#[test]
fn a_stack_can_change_figures_of_its_drive() {
    let with = |figures: &str| {
        let stack =
            Stack::parse(&format!("{STACK}[drive-figures]\n{figures}\n"), "test.toml").unwrap();
        stack.drive_config(Ratio::ONE, 1).map_err(|error| error.to_string())
    };
    let small = with("\"capacity.user\" = \"1GiB\"\n\"flash.pages_per_block\" = 8").unwrap();
    assert_eq!(small.user_blocks, 1 << 18);
    let unknown = with("\"host.command\" = 5").unwrap_err();
    assert!(
        unknown.contains("stack test: [drive-figures]") && unknown.contains("command"),
        "{unknown}"
    );
    let wrong = with("\"host.command_us\" = -5").unwrap_err();
    assert!(wrong.contains("host.command_us is '-5', allowed is 0 to"), "{wrong}");
}

/// Below 512 MiB mke2fs makes blocks of 1 KiB, four of which share a name here.
#[test]
fn ext_reads_back_what_was_written_on_a_small_volume() {
    let stack =
        |more: &str| Stack::parse(&(STACK.replace("f2fs", "ext4") + more), "test.toml").unwrap();
    let run_on = |stack: &Stack| {
        let text = "[a]\nrw=randrw\nbs=16k\nsize=32m\nfsync=8\n";
        let jobs = JobFile::parse(text, "test.fio", &Variables::new()).unwrap();
        let mut workload = FioWorkload::new(jobs, 1).unwrap();
        let (label, scale) = ("test".into(), Ratio::ONE);
        let job = Job {
            label,
            stack,
            scale,
            seed: 1,
            stop: &|| false,
            precondition: None,
            final_sync: false,
            restart: false,
            progress: &|_| {},
        };
        run(&job, &mut workload)
    };
    assert_eq!(run_on(&stack("memory = \"4MiB\"\n")).unwrap().error, None);
    let refused = run_on(&stack("[mkfs]\nblock-size = 1024\n")).unwrap_err().to_string();
    assert!(
        refused.contains("block-size is 1024: simulated volumes have blocks of 4096"),
        "{refused}"
    );
}

/// A stack where the devirtualizer runs beside the workload.
fn devirtualizing(filesystem: &str, drive: &str, schedule: &str) -> Stack {
    let size = if drive == "fsdv-5g" { "256MiB" } else { "8GiB" };
    let text = format!(
        "name = \"test\"\nabout = \"\"\nfilesystem = \"{filesystem}\"\nmemory = \"8MiB\"\ndrive = \"{drive}\"\n\
         [drive-figures]\n\"capacity.user\" = \"{size}\"\n"
    );
    let devirtualize = Some(Schedule::parse(schedule).unwrap());
    Stack { devirtualize, ..Stack::parse(&text, "test.toml").unwrap() }
}

fn fio(text: &str) -> FioWorkload {
    FioWorkload::new(JobFile::parse(text, "test.fio", &Variables::new()).unwrap(), 1).unwrap()
}

fn job_on(stack: &Stack) -> Job<'_> {
    Job {
        label: "test".into(),
        stack,
        scale: Ratio::ONE,
        seed: 1,
        stop: &|| false,
        precondition: None,
        final_sync: true,
        restart: false,
        progress: &|_| {},
    }
}

/// A system call of 1 us for each call, and another one that collects it with libaio.
#[test]
fn an_engine_takes_its_system_calls() {
    let mut stack = Stack::parse(STACK, "test.toml").unwrap();
    stack.host = HostCosts { syscall_ns: 1000, block_ns: 0, request_ns: 0, ..stack.host };
    let cpu_s = |engine: &str| {
        let text = format!("[a]\nrw=write\nbs=4k\nsize=4m\ndirect=1\nioengine={engine}\n");
        run(&job_on(&stack), &mut fio(&text)).unwrap().totals.cpu_s
    };
    let [sync, uring, libaio] = ["psync", "io_uring", "libaio"].map(cpu_s);
    assert!((1023e-6..1030e-6).contains(&sync), "{sync}");
    assert!((sync - uring).abs() < 1e-9, "{uring}");
    assert!((libaio - sync - 1024e-6).abs() < 5e-6, "{libaio}");
}

/// Every read is compared with what was written last, by the file system's mirror and on the drive.
const BUSY: &str = "[a]\nrw=randrw\nbs=16k\nsize=48m\nfsync=16\nnumjobs=2\nioengine=libaio\niodepth=4\ndirect=1\nio_size=144m\n\
                    [b]\nrw=randrw\nbs=4k\nsize=32m\n\
                    [c]\nstonewall\nrw=read\nbs=64k\nsize=48m\nfilename=a.0.0\n[d]\nrw=read\nbs=64k\nsize=32m\nfilename=b.0.0\n";

#[test]
fn the_devirtualizer_keeps_the_map_small_beside_a_workload() {
    for (filesystem, schedule) in [
        ("ext3", "every=100ms"),
        ("ext4", "every=100ms,hot=20ms"),
        ("ext4", "pressure=192KiB"),
        ("f2fs", "every=100ms"),
    ] {
        let what = format!("{filesystem} {schedule}");
        let stack = devirtualizing(filesystem, "fsdv-5g", schedule);
        let run = run(&job_on(&stack), &mut fio(BUSY)).unwrap();
        assert_eq!(run.error, None, "{what}");
        let done = run.devirtualize.unwrap();
        assert!(done.count >= 3 && done.count == done.each.len() as u64, "{what}: {}", done.count);
        assert!(
            done.total.content_blocks > 20_000 && done.total.files >= 3,
            "{what}: {:?}",
            done.total
        );
        assert!(done.total.metadata_blocks > 0, "{what}");
        assert!(
            done.total.stalled_calls > 10 && done.total.stalled_s > 0.0,
            "{what}: {:?}",
            done.total
        );
        assert_eq!(done.total.hot_files > 0, schedule.contains("hot"), "{what}");
        let cause = if schedule.contains("every") { "interval" } else { "pressure" };
        let first = &done.each[0];
        assert!(
            first.cause == cause && first.end_s >= first.start_s + first.work.time_s - 1e-9,
            "{what}: {first:?}"
        );
        assert!(first.map_bytes_after * 2 < first.map_bytes_before, "{what}: {first:?}");
        let least = run.series.map_bytes.iter().min().unwrap();
        assert!(least * 2 < *run.series.map_bytes.iter().max().unwrap(), "{what}");
    }
}

#[test]
fn calls_on_other_files_go_on_during_a_batch() {
    let text = "[a]\nrw=read\nbs=4k\nsize=48m\nio_size=4k\n\
                [b]\nrw=randread\nbs=4k\nsize=1m\ndirect=1\ntime_based\nruntime=1\n";
    for filesystem in ["ext3", "ext4", "f2fs"] {
        let stack = devirtualizing(filesystem, "fsdv-5g", "every=100ms,unit=metadata-block");
        let run = run(&job_on(&stack), &mut fio(text)).unwrap();
        assert_eq!(run.error, None, "{filesystem}");
        let first = run.devirtualize.unwrap().each[0].work;
        assert!(first.content_blocks >= 12_288, "{filesystem}: {first:?}");
        // by those few batches that have its file in work
        assert!(
            (1..=8).contains(&first.stalled_calls) && first.stalled_s * 3.0 < first.time_s,
            "{filesystem}: {first:?}"
        );
    }
}

#[test]
fn the_devirtualizer_runs_when_nothing_else_does_and_pauses_for_calls() {
    let text = "[a]\nrw=write\nbs=256k\nsize=64m\nthinktime=100ms\nthinktime_blocks=16\n";
    let stack = devirtualizing("ext3", "fsdv-5g", "idle=5ms");
    let run = run(&job_on(&stack), &mut fio(text)).unwrap();
    assert_eq!(run.error, None);
    let done = run.devirtualize.unwrap();
    assert!(done.count >= 3 && done.each.iter().all(|run| run.cause == "idle"), "{done:?}");
    assert!(done.total.content_blocks > 1000, "{done:?}");
    // at most a batch for each pause
    assert!(done.total.stalled_calls <= 64 * 1024 / 256 / 16, "{done:?}");
}

#[test]
fn after_it_the_drives_maps_agree_and_the_background_is_still_at_work() {
    let text = BUSY.replace("[c]", "thinktime=500us\n[c]");
    let (stack, mut workload) = (devirtualizing("ext3", "fsdv-5g", "every=50ms"), fio(&text));
    let mut run = set_up(&job_on(&stack), &mut workload, Watchers::default()).unwrap();
    run.run().unwrap();
    let (due, now) = (run.system.background.due(), run.system.machine.now());
    assert!(
        run.system.background.is_running() || due.is_some_and(|due| due >= now),
        "{due:?} at {now}"
    );
    assert!(run.devirtualizer.as_ref().unwrap().result(SimTime::ZERO).count > 5);
    assert_eq!(run.system.machine.device().page_mapped().unwrap().check(), Ok(()));
}

#[test]
fn a_stack_that_cannot_devirtualise_says_so_in_a_sentence() {
    for filesystem in ["f2fs", "ext4"] {
        let stack = devirtualizing(filesystem, "femu-32g", "every=1s");
        let refusal = run(&job_on(&stack), &mut fio(BUSY)).unwrap_err().to_string();
        assert!(
            refusal.starts_with("stack test: ") && refusal.contains("own addresses"),
            "{refusal}"
        );
    }
}
