//! What a run finds wrong with a file system.

use dovetail_block::{BLOCK_SIZE, Content, Pattern};
use dovetail_time::Ratio;
use dovetail_vfs::Caller;
use dovetail_workload::FileId;
use dovetail_workload::fio::{FioWorkload, JobFile, Variables};

use super::*;

const STACK: &str =
    "name = \"test\"\nabout = \"\"\nfilesystem = \"f2fs\"\ndrive = \"femu-32g\"\npartition = \"128MiB\"\n";

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
        final_sync: false,
    };
    let mut run = set_up(&job, &mut workload).unwrap();
    if let Some(content) = content {
        let ino = run.files.inodes(FileId(0)).next().unwrap();
        let range = (5 * BLOCK_SIZE, BLOCK_SIZE);
        run.fs.write_pages(&Caller::default(), ino, range, &[content], false).unwrap();
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
            let BenchError::WrongData { block: 5, path, .. } = &error else { panic!("{how}{error}") };
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
fn a_stack_can_change_figures_of_its_drive() {
    let with = |figures: &str| {
        let stack = Stack::parse(&format!("{STACK}[drive-figures]\n{figures}\n"), "test.toml").unwrap();
        stack.drive_config(Ratio::ONE, 1).map_err(|error| error.to_string())
    };
    let small = with("\"capacity.user\" = \"1GiB\"\n\"flash.pages_per_block\" = 8").unwrap();
    assert_eq!(small.user_blocks, 1 << 18);
    let unknown = with("\"host.command\" = 5").unwrap_err();
    assert!(unknown.contains("stack test: [drive-figures]") && unknown.contains("command"), "{unknown}");
    let wrong = with("\"host.command_us\" = -5").unwrap_err();
    assert!(wrong.contains("host.command_us is '-5', allowed is 0 to"), "{wrong}");
}
