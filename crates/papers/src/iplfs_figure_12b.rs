//! Figure 12b of the IPLFS paper: random writes where the drive cleans too.

use dovetail_lab::bench::{BenchError, Source, Stack};

use super::curve::bandwidth;
use super::iplfs::{GIB, on_partition};
use super::{Comparison, Figure, Plan, Reproduction, Setting, of, rounded};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-12b",
    title: "Random write bandwidth on a file of 210 GiB on a drive of 230 GiB: file system and drive clean",
    source: "Kim et al., IPLFS, ATC'22: figure 12b and section 6.1",
    setup: "Four threads, 4 KiB at random into one file, buffered and without fsync (assumed), a page cache of 64 MiB, 600 GiB in all. The drive maps units of 4 KiB here, four of \
            which are programmed together: where a log is only appended to and its blocks die independently, a page of four is live until the last of them dies, and the \
            live data then take 1 + 1/2 + 1/3 + 1/4 = 2.08 times their size of flash. On pages of 16 KiB the file would not fit; the paper does not say \
            how its drive held it. At a reduced scale F2FS keeps a larger part to itself, so that the file has 190 GiB there.",
    reduced: 64,
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
io_size=150g
norandommap
overwrite=1
group_reporting
";

const WRITTEN: f64 = 600.0 * GIB;
const START: (f64, f64) = (0.4 * GIB, 8.0 * GIB);

/// A page of 16 KiB as four of 4 KiB that are programmed together.
fn in_small_units(stack: &mut Stack) {
    let figures = [
        ("flash.page", toml::Value::String("4KiB".into())),
        ("flash.planes_per_die", toml::Value::Integer(4)),
    ];
    stack.drive_figures.extend(figures.map(|(key, value)| (key.to_owned(), value)));
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let scale = setting.scale.value();
    let size = if scale < 0.5 { "190g" } else { "210g" };
    let source = Source::fio(JOB, "iplfs-figure-12b.fio", &[("SIZE".into(), size.into())])?;
    let mut stacks = on_partition(&["f2fs-lfs", "iplfs"], "230GiB")?;
    stacks.iter_mut().for_each(|stack| stack.memory = "64MiB".into());
    stacks.iter_mut().for_each(in_small_units);
    let results =
        setting.perform(&Plan { source: &source, fill: None, stacks, final_sync: false })?;
    let ends = |name| {
        let run = of(&results, name)?;
        let start = bandwidth(run, START.0 * scale, START.1 * scale);
        Ok::<_, BenchError>((start, bandwidth(run, WRITTEN * 0.75 * scale, WRITTEN * scale)))
    };
    let ((f2fs_start, f2fs_end), (iplfs_start, iplfs_end)) = (ends("f2fs-lfs")?, ends("iplfs")?);
    let falls = |start: f64, end: f64| format!("{} to {} MB/s", rounded(start), rounded(end));
    let cleaned = of(&results, "iplfs")?.totals.drive.gc_runs;
    let comparisons = vec![
        Comparison {
            what: "F2FS as a log, from start to end".into(),
            paper: "to nearly 1/10".into(),
            ours: falls(f2fs_start, f2fs_end),
            rule: "to 1/5 at most".into(),
            agrees: f2fs_end <= f2fs_start / 5.0,
        },
        Comparison {
            what: "IPLFS from start to end".into(),
            paper: "to 60 % once the drive cleans".into(),
            ours: format!("{}, {cleaned} lines cleaned", falls(iplfs_start, iplfs_end)),
            rule: "less deep than F2FS, and only with the drive's own cleaning".into(),
            agrees: iplfs_end / iplfs_start > f2fs_end / f2fs_start && cleaned > 0,
        },
        Comparison {
            what: "IPLFS over F2FS at the end".into(),
            paper: "file system's cleaning costs more than the drive's".into(),
            ours: format!("{} times", rounded(iplfs_end / f2fs_end)),
            rule: "direction".into(),
            agrees: iplfs_end > f2fs_end,
        },
    ];
    Ok(Reproduction { comparisons, results })
}

#[cfg(test)]
mod tests {
    use dovetail_time::Rng;

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
