//! `dovetail bench --sensitivity`: how much results hang on what the host's work is assumed to
//! cost.

use std::sync::atomic::Ordering;

use dovetail_lab::bench::{Experiment, Stack};
use dovetail_lab::results::RunResult;

use super::{complaints, run_seen};
use crate::progress::Seen;
use crate::sensitivity::{Change, Figure, at_least_one, table};
use crate::signals::stopped;
use crate::{Failure, print};

/// Figures that are compared.
const FIGURES: [Figure<RunResult>; 8] = [
    ("calls/s", |run| (run.totals.calls_per_s > 0.0).then_some(run.totals.calls_per_s)),
    ("write p50", |run| at_least_one(run.latency.write.percentiles.p50_ns)),
    ("write p99", |run| at_least_one(run.latency.write.percentiles.p99_ns)),
    ("read p50", |run| at_least_one(run.latency.read.percentiles.p50_ns)),
    ("read p99", |run| at_least_one(run.latency.read.percentiles.p99_ns)),
    ("sync p99", |run| at_least_one(run.latency.flush.percentiles.p99_ns)),
    ("fs WAF", |run| run.totals.fs_waf),
    ("drive WAF", |run| run.totals.device_waf),
];

/// One table for each stack of the experiment.
pub(super) fn run(experiment: &Experiment<'_>, jobs: Option<usize>) -> Result<(), Failure> {
    for stack in experiment.stacks {
        let text = compare(experiment, stack, jobs)?;
        print(&format!("{} on {}\n{text}\n", experiment.source.name(), stack.name))?;
    }
    Ok(())
}

fn compare(
    experiment: &Experiment<'_>,
    stack: &Stack,
    jobs: Option<usize>,
) -> Result<String, Failure> {
    let (changes, stacks) = variants(stack);
    let experiment = Experiment { stacks: &stacks, ..*experiment };
    let (results, failures) = run_seen(&experiment, jobs, &Seen::of(experiment.labels(), None));
    if experiment.stop.load(Ordering::Relaxed) {
        return Err(stopped());
    }
    let complaints = complaints(&results, &failures);
    if !complaints.is_empty() {
        return Err(Failure::Failed(complaints.join("\ndovetail: ")));
    }
    let Some((base, variants)) = results.runs.split_first() else { return Ok(String::new()) };
    Ok(table(&FIGURES, base, &changes, variants))
}

/// Changes, and stacks: the one as it is, then one for each change of a cost.
fn variants(stack: &Stack) -> (Vec<Change>, Vec<Stack>) {
    let (mut changes, mut stacks) = (Vec::new(), vec![stack.clone()]);
    for variant in stack.host.variants_of_assumed() {
        let name = format!("{}, {} = {}", stack.name, variant.key, variant.to);
        stacks.push(Stack { name, host: variant.costs, ..stack.clone() });
        changes.push([
            format!("host.{}", variant.key),
            variant.from.to_string(),
            variant.to.to_string(),
        ]);
    }
    (changes, stacks)
}
