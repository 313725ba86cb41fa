//! Figure 5 of the F2FS-aware mapping cache's paper: latencies of the split cache of DFTL's, and
//! hit ratios.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::{ReadAndWrite, Results, latencies};

use super::mapcache::{APPLICATIONS, BASELINE, SETUP, SYNTHETIC, TOLERANCE, Work, join, with};
use super::{Comparison, Figure, Reproduction, Setting, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "mapcache-figure-5",
    title: "Read and write latency with the split cache, of DFTL's, and hit ratios",
    source: "Gao et al., F2FS Aware Mapping Cache Design on Solid State Drives: figures 5a to 5d and section V.B",
    setup: SETUP,
    reduced: 1,
    run,
    sensitivity: None,
};

const POLICIES: [&str; 3] = ["split", BASELINE, "dftl"];
/// The paper's means over all workloads, in percent.
const READ: f64 = 31.2;
const WRITE: f64 = 38.7;
/// "The read latency of the three real workloads are reduced to less than 35 %."
const READ_OF_APPLICATIONS: f64 = 0.35;
/// Points of a hundred that count as significantly more hits (assumed).
const SIGNIFICANT: f64 = 0.1;

/// The split cache beside the others.
struct Line {
    name: &'static str,
    /// Of FlashSim's DFTL: flash operations added up, as if no request ever waited for another.
    service: ReadAndWrite,
    /// Of FlashSim's DFTL: latencies at the pace of our workload.
    in_time: ReadAndWrite,
    /// Of DFTL as published, in both ways.
    published: ReadAndWrite,
    published_in_time: ReadAndWrite,
    hits: ReadAndWrite,
    hits_of_baseline: ReadAndWrite,
}

fn line(work: &Work, results: &Results) -> Result<Line, BenchError> {
    let of = |policy| with(results, work, "f2fs", policy);
    let cache = |policy| of(policy).map(|run| run.map_cache.clone().unwrap_or_default());
    let (split, baseline) = (cache("split")?, cache(BASELINE)?);
    Ok(Line {
        name: work.name,
        service: split.summed_us.over(baseline.summed_us),
        in_time: latencies(of("split")?).over(latencies(of(BASELINE)?)),
        published: split.summed_of_dftl,
        published_in_time: split.of_dftl,
        hits: split.hit_ratio,
        hits_of_baseline: baseline.hit_ratio,
    })
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (mut all, mut lines, mut loads) = (None, Vec::new(), Vec::new());
    for work in APPLICATIONS.iter().chain(&SYNTHETIC) {
        let results = work.run(setting, &["f2fs"], &POLICIES)?;
        lines.push(line(work, &results)?);
        loads.push(work.ratios_at(setting, ["split", BASELINE], &LOADS)?);
        join(&mut all, results);
    }
    let mut comparisons = means(&lines);
    comparisons.extend(trends(&lines));
    comparisons.extend(hit_ratios(&lines));
    comparisons.extend(over_the_load(&loads));
    comparisons.extend(published(&lines));
    let results = all.ok_or_else(|| BenchError::Workload("no workload was run".into()))?;
    Ok(Reproduction { comparisons, results })
}

type Figure5 = fn(&Line) -> ReadAndWrite;
type Side = fn(ReadAndWrite) -> Option<f64>;

const SERVICE: Figure5 = |line| line.service;
const IN_TIME: Figure5 = |line| line.in_time;
const READS: Side = |both| both.read;
const WRITES: Side = |both| both.write;

fn percent(share: Option<f64>) -> String {
    share.map_or("none".into(), |share| format!("{:.1} %", share * 100.0))
}

fn values(lines: &[Line], figure: Figure5, side: Side) -> Vec<f64> {
    lines.iter().filter_map(|line| side(figure(line))).collect()
}

/// The mean, and each.
fn averaged(lines: &[Line], figure: Figure5, side: Side) -> (f64, String) {
    let known = values(lines, figure, side);
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    (mean, format!("{}: {}", percent(Some(mean)), each(lines, figure, side)))
}

