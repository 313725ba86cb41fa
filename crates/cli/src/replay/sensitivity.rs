//! `dovetail replay --sensitivity`: how much results hang on the figures that no source gives.

use std::sync::atomic::{AtomicBool, Ordering};

use dovetail_ftl::{Overrides, Profile};
use dovetail_lab::replay::ReplayJob;
use dovetail_lab::results::RunResult;

use super::{Arguments, job, replays};
use crate::bench::threads;
use crate::sensitivity::{Figure, at_least_one, table};
use crate::signals::{stop_flag, stopped};
use crate::{Failure, drive, print};

/// Figures that are compared.
const FIGURES: [Figure<RunResult>; 6] = [
    ("WAF", |run| run.totals.device_waf),
    ("write p50", |run| at_least_one(run.latency.write.percentiles.p50_ns)),
    ("write p99", |run| at_least_one(run.latency.write.percentiles.p99_ns)),
    ("read p50", |run| at_least_one(run.latency.read.percentiles.p50_ns)),
    ("read p99", |run| at_least_one(run.latency.read.percentiles.p99_ns)),
    ("flush p99", |run| at_least_one(run.latency.flush.percentiles.p99_ns)),
];

/// One table for each trace and drive.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let stop = stop_flag()?;
    for trace in &arguments.traces {
        for name in &arguments.drive {
            let profile = drive::load(name)?;
            let text = compare(arguments, trace, &profile, &stop)?;
            print(&format!("{} on {}\n{text}\n", trace.display(), profile.name))?;
        }
    }
    Ok(())
}

fn compare(
    arguments: &Arguments,
    trace: &std::path::Path,
    profile: &Profile,
    stop: &AtomicBool,
) -> Result<String, Failure> {
    let overrides =
        Overrides { scale: arguments.scale, seed: arguments.seed, ..Overrides::default() };
    let mut jobs = vec![job(arguments, trace, profile, &profile.name, &overrides)?];
    let mut names = Vec::new();
    for variant in profile.variants_of_assumed() {
        // A variant that makes no working drive at this scale tells nothing.
        if let Ok(changed) = job(arguments, trace, &variant.profile, &profile.name, &overrides) {
            let name = [variant.key, variant.from, variant.to];
            jobs.push(ReplayJob { label: format!("{} = {}", name[0], name[2]), ..changed });
            names.push(name);
        }
    }
    let (runs, failed) = replays(&jobs, threads(arguments.jobs), stop, None)?;
    if stop.load(Ordering::Relaxed) {
        return Err(stopped());
    }
    if !failed.is_empty() {
        return Err(Failure::Failed(failed.join("\ndovetail: ")));
    }
    let Some((base, variants)) = runs.split_first() else { return Ok(String::new()) };
    Ok(table(&FIGURES, base, &names, variants))
}
