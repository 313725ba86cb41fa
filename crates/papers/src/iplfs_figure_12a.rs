//! Figure 12a of the IPLFS paper: random writes on a partition that is all but full.

use dovetail_lab::bench::{BenchError, Source};
use dovetail_lab::results::RunResult;

use super::curve::bandwidth;
use super::iplfs::{GIB, on_partition};
use super::{Comparison, Figure, Plan, Reproduction, Setting, of, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-12a",
    title: "Random write bandwidth on a file of 28 GiB in a partition of 30 GiB: F2FS cleans, IPLFS does not",
    source: "Kim et al., IPLFS, ATC'22: figure 12a and section 6.1",
    setup: "Four threads, 4 KiB at random into one file, buffered and without fsync (assumed, the paper does not say), a page cache of 64 MiB, so that it is not in the way, 60 GiB in all; the drive of 230 GiB \
            has room to spare. F2FS both as it is mounted by default and as a pure log. The start is from 4 to 19 GiB of \
            IPLFS; F2FS has free segments for 2 GiB alone, which caches and queues take at a reduced scale. The end is the last quarter. At a reduced scale F2FS keeps a larger part of the partition to itself, so that the \
            file has 26 GiB there, and 23 below 1/10. IPLFS may hold as many blocks as the partition has.",
    reduced: 8,
    run,
    sensitivity: None,
};

const JOB: &str = "
[update]
filename=file
rw=randwrite
bs=4k
numjobs=4
size=${SIZE}
io_size=15g
norandommap
overwrite=1
group_reporting
";

const WRITTEN: f64 = 60.0 * GIB;
/// Of the volume written: caches and queues take the first of it.
const START: (f64, f64) = (4.0 * GIB, 19.0 * GIB);

/// Bandwidth at the start and at the end.
struct Ends {
    start: f64,
    end: f64,
}

impl Ends {
    fn of(run: &RunResult, scale: f64) -> Self {
        Self {
            start: bandwidth(run, START.0 * scale, START.1 * scale),
            end: bandwidth(run, WRITTEN * 0.75 * scale, WRITTEN * scale),
        }
    }

    fn shown(&self) -> String {
        format!("{} to {} MB/s", rounded(self.start), rounded(self.end))
    }
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let scale = setting.scale.value();
    let size = match scale {
        s if s > 0.5 => "28g",
        s if s > 0.1 => "26g",
        _ => "23g",
    };
    let source = Source::fio(JOB, "iplfs-figure-12a.fio", &[("SIZE".into(), size.into())])?;
    let mut stacks = on_partition(&["f2fs", "f2fs-lfs", "iplfs"], "30GiB")?;
    stacks.iter_mut().for_each(|stack| stack.memory = "64MiB".into());
    let results =
        setting.perform(&Plan { source: &source, fill: None, stacks, final_sync: false })?;
    let ends = |name| Ok::<_, BenchError>(Ends::of(of(&results, name)?, scale));
    let iplfs = ends("iplfs")?;
    let mut comparisons = vec![Comparison {
        what: "IPLFS from start to end".into(),
        paper: "steady at its full speed".into(),
        ours: iplfs.shown(),
        rule: "the end within 5 % of the start".into(),
        agrees: (iplfs.end / iplfs.start - 1.0).abs() <= 0.05,
    }];
    for name in ["f2fs", "f2fs-lfs"] {
        let f2fs = ends(name)?;
        comparisons.push(Comparison {
            what: format!("{name} at the end, by what IPLFS writes at the start"),
            paper: "1/10 of its own start, which is IPLFS's".into(),
            ours: format!(
                "{} of {} MB/s, 1/{}",
                rounded(f2fs.end),
                rounded(iplfs.start),
                rounded(iplfs.start / f2fs.end)
            ),
            rule: "to 1/5 at most".into(),
            agrees: f2fs.end <= iplfs.start / 5.0,
        });
        comparisons.push(Comparison {
            what: format!("IPLFS over {name} at the end"),
            paper: "12.8 times".into(),
            ours: format!("{} times", rounded(iplfs.end / f2fs.end)),
            rule: "5 times at least".into(),
            agrees: iplfs.end >= 5.0 * f2fs.end,
        });
    }
    Ok(Reproduction { comparisons, results })
}
