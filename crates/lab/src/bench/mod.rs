//! Workloads on whole stacks in virtual time.

mod devirtualize;
mod experiment;
mod figures;
pub(crate) mod files;
mod filesystems;
mod fill;
mod fio_json;
mod fio_record;
mod recorder;
mod repeats;
pub mod results;
mod run;
mod scatter;
mod source;
mod stack;
mod summary;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt::Display;
use std::rc::Rc;

use dovetail_block::BlockDevice;
use dovetail_ftl::Drive;
use dovetail_host::{HostError, Machine, Planner, Request};
use dovetail_time::{Ratio, SimTime, format_bytes};
use dovetail_vfs::Simulated;
use dovetail_workload::{Call, ThreadId, Workload};

pub use devirtualize::Schedule;
use devirtualize::Tool;
pub use experiment::Experiment;
pub use figures::{event_figures, written_figures};
pub use filesystems::{Device, Volume, figures_by_file_system};
pub use fill::{Fill, FillAmount, FillWith};
use results::BenchRun;
use run::Run;
pub use source::{FileTraceSource, Source};
pub use stack::Stack;

/// Why a run ended early, or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The workload cannot be run.
    #[error("{0}")]
    Workload(String),
    /// No stack of that name.
    #[error(
        "there is no stack \"{0}\"; `dovetail stack list` shows those there are, and a file ends in .toml"
    )]
    UnknownStack(String),
    /// A stack's file cannot be read, or says something that cannot be.
    #[error("stack {file}: {reason}")]
    StackFile {
        /// The file, or the stack's name.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The drive cannot be built.
    #[error("{0}")]
    Drive(String),
    /// The partition is larger than the drive.
    #[error(
        "stack {stack}: a partition of {} does not fit on a drive of {}",
        format_bytes(*wanted),
        format_bytes(*drive)
    )]
    Partition {
        /// The stack.
        stack: String,
        /// The partition in bytes.
        wanted: u64,
        /// The drive in bytes.
        drive: u64,
    },
    /// The file system cannot be made or mounted.
    #[error("stack {stack}: {reason}")]
    Setup {
        /// The stack.
        stack: String,
        /// Why.
        reason: String,
    },
    /// A call failed.
    #[error("at {at} of virtual time thread {thread} could not {call} {path}: {source}")]
    Call {
        /// When.
        at: SimTime,
        /// Which thread.
        thread: u32,
        /// What it was doing.
        call: &'static str,
        /// To which file.
        path: String,
        /// Why.
        source: dovetail_vfs::Error,
    },
    /// The file system's background work failed.
    #[error("at {at} of virtual time the file system's background work failed: {source}")]
    Background {
        /// When.
        at: SimTime,
        /// Why.
        source: dovetail_vfs::Error,
    },
    /// The tool that lets pointers lead to the drive's own addresses failed.
    #[error("at {at} of virtual time pointers could not be rewritten: {source}")]
    Devirtualize {
        /// When.
        at: SimTime,
        /// Why.
        source: dovetail_vfs::Error,
    },
    /// A read did not give what was written.
    #[error(
        "at {at} of virtual time block {block} of {path} read back wrong: this is a fault of the file system, please report it"
    )]
    WrongData {
        /// When.
        at: SimTime,
        /// Which file.
        path: String,
        /// Which of its blocks.
        block: u64,
    },
    /// All threads wait for something that does not come.
    #[error("at {at} of virtual time {waiting} threads wait for each other: a workload that cannot end")]
    Asleep {
        /// When.
        at: SimTime,
        /// How many.
        waiting: usize,
    },
    /// It was ended from outside before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
    /// The drive, or the plans on it, failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// One workload on one stack.
pub struct Job<'a> {
    /// What sets it apart from the others.
    pub label: String,
    /// The stack.
    pub stack: &'a Stack,
    /// By how much drive and memory are shrunk; the workload is given at its scale already.
    pub scale: Ratio,
    /// Seeds the drive's policies.
    pub seed: u64,
    /// Ends the run early when it says so; what was measured until then is kept.
    pub stop: &'a dyn Fn() -> bool,
    /// Syncs the file system at the end, and counts what that writes.
    pub final_sync: bool,
}

