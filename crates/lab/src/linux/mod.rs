//! A fio job on a real Linux kernel in virtual time, as a run among those of modelled file systems.
//!
//! The guest makes and mounts the volume, real fio plays the job, and what it reports becomes the
//! run's calls and latencies; everything of the drive comes from the drive.

mod fio_results;
mod script;
mod watched;

use std::path::{Path, PathBuf};
use std::time::Duration;

use dovetail_block::{BLOCK_SIZE, BlockDevice};
use dovetail_linux::{Guest, LinuxError, World, default_kernel};
use dovetail_serve::vhost::Kind;
use dovetail_time::{SimSpan, SimTime};
use tracing::info;

use crate::bench::{BenchError, Job, Source, Stack};
use crate::record::{Recorder, Rhythm, Scatter, summarize};
use crate::results::{RequestsResult, RunResult, StackResult, notes};
use fio_results::{FioOutput, Records};
use script::{FileSystem, job_text};
use watched::Watched;

/// Begin of the name of a guest's file system in a stack.
const PREFIX: &str = "linux:";

/// Memory of the guest beside its page cache: kernel, programs, fio. Assumed.
const GUEST_BYTES: u64 = 96 << 20;

/// Real time in which a guest must show a sign of life. Assumed.
const SILENCE: Duration = Duration::from_secs(300);

/// The name of the guest's file system, of a stack that has one.
pub(crate) fn file_system_of(filesystem: &str) -> Option<&str> {
    filesystem.strip_prefix(PREFIX)
}

/// Sentences on what cannot be charged to a guest.
fn what_is_not_charged(stack: &Stack) -> Option<String> {
    let host = &stack.host;
    let free = [("block_ns", host.block_ns), ("wake_ns", host.wake_ns)];
    let free: Vec<&str> = free.iter().filter(|(_, ns)| *ns > 0).map(|(key, _)| *key).collect();
    (!free.is_empty()).then(|| {
        format!(
            "the guest's CPU takes time for system calls and requests only: [host] {} counts in modelled stacks alone",
            free.join(" and ")
        )
    })
}

/// Runs a job of `source` in a guest.
///
/// # Errors
/// A stack or a workload that a guest cannot have, and failures of the guest; see [`BenchError`].
pub(crate) fn run(job: &Job<'_>, source: &Source) -> Result<RunResult, BenchError> {
    let stack = job.stack;
    let setup = |reason: String| BenchError::Setup { stack: stack.name.clone(), reason };
    let system = file_system(stack).map_err(setup)?;
    let Source::Fio(file) = source else {
        return Err(BenchError::Workload(format!(
            "stack {}: a Linux guest runs fio jobs, and {} is none",
            stack.name,
            source.name()
        )));
    };
    if job.restart {
        return Err(setup("--restart is for modelled file systems".into()));
    }
    let out = tempfile::tempdir().map_err(|error| setup(error.to_string()))?;
    let text = job_text(&file.to_text(job.scale.value()), job.seed);
    std::fs::write(out.path().join("job.fio"), text).map_err(|error| setup(error.to_string()))?;
    let guest = Guest {
        kernel: kernel(stack).map_err(setup)?,
        memory: GUEST_BYTES + stack.memory_bytes(job.scale),
        syscall_ns: stack.host.syscall_ns,
        request_ns: stack.host.request_ns,
        script: system.script(stack, job.scale.value() < 1.0, job.final_sync),
        out: out.path().into(),
        silence: SILENCE,
    };
    let (drive, prepared) = crate::bench::drive(job)?;
    let drive = drive.into_device();
    let blocks = stack.partition_blocks(drive.info().capacity(), job.scale)?;
    info!("starting the guest");
    let mut watch = Watch::new(job);
    let ended = play(&guest, job, Watched::new(drive, blocks), &mut watch);
    let ended = ended.map_err(|error| match error {
        LinuxError::Stopped => BenchError::Stopped,
        error => setup(error.to_string()),
    })?;
    let output = read_output(out.path()).map_err(setup)?;
    let records = serde_json::from_value::<FioOutput>(output.clone())
        .map_err(|error| setup(format!("fio's results cannot be read: {error}")))?
        .records(watch.begin);
    let mut result = results(job, &mut watch, &ended, records);
    result.stack.partition_bytes = blocks * BLOCK_SIZE;
    result.precondition = prepared;
    result.fio = Some(output);
    result.notes = notes(&result);
    result.notes.extend(what_is_not_charged(stack));
    Ok(result)
}

