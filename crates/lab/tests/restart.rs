//! A power cut at the end of a run: every stack is there again.

use dovetail_lab::bench::Stack;
use dovetail_lab::results::RunResult;

use crate::fio_runs::fio_runs;

const JOB: &str =
    "[job]\nrw=randwrite\nbs=4k\nsize=1g\nio_size=1g\nnorandommap\nfsync=10\noverwrite=1\n";

fn run(stacks: &[Stack]) -> Vec<RunResult> {
    fio_runs(JOB, stacks, true)
}

/// Files fsynced since the last checkpoint, or in the journal, are found again; how much is read
/// for that differs.
#[test]
fn every_stack_with_a_file_system_mounts_again_after_a_power_cut() {
    let all = Stack::built_in().map(|name| Stack::load(name).unwrap());
    let stacks: Vec<Stack> = all.filter(|stack| !stack.is_raw() && !stack.is_linux()).collect();
    for run in run(&stacks) {
        assert_eq!(run.error, None, "{}", run.label);
        let restart = run.restart.unwrap();
        assert!(restart.drive_s > 0.0 && restart.mount_s > 0.0, "{}: {restart:?}", run.label);
        assert!(restart.mount_read_blocks > 10, "{}: {restart:?}", run.label);
    }
}

/// Nodes of files are written by the handle of their log, 4, by that of their lifetime, medium, 3,
/// or by the first.
#[test]
fn the_hosts_rule_decides_which_handles_are_written() {
    let by = |placement| {
        let mut stack = Stack::load("f2fs-fdp").unwrap();
        stack.host.placement = placement;
        let runs = run(&[stack]);
        let placement = runs[0].totals.drive.placement.clone().unwrap();
        assert_eq!(placement.invalid_handles, 0);
        let written = (0..8).filter(|&handle: &usize| placement.handles[handle].host_blocks > 0);
        written.collect::<Vec<usize>>()
    };
    use dovetail_host::Placement;
    let [none, lifetime, writer] =
        [Placement::None, Placement::Lifetime, Placement::Writer].map(by);
    assert_eq!(none, [0]);
    assert!(lifetime.contains(&3) && !lifetime.contains(&4), "{lifetime:?}");
    assert!(writer.contains(&4) && !writer.contains(&3), "{writer:?}");
}
