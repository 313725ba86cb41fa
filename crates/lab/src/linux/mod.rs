//! Work on a real Linux kernel in virtual time, as a run among those of modelled file systems.
//!
//! The guest makes and mounts the volume. Of a fio job real fio plays it, and what it reports becomes
//! the run's calls and latencies; everything of the drive comes from the drive.

mod command;
mod fio_results;
mod restart;
mod script;
mod watched;

use std::path::PathBuf;
use std::time::Duration;

use dovetail_block::{BLOCK_SIZE, BlockDevice};
pub use dovetail_linux::Cut;
use dovetail_linux::{
    BEGIN, END, Ended, Event, FileSystem, Guest, LinuxError, World, default_kernel,
};
use dovetail_time::{Ratio, SimSpan, SimTime};
use tracing::info;

use crate::bench::guest::{PREFIX, file_system_of};
use crate::bench::{BenchError, Job, Source, Stack};
use crate::record::{Recorder, Rhythm, Scatter, summarize_drive, with_workload};
use crate::results::{RequestsResult, RunResult, StackResult, notes};
pub use command::{LinuxCommand, LinuxOutcome, Recovery};
use fio_results::{FioOutput, Records};
use script::{FioJob, RAN, Work};
use watched::Watched;

/// The name of the raw drive behind it.
const RAW: &str = "none";

/// Memory of the guest beside its page cache: kernel, programs, fio. Assumed.
const GUEST_BYTES: u64 = 160 << 20;

/// Real time in which a guest must show a sign of life. Assumed.
const SILENCE: Duration = Duration::from_secs(300);

/// A sentence on what cannot be charged to a guest.
fn what_is_not_charged(stack: &Stack) -> Option<String> {
    let host = &stack.host;
    let jitter = u64::from(host.jitter_percent);
    let free = [("block_ns", host.block_ns), ("wake_ns", host.wake_ns), ("jitter_percent", jitter)];
    let free: Vec<&str> =
        free.iter().filter(|(_, value)| *value > 0).map(|(key, _)| *key).collect();
    (!free.is_empty()).then(|| {
        format!(
            "The guest's only CPU is charged for system calls and requests; {} of [host] hold for modelled stacks alone.",
            free.join(" and ")
        )
    })
}

/// A failure to set up a stack's guest.
fn setup(stack: &Stack) -> impl Fn(String) -> BenchError {
    |reason| BenchError::Setup { stack: stack.name.clone(), reason }
}

/// Runs a job of `source` in a guest.
///
/// # Errors
/// A stack or a workload that a guest cannot have, and failures of the guest; see [`BenchError`].
pub(crate) fn run(job: &Job<'_>, source: &Source) -> Result<RunResult, BenchError> {
    let stack = job.stack;
    let failed = setup(stack);
    let Source::Fio(file) = source else {
        return Err(BenchError::Workload(format!(
            "stack {}: a Linux guest runs fio jobs, and {} is none",
            stack.name,
            source.name()
        )));
    };
    let Some(system) = file_system(stack).map_err(&failed)? else {
        return Err(failed(
            "fio jobs run on files here; `dovetail linux run` works on a raw drive".into(),
        ));
    };
    let fio = FioJob::new(file, job.scale.value(), job.seed);
    let work = Work {
        stack,
        system: Some(system),
        scale: job.scale,
        prepare: &fio.lay_out,
        run: &script::play(job.final_sync),
    };
    let guest = Prepared::new(stack, (job.scale, job.seed), work.script())?;
    guest.put("job.fio", &fio.text)?;
    let (drive, prepared) = crate::bench::drive(job)?;
    let drive = drive.into_device();
    let blocks = stack.partition_blocks(drive.info().capacity(), job.scale)?;
    let unmeasured = SimSpan::from_ns(file.unmeasured_ns());
    let mut watch = Watch { unmeasured, ..Watch::new(job.seed) };
    let cut = job.restart.then_some(Cut::End);
    let ended = guest.play(Watched::new(drive, blocks), cut, job.stop, &mut watch)?;
    let output = guest.fio_output().map_err(&failed)?;
    let records = serde_json::from_value::<FioOutput>(output.clone())
        .map_err(|error| failed(format!("fio's results cannot be read: {error}")))?
        .records(file, watch.begin)
        .map_err(&failed)?;
    let records = Records { elapsed: records.elapsed + watch.synced(), ..records };
    let result = watch.results(&job.label, stack, job.scale, &ended.drive, records);
    let mut result = RunResult { precondition: prepared, seed: job.seed, ..result };
    result.fio = Some(output);
    result.notes = notes(&result, false);
    result.notes.extend(what_is_not_charged(stack));
    if job.restart && result.error.is_none() {
        match work.restart(ended, job.seed, job.stop) {
            Ok(restart) => result.restart = Some(restart),
            Err(BenchError::Stopped) => return Err(BenchError::Stopped),
            Err(error) => result.error = Some(error.to_string()),
        }
    }
    Ok(result)
}

