//! Streams for the kinds of blocks that a file system writes: FStream.

use dovetail_host::Placement;
use dovetail_lab::bench::{BenchError, Stack};
use dovetail_lab::results::Results;

use super::answers::{Work, lazily};
use super::{Comparison, Figure, Plan, Reproduction, Setting, of, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "fstream",
    title: "ext4 with a stream for each kind of its blocks: the drive's write amplification",
    source: "Rho et al., FStream: Managing Flash Streams in the File System, FAST'18 (abstract)",
    setup: "The paper gives journal, inodes, directories, other metadata and content of ext4 a stream each, on a drive of Samsung's with streams, under Filebench. Its amplification \
            falls by 7 to 46 %; under a NoSQL database, whose log has a stream by its name, by up to 81 %. Ours has the same five kinds on the flash of femu-32g with eight streams, moved \
            pages apart, cleaning when 4 % of the spare lines are left; a file server and a mail server, with other files 80 % of the drive. TPC-C on MariaDB, of which the paper says nothing, \
            is shown beside them. Both runs have the same drive; without streams all writes go to the first.",
    reduced: 16,
    run,
    sensitivity: None,
};

/// Data in percent of the drive. Assumed.
const FILL: u32 = 80;
const WORKS: [Work; 3] = [Work::FileServer, Work::Mail, Work::Database];

fn stack(name: &str, placement: Placement) -> Result<Stack, BenchError> {
    let mut stack = lazily(Stack::load("ext4")?);
    stack.name = name.into();
    stack.drive_figures.insert("ftl.streams".into(), 8.into());
    stack.host.placement = placement;
    Ok(stack)
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let mut comparisons = Vec::new();
    let mut all: Option<Results> = None;
    for work in WORKS {
        let (source, fill) = work.at(setting, FILL)?;
        let stacks = vec![stack("one", Placement::None)?, stack("streams", Placement::Writer)?];
        let plan = Plan { source: &source, fill, stacks, final_sync: false, restart: false };
        let mut results = setting.perform(&plan)?;
        comparisons.push(less(work, &results)?);
        let label = |stack: &str| format!("{}: {stack}", work.name());
        results.runs.iter_mut().for_each(|run| run.label = label(&run.stack.name));
        match &mut all {
            Some(all) => all.runs.extend(results.runs),
            None => all = Some(results),
        }
    }
    Ok(Reproduction { comparisons, results: all.unwrap_or_else(|| setting.no_runs(FIGURE.name)) })
}

fn less(work: Work, results: &Results) -> Result<Comparison, BenchError> {
    let waf = |stack| of(results, stack).map(|run| run.totals.device_waf.unwrap_or(f64::NAN));
    let (one, streams) = (waf("one")?, waf("streams")?);
    let percent = (1.0 - streams / one) * 100.0;
    let what = format!("{}: the drive's amplification with streams", work.name());
    let ours = format!("{} to {}: {percent:.0} % less", rounded(one), rounded(streams));
    if work == Work::Database {
        return Ok(Comparison::shown(what, ours));
    }
    Ok(Comparison {
        what,
        paper: "7 to 46 % less".into(),
        ours,
        rule: "7 to 46 % less".into(),
        agrees: (7.0..=46.0).contains(&percent),
    })
}
