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

/// A line of the table, each figure with the value of its last digit.
struct Line {
    trace: Size,
    footprint: Size,
    writes_percent: f64,
}

/// A size in units of 10^6 or 2^20 bytes, or of 10^9 or 2^30: the table does not say, and its
/// synthetic traces fit neither alone.
#[derive(Clone, Copy)]
enum Size {
    Mega(f64, f64),
    Giga(f64),
}

use Size::{Giga, Mega};

const TABLE: [Line; 8] = [
    Line { trace: Giga(4.7), footprint: Giga(4.5), writes_percent: 94.5 },
    Line { trace: Mega(867.2, 0.1), footprint: Mega(847.6, 0.1), writes_percent: 97.1 },
    Line { trace: Giga(2.4), footprint: Giga(1.5), writes_percent: 63.7 },
    Line { trace: Giga(1.3), footprint: Giga(1.1), writes_percent: 87.9 },
    Line { trace: Giga(1.3), footprint: Mega(920.0, 1.0), writes_percent: 65.2 },
    Line { trace: Giga(1.4), footprint: Mega(680.0, 1.0), writes_percent: 45.9 },
    Line { trace: Giga(1.5), footprint: Mega(440.0, 1.0), writes_percent: 28.2 },
    Line { trace: Giga(1.6), footprint: Mega(200.0, 1.0), writes_percent: 12.3 },
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
        let by_kind = &run.requests.by_kind;
        let (read, written) = (by_kind.read.bytes as f64, by_kind.write.bytes as f64);
        let footprint = run.requests.repeats.unwrap_or_default().footprint as f64 * 4096.0;
        let writes = 100.0 * written / (read + written);
        let allowed = tolerance(self.writes_percent, 0.1);
        [
            self.trace.compare(format!("{name}: trace size"), read + written),
            self.footprint.compare(format!("{name}: footprint"), footprint),
            Comparison {
                what: format!("{name}: writes"),
                paper: format!("{} %", self.writes_percent),
                ours: format!("{writes:.1} %"),
                rule: format!("to {allowed:.1} %"),
                agrees: (writes - self.writes_percent).abs() <= allowed,
            },
        ]
    }
}

fn tolerance(paper: f64, digit: f64) -> f64 {
    digit.max(paper * TOLERANCE)
}

impl Size {
    fn compare(self, what: String, ours: f64) -> Comparison {
        let (paper, digit, name, units) = match self {
            Self::Mega(paper, digit) => (paper, digit, "MB", [1e6, f64::from(1 << 20)]),
            Self::Giga(paper) => (paper, 0.1, "GB", [1e9, f64::from(1 << 30)]),
        };
        let allowed = tolerance(paper, digit);
        let [decimal, binary] = units.map(|unit| ours / unit);
        let near = |ours: f64| (ours - paper).abs() <= allowed;
        Comparison {
            what,
            paper: format!("{paper} {name}"),
            ours: format!("{decimal:.2} {name}, in units of 1024 {binary:.2}"),
            rule: format!("to {allowed:.2} {name}, in either unit"),
            agrees: near(decimal) || near(binary),
        }
    }
}
