//! Workloads on whole stacks in virtual time.

mod background;
mod devirtualizer;
mod experiment;
mod figures;
mod files;
mod filesystems;
mod fill;
mod fio_json;
mod fio_log;
mod fio_record;
pub(crate) mod guest;
mod memory;
mod raw;
mod read_ahead;
mod restart;
mod run;
mod source;
mod stack;
mod system;
#[cfg(test)]
mod tests;
mod threads;
mod versions;
mod view;

use std::fmt::Display;

use dovetail_block::{BLOCK_SIZE, BlockDevice, free_blocks};
use dovetail_host::{CheckedDevice, HostError, Planner};
use dovetail_time::{Ratio, SimTime, format_bytes};
use dovetail_vfs::Simulated;
use dovetail_workload::{Call, Workload};
use tracing::{info, info_span};

use crate::below::Below;
use crate::lane::{Machine, seen};
use crate::precondition::NotPrepared;
use crate::prepared::{NoDrive, Turn};
use crate::progress::Progress;
pub use crate::record::Watcher;
use crate::record::summarize;
use crate::results::{
    FloorResult, FragmentationResult, PreconditionResult, RequestsResult, RunResult, StackResult,
    notes,
};
use devirtualizer::Devirtualizer;
pub use devirtualizer::Schedule;
pub use experiment::{Experiment, new_drives};
pub use figures::{event_figures, written_figures};
pub use files::{CallError, Effect, Files};
pub use filesystems::{Device, Volume, figures_by_file_system};
pub use fill::{Fill, FillAmount, FillWith};
pub use fio_log::FioLog;
use run::Session;
pub use source::{FileTraceSource, Source};
pub use stack::Stack;
use system::System;
pub use view::{View, Watchers};

/// Parts of the map of a volume.
const OCCUPANCY_CELLS: usize = 512;

/// A size, in bytes where it would read as another one does.
fn told_apart(bytes: u64, other: u64) -> String {
    let text = format_bytes(bytes);
    if text == format_bytes(other) { format!("{bytes} bytes") } else { text }
}

/// Reason why a run ended early, or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The workload cannot be run.
    #[error("{0}")]
    Workload(String),
    /// No stack of that name.
    #[error(
        "there is no stack \"{0}\"{hint}; `dovetail stack list` shows those there are, and a file ends in .toml",
        hint = dovetail_time::did_you_mean(.0, Stack::built_in())
    )]
    UnknownStack(String),
    /// A stack's file cannot be read, or says something that cannot be.
    #[error("stack {file}: {reason}")]
    StackFile {
        /// The file, or the stack's name.
        file: String,
        /// Description of the fault.
        reason: String,
    },
    /// The drive cannot be built.
    #[error("{0}")]
    Drive(String),
    /// The partition is larger than the drive.
    #[error(
        "stack {stack}: a partition of {} does not fit on a drive of {}",
        told_apart(*wanted, *drive),
        told_apart(*drive, *wanted)
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
        /// Description of the failure.
        reason: String,
    },
    /// A call failed.
    #[error("at {at} of virtual time thread {thread} could not {call} {path}: {source}")]
    Call {
        /// Time of the failure.
        at: SimTime,
        /// Number of the thread.
        thread: u32,
        /// Name of the call.
        call: &'static str,
        /// Path of its file.
        path: String,
        /// Error of the file system.
        source: dovetail_vfs::Error,
    },
    /// The file system's background work failed.
    #[error("at {at} of virtual time the file system's background work failed: {source}")]
    Background {
        /// Time of the failure.
        at: SimTime,
        /// Error of the file system.
        source: dovetail_vfs::Error,
    },
    /// The devirtualizer failed.
    #[error("at {at} of virtual time pointers could not be rewritten: {source}")]
    Devirtualize {
        /// Time of the failure.
        at: SimTime,
        /// Error of the file system.
        source: dovetail_vfs::Error,
    },
    /// A read did not give what was written.
    #[error(
        "at {at} of virtual time block {block} of {path} read back wrong: this is a fault of the file system, please report it"
    )]
    WrongData {
        /// Time of the read.
        at: SimTime,
        /// Path of the file.
        path: String,
        /// Number of the block in the file.
        block: u64,
    },
    /// All threads wait for something that does not come.
    #[error(
        "at {at} of virtual time {waiting} threads wait for each other: a workload that cannot end"
    )]
    Asleep {
        /// Time at which nothing more can happen.
        at: SimTime,
        /// Number of threads.
        waiting: usize,
    },
    /// It was ended from outside before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
    /// The drive, or the plans on it, failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl From<NotPrepared> for BenchError {
    fn from(error: NotPrepared) -> Self {
        match error {
            NotPrepared::Stopped => Self::Stopped,
            NotPrepared::Host(error) => Self::Host(error),
        }
    }
}

