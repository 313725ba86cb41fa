//! Figure 12b of the IPLFS paper: random writes where the drive cleans too.

use dovetail_lab::bench::BenchError;
use dovetail_lab::results::RunResult;

use super::curve::bandwidth_in;
use super::iplfs::{GIB, on_partition};
use super::iplfs_figure_12a::{fall_of, job, with_8_gb};
use super::{
    Comparison, Figure, Plan, Reproduction, Setting, of, rounded, within, within_a_factor,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-12b",
    title: "Random write bandwidth on a file of 210 GiB on a drive of 230 GiB: file system and drive clean",
    source: "Kim et al., IPLFS, ATC'22: figure 12b and section 6.1; job and series as published with its code",
    setup: "As figure 12a on a file of 210 GiB, for 1,200 s. The published series end when the drive has just begun to clean: IPLFS writes 250 GiB in all, at 64 thousand a second at the \
            start and 36 at the end; F2FS falls from 65 to 8, then to 4. For longer no drive of pages of 16 KiB holds the file: blocks of a log that is only appended to die \
            independently, a page of four is live until the last of them dies, and the live data then take 1 + 1/2 + 1/3 + 1/4 = 2.08 times their size of flash. At a reduced scale \
            F2FS keeps a larger part to itself, so that the file has 190 GiB there. A run for which the drive has no room says so.",
    reduced: 8,
    run,
    sensitivity: None,
};

const SECONDS: f64 = 1200.0;

/// Bandwidth in the last twentieth of a run.
fn end_of(run: &RunResult) -> f64 {
    let elapsed = run.totals.elapsed_s;
    bandwidth_in(run, 0.95 * elapsed, elapsed)
}

/// A statement about runs does not agree if one of them had no room before its time of `seconds` was
/// over.
fn while_room(comparison: Comparison, runs: &[&RunResult], seconds: f64) -> Comparison {
    let without = runs.iter().filter(|run| run.error.is_some());
    without.fold(comparison, |comparison, run| {
        let percent = rounded(run.totals.elapsed_s / seconds * 100.0);
        let ours =
            format!("{}; {} has no room after {percent} % of the time", comparison.ours, run.label);
        Comparison { ours, agrees: false, ..comparison }
    })
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let scale = setting.scale.value();
    let source = job(if scale < 0.5 { "190G" } else { "210G" }, SECONDS, setting)?;
    let stacks = on_partition(&["f2fs-lfs", "iplfs"], "230GiB")?;
    let stacks = stacks.into_iter().map(with_8_gb).collect();
    let results = setting.perform_until_full(&Plan {
        source: &source,
        fill: None,
        stacks,
        final_sync: false,
        restart: false,
    })?;
    let seconds = SECONDS * scale;
    let (iplfs, f2fs) = (of(&results, "iplfs")?, of(&results, "f2fs-lfs")?);
    let fall = fall_of(f2fs, seconds);
    let start = bandwidth_in(iplfs, seconds * 0.05, seconds * 0.25);
    let (end, f2fs_end) = (end_of(iplfs), end_of(f2fs));
    let cleaned = iplfs.totals.drive.gc_runs;
    let both = [f2fs, iplfs];
    let lowest = fall.trough / fall.before * 100.0;
    let rows = [
        (&both[..1], within_a_factor("F2FS at its lowest, of its start", "%", 10.0, lowest, 1.5)),
        (
            &both[..1],
            Comparison::shown(
                "F2FS before it cleans, then at its lowest and on average",
                format!(
                    "{}, {}, {} MB/s; {} GiB written before",
                    rounded(fall.before),
                    rounded(fall.trough),
                    rounded(fall.after),
                    rounded(fall.onset_bytes / GIB / scale)
                ),
            ),
        ),
        (&both[1..], within("IPLFS at the end, of its start", "%", 60.0, end / start * 100.0, 1.3)),
        (
            &both[1..],
            Comparison::shown(
                "IPLFS at its start and end",
                format!("{}, {} MB/s; {cleaned} lines cleaned", rounded(start), rounded(end)),
            ),
        ),
        (
            &both[..],
            Comparison {
                what: "IPLFS over F2FS at the end".into(),
                paper: "file system's cleaning costs more than the drive's".into(),
                ours: format!("{} times", rounded(end / f2fs_end)),
                rule: "above 1, and only with the drive's own cleaning".into(),
                agrees: end > f2fs_end && cleaned > 0,
            },
        ),
    ];
    let marked = |(runs, row)| while_room(row, runs, seconds);
    let comparisons = rows.into_iter().map(marked).collect();
    Ok(Reproduction { comparisons, results })
}

#[cfg(test)]
mod tests {
    use dovetail_time::Rng;

    use super::*;

    #[test]
    fn what_rests_on_a_run_without_room_does_not_agree() {
        let mut run = RunResult { label: "f2fs-lfs".into(), ..RunResult::default() };
        run.totals.elapsed_s = 15.0;
        let row = || within("lowest", "%", 10.0, 10.0, 1.5);
        assert!(while_room(row(), &[&run], 20.0).agrees);
        run.error = Some("no space left".into());
        let marked = while_room(row(), &[&run], 20.0);
        assert!(!marked.agrees);
        assert!(
            marked.ours.ends_with("f2fs-lfs has no room after 75.0 % of the time"),
            "{}",
            marked.ours
        );
    }

    /// Blocks that are overwritten at random in a log of pages of four: pages with a live block, by
    /// the pages that the live blocks would fill.
    #[test]
    fn a_log_of_independent_blocks_takes_twice_its_size_in_pages_of_four() {
        const BLOCKS: u64 = 40_000;
        let mut rng = Rng::new(12);
        let mut page_of = vec![0; BLOCKS as usize];
        let mut live_of_page = vec![0_u32];
        let mut write = |block: u64, number: u64| {
            let page = (number / 4) as usize + 1;
            live_of_page.resize(live_of_page.len().max(page + 1), 0);
            live_of_page[page] += 1;
            let old = std::mem::replace(&mut page_of[block as usize], page);
            live_of_page[old] = live_of_page[old].saturating_sub(1);
        };
        (0..BLOCKS).for_each(|block| write(block, block));
        (BLOCKS..20 * BLOCKS).for_each(|number| write(rng.below(BLOCKS), number));
        let pages = live_of_page.iter().filter(|&&live| live > 0).count() as f64;
        let harmonic = 1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0;
        assert!((pages / (BLOCKS as f64 / 4.0) / harmonic - 1.0).abs() < 0.01, "{pages}");
        assert!(210.0 * harmonic > 256.0, "more than all of the drive's flash");
    }
}
