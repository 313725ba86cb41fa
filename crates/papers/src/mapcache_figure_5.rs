//! Figure 5 of the F2FS-aware mapping cache's paper: latencies of the split cache of DFTL's, and
//! hit ratios.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::{MapCacheResult, ReadAndWrite};
use dovetail_lab::results::{Results, RunResult};

use super::mapcache::{APPLICATIONS, SETUP, SYNTHETIC, Work, join, with};
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

const POLICIES: [&str; 3] = ["split", "dftl", "dftl-single"];
/// The paper's means over all workloads.
const READ: f64 = 0.312;
const WRITE: f64 = 0.387;
/// "The read latency of the three real workloads are reduced to less than 35 %."
const READ_OF_APPLICATIONS: f64 = 0.35;

/// The split cache beside one of the others.
struct Line {
    name: &'static str,
    /// With FlashSim's DFTL and FlashSim's way of counting, as in the paper.
    as_in_paper: ReadAndWrite,
    /// With published DFTL, counted as FlashSim counts.
    summed: ReadAndWrite,
    /// With published DFTL, in virtual time.
    in_time: ReadAndWrite,
    hits: ReadAndWrite,
    hits_of_dftl: ReadAndWrite,
}

fn cache(run: &RunResult) -> MapCacheResult {
    run.map_cache.clone().unwrap_or_default()
}

fn line(work: &Work, results: &Results) -> Result<Line, BenchError> {
    let run = |policy| with(results, work, "f2fs", policy).map(cache);
    let (split, dftl, single) = (run("split")?, run("dftl")?, run("dftl-single")?);
    Ok(Line {
        name: work.name,
        as_in_paper: split.summed_us.over(single.summed_us),
        summed: split.summed_us.over(dftl.summed_us),
        in_time: split.of_dftl,
        hits: split.hit_ratio,
        hits_of_dftl: single.hit_ratio,
    })
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (mut all, mut lines) = (None, Vec::new());
    for work in APPLICATIONS.iter().chain(&SYNTHETIC) {
        let results = work.run(setting, &["f2fs"], &POLICIES)?;
        lines.push(line(work, &results)?);
        join(&mut all, results);
    }
    let mut comparisons = latencies(&lines);
    comparisons.extend(hit_ratios(&lines));
    let results = all.ok_or_else(|| BenchError::Workload("no workload was run".into()))?;
    Ok(Reproduction { comparisons, results })
}

type Figure5 = fn(&Line) -> ReadAndWrite;
type Side = fn(ReadAndWrite) -> Option<f64>;

fn percent(share: Option<f64>) -> String {
    share.map_or("none".into(), |share| format!("{:.1} %", share * 100.0))
}

fn mean(lines: &[Line], figure: Figure5, side: Side) -> Option<f64> {
    let known: Vec<f64> = lines.iter().filter_map(|line| side(figure(line))).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

fn each(lines: &[Line], figure: Figure5, side: Side) -> String {
    let shown = |line: &Line| format!("{} {}", line.name, percent(side(figure(line))));
    lines.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn latencies(lines: &[Line]) -> Vec<Comparison> {
    let (read, write): (Side, Side) = (|both| both.read, |both| both.write);
    let average = |what: &str, paper: f64, figure: Figure5, side: Side| {
        let ours = mean(lines, figure, side);
        Comparison {
            what: format!("{what}, mean of all workloads"),
            paper: percent(Some(paper)),
            ours: format!("{}: {}", percent(ours), each(lines, figure, side)),
            rule: "within a factor of 1.5".into(),
            agrees: ours.is_some_and(|ours| (paper / 1.5..paper * 1.5).contains(&ours)),
        }
    };
    let paper: Figure5 = |line| line.as_in_paper;
    let applications = &lines[..APPLICATIONS.len()];
    let below = |line: &Line| line.as_in_paper.read.is_some_and(|read| read < READ_OF_APPLICATIONS);
    vec![
        average("5a, as in the paper: read latency of FlashSim's DFTL, summed", READ, paper, read),
        average(
            "5b, as in the paper: write latency of FlashSim's DFTL, summed",
            WRITE,
            paper,
            write,
        ),
        Comparison {
            what: "5a, as in the paper: read latency of each application".into(),
            paper: "below 35 %".into(),
            ours: each(applications, paper, read),
            rule: "below 35 %".into(),
            agrees: applications.iter().all(below),
        },
        average("5a: read latency of published DFTL, summed", READ, |line| line.summed, read),
        average("5b: write latency of published DFTL, summed", WRITE, |line| line.summed, write),
        average(
            "5a: read latency of published DFTL, in virtual time",
            READ,
            |line| line.in_time,
            read,
        ),
        average(
            "5b: write latency of published DFTL, in virtual time",
            WRITE,
            |line| line.in_time,
            write,
        ),
    ]
}

fn hit_ratios(lines: &[Line]) -> Vec<Comparison> {
    let (applications, synthetic) = lines.split_at(APPLICATIONS.len());
    let beside = |line: &Line, side: Side| {
        format!(
            "{} {} against {}",
            line.name,
            percent(side(line.hits)),
            percent(side(line.hits_of_dftl))
        )
    };
    let all = |lines: &[Line], side: Side| {
        lines.iter().map(|line| beside(line, side)).collect::<Vec<_>>().join(", ")
    };
    let gain = |line: &Line| Some(line.hits.read? - line.hits_of_dftl.read?);
    let gains: Vec<f64> = synthetic.iter().filter_map(gain).collect();
    vec![
        direction(
            "5c: read hits of each application, against DFTL's",
            "significantly more",
            all(applications, |hits| hits.read),
            applications.iter().all(|line| gain(line).is_some_and(|gain| gain > 0.0)),
        ),
        direction(
            "5c: what read hits gain falls with the share of readers",
            "from 9W1R to 1W9R",
            all(synthetic, |hits| hits.read),
            gains.first() > gains.last() && gains.iter().all(|gain| *gain >= -0.01),
        ),
        Comparison {
            what: "5d: write hits of the applications".into(),
            paper: "less than 1 %".into(),
            ours: all(applications, |hits| hits.write),
            rule: "below 1 %".into(),
            agrees: applications.iter().all(|line| line.hits.write.is_some_and(|hits| hits < 0.01)),
        },
    ]
}