/// One workload on one stack.
pub struct Job<'a> {
    /// Label that tells the run from the others.
    pub label: String,
    /// The stack.
    pub stack: &'a Stack,
    /// By how much drive and memory are shrunk; the workload is given at its scale already.
    pub scale: Ratio,
    /// Seeds the drive's policies.
    pub seed: u64,
    /// Ends the run early when it says so; what was measured until then is kept.
    pub stop: &'a dyn Fn() -> bool,
    /// Fills the drive first, in order and then at random until it is steady, before the volume is
    /// made: the turn of a run with the stack's drive.
    pub precondition: Option<&'a Turn<'a>>,
    /// Syncs the file system at the end, and counts what that writes.
    pub final_sync: bool,
    /// Cuts the power at the end, when the drive has carried out what was issued, and mounts again.
    pub restart: bool,
    /// Hears from time to time how far the run has come.
    pub progress: &'a dyn Fn(Progress),
}

/// The drive of a stack, prepared if the job says so.
pub(crate) fn drive(
    job: &Job<'_>,
) -> Result<(CheckedDevice<Below>, Option<PreconditionResult>), BenchError> {
    let failed =
        |error: &dyn Display| BenchError::Drive(format!("stack {}: {error}", job.stack.name));
    let no_drive = |fault| match fault {
        NoDrive::Config(error) => failed(&error),
        NoDrive::Log(error) => failed(&error),
    };
    let Some(turn) = job.precondition else {
        let drive = job.stack.new_drive(job.scale, job.seed)?;
        return Ok((drive.make().map_err(no_drive)?, None));
    };
    if turn.new_drive().config().zones.is_some() {
        return Err(failed(
            &"a drive with zones moves none of the host's data: there is nothing to precondition",
        ));
    }
    let (drive, done) = turn.aged(no_drive, job.stop, &mut |told| (job.progress)(told))?;
    Ok((drive, Some(PreconditionResult { kept: job.stack.keeps_content(), ..done })))
}

/// A new stack with the workload's files on it, at rest.
fn set_up<'a>(
    job: &Job<'a>,
    workload: &'a mut dyn Workload,
    watchers: Watchers<'a>,
) -> Result<Session<'a>, BenchError> {
    let stack = job.stack;
    let Watchers { commands: watcher, view } = watchers;
    let (drive, prepared) = drive(job)?;
    let info = drive.device().info();
    let start = if prepared.is_some() { drive.device().idle_from() } else { SimTime::ZERO };
    let partition = info.part(stack.partition_blocks(info.capacity(), job.scale)?);
    let planner = Planner::new(partition, stack.host.max_request_blocks());
    planner.set_placement(stack.host.placement);
    if !stack.host.fua {
        planner.flush_for_fua();
    }
    if job.restart {
        planner.keep_dead();
    }
    let mut machine = Machine::over(drive, stack.host, start, planner.events());
    if stack.devirtualize.is_some() {
        planner.connect(&machine);
    }
    info!("making and mounting the volume");
    let fs = filesystems::build(stack, planner.clone(), job.scale)?;
    if let Some(watcher) = watcher.clone() {
        machine.observe(Box::new(move |request| (*watcher.borrow_mut())(request)));
    }
    let failed = |reason: &dyn Display| BenchError::Setup {
        stack: stack.name.clone(),
        reason: reason.to_string(),
    };
    let system = System::new(machine, planner, fs, stack.host, job.seed);
    let mut run = Session::new(system, job, workload);
    run.view = view;
    run.prepared = prepared;
    run.scatter.watcher = watcher;
    if let Some(schedule) = &stack.devirtualize {
        run.devirtualizer =
            Some(Devirtualizer::new(schedule, job.scale).map_err(|error| failed(&error))?);
        check_devirtualizes(stack, run.system.fs.as_mut()).map_err(|error| failed(&error))?;
    }
    info!("laying out files");
    match run.prepare() {
        Err(BenchError::Stopped) => Err(BenchError::Stopped),
        Err(error) => Err(failed(&format!("{error}{}", room_wanted(&run, &error)))),
        Ok(()) => Ok(run),
    }
}

/// The room that the workload wants and the one that it has, behind a failure for want of it.
fn room_wanted(run: &Session<'_>, error: &BenchError) -> String {
    let is_full = matches!(
        error,
        BenchError::Call { source: dovetail_vfs::Error::NoSpace, .. }
            | BenchError::Background { source: dovetail_vfs::Error::NoSpace, .. }
    );
    let wanted = run.threads.workload.wanted_bytes();
    if !is_full || wanted == 0 {
        return String::new();
    }
    let there = run.system.planner.info().capacity() * BLOCK_SIZE;
    format!(
        "; all its files together have up to {}, the partition has {} with the file system's own{}",
        format_bytes(wanted),
        format_bytes(there),
        flash_left(&run.system.planner)
    )
}

/// The room that a drive with more addresses than flash has left, and the reason why its flash is
/// full before the files have filled it.
fn flash_left(planner: &Planner) -> String {
    let Some(thin) = planner.info().capabilities.thin else { return String::new() };
    let Ok(Some(blocks)) = free_blocks(&mut planner.clone()) else { return String::new() };
    let taken = match thin.blocks_per_page {
        1 => String::new(),
        blocks => format!(
            ": a flash page of {} is taken while one of its blocks is in use",
            format_bytes(u64::from(blocks) * BLOCK_SIZE)
        ),
    };
    let left = format_bytes(blocks * BLOCK_SIZE);
    format!("; the drive's flash has room for {left} more, however scattered{taken}")
}

