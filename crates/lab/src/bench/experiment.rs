//! A workload on several stacks, several times.

use std::sync::atomic::{AtomicBool, Ordering};

use dovetail_time::{Ratio, Rng};
use dovetail_workload::Workload;

use super::fill::Fill;
use super::{BenchError, Job, Source, Stack, run};
use crate::finished::FinishedRuns;
#[cfg(unix)]
use crate::linux;
use crate::parallel::run_in_order;
use crate::prepared::{NewDrive, Prepared, order};
use crate::progress::Progress;
use crate::results::{OptionsResult, Results, RunResult};

/// Comparison of stacks under one workload.
pub struct Experiment<'a> {
    /// The workload.
    pub source: &'a Source,
    /// Content of the volume before the workload.
    pub fill: Option<Fill>,
    /// The stacks.
    pub stacks: &'a [Stack],
    /// By how much drive, memory and workload are shrunk.
    pub scale: Ratio,
    /// Seeds everything; each repetition has a seed of its own that follows from it.
    pub seed: u64,
    /// Runs of each stack, each with another seed.
    pub repetitions: u32,
    /// Set from outside to end all runs early; what was measured until then is returned, what was
    /// not begun is left out.
    pub stop: &'a AtomicBool,
    /// Fills and ages the drive first, before the volume is made.
    pub precondition: bool,
    /// Preconditioned drives, for runs that begin with equal ones; see [`new_drives`].
    pub drives: &'a Prepared,
    /// Syncs the file system at the end, and counts what that writes.
    pub final_sync: bool,
    /// Cuts the power at the end and mounts again.
    pub restart: bool,
    /// Hears from time to time how far a run has come, by its number.
    pub progress: &'a (dyn Fn(usize, Progress) + Sync),
    /// Finished runs are kept here, and those that are here are not done again. They have no files
    /// of fio. Of a trace only its name tells which run it is: not for files that may change. Runs
    /// on preconditioned drives and in guests are always done.
    pub finished: Option<&'a FinishedRuns>,
}

/// A run that an experiment consists of.
struct Part<'a> {
    stack: &'a Stack,
    label: String,
    seed: u64,
}

impl<'a> Experiment<'a> {
    /// One run of `source` on each of the stacks, at full scale and with seed 1, on new drives and
    /// empty volumes; the fields change that.
    pub fn new(source: &'a Source, stacks: &'a [Stack]) -> Self {
        static NEVER: AtomicBool = AtomicBool::new(false);
        static NONE: Prepared = Prepared::none();
        Self {
            source,
            fill: None,
            stacks,
            scale: Ratio::ONE,
            seed: 1,
            repetitions: 1,
            stop: &NEVER,
            precondition: false,
            drives: &NONE,
            final_sync: false,
            restart: false,
            progress: &|_, _| {},
            finished: None,
        }
    }
}

/// The drives of an experiment's runs before their first command, one for each run.
/// [`Experiment::drives`] must be told to expect them before [`Experiment::run`], or nothing is
/// shared.
///
/// # Errors
/// A drive that cannot be.
pub fn new_drives(
    stacks: &[Stack],
    scale: Ratio,
    (seed, repetitions): (u64, u32),
) -> Result<Vec<NewDrive>, BenchError> {
    let runs = stacks.iter().flat_map(|stack| (0..repetitions.max(1)).map(move |n| (stack, n)));
    runs.map(|(stack, n)| stack.new_drive(scale, seed_of(seed, n))).collect()
}

/// The first repetition has the experiment's own seed.
fn seed_of(seed: u64, repetition: u32) -> u64 {
    match repetition {
        0 => seed,
        _ => Rng::new(seed).fork(repetition.into()).next_u64() >> 11,
    }
}