/// Who watches the commands of a run.
pub(crate) type Watcher = Rc<RefCell<dyn FnMut(&Request)>>;

/// A new stack with the workload's files on it, at rest.
fn set_up<'a>(
    job: &Job<'a>,
    workload: &'a mut dyn Workload,
    watcher: Option<Watcher>,
) -> Result<Run<'a>, BenchError> {
    let stack = job.stack;
    let drive = Drive::new(stack.drive_config(job.scale, job.seed)?);
    let drive = drive.map_err(|error| BenchError::Drive(format!("stack {}: {error}", stack.name)))?;
    let info = drive.info();
    let partition = info.part(stack.partition_blocks(info.capacity(), job.scale)?);
    let planner = Planner::new(partition, stack.host.max_request_blocks());
    let mut machine = Machine::new(drive, stack.host, SimTime::ZERO, planner.events());
    if stack.devirtualize.is_some() {
        planner.connect(&machine);
    }
    let fs = filesystems::build(stack, planner.clone(), job.scale)?;
    if let Some(watcher) = watcher.clone() {
        machine.observe(Box::new(move |request| (*watcher.borrow_mut())(request)));
    }
    let failed =
        |reason: &dyn Display| BenchError::Setup { stack: stack.name.clone(), reason: reason.to_string() };
    let mut run = Run::new(machine, planner, fs, job, workload);
    run.scatter.watcher = watcher;
    if let Some(schedule) = &stack.devirtualize {
        run.tool = Some(Tool::new(schedule, job.scale).map_err(|error| failed(&error))?);
        check_devirtualizes(stack, run.fs.as_mut()).map_err(|error| failed(&error))?;
    }
    match run.prepare() {
        Err(BenchError::Stopped) => Err(BenchError::Stopped),
        prepared => prepared.map(|()| run).map_err(|error| failed(&error)),
    }
}

/// File system and drive can do what the tool needs.
fn check_devirtualizes(stack: &Stack, fs: &mut dyn Simulated) -> Result<(), String> {
    let Some(fs) = fs.devirtualizer() else {
        return Err(format!(
            "{} has no pointers that can lead to the drive's own addresses",
            stack.filesystem
        ));
    };
    fs.renames_at_once().map(drop).map_err(|error| error.to_string())
}

/// Runs a workload on a stack. After a failure the results hold what was measured until then, and the reason.
///
/// # Errors
/// What keeps the run from beginning; see [`BenchError`].
pub fn run(job: &Job<'_>, workload: &mut dyn Workload) -> Result<BenchRun, BenchError> {
    run_watched(job, workload, None)
}

/// The same; `watcher` is shown every command that reaches the drive, from the making of the volume on.
pub(crate) fn run_watched(
    job: &Job<'_>,
    workload: &mut dyn Workload,
    watcher: Option<Watcher>,
) -> Result<BenchRun, BenchError> {
    let jobs: Vec<String> =
        (0..workload.threads()).map(|thread| workload.job(ThreadId(thread)).into()).collect();
    let mut run = set_up(job, &mut *workload, watcher)?;
    run.begin_measuring();
    let ran = run.run();
    let failure =
        if job.final_sync && !(job.stop)() { ran.and_then(|()| run.call_alone(&Call::SyncAll)) } else { ran }
            .err();
    let end = run.recorder.end(run.fs.as_ref(), &run.machine);
    let mut result = summary::summarize(job, &mut run, &end, &jobs);
    result.scatter = run.scatter.finish();
    let (span, records) = ((run.recorder.first.at, end.at), run.recorder.fio_records());
    drop(run);
    result.fio = workload.fio().map(|fio| fio_json::build(fio, &records, span, failure.as_ref()));
    result.error = failure.map(|error| error.to_string()).or_else(|| workload.problem());
    Ok(result)
}
