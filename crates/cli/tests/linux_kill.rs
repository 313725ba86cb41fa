//! A guest must not outlive the program that runs it, whatever ends that: without a clock it would
//! loop for ever.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for a guest to be there, or to be gone (assumed for a busy machine).
const PATIENCE: Duration = Duration::from_secs(30);
/// Processes of a guest that works: its kernel, its first program, and what that does.
const AT_WORK: usize = 3;
const ROUNDS: u32 = 5;
/// Time between the moments of kills.
const MOMENT: Duration = Duration::from_millis(30);

/// Processes whose command line names a folder.
fn processes(folder: &Path) -> Vec<Pid> {
    let folder = format!("uml_dir={}", folder.display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_of_it = |number: &i32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&folder)
    };
    numbers.filter(is_of_it).filter_map(Pid::from_raw).collect()
}

/// Waits until the number of a guest's processes is as wanted; returns those that are there.
fn wait_until(folder: &Path, is_wanted: impl Fn(usize) -> bool) -> Vec<Pid> {
    let begun = Instant::now();
    loop {
        let there = processes(folder);
        if is_wanted(there.len()) || begun.elapsed() > PATIENCE {
            return there;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_guest_ends_with_the_program_that_runs_it() {
    if std::env::var("DOVETAIL_WITHOUT").is_ok_and(|list| list.split(',').any(|n| n == "kernel")) {
        return;
    }
    if let Err(error) = dovetail_linux::default_kernel() {
        println!("linux: SKIPPED: {error}");
        return;
    }
    let works = "while :; do dd if=/dev/vda of=/dev/null bs=4k iflag=direct count=64; done";
    // kills at several moments of its making; the processes of a guest are made one after the other
    let jobs = ["while :; do :; done", works];
    for (round, job) in (0..ROUNDS).flat_map(|round| jobs.map(|job| (round, job))) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        command.args(["linux", "run", "--scale", "1/64", "--", job]).env("TMPDIR", folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = command.spawn().unwrap();
        let began = wait_until(folder.path(), |count| count >= AT_WORK);
        thread::sleep(MOMENT * round);
        program.kill().unwrap();
        program.wait().unwrap();
        let left = wait_until(folder.path(), |count| count == 0);
        for process in &left {
            let _ = kill_process(*process, Signal::KILL);
        }
        assert!(began.len() >= AT_WORK, "{job}: the guest did not begin: {began:?}");
        assert!(left.is_empty(), "{job}: left behind: {left:?}");
    }
}
