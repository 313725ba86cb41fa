//! Common parts of the figures of the F2FS-aware mapping cache's paper: the workloads of table I,
//! each with its cache size.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::{ReadAndWrite, Results, RunResult};
use dovetail_workload::personality::Personality;

use super::mapcache_load::Trace;
use super::{Plan, Setting, stacks};

pub(crate) const SETUP: &str = "The paper traced F2FS on a drive of 120 GB under three applications, and under processes that write or read a file each, and replayed \
    that on FlashSim: 100 GB, 25, 200 and 1500 us, caches of table I. Ours are the personalities media, office and code (sizes of files and of \
    calls are assumed, reads go past the page cache) and the job examples/writers-readers.fio after table I, on F2FS in virtual time on the \
    same drive; the page cache has 64 MiB (assumed), since hours of work pass in minutes. A scale below 1 takes turns from the \
    applications; the synthetic jobs stay whole.";

/// The job of the synthetic workloads.
const JOB: &str = include_str!("../jobs/writers-readers.fio");
/// The drive of the paper's FlashSim.
const DRIVE: &str = "flashsim-100g";
/// Memory of the page cache (assumed).
const MEMORY: &str = "64MiB";

/// A line of table I.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    /// Bytes of the cache in KiB.
    pub(crate) cache_kib: u64,
    /// Writers and readers; `None` for an application.
    processes: Option<(u32, u32)>,
}

const fn application(name: &'static str, cache_kib: u64) -> Work {
    Work { name, cache_kib, processes: None }
}

const fn synthetic(name: &'static str, writers: u32, readers: u32) -> Work {
    Work { name, cache_kib: 128, processes: Some((writers, readers)) }
}

/// The cache policy of the paper's baseline.
pub(crate) const BASELINE: &str = "dftl-flashsim";
/// By what part of the paper's figure ours may differ where the paper has one figure for a mean
/// (assumed; two-sided).
pub(crate) const TOLERANCE: f64 = 0.25;

/// Table I.
pub(crate) const APPLICATIONS: [Work; 3] =
    [application("media", 512), application("office", 128), application("code", 256)];
pub(crate) const SYNTHETIC: [Work; 5] = [
    synthetic("9w1r", 9, 1),
    synthetic("7w3r", 7, 3),
    synthetic("5w5r", 5, 5),
    synthetic("3w7r", 3, 7),
    synthetic("1w9r", 1, 9),
];

impl Work {
    /// The workload. At a scale below 1 an application makes fewer turns over the same files, so
    /// that distances in the cache stay.
    fn source(&self, scale: f64) -> Result<Source, BenchError> {
        if let Some((writers, readers)) = self.processes {
            let variables = [("WRITERS", writers), ("READERS", readers)];
            let variables = variables.map(|(name, value)| (name.to_owned(), value.to_string()));
            return Source::fio(JOB, &format!("{}.fio", self.name), &variables);
        }
        let failed = |error: &dyn std::error::Error| BenchError::Workload(error.to_string());
        let mut personality = Personality::load(self.name).map_err(|error| failed(&error))?;
        let turns = personality.parameters().find(|(name, _)| *name == "turns");
        let turns: f64 = turns.and_then(|(_, value)| value.parse().ok()).unwrap_or(1.0);
        let turns = ((turns * scale).round() as u64).max(1).to_string();
        personality.set([("turns", turns.as_str())]).map_err(|error| failed(&error))?;
        Ok(Source::Personality(Box::new(personality)))
    }

    /// F2FS on the drive of the paper, with the whole map in memory or with a policy.
    fn stack(&self, filesystem: &Stack, policy: Option<&str>) -> Stack {
        let bytes = self.cache_kib * 1024;
        let stack = Stack {
            name: format!("{} {} {}", self.name, filesystem.name, policy.unwrap_or("in memory")),
            memory: MEMORY.into(),
            ..filesystem.clone()
        };
        policy.map_or(stack.clone(), |_| stack.with_map_cache(None, policy, Some(bytes)))
    }

    /// Latencies with a policy over those with another, at loads of the first: the requests that
    /// F2FS makes with its map in memory, replayed open loop.
    pub(crate) fn ratios_at(
        &self,
        setting: &Setting<'_>,
        policies: [&str; 2],
        loads: &[f64],
    ) -> Result<Vec<ReadAndWrite>, BenchError> {
        let f2fs = stacks(&["f2fs"], DRIVE)?.remove(0);
        let source = self.source(setting.scale.value())?;
        let trace = Trace::record(setting, &self.stack(&f2fs, None), &source)?;
        let service = |policy| {
            let stack = setting.changed(&self.stack(&f2fs, Some(policy)))?;
            trace.service_s(&stack, setting.seed)
        };
        let (one, other) = (service(policies[0])?, service(policies[1])?);
        Ok(loads.iter().map(|load| trace.ratio_at(*load, [&one, &other])).collect())
    }

    /// Runs it on file systems with cache policies, each on the drive of the paper.
    pub(crate) fn run(
        &self,
        setting: &Setting<'_>,
        filesystems: &[&str],
        policies: &[&str],
    ) -> Result<Results, BenchError> {
        let source = self.source(setting.scale.value())?;
        let with = |filesystem: &Stack| {
            policies.iter().map(|policy| self.stack(filesystem, Some(policy))).collect::<Vec<_>>()
        };
        let stacks = stacks(filesystems, DRIVE)?.iter().flat_map(with).collect();
        let plan = Plan { source: &source, fill: None, stacks, final_sync: true, restart: false };
        let whole = Setting { scale: dovetail_time::Ratio::ONE, ..*setting };
        whole.perform(&plan)
    }
}

/// The run of a workload on a file system with a policy.
pub(crate) fn with<'r>(
    results: &'r Results,
    work: &Work,
    filesystem: &str,
    policy: &str,
) -> Result<&'r RunResult, BenchError> {
    super::of(results, &format!("{} {filesystem} {policy}", work.name))
}

/// Adds the runs of `more`.
pub(crate) fn join(all: &mut Option<Results>, more: Results) {
    match all {
        Some(all) => all.runs.extend(more.runs),
        None => *all = Some(more),
    }
}