fn file_system(stack: &Stack) -> Result<FileSystem, String> {
    let name = file_system_of(&stack.filesystem).unwrap_or_default();
    FileSystem::find(name).ok_or_else(|| {
        format!(
            "there is no file system \"{PREFIX}{name}\" for a Linux guest; there are {}",
            FileSystem::names()
        )
    })
}

/// The stack's own kernel, or the one that `dovetail linux build` makes.
fn kernel(stack: &Stack) -> Result<PathBuf, String> {
    match &stack.kernel {
        Some(path) => Ok(PathBuf::from(path)),
        None => default_kernel().map_err(|error| error.to_string()),
    }
}

/// What is recorded while a guest runs: between its two marks.
struct Watch {
    recorder: Recorder,
    scatter: Scatter,
    marks: u32,
    begin: SimTime,
}

impl Watch {
    fn new(job: &Job<'_>) -> Self {
        Self {
            recorder: Recorder::new(0, Rhythm::Even(None)),
            scatter: Scatter::new(job.seed),
            marks: 0,
            begin: SimTime::ZERO,
        }
    }

    fn is_measuring(&self) -> bool {
        self.marks == 1
    }

    /// A request has been taken at `at`.
    fn look(&mut self, at: SimTime, kind: Kind, drive: &Watched) {
        if self.is_measuring() && self.recorder.is_due(at) {
            self.recorder.sample(None, &drive.seen(at));
        }
        if kind != Kind::Identify {
            return;
        }
        self.marks += 1;
        match self.marks {
            1 => {
                info!(%at, "measuring");
                self.begin = at;
                self.recorder.begin(None, &drive.seen(at));
                drive.observe(self.scatter.observer(at));
            }
            2 => self.recorder.end(None, &drive.seen(at)),
            _ => {}
        }
    }
}

fn play(
    guest: &Guest,
    job: &Job<'_>,
    drive: Watched,
    watch: &mut Watch,
) -> Result<Watched, LinuxError> {
    let seen = &mut |at, served: &dovetail_serve::vhost::Served, drive: &Watched| {
        watch.look(at, served.kind, drive);
    };
    let world = World { guest, cut: None, stop: job.stop, seen };
    Ok(world.run(drive)?.drive)
}

fn read_output(out: &Path) -> Result<serde_json::Value, String> {
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_default();
    let text = read("fio.json");
    // fio writes its complaints before the JSON
    let json = text.find('{').map_or("", |at| &text[at..]);
    serde_json::from_str(json)
        .map_err(|_| format!("fio gave no results in the guest:\n{}\n{}", read("log"), text))
}

fn results(
    job: &Job<'_>,
    watch: &mut Watch,
    drive: &Watched,
    Records { threads, jobs, elapsed, error }: Records,
) -> RunResult {
    let recorder = &mut watch.recorder;
    recorder.adopt(threads);
    let all = summarize(recorder, &drive.drive, (elapsed, SimSpan::ZERO), &jobs);
    RunResult {
        label: job.label.clone(),
        stack: StackResult {
            name: job.stack.name.clone(),
            filesystem: job.stack.filesystem.clone(),
            mount: job.stack.mount.clone(),
            partition_bytes: 0,
            memory_bytes: job.stack.memory_bytes(job.scale),
            host: job.stack.host,
        },
        seed: job.seed,
        error: error.map(|(name, number)| format!("fio: job {name} ended with errno {number}")),
        requests: RequestsResult { repeats: Some(watch.scatter.repeats()), ..all.requests },
        scatter: watch.scatter.finish(),
        ..all
    }
}
