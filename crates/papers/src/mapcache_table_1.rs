//! Table I of the F2FS-aware mapping cache's paper: sizes of the traces. They describe the workloads,
//! of which the other figures tell the costs.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::RunResult;

use super::mapcache::{APPLICATIONS, SETUP, SYNTHETIC, join, with};
use super::{Comparison, Figure, Reproduction, Setting};

pub(crate) const FIGURE: Figure = Figure {
    name: "mapcache-table-1",
    title: "Bytes, footprint and share of writes of the workloads",
    source: "Gao et al., F2FS Aware Mapping Cache Design on Solid State Drives: table I",
    setup: SETUP,
    reduced: 1,
    run,
    sensitivity: None,
};

/// A line of the table, sizes in MiB with their last digit: units of 2^20 and 2^30 bytes, since
/// 1160 MB are 1.1 GB.
struct Line {
    trace: (f64, f64),
    footprint: (f64, f64),
    writes_percent: f64,
}

const GIB: f64 = 1024.0;

const fn gib(tenths: f64) -> (f64, f64) {
    (tenths * GIB / 10.0, GIB / 10.0)
}

const TABLE: [Line; 8] = [
    Line { trace: gib(47.0), footprint: gib(45.0), writes_percent: 94.5 },
    Line { trace: (867.2, 0.1), footprint: (847.6, 0.1), writes_percent: 97.1 },
    Line { trace: gib(24.0), footprint: gib(15.0), writes_percent: 63.7 },
    Line { trace: gib(13.0), footprint: gib(11.0), writes_percent: 87.9 },
    Line { trace: gib(13.0), footprint: (920.0, 1.0), writes_percent: 65.2 },
    Line { trace: gib(14.0), footprint: (680.0, 1.0), writes_percent: 45.9 },
    Line { trace: gib(15.0), footprint: (440.0, 1.0), writes_percent: 28.2 },
    Line { trace: gib(16.0), footprint: (200.0, 1.0), writes_percent: 12.3 },
];
/// By what part of a figure ours may differ, or by its last digit if that is more.
const TOLERANCE: f64 = 0.03;

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (mut all, mut comparisons) = (None, Vec::new());
    for (work, line) in APPLICATIONS.iter().chain(&SYNTHETIC).zip(&TABLE) {
        let results = work.run(setting, &["f2fs"], &["dftl"])?;
        let run = with(&results, work, "f2fs", "dftl")?;
        comparisons.extend(line.compare(work.name, run));
        join(&mut all, results);
    }
    let results = all.ok_or_else(|| BenchError::Workload("no workload was run".into()))?;
    Ok(Reproduction { comparisons, results })
}

impl Line {
    fn compare(&self, name: &str, run: &RunResult) -> [Comparison; 3] {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let by_kind = &run.requests.by_kind;
        let (read, written) = (mib(by_kind.read.bytes), mib(by_kind.write.bytes));
        let footprint = mib(run.requests.repeats.unwrap_or_default().footprint * 4096);
        [
            near(format!("{name}: trace size"), "MiB", self.trace, read + written),
            near(format!("{name}: footprint"), "MiB", self.footprint, footprint),
            near(
                format!("{name}: writes"),
                "%",
                (self.writes_percent, 0.1),
                100.0 * written / (read + written),
            ),
        ]
    }
}

fn near(what: String, unit: &str, (paper, digit): (f64, f64), ours: f64) -> Comparison {
    let tolerance = digit.max(paper * TOLERANCE);
    Comparison {
        what,
        paper: format!("{paper:.1} {unit}"),
        ours: format!("{ours:.1} {unit}"),
        rule: format!("{:.1} to {:.1} {unit}", paper - tolerance, paper + tolerance),
        agrees: (ours - paper).abs() <= tolerance,
    }
}
