//! Figure 6 of the F2FS-aware mapping cache's paper: the write part's size and MAHT over time.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::RunResult;

use super::mapcache::{APPLICATIONS, SETUP, SYNTHETIC, Work, join, with};
use super::{Figure, Reproduction, Setting, direction};

pub(crate) const FIGURE: Figure = Figure {
    name: "mapcache-figure-6",
    title: "Size of the split cache's write part, and MAHT, over time",
    source: "Gao et al., F2FS Aware Mapping Cache Design on Solid State Drives: figures 6a and 6b and section V.B",
    setup: SETUP,
    reduced: 1,
    run,
    sensitivity: None,
};

/// The write part of a run: as a share of the cache, at most and at the end; and MAHT in entries.
struct Course {
    name: &'static str,
    most: f64,
    end: f64,
    maht_most: u64,
    maht_end: u64,
}

fn course(work: &Work, run: &RunResult) -> Course {
    let entries = (work.cache_kib * 1024 / dovetail_ftl::cache::ENTRY_BYTES) as f64;
    let (sizes, mahts) = (&run.series.cache_write_part, &run.series.cache_maht);
    let share = |size: Option<&u64>| size.map_or(0.0, |size| *size as f64 / entries);
    Course {
        name: work.name,
        most: share(sizes.iter().max()),
        end: share(sizes.last()),
        maht_most: mahts.iter().max().copied().unwrap_or(0),
        maht_end: mahts.last().copied().unwrap_or(0),
    }
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let (mut all, mut courses) = (None, Vec::new());
    for work in APPLICATIONS.iter().chain(&SYNTHETIC) {
        let results = work.run(setting, &["f2fs"], &["split"])?;
        courses.push(course(work, with(&results, work, "f2fs", "split")?));
        join(&mut all, results);
    }
    let shown = |courses: &[Course], figure: fn(&Course) -> String| {
        courses
            .iter()
            .map(|it| format!("{} {}", it.name, figure(it)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let size = |it: &Course| format!("{:.0} to {:.0} %", it.most * 100.0, it.end * 100.0);
    let synthetic = &courses[APPLICATIONS.len()..];
    let least = courses.iter().map(|it| it.end).fold(f64::INFINITY, f64::min);
    let of_1w9r = synthetic.last().map_or(0.0, |it| it.end);
    let comparisons = vec![
        direction(
            "6a: the write part grows with the first writes and falls with the reads: at most and at the end",
            "all workloads",
            shown(&courses, size),
            courses.iter().all(|it| it.end < it.most),
        ),
        direction(
            "6a: the smallest at the end is 1W9R's",
            "1W9R has a little size of write mapping cache",
            shown(synthetic, size),
            of_1w9r <= least,
        ),
        direction(
            "6b: MAHT is adjusted: at most and at the end",
            "it varies over time in all workloads",
            shown(&courses, |it| format!("{} to {}", it.maht_most, it.maht_end)),
            courses.iter().all(|it| it.maht_most > it.maht_end),
        ),
    ];
    let results = all.ok_or_else(|| BenchError::Workload("no workload was run".into()))?;
    Ok(Reproduction { comparisons, results })
}
