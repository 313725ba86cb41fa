//! A run, or all repetitions of one stack, as the sentences see it: means of a few figures.

use dovetail_lab::results::{LatencyResult, RunResult};

/// Bytes of a block.
const BLOCK: f64 = 4096.0;

/// A kind of call in the plural, with where its latencies stand.
type Kind = (&'static str, fn(&RunResult) -> &LatencyResult);

/// Kinds of call.
pub(super) const KINDS: [Kind; 4] = [
    ("reads", |run| &run.latency.read),
    ("writes", |run| &run.latency.write),
    ("syncs", |run| &run.latency.flush),
    ("discards", |run| &run.latency.discard),
];

/// Means over the repetitions of a stack; a run that stands alone is its own mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Side {
    /// Name that tells it from the others.
    pub(super) name: String,
    /// Million bytes a second that the workload read and wrote.
    pub(super) mb_per_s: f64,
    /// It both read and wrote.
    pub(super) is_mixed: bool,
    /// Calls a second.
    pub(super) calls_per_s: f64,
    /// 99th percentiles in ns, by kind as in [`KINDS`]; 0 without calls.
    pub(super) p99_ns: [f64; 4],
    /// Time that all calls took, by kind as in [`KINDS`], in ns.
    pub(super) call_ns: [f64; 4],
    /// Bytes that the workload wrote.
    pub(super) asked: f64,
    /// Bytes that reached the drive.
    pub(super) reached: f64,
    /// Bytes that were programmed.
    pub(super) programmed: f64,
    /// Blocks that the file system wrote, by cause.
    pub(super) written: Vec<(String, f64)>,
    /// Pages that were programmed for another reason than the host, by cause.
    pub(super) programs: [(&'static str, f64); 6],
    /// CPUs that worked, in the mean.
    pub(super) cpus_busy: f64,
    /// CPUs of the host; 0 for any number.
    pub(super) cpus: f64,
    /// Share of the dies' time in which they worked.
    pub(super) dies_busy: f64,
    /// Lines whose cleaning writes waited for.
    pub(super) stalls: f64,
    /// It has a file system.
    pub(super) has_files: bool,
}

impl Side {
    /// The sides of `runs`: those of one label but for its ` #n` are one.
    pub(super) fn of(runs: &[&RunResult]) -> Vec<Self> {
        let mut groups: Vec<(&str, Vec<&RunResult>)> = Vec::new();
        for run in runs {
            let name = base(run);
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, group)) => group.push(run),
                None => groups.push((name, vec![run])),
            }
        }
        let shared = shared_parts(&groups.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        groups.iter().map(|(name, group)| Self::mean(&rest(name, shared), group)).collect()
    }

    fn mean(name: &str, runs: &[&RunResult]) -> Self {
        let mean = |figure: &dyn Fn(&RunResult) -> f64| {
            runs.iter().map(|run| figure(run)).sum::<f64>() / runs.len() as f64
        };
        let first = runs[0];
        let cause = |cause: &'static str, pages: fn(&RunResult) -> u64| {
            (cause, mean(&|run| pages(run) as f64))
        };
        Self {
            name: name.into(),
            mb_per_s: mean(&|run| run.totals.read_mb_per_s + run.totals.write_mb_per_s),
            is_mixed: first.totals.read_mb_per_s > 0.0 && first.totals.write_mb_per_s > 0.0,
            calls_per_s: mean(&|run| run.totals.calls_per_s),
            p99_ns: KINDS.map(|(_, of)| mean(&|run| of(run).percentiles.p99_ns as f64)),
            call_ns: KINDS.map(|(_, of)| {
                mean(&|run| of(run).percentiles.mean_ns * of(run).percentiles.count as f64)
            }),
            asked: mean(&asked),
            reached: mean(&|run| run.totals.drive.written_blocks as f64 * BLOCK),
            programmed: mean(&programmed),
            written: first
                .written
                .keys()
                .map(|key| {
                    let blocks = |run: &RunResult| run.written.get(key).copied().unwrap_or(0);
                    (key.clone(), mean(&|run| blocks(run) as f64))
                })
                .collect(),
            programs: [
                cause("cleaning", |run| run.totals.drive.programs.gc),
                cause("merges", |run| run.totals.drive.programs.merge),
                cause("translation pages", |run| run.totals.drive.programs.translation),
                cause("wear levelling", |run| run.totals.drive.programs.wear),
                cause("folding its SLC cache", |run| run.totals.drive.programs.fold),
                cause("pages left empty in word lines", |run| {
                    run.totals.drive.cells.as_ref().map_or(0, |cells| cells.skipped_pages)
                }),
            ],
            cpus_busy: mean(&|run| run.totals.cpu_s / run.totals.elapsed_s.max(1e-9)),
            cpus: f64::from(first.stack.host.cpus),
            dies_busy: mean(&|run| {
                run.dies.iter().map(|die| die.busy).sum::<f64>() / run.dies.len().max(1) as f64
            }),
            stalls: mean(&|run| run.totals.drive.gc_stalls as f64),
            has_files: !first.stack.is_raw() && first.trace.is_none(),
        }
    }

    /// Share of the calls' time that a kind takes, by its place in [`KINDS`].
    pub(super) fn call_share(&self, kind: usize) -> f64 {
        let all: f64 = self.call_ns.iter().sum();
        if all > 0.0 { self.call_ns[kind] / all } else { 0.0 }
    }
}

