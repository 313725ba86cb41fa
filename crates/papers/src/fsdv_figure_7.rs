//! Figures 3, 7 and 8 of the FSDV paper, and what the tool costs the foreground: runs once a minute
//! beside a workload.

use dovetail_lab::bench::{self, BenchError, Job, Schedule, Stack};
use dovetail_lab::results::{Results, RunResult};
use dovetail_time::{SimSpan, SimTime};
use dovetail_workload::{Call, FileId, Outcome, Step, ThreadId, Workload};

use super::fsdv_rig::{LOADS, Load};
use super::{Comparison, Figure, Reproduction, Setting, between, direction, rounded, within};

pub(crate) const FIGURE: Figure = Figure {
    name: "fsdv-figure-7",
    title: "Map memory over time with and without the tool, and with thresholds for hot files: figures 3, 7 and 8",
    source: "Zhang et al., Removing the Costs and Retaining the Benefits of Flash-Based SSD Virtualization with FSDV, MSST'15: \
             figures 3, 7 and 8, sections II, VI-B and VI-C",
    setup: "The stack fsdv-ext3 in bench: fileserver with one thread, F3 for figure 3, F2 for the others. The tool runs once a minute, five times, metadata block by metadata block, \
            beside the workload: calls on the blocks in work wait, others go on. The host has 16 GB as the paper's. At a reduced scale the minute shrinks with the number of files. The paper names no rate: 10 ms pass after each call (assumed), so \
            that about a third of the files is replaced in a minute, and another third grows. At full speed there are no pauses, and two runs. \
            Means are over the time from the first run on. Throughput is calls of the workload in that time.",
    reduced: 8,
    run,
    sensitivity: None,
};

/// So long before the first run measuring begins, and before the next one after the last it ends.
const SLACK: SimSpan = SimSpan::from_us(20_000);
/// After each call (assumed), but at full speed.
const PAUSE: SimSpan = SimSpan::from_us(10_000);
/// Other pauses, under which the cost of the tool is shown.
const SHORTER: [SimSpan; 3] =
    [SimSpan::from_us(5_000), SimSpan::from_us(2_500), SimSpan::from_us(1_250)];
/// The paper's host (section VI).
const MEMORY: &str = "16GB";
/// Runs of the tool.
const RUNS: u32 = 5;
/// Fewer at full speed: one thread goes round the files in turns, so some are appended to again and
/// again and never replaced, and with five runs they fill the volume.
const RUNS_AT_FULL_SPEED: u32 = 2;
/// Thresh_HotFile: none, 1/40, 1/20 and 1/10 of the time between two runs.
const THRESHOLDS: [(&str, u64); 4] = [("0", 0), ("1/40", 40), ("1/20", 20), ("1/10", 10)];

/// Milliseconds (section VI-B).
const BLOCKING_MS: f64 = 5.0;

/// Tools that run at full speed, and none.
const AT_FULL_SPEED: [Option<Tool>; 3] = [Some(Tool::with(0)), Some(Tool::BATCHES), None];

/// Runs that process all files that changed but those that did so within a part of a minute.
#[derive(Clone, Copy)]
struct Tool {
    hot_parts: u64,
    unit: &'static str,
}

impl Tool {
    /// The paper's, with a threshold.
    const fn with(hot_parts: u64) -> Self {
        Self { hot_parts, unit: "metadata-block" }
    }

    /// Ours, without one.
    const BATCHES: Self = Self { hot_parts: 0, unit: "most" };

    fn schedule(self, minute: SimSpan) -> Schedule {
        let time = |span: u64| Some(format!("{span}ns"));
        Schedule {
            every: time(minute.as_ns()),
            hot: minute.as_ns().checked_div(self.hot_parts).and_then(time),
            unit: Some(self.unit.into()),
            ..Schedule::default()
        }
    }
}

/// A workload whose thread rests after each call, and which ends a minute after the last run began.
/// It is measured from the first run on.
struct Paced {
    workload: Box<dyn Workload>,
    minute: SimSpan,
    pause: SimSpan,
    runs: u32,
    begin: Option<SimTime>,
    rests_until: SimTime,
    /// Calls since the first run.
    calls: u64,
}