fn each(lines: &[Line], figure: Figure5, side: Side) -> String {
    let shown = |line: &Line| format!("{} {}", line.name, percent(side(figure(line))));
    lines.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn means(lines: &[Line]) -> Vec<Comparison> {
    let average = |what: &str, paper: f64, figure: Figure5, side: Side| {
        let (mean, ours) = averaged(lines, figure, side);
        Comparison {
            what: format!("{what}, mean of all workloads"),
            paper: format!("{paper} %"),
            ours,
            rule: format!("within {:.0} %", TOLERANCE * 100.0),
            agrees: (mean * 100.0 / paper - 1.0).abs() <= TOLERANCE,
        }
    };
    // the paper names no pace, so nothing at ours is compared with it
    let at_our_pace = |what: &str, side: Side| {
        let what = format!("{what}, at our pace, mean of all workloads");
        Comparison::shown(what, averaged(lines, IN_TIME, side).1)
    };
    let applications = &lines[..APPLICATIONS.len()];
    let below = |line: &Line| line.service.read.is_some_and(|read| read < READ_OF_APPLICATIONS);
    vec![
        average("5a: read latency of FlashSim's DFTL, service alone", READ, SERVICE, READS),
        average("5b: write latency of FlashSim's DFTL, service alone", WRITE, SERVICE, WRITES),
        at_our_pace("5a: read latency of FlashSim's DFTL", READS),
        at_our_pace("5b: write latency of FlashSim's DFTL", WRITES),
        Comparison {
            what: "5a: read latency of each application, service alone".into(),
            paper: "below 35 %".into(),
            ours: each(applications, SERVICE, READS),
            rule: "below 35 %".into(),
            agrees: applications.iter().all(below),
        },
    ]
}

/// By how much latencies fall, from one workload to another.
fn trends(lines: &[Line]) -> Vec<Comparison> {
    let (applications, synthetic) = lines.split_at(APPLICATIONS.len());
    let smaller = |line: &Line| line.service.write > line.service.read;
    let weaker = |what: &str, figure: Figure5, side: Side| {
        let paper = "weaker with more readers and fewer writers, 9W1R to 1W9R";
        let values = values(synthetic, figure, side);
        let rises = values.is_sorted_by(|one, next| one < next);
        let ours = each(synthetic, figure, side);
        direction(what, paper, ours, rises && values.len() == synthetic.len())
    };
    vec![
        direction(
            "5b: writes of the applications gain less than reads, service alone",
            "the write performance improvement is smaller",
            format!("writes {}", each(applications, SERVICE, WRITES)),
            applications.iter().all(smaller),
        ),
        weaker("5a: what reads gain, service alone", SERVICE, READS),
        weaker("5b: what writes gain, service alone", SERVICE, WRITES),
        Comparison::shown(
            "5b: write latency, at our pace, 9W1R to 1W9R",
            each(synthetic, IN_TIME, WRITES),
        ),
    ]
}

/// Parts of the time for which the drive is busy with the split cache. The paper names no load, so
/// none is compared with it.
const LOADS: [f64; 8] = [0.1, 0.3, 0.5, 0.7, 0.9, 1.5, 3.0, f64::INFINITY];

/// Means over the workloads, of which each line has the loads.
fn over_the_load(lines: &[Vec<ReadAndWrite>]) -> Vec<Comparison> {
    let mean = |at: usize, side: Side| {
        let known: Vec<f64> = lines.iter().filter_map(|line| side(line[at])).collect();
        percent(Some(known.iter().sum::<f64>() / known.len() as f64))
    };
    let row = |(at, load): (usize, &f64)| {
        let load =
            if load.is_finite() { format!("a load of {load}") } else { "all at once".into() };
        Comparison::shown(
            format!(
                "5a, 5b: open loop, {load}: latencies of FlashSim's DFTL, mean of all workloads"
            ),
            format!("reads {}, writes {}", mean(at, READS), mean(at, WRITES)),
        )
    };
    LOADS.iter().enumerate().map(row).collect()
}

/// DFTL as its own paper has it writes back by translation page, as the split cache does.
fn published(lines: &[Line]) -> Vec<Comparison> {
    let row = |what: &str, figure: Figure5, side: Side| {
        let what = format!("{what} of DFTL as published, mean of all workloads");
        Comparison::shown(what, averaged(lines, figure, side).1)
    };
    let (service, in_time): (Figure5, Figure5) =
        (|line| line.published, |line| line.published_in_time);
    vec![
        row("read latency, service alone,", service, READS),
        row("write latency, service alone,", service, WRITES),
        row("read latency, at our pace,", in_time, READS),
        row("write latency, at our pace,", in_time, WRITES),
    ]
}

fn hit_ratios(lines: &[Line]) -> Vec<Comparison> {
    let (applications, synthetic) = lines.split_at(APPLICATIONS.len());
    let beside = |line: &Line, side: Side| {
        format!(
            "{} {} against {}",
            line.name,
            percent(side(line.hits)),
            percent(side(line.hits_of_baseline))
        )
    };
    let all = |lines: &[Line], side: Side| {
        lines.iter().map(|line| beside(line, side)).collect::<Vec<_>>().join(", ")
    };
    let gain = |line: &Line| Some(line.hits.read? - line.hits_of_baseline.read?);
    let gains: Vec<f64> = synthetic.iter().filter_map(gain).collect();
    let more = applications.iter().all(|line| gain(line).is_some_and(|gain| gain >= SIGNIFICANT));
    vec![
        Comparison {
            what: "5c: read hits of each application, against FlashSim's DFTL".into(),
            paper: "significantly more".into(),
            ours: all(applications, READS),
            rule: format!("{:.0} points of a hundred more", SIGNIFICANT * 100.0),
            agrees: more,
        },
        direction(
            "5c: what read hits gain falls with the share of readers",
            "from 9W1R to 1W9R",
            all(synthetic, READS),
            gains.is_sorted_by(|one, next| one > next) && gains.len() == synthetic.len(),
        ),
        Comparison {
            what: "5d: write hits of the applications".into(),
            paper: "less than 1 %".into(),
            ours: all(applications, WRITES),
            rule: "below 1 %".into(),
            agrees: applications.iter().all(|line| line.hits.write.is_some_and(|hits| hits < 0.01)),
        },
    ]
}
