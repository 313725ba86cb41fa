//! Figures 3, 7 and 8 of the FSDV paper, and what the tool costs the foreground: runs once a minute
//! beside a workload.

use dovetail_devirt::Unit;
use dovetail_ext::Ext;
use dovetail_ftl::Drive;
use dovetail_lab::bench::{BenchError, Source};
use dovetail_lab::results::Results;
use dovetail_time::{SimSpan, SimTime};

use super::fsdv_rig::{LOADS, Load, Rig};
use super::{
    Comparison, Figure, Plan, Reproduction, Setting, between, direction, of, rounded, stacks,
    within,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "fsdv-figure-7",
    title: "Map memory over time with and without the tool, and with thresholds for hot files: figures 3, 7 and 8",
    source: "Zhang et al., Removing the Costs and Retaining the Benefits of Flash-Based SSD Virtualization with FSDV, MSST'15: \
             figures 3, 7 and 8, sections II, VI-B and VI-C",
    setup: "ext3 on fsdv-5g; fileserver with one thread, F3 for figure 3, F2 for the others. The tool runs once a minute, five times, metadata block by metadata block; \
            at a reduced scale the minute shrinks with the number of files. The paper names no rate: 10 ms pass after each call (assumed), so \
            that about a third of the files is replaced in a minute, and another third grows. Means are over the time from the first run on. Throughput is \
            calls of the workload in that time.",
    reduced: 8,
    run,
    sensitivity: None,
};

/// After each call (assumed).
const PAUSE: SimSpan = SimSpan::from_us(10_000);
/// Runs of the tool.
const RUNS: u32 = 5;
/// Samples of the map's memory between two of them.
const SAMPLES: u32 = 12;
/// Thresh_HotFile: none, 1/40, 1/20 and 1/10 of the time between two runs.
const THRESHOLDS: [(&str, u64); 4] = [("0", 0), ("1/40", 40), ("1/20", 20), ("1/10", 10)];

/// "We measure such blocking time to be 5 ms on average."
const BLOCKING_MS: f64 = 5.0;

/// Measurements from the first run on.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Mean of the map, bytes.
    map: f64,
    calls: f64,
    /// Mean time of a run, seconds.
    run_s: f64,
    /// Mean number of files of a run.
    files: f64,
    /// Mean over the runs of what a call waits that comes during a batch, in milliseconds.
    blocking_ms: f64,
}

/// Runs that process all files that changed but those that did so within a part of a minute.
#[derive(Clone, Copy)]
struct Tool {
    hot_parts: u64,
    unit: Unit,
}

impl Tool {
    /// The paper's, with a threshold.
    const fn with(hot_parts: u64) -> Self {
        Self { hot_parts, unit: Unit::MetadataBlock }
    }

    /// Ours, without one.
    const BATCHES: Self = Self { hot_parts: 0, unit: Unit::Most };
}

fn watch(load: &Load, setting: &Setting<'_>, tool: Option<Tool>) -> Result<Seen, BenchError> {
    let minute = SimSpan::from_ns((60e9 * setting.scale.value()) as u64);
    let mut rig = Rig::<Ext<Drive>>::new(load, setting)?;
    rig.pause = PAUSE;
    let start = rig.now() + minute;
    rig.run_until(start)?;
    let (mut seen, first) = (Seen::default(), rig.calls);
    for run in 0..RUNS {
        let begin = start + minute * u64::from(run);
        setting.go_on()?;
        if let Some(Tool { hot_parts, unit }) = tool {
            let hot = minute.as_ns().checked_div(hot_parts);
            let pass = rig.devirtualize(hot.map_or(SimSpan::ZERO, SimSpan::from_ns), unit)?;
            let report = pass.report;
            seen.run_s += report.time().as_secs_f64() / f64::from(RUNS);
            seen.blocking_ms += pass.blocking_ms() / f64::from(RUNS);
            seen.files += report.files as f64 / f64::from(RUNS);
        }
        sample(&mut rig, &mut seen, begin, minute)?;
    }
    seen.calls = (rig.calls - first) as f64;
    Ok(seen)
}

