//! Streams for the kinds of blocks that a file system writes: FStream.

use dovetail_host::Placement;
use dovetail_lab::bench::{BenchError, Stack};
use dovetail_lab::results::Results;

use super::answers::{Work, lazily};
use super::{Comparison, Figure, Plan, Reproduction, Setting, of, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "fstream",
    title: "ext4 with a stream for each kind of its blocks: the drive's write amplification",
    source: "Rho et al., FStream: Managing Flash Streams in the File System, FAST'18 (abstract; of the file server a reader's summary, github.com/elainelv/ReadingPaper)",
    setup: "The paper gives journal, inodes, directories, other metadata and content of ext4 a stream each, on a drive of Samsung's with streams, under Filebench. Its amplification \
            falls by 7 to 46 %; under a NoSQL database, whose log has a stream by its name, by up to 81 %. A reader's summary says that the file server's is close to 1 in ext4's own \
            mode, and falls from above 1.5 with data=journal; ours is above 1 in both, with 80 % of the drive used. Ours has the same five kinds on the flash of femu-32g with eight streams, moved \
            pages apart, cleaning when 4 % of the spare lines are left; a file server and a mail server, with other files 80 % of the drive. TPC-C on MariaDB, of which the paper says nothing, \
            is shown beside them. Both runs have the same drive; without streams all writes go to the first.",
    reduced: 16,
    run,
    sensitivity: None,
};

/// Data in percent of the drive. Assumed.
const FILL: u32 = 80;

/// A workload with and without streams.
struct Case {
    work: Work,
    /// Options of the mount beside ext4's own.
    mount: &'static str,
    /// Gain of the paper, in percent; `None` where it has none.
    less: Option<std::ops::RangeInclusive<f64>>,
}

const CASES: [Case; 4] = [
    Case { work: Work::FileServer, mount: "", less: None },
    Case { work: Work::FileServer, mount: "data=journal", less: Some(7.0..=46.0) },
    Case { work: Work::Mail, mount: "", less: Some(7.0..=46.0) },
    Case { work: Work::Database, mount: "", less: None },
];

impl Case {
    fn name(&self) -> String {
        match self.mount {
            "" => self.work.name().into(),
            mount => format!("{}, {mount}", self.work.name()),
        }
    }

    fn stack(&self, name: &str, placement: Placement) -> Result<Stack, BenchError> {
        let mut stack = lazily(Stack::load("ext4")?.with_mount(self.mount)?);
        stack.name = name.into();
        stack.drive_figures.insert("ftl.streams".into(), 8.into());
        stack.host.placement = placement;
        Ok(stack)
    }

    fn run(&self, setting: &Setting<'_>) -> Result<Results, BenchError> {
        let (source, fill) = self.work.at(setting, FILL)?;
        let stacks =
            vec![self.stack("one", Placement::None)?, self.stack("streams", Placement::Writer)?];
        setting.perform(&Plan { source: &source, fill, stacks, final_sync: false, restart: false })
    }

    fn compared(&self, results: &Results) -> Result<Comparison, BenchError> {
        let waf = |stack| of(results, stack).map(|run| run.totals.device_waf.unwrap_or(f64::NAN));
        let (one, streams) = (waf("one")?, waf("streams")?);
        let percent = (1.0 - streams / one) * 100.0;
        let what = format!("{}: the drive's amplification with streams", self.name());
        let ours = format!("{} to {}: {percent:.0} % less", rounded(one), rounded(streams));
        let Some(less) = &self.less else { return Ok(Comparison::shown(what, ours)) };
        let rule = format!("{:.0} to {:.0} % less", less.start(), less.end());
        let agrees = less.contains(&percent);
        Ok(Comparison { what, paper: rule.clone(), ours, rule, agrees })
    }
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let mut comparisons = Vec::new();
    let mut all: Option<Results> = None;
    for case in &CASES {
        let mut results = case.run(setting)?;
        comparisons.push(case.compared(&results)?);
        let label = |stack: &str| format!("{}: {stack}", case.name());
        results.runs.iter_mut().for_each(|run| run.label = label(&run.stack.name));
        match &mut all {
            Some(all) => all.runs.extend(results.runs),
            None => all = Some(results),
        }
    }
    Ok(Reproduction { comparisons, results: all.unwrap_or_else(|| setting.no_runs(FIGURE.name)) })
}