impl Paced {
    fn new(workload: Box<dyn Workload>, minute: SimSpan, pause: SimSpan) -> Self {
        let runs = if pause == SimSpan::ZERO { RUNS_AT_FULL_SPEED } else { RUNS };
        Self { workload, minute, pause, runs, begin: None, rests_until: SimTime::ZERO, calls: 0 }
    }

    /// The first run begins a minute after the workload. It is to be within what is measured.
    fn is_measured(&self, at: SimTime) -> bool {
        self.begin.is_some_and(|begin| at + SLACK >= begin + self.minute)
    }
}

impl Workload for Paced {
    fn threads(&self) -> u32 {
        self.workload.threads()
    }

    fn job(&self, thread: ThreadId) -> &str {
        self.workload.job(thread)
    }

    fn path(&self, file: FileId) -> &str {
        self.workload.path(file)
    }

    fn first_file(&self) -> FileId {
        self.workload.first_file()
    }

    fn prepare(&mut self) -> Option<Call> {
        self.workload.prepare()
    }

    fn next(&mut self, thread: ThreadId, now: SimTime) -> Step {
        let begin = *self.begin.get_or_insert(now);
        if now + SLACK >= begin + self.minute * u64::from(self.runs + 1) {
            Step::Done
        } else if now < self.rests_until {
            Step::Sleep(self.rests_until)
        } else {
            self.workload.next(thread, now)
        }
    }

    fn ended(&mut self, thread: ThreadId, call: &Call, outcome: &Outcome) {
        self.calls += u64::from(self.is_measured(outcome.begin));
        self.rests_until = outcome.end + self.pause;
        self.workload.ended(thread, call, outcome);
    }

    fn measured(&self, _thread: ThreadId, begin: SimTime) -> bool {
        self.is_measured(begin)
    }

    fn problem(&self) -> Option<String> {
        self.workload.problem()
    }
}

/// Measurements from the first run on.
#[derive(Clone, Debug)]
struct Seen {
    /// Mean of the map, bytes.
    map: f64,
    calls: f64,
    /// Runs that have ended.
    runs: u64,
    /// Mean time of a run, seconds.
    run_s: f64,
    /// Mean number of files of a run.
    files: f64,
    /// Calls that came to blocks in work.
    stalled_calls: u64,
    /// Mean wait of such a call.
    stalled_ms: f64,
    /// Mean wait of a call that comes at any moment of a run.
    blocking_ms: f64,
    result: RunResult,
}

impl Seen {
    fn of(calls: u64, result: RunResult) -> Self {
        let runs = result.devirtualize.clone().unwrap_or_default();
        let work = runs.total;
        let mean = |sum: f64, count: u64| sum / count.max(1) as f64;
        let map = &result.series.map_bytes;
        Self {
            map: mean(map.iter().sum::<u64>() as f64, map.len() as u64),
            calls: calls as f64,
            runs: runs.count,
            run_s: mean(work.time_s, runs.count),
            files: mean(work.files as f64, runs.count),
            stalled_calls: work.stalled_calls,
            stalled_ms: mean(work.stalled_s * 1000.0, work.stalled_calls),
            blocking_ms: work.block_wait_s * 1000.0,
            result,
        }
    }
}