impl Experiment<'_> {
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for (index, stack) in self.stacks.iter().enumerate() {
            let name = self.name_of(index);
            for repetition in 0..self.repetitions.max(1) {
                let label = match self.repetitions {
                    0 | 1 => name.clone(),
                    _ => format!("{name} #{}", repetition + 1),
                };
                parts.push(Part { stack, label, seed: seed_of(self.seed, repetition) });
            }
        }
        parts
    }

    /// A stack's name, with a number behind it if others have the same.
    fn name_of(&self, index: usize) -> String {
        let name = &self.stacks[index].name;
        let same = |stacks: &[Stack]| stacks.iter().filter(|stack| stack.name == *name).count();
        if same(self.stacks) == 1 {
            name.clone()
        } else {
            format!("{name} ({})", same(&self.stacks[..=index]))
        }
    }

    /// The run as it was finished before, or done now and kept if it comes to its end.
    fn finished_or_performed(
        &self,
        part: &Part<'_>,
        progress: &dyn Fn(Progress),
    ) -> Result<RunResult, BenchError> {
        let finished = self.finished.filter(|_| !self.precondition && !part.stack.is_linux());
        let Some(finished) = finished else { return self.perform(part, progress) };
        let key = self.key(part)?;
        if let Some(run) = finished.get(&key) {
            return Ok(run);
        }
        let run = self.perform(part, progress)?;
        if run.error.is_none() && !self.stop.load(Ordering::Relaxed) {
            finished.put(&key, &run);
        }
        Ok(run)
    }

    /// All that decides the result of a run, but for the program.
    fn key(&self, part: &Part<'_>) -> Result<String, BenchError> {
        let drive = part.stack.profile()?;
        let decides = (
            (self.source.name(), self.source.given(), self.options()),
            (part.stack, drive.text(), &part.label, part.seed, self.scale),
        );
        Ok(format!("{decides:?}"))
    }

    fn perform(
        &self,
        part: &Part<'_>,
        progress: &dyn Fn(Progress),
    ) -> Result<RunResult, BenchError> {
        let turn = self.new_drive(part)?.map(|drive| self.drives.turn(drive));
        let job = Job {
            label: part.label.clone(),
            stack: part.stack,
            scale: self.scale,
            seed: part.seed,
            stop: &|| self.stop.load(Ordering::Relaxed),
            precondition: turn.as_ref(),
            final_sync: self.final_sync,
            restart: self.restart,
            progress,
        };
        if part.stack.is_linux() {
            return self.on_linux(&job);
        }
        let mut workload = self.workload(part.stack, part.seed)?;
        let mut result = run(&job, workload.as_mut())?;
        result.notes.extend(self.source.note_on(part.stack));
        Ok(result)
    }

    /// The workload of a run, behind what fills the volume.
    pub(super) fn workload(
        &self,
        stack: &Stack,
        seed: u64,
    ) -> Result<Box<dyn Workload>, BenchError> {
        let workload = self.source.start_on(stack, self.scale, seed)?;
        match &self.fill {
            Some(fill) => fill.before(workload, stack, self.scale, seed),
            None => Ok(workload),
        }
    }

    /// The drive that a run begins with preconditioned, if it does.
    fn new_drive(&self, part: &Part<'_>) -> Result<Option<NewDrive>, BenchError> {
        self.precondition.then(|| part.stack.new_drive(self.scale, part.seed)).transpose()
    }

    /// Indices of the parts in the order in which they begin.
    fn order(&self, parts: &[Part<'_>], threads: usize) -> Vec<usize> {
        let number = |part: &Part<'_>| {
            let drive = self.new_drive(part).ok().flatten()?;
            self.drives.numbers(&[drive]).pop()
        };
        order(&parts.iter().map(number).collect::<Vec<_>>(), threads)
    }

    /// The options that decide the results.
    fn options(&self) -> OptionsResult {
        OptionsResult {
            repeat: self.repetitions.max(1),
            fill: self.fill.map(|fill| fill.to_string()),
            precondition: self.precondition,
            final_sync: self.final_sync,
            restart: self.restart,
            ..OptionsResult::default()
        }
    }

    /// A run in a guest.
    #[cfg(unix)]
    fn on_linux(&self, job: &Job<'_>) -> Result<RunResult, BenchError> {
        match self.fill {
            Some(_) => Err(BenchError::Workload(format!(
                "stack {}: --fill is for modelled file systems; let the job lay out files that fill the volume",
                job.stack.name
            ))),
            None => linux::run(job, self.source),
        }
    }

    #[cfg(not(unix))]
    fn on_linux(&self, job: &Job<'_>) -> Result<RunResult, BenchError> {
        Err(BenchError::Setup {
            stack: job.stack.name.clone(),
            reason: "a real kernel runs on Linux alone; take a modelled stack".into(),
        })
    }

    /// Sees to it that the workload suits each stack, which the type of the stack tells before any
    /// run: a raw drive has no files.
    ///
    /// # Errors
    /// As its run would fail.
    pub fn check(&self) -> Result<(), BenchError> {
        let mut raw = self.stacks.iter().filter(|stack| stack.is_raw());
        raw.try_for_each(|stack| self.workload(stack, self.seed).map(drop))
    }

    /// The names of the runs.
    pub fn labels(&self) -> Vec<String> {
        self.parts().into_iter().map(|part| part.label).collect()
    }

    /// Performs all runs, as many at a time as there are `threads`, and calls `ended` for each by
    /// its number. The results do not depend on `threads`.
    pub fn run(
        &self,
        threads: usize,
        ended: &(dyn Fn(usize) + Sync),
    ) -> (Results, Vec<BenchError>) {
        let parts = self.parts();
        let order = self.order(&parts, threads);
        let outcomes = run_in_order(&parts, &order, threads, |number, part| {
            let tell = |progress| (self.progress)(number, progress);
            let outcome = (!self.stop.load(Ordering::Relaxed))
                .then(|| self.finished_or_performed(part, &tell));
            ended(number);
            outcome
        });
        let (mut runs, mut failures) = (Vec::new(), Vec::new());
        for outcome in outcomes.into_iter().flatten() {
            match outcome {
                Ok(run) => runs.push(run),
                // as if it had not begun
                Err(BenchError::Stopped) => {}
                Err(error) => failures.push(error),
            }
        }
        let results = Results::of(self.source.name().into(), self.scale.value(), self.seed, runs);
        let (options, job) = (Some(self.options()), Some(self.source.given()));
        (Results { options, job, ..results }, failures)
    }
}