/// Bytes that calls wrote, those of ramps included: the results' write amplification has them.
fn asked(run: &RunResult) -> f64 {
    (run.totals.written_bytes + run.totals.ramp_written_bytes) as f64
}

/// Bytes programmed, whatever the cause: as the results' own write amplification has them.
fn programmed(run: &RunResult) -> f64 {
    let totals = &run.totals;
    let of_drive = totals.device_waf.map(|waf| waf * totals.drive.written_blocks as f64 * BLOCK);
    of_drive.or(totals.total_waf.map(|waf| waf * asked(run))).unwrap_or(0.0)
}

/// A run's label without the number of its repetition.
fn base(run: &RunResult) -> &str {
    let label = if run.label.is_empty() { &run.stack.name } else { &run.label };
    match label.rsplit_once(" #") {
        Some((name, number)) if number.parse::<u32>().is_ok() => name,
        _ => label,
    }
}

/// Parts of labels, cut at commas, that all have in common at their begin; the last one stays.
fn shared_parts(names: &[&str]) -> usize {
    let split: Vec<Vec<&str>> = names.iter().map(|name| name.split(", ").collect()).collect();
    let least = split.iter().map(Vec::len).min().unwrap_or(0).saturating_sub(1);
    let is_shared = |at: &usize| split.iter().all(|parts| parts[*at] == split[0][*at]);
    if names.len() < 2 { 0 } else { (0..least).take_while(is_shared).count() }
}

fn rest(name: &str, shared: usize) -> String {
    name.split(", ").skip(shared).collect::<Vec<_>>().join(", ")
}

/// The requests of two runs' traces are the same; benches of one call have one workload.
pub(super) fn is_same_work(a: &RunResult, b: &RunResult) -> bool {
    let trace = |run: &RunResult| {
        run.trace.as_ref().map(|trace| (trace.name.clone(), trace.requests.clone()))
    };
    trace(a) == trace(b)
}

/// The trace itself says when requests come.
pub(super) fn is_paced(run: &RunResult) -> bool {
    run.replay.as_ref().is_some_and(|replay| replay.mode == "timed")
}

/// Latencies of so many calls, for tests.
#[cfg(test)]
pub(super) fn latency(p99_ns: u64, count: u64) -> LatencyResult {
    let mut found = LatencyResult::default();
    let p = &mut found.percentiles;
    (p.count, p.p99_ns, p.p50_ns, p.mean_ns) = (count, p99_ns, p99_ns / 2, p99_ns as f64 / 2.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, mb_per_s: f64) -> RunResult {
        let mut run = RunResult { label: label.into(), ..RunResult::default() };
        run.totals.write_mb_per_s = mb_per_s;
        run
    }

    #[test]
    fn repetitions_are_one_side_and_what_all_labels_share_is_left_out() {
        let runs = [run("f2fs #1", 2.0), run("f2fs #2", 4.0), run("ext4 #1", 1.0)];
        let sides = Side::of(&runs.iter().collect::<Vec<_>>());
        let found: Vec<_> = sides.iter().map(|s| (s.name.as_str(), s.mb_per_s)).collect();
        assert_eq!(found, [("f2fs", 3.0), ("ext4", 1.0)]);
        let runs = [run("femu-32g, op 5 %", 2.0), run("femu-32g, op 28 %", 4.0)];
        let names: Vec<_> =
            Side::of(&runs.iter().collect::<Vec<_>>()).into_iter().map(|side| side.name).collect();
        assert_eq!(names, ["op 5 %", "op 28 %"]);
    }
}