/// A load beside the tool, or alone, with pauses between its calls.
fn watch(
    load: &Load,
    setting: &Setting<'_>,
    tool: Option<Tool>,
    pause: SimSpan,
) -> Result<Seen, BenchError> {
    let minute = SimSpan::from_ns((60e9 * setting.scale.value()) as u64);
    let stack = Stack {
        drive: "fsdv-5g".into(),
        memory: MEMORY.into(),
        devirtualize: tool.map(|tool| tool.schedule(minute)),
        ..Stack::load("fsdv-ext3")?
    };
    let stack = setting.changed(&stack)?;
    let unit = tool.map_or("without the tool", |tool| tool.unit);
    let hot = tool.filter(|tool| tool.hot_parts > 0);
    let hot = hot.map_or(String::new(), |tool| format!(", hot 1/{}", tool.hot_parts));
    let speed = match pause {
        PAUSE => String::new(),
        SimSpan::ZERO => ", at full speed".into(),
        pause => format!(", pauses of {pause}"),
    };
    let job = Job {
        label: format!("{}, {unit}{hot}{speed}", load.name),
        stack: &stack,
        scale: setting.scale,
        seed: setting.seed,
        stop: &|| setting.go_on().is_err(),
        precondition: None,
        final_sync: false,
        restart: false,
        progress: &|_| {},
    };
    let mut workload = Paced::new(load.workload(setting.scale, setting.seed)?, minute, pause);
    let result = bench::run(&job, &mut workload)?;
    setting.go_on()?;
    match result.error.clone() {
        Some(error) => Err(BenchError::Workload(error)),
        None => Ok(Seen::of(workload.calls, result)),
    }
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (f2, f3) = (&LOADS[1], &LOADS[2]);
    let published = Some(Tool::with(0));
    let mut watches = vec![(f3, published, PAUSE), (f3, None, PAUSE), (f2, None, PAUSE)];
    watches.extend(THRESHOLDS.map(|(_, parts)| (f2, Some(Tool::with(parts)), PAUSE)));
    watches.extend(SHORTER.iter().flat_map(|&pause| [(f2, published, pause), (f2, None, pause)]));
    watches.extend(AT_FULL_SPEED.map(|tool| (f2, tool, SimSpan::ZERO)));
    let seen = setting.each(&watches, |&(load, tool, pause)| watch(load, setting, tool, pause))?;
    let (f3, f2_without) = (&seen[..2], &seen[2]);
    let (f2_with, faster) = seen[3..].split_at(THRESHOLDS.len());
    let (shorter, at_full_speed) = faster.split_at(2 * SHORTER.len());
    let mut comparisons = vec![figure_3(&f3[0], &f3[1])];
    comparisons.extend(figures_7_and_8(f2_with, f2_without));
    for (name, with, without) in [("F3", &f3[0], &f3[1]), ("F2", &f2_with[0], f2_without)] {
        comparisons.extend([loss(name, with, without), blocking(name, with)]);
        comparisons.push(share_of_time(name, with, setting));
    }
    let shorter = SHORTER.into_iter().zip(shorter.chunks_exact(2));
    comparisons.extend(shorter.map(|(pause, two)| with_shorter_pauses(pause, &two[0], &two[1])));
    let without = &at_full_speed[AT_FULL_SPEED.len() - 1];
    for (tool, with) in AT_FULL_SPEED.into_iter().flatten().zip(at_full_speed) {
        comparisons.push(at_full_speed_with(tool, with, without));
    }
    let runs = seen.into_iter().map(|seen| seen.result).collect();
    let results = Results::of(FIGURE.title.into(), setting.scale.value(), setting.seed, runs);
    Ok(Reproduction { comparisons, results })
}

/// "We measure such blocking time to be 5 ms on average."
fn blocking(name: &str, with: &Seen) -> Comparison {
    let what = format!("{name}: a call to a block that is in work waits, at any moment of a run");
    let mut comparison = within(what, "ms", BLOCKING_MS, with.blocking_ms, 1.5);
    comparison.ours += &format!(" ({} calls did)", with.stalled_calls);
    comparison
}

fn figure_3(with: &Seen, without: &Seen) -> Comparison {
    direction(
        "figure 3, F3: mean of the map with the tool, and without",
        "significantly smaller throughout the workload",
        format!("{:.0} KiB, {:.0} KiB", with.map / 1024.0, without.map / 1024.0),
        with.map * 2.0 < without.map,
    )
    .by("less than half")
}

/// Percent of the calls.
fn lost(with: &Seen, without: &Seen) -> f64 {
    100.0 * (1.0 - with.calls / without.calls)
}

