//! Figure 16b of the IPLFS paper: what the map makes of the latency of a read and a write.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::RunResult;

use super::{Comparison, Figure, Plan, Reproduction, Setting, of, rounded, stacks_before_6_4};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-16b",
    title: "Latency of reads and writes with an interval map and with a page table",
    source: "Kim et al., IPLFS, ATC'22: figure 16b and section 6.3",
    setup: "Direct reads and writes of 4 KiB at random in a file of 10 GiB, one thread each, on F2FS as a log, so that both drives get the same commands. An access to \
            the drive's memory takes 100 ns (assumed).",
    reduced: 16,
    run,
    sensitivity: None,
};

const JOB: &str = "
[global]
filename=file
bs=4k
size=10g
io_size=1g
direct=1
norandommap
overwrite=1
[write]
rw=randwrite
[read]
stonewall
rw=randread
";

fn with_map(map: &str) -> Result<Stack, BenchError> {
    let mut stack = stacks_before_6_4(&["f2fs-lfs"], super::iplfs::DRIVE)?.remove(0);
    stack.name = map.into();
    stack.drive_figures.insert("ftl.map".into(), toml::Value::String(map.into()));
    Ok(stack)
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let source = Source::fio(JOB, "iplfs-figure-16b.fio", &[])?;
    let stacks = vec![with_map("page")?, with_map("interval")?];
    let results = setting.perform(&Plan {
        source: &source,
        fill: None,
        stacks,
        final_sync: false,
        restart: false,
    })?;
    let (page, interval) = (of(&results, "page")?, of(&results, "interval")?);
    let read = |run: &RunResult| run.latency.read.percentiles.mean_ns / 1000.0;
    let write = |run: &RunResult| run.latency.write.percentiles.mean_ns / 1000.0;
    let comparisons =
        [("read", read(interval), read(page)), ("write", write(interval), write(page))].map(
            |(what, interval, page)| Comparison {
                what: format!("mean {what} with the interval map and the page table"),
                paper: "almost identical".into(),
                ours: format!("{} and {} us", rounded(interval), rounded(page)),
                rule: "within 5 %".into(),
                agrees: (interval / page - 1.0).abs() <= 0.05,
            },
        );
    Ok(Reproduction { comparisons: comparisons.into(), results })
}