/// The file system of a guest's stack; `None` for the raw drive.
fn file_system(stack: &Stack) -> Result<Option<FileSystem>, String> {
    match file_system_of(&stack.filesystem).unwrap_or_default() {
        RAW => Ok(None),
        name => FileSystem::find(name).map(Some).ok_or_else(|| {
            format!(
                "there is no file system \"{PREFIX}{name}\" for a Linux guest; there are {}, and {RAW} for the raw drive",
                FileSystem::names()
            )
        }),
    }
}

/// The stack's own kernel, or the one that `dovetail linux build` makes.
fn kernel(stack: &Stack) -> Result<PathBuf, LinuxError> {
    match &stack.kernel {
        Some(path) => Ok(PathBuf::from(path)),
        None => Ok(default_kernel()?),
    }
}

/// A guest of a stack, with the folder that it shares with this machine.
struct Prepared<'a> {
    stack: &'a Stack,
    guest: Guest,
    folder: tempfile::TempDir,
}

impl<'a> Prepared<'a> {
    /// A guest at a scale with a seed.
    fn new(
        stack: &'a Stack,
        (scale, seed): (Ratio, u64),
        script: String,
    ) -> Result<Self, BenchError> {
        let failed = setup(stack);
        let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let guest = Guest {
            kernel: kernel(stack).map_err(|error| failed(error.to_string()))?,
            memory: GUEST_BYTES + stack.memory_bytes(scale),
            seed,
            syscall_ns: stack.host.syscall_ns,
            request_ns: stack.host.request_ns,
            script,
            out: folder.path().into(),
            silence: SILENCE,
        };
        Ok(Self { stack, guest, folder })
    }

    /// Puts a file into the folder.
    fn put(&self, name: &str, text: &str) -> Result<(), BenchError> {
        let written = std::fs::write(self.folder.path().join(name), text);
        written.map_err(|error| setup(self.stack)(error.to_string()))
    }