/// File system and drive can do what the devirtualizer needs.
fn check_devirtualizes(stack: &Stack, fs: &mut dyn Simulated) -> Result<(), String> {
    let Some(fs) = fs.devirtualizer() else {
        return Err(format!(
            "{} has no pointers that can lead to the drive's own addresses",
            stack.filesystem
        ));
    };
    fs.renames_at_once().map(drop).map_err(|error| error.to_string())
}

/// Runs a workload on a stack. After a failure the results hold what was measured until then, and
/// the reason.
///
/// # Errors
/// A failure that keeps the run from beginning; see [`BenchError`].
pub fn run(job: &Job<'_>, workload: &mut dyn Workload) -> Result<RunResult, BenchError> {
    run_watched(job, workload, Watchers::default())
}

/// Runs a workload on a stack as [`run`] does, while it is watched.
///
/// # Errors
/// A failure that keeps the run from beginning; see [`BenchError`].
pub fn run_watched(
    job: &Job<'_>,
    workload: &mut dyn Workload,
    watchers: Watchers<'_>,
) -> Result<RunResult, BenchError> {
    let _span = info_span!("run", label = job.label).entered();
    let mut run = set_up(job, &mut *workload, watchers)?;
    let written_out = run.write_out()?;
    run.wait_until(written_out)?;
    run.begin_measuring();
    info!(at = %run.system.machine.now(), "running");
    let ran = run.run();
    let failure = if job.final_sync && !(job.stop)() {
        ran.and_then(|()| run.call_alone(&Call::SyncAll))
    } else {
        ran
    }
    .and_then(|()| if job.final_sync { run.write_out().map(drop) } else { Ok(()) })
    .err();
    run.show_end();
    let device = run.system.machine.device();
    run.recorder.end(Some(run.system.fs.as_ref()), &seen(&run.system.machine, &device));
    drop(device);
    let span = (run.recorder.first.at, run.recorder.last().at);
    info!(at = %span.1, "ended");
    let result = results(job, &mut run);
    let mut result = RunResult { notes: notes(&result, (job.stop)()), ..result };
    let room = failure.as_ref().map(|error| room_wanted(&run, error)).unwrap_or_default();
    let Session { system, threads, .. } = run;
    let records = threads.fio.finish();
    result.fio = workload.fio().map(|fio| fio_json::build(fio, &records, span, failure.as_ref()));
    result.fio_logs = workload.fio().map_or_else(Vec::new, |fio| fio_log::build(fio, &records));
    let failure = failure.map(|error| format!("{error}{room}"));
    result.error = failure.or_else(|| workload.problem());
    if job.restart && result.error.is_none() && !job.stack.is_raw() {
        match restart::restart(job, system) {
            Ok(restart) => result.restart = Some(restart),
            Err(error) => result.error = Some(error.to_string()),
        }
    }
    Ok(result)
}

/// The results of a run that has ended.
fn results(job: &Job<'_>, run: &mut Session<'_>) -> RunResult {
    let is_raw = job.stack.is_raw();
    let fragmentation = (!is_raw).then(|| fragmentation(run));
    let recorder = &run.recorder;
    let elapsed = recorder.last().at.since(recorder.first.at);
    let all =
        summarize(recorder, &run.system.machine.device(), (elapsed, run.system.cpu), &run.jobs);
    let of_file_system = filesystems::floors(job.stack, job.scale);
    let floors = all.floors.iter().cloned().chain(of_file_system.iter().map(FloorResult::from));
    RunResult {
        label: job.label.clone(),
        floors: floors.collect(),
        stack: StackResult {
            name: job.stack.name.clone(),
            filesystem: job.stack.filesystem.clone(),
            mount: job.stack.mount.clone(),
            partition_bytes: run.system.planner.info().capacity() * BLOCK_SIZE,
            memory_bytes: if is_raw { 0 } else { job.stack.memory_bytes(job.scale) },
            host: job.stack.host,
            file: job.stack.to_file(),
        },
        seed: job.seed,
        requests: RequestsResult { repeats: Some(run.scatter.repeats()), ..all.requests },
        precondition: run.prepared.clone(),
        fragmentation,
        occupancy: run.system.fs.occupancy(OCCUPANCY_CELLS),
        devirtualize: run.devirtualizer.as_ref().map(|actor| actor.result(recorder.first.at)),
        scatter: run.scatter.finish(),
        ..all
    }
}

fn fragmentation(run: &mut Session<'_>) -> FragmentationResult {
    let first = run.threads.workload.first_file();
    let inodes: Vec<_> = run.threads.files.inodes(first).collect();
    let blocks: u64 = run.threads.files.blocks(first);
    let pieces: u64 = inodes.iter().filter_map(|ino| run.system.fs.pieces(*ino).ok()).sum();
    let mean_piece_kib = if pieces > 0 { (blocks * 4) as f64 / pieces as f64 } else { 0.0 };
    FragmentationResult { files: inodes.len() as u64, pieces, mean_piece_kib }
}
