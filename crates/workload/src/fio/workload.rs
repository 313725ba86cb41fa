//! A job file as a workload.

use std::collections::{HashMap, HashSet, VecDeque};

use dovetail_block::Lifetime;
use dovetail_time::{Rng, SimTime};

use super::drive::on_drive;
use super::error::FioError;
use super::job_file::{Job, JobFile};
use super::layout::Task;
use super::plan::{Files, Plan, ThreadPlan};
use super::settings::{ExitWhat, LogSettings, Percentiles};
use super::thread::{Thread, Users};
use crate::call::{Call, FileId, Outcome, Step, ThreadId, Workload};

/// The threads of a job file, which make the calls that fio would make.
///
/// Calls that fio does not make itself: `sync=` sets a flag at open(2) there, here a [`Call::Sync`]
/// follows every write.
#[derive(Debug)]
pub struct FioWorkload {
    jobs: JobFile,
    files: Files,
    layout: VecDeque<Task>,
    threads: Vec<Thread>,
    users: Users,
    /// Number of threads in each phase that are not done.
    running: Vec<u32>,
    /// The same of each job.
    running_of_job: Vec<u32>,
    /// A job that ends takes others with it: fio has one switch for all.
    exits: bool,
    /// By job: its section's name; a number follows where sections before it have the same.
    names: Vec<String>,
    genesis: Option<SimTime>,
}

/// Facts of a thread that results show.
#[derive(Clone, Copy, Debug)]
pub struct ThreadInfo<'a> {
    job: &'a Job,
    group: u32,
}

impl<'a> ThreadInfo<'a> {
    /// The job's name; the threads of `numjobs` share it.
    pub fn job_name(&self) -> &'a str {
        &self.job.name
    }

    /// `description`, if given.
    pub fn description(&self) -> Option<&'a str> {
        self.job.settings.description.as_deref()
    }

    /// The group, from 0: a job with `new_group` or `stonewall` begins another.
    pub const fn group(&self) -> u32 {
        self.group
    }

    /// Returns whether the threads of its group are reported as one (`group_reporting`).
    pub const fn is_grouped(&self) -> bool {
        self.job.settings.group_reporting
    }

    /// Number of calls that may be under way: `iodepth`, or 1 for synchronous engines and buffered
    /// I/O.
    pub const fn depth(&self) -> u64 {
        self.job.settings.depth()
    }

    /// `iodepth` as given, or 1.
    pub const fn iodepth(&self) -> u64 {
        self.job.settings.iodepth
    }

    /// Returns whether its engine hands calls over and collects them later.
    pub const fn is_async(&self) -> bool {
        self.job.settings.engine.is_async()
    }

    /// Logs of its calls.
    pub const fn logs(&self) -> &'a LogSettings {
        &self.job.settings.logs
    }

    /// The percentiles that its results show.
    pub const fn percentiles(&self) -> &'a Percentiles {
        &self.job.settings.percentiles
    }

    /// The options of the job's own section, as given.
    pub fn options(&self) -> &'a [(String, String)] {
        &self.job.options
    }

    /// The value of an option as given, by the job or a global section; `None` if fio's default
    /// holds.
    pub fn option(&self, file: &'a JobFile, name: &str) -> Option<&'a str> {
        let given = self.job.options.iter().rev().chain(file.globals.iter().rev());
        given.into_iter().find(|(option, _)| option == name).map(|(_, value)| value.as_str())
    }
}

impl FioWorkload {
    /// Plans threads and files. `seed` and the jobs' `randseed` are all the randomness there is.
    ///
    /// # Errors
    /// A job whose files have no size, are smaller than a block, or are too many.
    pub fn new(jobs: JobFile, seed: u64) -> Result<Self, FioError> {
        Self::planned(jobs, seed, None)
    }

    /// The same on a drive of so many bytes without a file system: `filename=/dev/...` is the
    /// drive, whatever its name, and nothing is laid out.
    ///
    /// # Errors
    /// As [`Self::new`]; also a job that is not on the drive, goes beyond its end, or is buffered.
    pub fn on_drive(jobs: JobFile, seed: u64, bytes: u64) -> Result<Self, FioError> {
        Self::planned(on_drive(jobs)?, seed, Some(bytes))
    }

    fn planned(jobs: JobFile, seed: u64, drive: Option<u64>) -> Result<Self, FioError> {
        let root = Rng::new(seed);
        let plan = Plan::new(&jobs, &root, drive)?;
        let users = Users::new(plan.files.sizes.len(), plan.threads.iter());
        let mut running =
            vec![0; plan.threads.last().map_or(0, |thread| thread.phase as usize) + 1];
        let mut running_of_job = vec![0; jobs.jobs.len()];
        for thread in &plan.threads {
            running[thread.phase as usize] += 1;
            running_of_job[thread.job] += 1;
        }
        let threads = (0..).zip(plan.threads).map(|(number, thread)| {
            let settings = jobs.jobs[thread.job].settings.clone();
            Thread::new(number, thread, settings, root.clone())
        });
        let threads = threads.collect();
        Ok(Self {
            files: plan.files,
            layout: plan.layout.into(),
            threads,
            users,
            running,
            running_of_job,
            exits: jobs.jobs.iter().any(|job| job.settings.exitall),
            names: distinct_names(&jobs.jobs),
            genesis: None,
            jobs,
        })
    }