fn sample(
    rig: &mut Rig<Ext<Drive>>,
    seen: &mut Seen,
    begin: SimTime,
    minute: SimSpan,
) -> Result<(), BenchError> {
    for part in 1..=SAMPLES {
        rig.run_until(
            begin + SimSpan::from_ns(minute.as_ns() / u64::from(SAMPLES)) * u64::from(part),
        )?;
        seen.map += rig.map_bytes() as f64 / f64::from(RUNS * SAMPLES);
    }
    Ok(())
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (f2, f3) = (&LOADS[1], &LOADS[2]);
    let mut comparisons = Vec::new();
    let (with, without) = (watch(f3, setting, Some(Tool::with(0)))?, watch(f3, setting, None)?);
    comparisons.push(figure_3(&with, &without));
    comparisons.push(loss("F3", &with, &without));
    comparisons.push(loss_to_batches("F3", &watch(f3, setting, Some(Tool::BATCHES))?, &without));
    let without = watch(f2, setting, None)?;
    let with: Vec<Seen> = THRESHOLDS
        .iter()
        .map(|(_, parts)| watch(f2, setting, Some(Tool::with(*parts))))
        .collect::<Result<_, _>>()?;
    comparisons.push(loss("F2", &with[0], &without));
    comparisons.push(loss_to_batches("F2", &watch(f2, setting, Some(Tool::BATCHES))?, &without));
    comparisons.extend(figures_7_and_8(&with, &without));
    comparisons.push(within(
        "F2: a call to a block that is in work waits",
        "ms",
        BLOCKING_MS,
        with[0].blocking_ms,
        1.5,
    ));
    let (results, blocking) = blocking(f2, setting)?;
    comparisons.push(blocking);
    Ok(Reproduction { comparisons, results })
}

fn figure_3(with: &Seen, without: &Seen) -> Comparison {
    direction(
        "figure 3, F3: mean of the map with the tool, and without",
        "significantly smaller throughout the workload",
        format!("{:.0} KiB, {:.0} KiB", with.map / 1024.0, without.map / 1024.0),
        with.map * 2.0 < without.map,
    )
}

/// Percent of the calls.
fn lost(with: &Seen, without: &Seen) -> f64 {
    100.0 * (1.0 - with.calls / without.calls)
}

/// The paper gives whole percents.
fn loss(name: &str, with: &Seen, without: &Seen) -> Comparison {
    let what = format!("{name}: throughput of the foreground that the tool costs");
    let mut comparison = between(what, "%", (3.0, 5.0), 0.5, lost(with, without));
    comparison.ours += &format!(" (a run takes {:.2} s)", with.run_s);
    comparison
}

fn loss_to_batches(name: &str, with: &Seen, without: &Seen) -> Comparison {
    let what = format!("{name}: throughput of the foreground that our batches cost");
    let lost = lost(with, without);
    Comparison::shown(what, format!("{lost:.1} % (a run takes {:.2} s)", with.run_s))
}

/// Calls of F2 that come during a batch of ours, with the whole stack of a bench: host, page cache
/// and write-back beside the tool.
fn blocking(load: &Load, setting: &Setting<'_>) -> Result<(Results, Comparison), BenchError> {
    let source = Source::Personality(Box::new(load.fileserver(&[("runtime", "180")])?));
    let stacks = stacks(&["fsdv-ext3"], "fsdv-5g")?;
    let plan = Plan { source: &source, fill: None, stacks, final_sync: false };
    let results = setting.perform(&plan)?;
    let work = of(&results, "fsdv-ext3")?.devirtualize.as_ref().map(|runs| runs.total);
    let work = work.unwrap_or_default();
    let ms = work.stalled_s * 1000.0 / work.stalled_calls.max(1) as f64;
    let ours = format!("{} ms ({} calls)", rounded(ms), work.stalled_calls);
    let what = "F2 in bench: a call that comes during a batch of ours waits";
    Ok((results, Comparison::shown(what, ours)))
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
        with.windows(2).all(|two| figure(&two[0]) <= figure(&two[1]))
    };
    let falling = |figure: &dyn Fn(&Seen) -> f64| {
        with.windows(2).all(|two| figure(&two[0]) >= figure(&two[1]))
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
        };
        let (with, without) = (
            watch(&LOADS[1], &setting, Some(Tool::with(0))).unwrap(),
            watch(&LOADS[1], &setting, None).unwrap(),
        );
        assert!(with.map * 1.5 < without.map, "{with:?}, {without:?}");
        let mut rig = Rig::<Ext<Drive>>::new(&LOADS[5], &setting).unwrap();
        let before = rig.map_bytes();
        rig.devirtualize(SimSpan::ZERO, Unit::MetadataBlock).unwrap();
        rig.check();
        assert!(rig.map_bytes() * 2 < before);
    }
}
