//! The fragmentation experiment of the RM-IPU paper: section 2.2, and table 1.

use dovetail_lab::bench::{BenchError, Source};
use dovetail_lab::results::RunResult;

use super::{
    Comparison, Figure, Plan, Reproduction, Setting, of, rounded, stacks_before_6_4, within,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "rmipu-table-1",
    title: "Requests of a sequential read after random writes to a quarter of the file",
    source: "Lee et al., When F2FS Meets Address Remapping, HotStorage'22: table 1 and section 2.2",
    setup: "A file of 8 GiB, 2 GiB of random writes of 4 KiB, fsync after every tenth, each block at most once; then the file is read in \
            order in blocks of 1 MiB, its cache dropped. The paper's 17 KiB are not what this gives: with a share p of the blocks \
            rewritten, none twice, a piece has 4 KiB / (p + p (1 - p)) = 9.1 KiB, and Linux 6.12 read 9.5 KiB. Its figures are those of p = 1/8: the same with 1 GiB of writes is shown.",
    reduced: 8,
    run,
    sensitivity: None,
};

/// Mean size of a read in KiB: what Linux 6.12 did with the same job.
const KERNEL_KIB: f64 = 9.5;

const JOB: &str = "
[global]
filename=file
bs=4k
size=8g
[update]
rw=randwrite
io_size=${WRITTEN}
fsync=10
overwrite=1
[read]
stonewall
rw=read
bs=1m
";

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let perform = |written: &str, names: &[&str]| {
        let set = [("WRITTEN".into(), written.into())];
        let source = Source::fio(JOB, "rmipu-table-1.fio", &set)?;
        let stacks = stacks_before_6_4(names, "femu-32g")?;
        setting.perform(&Plan {
            source: &source,
            fill: None,
            stacks,
            final_sync: false,
            restart: false,
        })
    };
    let mut results = perform("2g", &["f2fs", "f2fs-lfs", "ext4", "rm-ipu"])?;
    let mut half = perform("1g", &["f2fs"])?;
    half.runs.iter_mut().for_each(|run| run.label = format!("{}, 1 GiB", run.label));
    let reads = |name| Ok::<_, BenchError>(&of(&results, name)?.requests.by_kind.read);
    let speed = |name| Ok::<_, BenchError>(read_mb_per_s(of(&results, name)?));
    let times_ext4 = reads("f2fs")?.count as f64 / reads("ext4")?.count as f64;
    let mut comparisons = vec![
        as_linux("f2fs", reads("f2fs")?.mean_kib),
        as_linux("f2fs-lfs", reads("f2fs-lfs")?.mean_kib),
    ];
    let f2fs = reads("f2fs")?;
    comparisons.push(within(
        "f2fs: mean request of the sequential read",
        "KiB",
        17.0,
        f2fs.mean_kib,
        1.1,
    ));
    let at_full = f2fs.count as f64 / setting.scale.value() / 1000.0;
    comparisons.push(Comparison {
        what: "f2fs: requests, scaled to 8 GiB".into(),
        paper: "498 thousand".into(),
        ours: format!("{} thousand", rounded(at_full)),
        rule: "within 25 %".into(),
        agrees: (373.0..=623.0).contains(&at_full),
    });
    let (f2fs, ext4, rm_ipu) = (f2fs.mean_kib, reads("ext4")?.mean_kib, reads("rm-ipu")?.mean_kib);
    comparisons.push(within("ext4: mean request of the sequential read", "KiB", 740.0, ext4, 1.5));
    comparisons.push(within(
        "rm-ipu: mean request of the sequential read",
        "KiB",
        737.0,
        rm_ipu,
        1.5,
    ));
    comparisons.push(Comparison {
        what: "rm-ipu beside ext4".into(),
        paper: "737 KiB beside 740".into(),
        ours: format!("{} KiB beside {}", rounded(rm_ipu), rounded(ext4)),
        rule: "within 5 %".into(),
        agrees: (rm_ipu / ext4 - 1.0).abs() <= 0.05,
    });
    comparisons.push(within("requests of F2FS over ext4's", "times", 42.5, times_ext4, 1.25));
    for other in ["ext4", "rm-ipu"] {
        comparisons.push(beside(other, speed("f2fs")?, speed(other)?));
    }
    comparisons.push(Comparison::shown(
        "mean request, rm-ipu over F2FS",
        format!("{} times", rounded(rm_ipu / f2fs)),
    ));
    let reads = &of(&half, "f2fs")?.requests.by_kind.read;
    comparisons.push(Comparison::shown(
        "f2fs after 1 GiB of writes: mean request and requests, scaled to 8 GiB",
        format!(
            "{} KiB, {} thousand",
            rounded(reads.mean_kib),
            rounded(reads.count as f64 / setting.scale.value() / 1000.0)
        ),
    ));
    results.runs.extend(half.runs);
    Ok(Reproduction { comparisons, results })
}

/// Bandwidth of the job that reads.
fn read_mb_per_s(run: &RunResult) -> f64 {
    let read = run.jobs.iter().find(|job| job.name == "read");
    read.map_or(f64::NAN, |job| job.read_bytes as f64 / 1e6 / job.elapsed_s)
}

/// The paper has F2FS 43 % below ext4 (a commercial drive) and below RM-IPU (the emulated one).
fn beside(other: &str, f2fs: f64, its: f64) -> Comparison {
    let what = format!("sequential read of F2FS, of {other}'s bandwidth");
    let mut comparison = within(what, "%", 57.0, f2fs / its * 100.0, 1.25);
    comparison.ours += &format!(" ({} of {} MB/s)", rounded(f2fs), rounded(its));
    comparison
}

/// Beside what Linux did; the paper's table has no figure of this.
fn as_linux(name: &str, mean_kib: f64) -> Comparison {
    Comparison {
        what: format!("{name}: mean request of the sequential read, beside Linux 6.12"),
        paper: format!("none: Linux 6.12 read {} KiB", rounded(KERNEL_KIB)),
        ours: format!("{} KiB", rounded(mean_kib)),
        rule: "within 10 %".into(),
        agrees: (KERNEL_KIB / 1.1..=KERNEL_KIB * 1.1).contains(&mean_kib),
    }
}