/// The paper gives whole percents.
fn loss(name: &str, with: &Seen, without: &Seen) -> Comparison {
    let what = format!("{name}: throughput of the foreground that the tool costs");
    between(what, "%", (3.0, 5.0), 0.5, lost(with, without))
}

/// The loss if no call went on during a run.
fn share_of_time(name: &str, with: &Seen, setting: &Setting<'_>) -> Comparison {
    let part = 100.0 * with.run_s / (60.0 * setting.scale.value());
    let ours = format!("{part:.2} % (a run takes {:.2} s)", with.run_s);
    Comparison::shown(format!("{name}: part of the time in which the tool runs"), ours)
}

/// The rate of the foreground, which the paper does not name, decides its loss.
fn with_shorter_pauses(pause: SimSpan, with: &Seen, without: &Seen) -> Comparison {
    let ours = format!(
        "{:.2} % (a run takes {:.2} s, {} calls waited {} ms; at any moment of a run {} ms)",
        lost(with, without),
        with.run_s,
        with.stalled_calls,
        rounded(with.stalled_ms),
        rounded(with.blocking_ms)
    );
    let what =
        format!("F2 with pauses of {pause}: throughput of the foreground that the tool costs");
    Comparison::shown(what, ours)
}

/// The drive is busy all the time then, with what the tool has to wait for.
fn at_full_speed_with(tool: Tool, with: &Seen, without: &Seen) -> Comparison {
    let what =
        format!("F2 at full speed, batches by {}: cost of the tool for the foreground", tool.unit);
    let (lost, calls) = (lost(with, without), with.stalled_calls);
    let ours = if with.runs == 0 {
        format!("{lost:.1} % (no run came to its end)")
    } else {
        let waits = rounded(with.stalled_ms);
        format!("{lost:.1} % (a run takes {:.2} s, {calls} calls waited {waits} ms)", with.run_s)
    };
    Comparison::shown(what, ours)
}

fn figures_7_and_8(with: &[Seen], without: &Seen) -> [Comparison; 3] {
    let shown = |figure: &dyn Fn(&Seen) -> String| {
        let each = THRESHOLDS
            .iter()
            .zip(with)
            .map(|((name, _), seen)| format!("{name}: {}", figure(seen)));
        each.collect::<Vec<_>>().join(", ")
    };
    let rising = |figure: &dyn Fn(&Seen) -> f64| {
        with.windows(2).all(|two| figure(&two[0]) < figure(&two[1]))
    };
    let falling = |figure: &dyn Fn(&Seen) -> f64| {
        with.windows(2).all(|two| figure(&two[0]) > figure(&two[1]))
    };
    let none = format!(", without the tool {:.0} KiB", without.map / 1024.0);
    [
        direction(
            "figure 7, F2: mean of the map by threshold",
            "0 < 1/40 < 1/20 < 1/10 < without",
            shown(&|seen| format!("{:.0}", seen.map / 1024.0)) + &none,
            rising(&|seen| seen.map) && with.iter().all(|seen| seen.map < without.map),
        ),
        direction(
            "figure 8, F2: mean time of a run by threshold",
            "0 > 1/40 > 1/20 > 1/10",
            shown(&|seen| format!("{:.3} s", seen.run_s)),
            falling(&|seen| seen.run_s),
        ),
        direction(
            "figure 8, F2: mean number of files of a run by threshold",
            "0 > 1/40 > 1/20 > 1/10",
            shown(&|seen| format!("{:.0}", seen.files)),
            falling(&|seen| seen.files),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn the_tool_keeps_the_map_small_beside_a_workload() {
        let stop = AtomicBool::new(false);
        let setting = Setting {
            scale: "1/64".parse().unwrap(),
            seed: 1,
            threads: 1,
            stop: &stop,
            clock: None,
            changes: &crate::Changes::default(),
            finished: None,
        };
        let (with, without) = (
            watch(&LOADS[1], &setting, Some(Tool::with(0)), PAUSE).unwrap(),
            watch(&LOADS[1], &setting, None, PAUSE).unwrap(),
        );
        assert!(with.map * 1.5 < without.map, "{with:?}, {without:?}");
    }
}