    /// The text of a file in the folder; empty if it is not there.
    fn text(&self, name: &str) -> String {
        let bytes = std::fs::read(self.folder.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Runs the guest on a drive.
    fn play(
        &self,
        drive: Watched,
        cut: Option<Cut>,
        stop: &dyn Fn() -> bool,
        watch: &mut Watch,
    ) -> Result<Ended<Watched>, BenchError> {
        info!("starting the guest");
        let seen = &mut |at, event: Event<'_>, drive: &Watched| watch.look(at, event, drive);
        let ended = World { guest: &self.guest, cut, stop, seen }.run(drive);
        ended.map_err(|error| match error {
            LinuxError::Stopped => BenchError::Stopped,
            error => {
                let log = last_lines(&self.text("log"));
                setup(self.stack)(format!("{error}{log}"))
            }
        })
    }

    fn fio_output(&self) -> Result<serde_json::Value, String> {
        let text = self.text("fio.json");
        // fio writes its complaints before the JSON
        let json = text.find('{').map_or("", |at| &text[at..]);
        serde_json::from_str(json).map_err(|_| {
            format!(
                "fio gave no results in the guest{}{}",
                last_lines(&self.text("log")),
                last_lines(&text)
            )
        })
    }
}

/// The last lines of what a guest wrote, on lines of their own.
fn last_lines(text: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.lines().collect();
    let kept = &lines[lines.len().saturating_sub(LINES)..];
    kept.iter().map(|line| format!("\n  {line}")).collect()
}

/// Recorder of a guest: of what happens between its two marks.
struct Watch {
    recorder: Recorder,
    scatter: Scatter,
    is_measuring: bool,
    /// Time from the mark on in which nothing counts.
    unmeasured: SimSpan,
    begin: SimTime,
    /// The measurement begins with the first request from then on.
    from: Option<SimTime>,
    /// The end of the job, before a sync at the end.
    ran: Option<SimTime>,
    /// The drive as it stood at the end.
    of_drive: RunResult,
}

impl Watch {
    fn new(seed: u64) -> Self {
        Self {
            recorder: Recorder::new(0, Rhythm::Even(None)),
            scatter: Scatter::new(seed),
            is_measuring: false,
            unmeasured: SimSpan::ZERO,
            begin: SimTime::ZERO,
            from: None,
            ran: None,
            of_drive: RunResult::default(),
        }
    }

    fn look(&mut self, at: SimTime, event: Event<'_>, drive: &Watched) {
        match event {
            Event::Arrival if self.is_measuring && self.recorder.is_due(at) => {
                self.recorder.sample(None, &drive.seen(at));
            }
            Event::Arrival if self.from.is_some_and(|from| at >= from) => self.measure(at, drive),
            Event::Arrival | Event::Request(_) => {}
            Event::Mark(BEGIN) => {
                (self.begin, self.from) = (at, Some(at + self.unmeasured));
                if self.unmeasured == SimSpan::ZERO {
                    self.measure(at, drive);
                }
            }
            Event::Mark(RAN) => self.ran = Some(at),
            Event::Mark(END) => self.end(at, drive),
            Event::Mark(_) => {}
        }
    }

    fn measure(&mut self, at: SimTime, drive: &Watched) {
        info!(%at, "measuring");
        (self.from, self.is_measuring) = (None, true);
        self.recorder.begin(None, &drive.seen(at));
        drive.observe(self.scatter.observer(at));
    }

    /// Ends the measurement: what comes after it, unmounting and checking, does not count.
    fn end(&mut self, at: SimTime, drive: &Watched) {
        if self.from.is_some() {
            self.measure(at, drive);
        }
        if !std::mem::take(&mut self.is_measuring) {
            return;
        }
        self.recorder.end(None, &drive.seen(at));
        self.of_drive = summarize_drive(&self.recorder, &drive.drive);
        drive.observe(Box::new(|_| {}));
    }

    /// Time that the sync at the end took.
    fn synced(&self) -> SimSpan {
        self.ran.map_or(SimSpan::ZERO, |ran| self.recorder.last().at.since(ran))
    }

    fn results(
        &mut self,
        label: &str,
        stack: &Stack,
        scale: Ratio,
        drive: &Watched,
        records: Records,
    ) -> RunResult {
        let Records { threads, jobs, elapsed, error } = records;
        self.recorder.adopt(threads);
        let (of_drive, times) = (std::mem::take(&mut self.of_drive), (elapsed, SimSpan::ZERO));
        let all = with_workload(of_drive, &self.recorder, times, &jobs, drive.drive.config());
        RunResult {
            label: label.into(),
            stack: StackResult {
                name: stack.name.clone(),
                filesystem: stack.filesystem.clone(),
                mount: stack.mount.clone(),
                partition_bytes: drive.info().capacity() * BLOCK_SIZE,
                memory_bytes: stack.memory_bytes(scale),
                host: stack.host,
                file: stack.to_file(),
            },
            error: error.map(|(name, number)| format!("fio: job {name} ended with errno {number}")),
            requests: RequestsResult { repeats: Some(self.scatter.repeats()), ..all.requests },
            scatter: self.scatter.finish(),
            series: all.series.without_workload(),
            ..all
        }
    }
}