    /// The job file.
    pub const fn job_file(&self) -> &JobFile {
        &self.jobs
    }

    /// Facts of a thread that results show.
    pub fn info(&self, thread: ThreadId) -> ThreadInfo<'_> {
        let plan = self.threads[thread.0 as usize].plan();
        ThreadInfo { job: &self.jobs.jobs[plan.job], group: plan.group }
    }

    /// Returns whether a thread reads back what it wrote: its reads verify.
    pub fn is_reading_back(&self, thread: ThreadId) -> bool {
        self.threads[thread.0 as usize].is_reading_back()
    }

    /// Returns whether the last sync that a thread called is one of `end_fsync` or
    /// `fsync_on_close`, which fio does not count.
    pub fn synced_to_close(&self, thread: ThreadId) -> bool {
        self.threads[thread.0 as usize].synced_to_close()
    }

    /// Returns whether a thread of an earlier phase, or of the job that it waits for, is not done.
    fn is_held(&self, thread: &Thread) -> bool {
        let ThreadPlan { phase, waits_for, .. } = thread.plan();
        self.running[..*phase as usize].iter().any(|running| *running > 0)
            || waits_for.is_some_and(|job| self.running_of_job[job] > 0)
    }

    fn update(&mut self, thread: usize, was_done: bool) {
        let ended = &self.threads[thread];
        if !ended.is_done() || was_done {
            return;
        }
        let ThreadPlan { phase, job, group, .. } = *ended.plan();
        self.running[phase as usize] -= 1;
        self.running_of_job[job] -= 1;
        if self.exits {
            let what = self.jobs.jobs[job].settings.exit_what;
            let others = self.threads.iter_mut().filter(|other| match what {
                ExitWhat::Group => other.plan().group == group,
                ExitWhat::Stonewall => other.is_running(),
                ExitWhat::All => true,
            });
            others.for_each(Thread::terminate);
        }
    }
}

/// The names of sections. Where one stands again a number follows that makes it another.
fn distinct_names(jobs: &[Job]) -> Vec<String> {
    let mut taken: HashSet<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut distinct = |job: &'_ Job, count: &mut u32| loop {
        *count += 1;
        if *count == 1 {
            return job.name.clone();
        }
        let name = format!("{} ({count})", job.name);
        if taken.insert(name.clone()) {
            return name;
        }
    };
    jobs.iter().map(|job| distinct(job, counts.entry(&job.name).or_default())).collect()
}

impl Workload for FioWorkload {
    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    fn job(&self, thread: ThreadId) -> &str {
        &self.names[self.threads[thread.0 as usize].plan().job]
    }

    fn lifetime(&self, thread: ThreadId) -> Lifetime {
        self.info(thread).job.settings.lifetime
    }

    fn path(&self, file: FileId) -> &str {
        self.files.path(file)
    }

    fn prepare(&mut self) -> Option<Call> {
        let (call, rest) = self.layout.pop_front()?.step();
        if let Some(rest) = rest {
            self.layout.push_front(rest);
        }
        Some(call)
    }

    fn next(&mut self, thread: ThreadId, now: SimTime) -> Step {
        let index = thread.0 as usize;
        let genesis = *self.genesis.get_or_insert(now);
        if self.is_held(&self.threads[index]) {
            return Step::WaitForOthers;
        }
        let thread = &mut self.threads[index];
        let was_done = thread.is_done();
        thread.start(now, genesis);
        let step = thread.next(now, &mut self.users);
        self.update(index, was_done);
        step
    }

    fn ended(&mut self, thread: ThreadId, call: &Call, _outcome: &Outcome) {
        let index = thread.0 as usize;
        let was_done = self.threads[index].is_done();
        self.threads[index].ended(call);
        self.update(index, was_done);
    }

    fn is_cut_short(&self, thread: ThreadId) -> bool {
        self.threads[thread.0 as usize].is_cut_short()
    }

    fn system_calls(&self, thread: ThreadId) -> u32 {
        self.info(thread).job.settings.engine.system_calls()
    }

    fn measured(&self, thread: ThreadId, begin: SimTime) -> bool {
        self.threads[thread.0 as usize].is_measured(begin)
    }

    fn wanted_bytes(&self) -> u64 {
        self.files.sizes.iter().flatten().fold(0, |sum: u64, size| sum.saturating_add(*size))
    }

    fn written_blocks(&self) -> Option<u64> {
        let laid_out = self.layout.iter().map(Task::written_blocks);
        let of_threads = self.threads.iter().map(Thread::written_blocks);
        laid_out
            .map(Some)
            .chain(of_threads)
            .try_fold(0, |sum: u64, blocks| Some(sum.saturating_add(blocks?)))
    }

    fn share_done(&self, now: SimTime) -> Option<f64> {
        let sum: f64 = self.threads.iter().map(|thread| thread.share_done(now)).sum();
        (!self.threads.is_empty()).then(|| sum / self.threads.len() as f64)
    }

    fn fio(&self) -> Option<&FioWorkload> {
        Some(self)
    }
}
