//! The metadata table of the RM-IPU slides.

use dovetail_lab::bench::{BenchError, Source};
use dovetail_time::Ratio;

use super::{
    Comparison, Figure, Plan, Reproduction, Setting, of, rounded, stacks_before_6_4, within,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "rmipu-metadata",
    title: "Bytes written for a file of 4 MiB and of 1 GiB that is overwritten at random",
    source: "Lee et al., When F2FS Meets Address Remapping, HotStorage'22: slides, \"Metadata Update Overheads\"; paper, section 2.2",
    setup: "Every block of 4 KiB once, buffered, fsync after every tenth, counted at the block layer, then a sync. The drive is that of \
            section 2.2, a 970 EVO (the slides do not name one); nothing is shrunk, since the table is about two sizes. What is written beyond the data is compared. ext4's \
            hangs on how many fsyncs fall into one tick of the kernel's clock: only those that find new file times commit.",
    reduced: 1,
    run,
    sensitivity: None,
};

const MIB: f64 = 1_048_576.0;

fn job(size: &str) -> Result<Source, BenchError> {
    let text = format!("[update]\nrw=randwrite\nbs=4k\nsize={size}\nfsync=10\noverwrite=1\n");
    Source::fio(&text, "rmipu-metadata.fio", &[])
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let full = Setting { scale: Ratio::ONE, ..*setting };
    let perform = |size: &str| {
        let plan = Plan {
            source: &job(size)?,
            fill: None,
            stacks: stacks_before_6_4(&["f2fs", "ext4", "rm-ipu"], "nvme-250g-4k")?,
            final_sync: true,
            restart: false,
        };
        full.perform(&plan)
    };
    let (small, mut large) = (perform("4m")?, perform("1g")?);
    let mib =
        |run: &dovetail_lab::results::RunResult| run.requests.by_kind.write.bytes as f64 / MIB;
    let beyond = |what: &str, unit: &str, written: f64, paper: f64, run: f64| {
        within(format!("{what}: beyond the data"), unit, paper - written, run - written, 1.25)
    };
    let [small_f2fs, small_ext4] = [mib(of(&small, "f2fs")?), mib(of(&small, "ext4")?)];
    let [f2fs, ext4] = [mib(of(&large, "f2fs")?) / 1024.0, mib(of(&large, "ext4")?) / 1024.0];
    let mut comparisons = vec![
        beyond("F2FS, 4 MiB file", "MiB", 4.0, 4.68, small_f2fs),
        beyond("F2FS, 1 GiB file", "GiB", 1.0, 2.02, f2fs),
        beyond("ext4, 4 MiB file", "MiB", 4.0, 4.50, small_ext4),
        beyond("ext4, 1 GiB file", "GiB", 1.0, 1.12, ext4),
    ];
    comparisons.push(within(
        "F2FS, 1 GiB file: all that is written, over ext4's",
        "times",
        1.8,
        f2fs / ext4,
        1.1,
    ));
    for (size, results, written) in [("4 MiB", &small, 4.0), ("1 GiB", &large, 1024.0)] {
        let more = |name| Ok::<_, BenchError>(mib(of(results, name)?) - written);
        let (rm_ipu, ext4) = (more("rm-ipu")?, more("ext4")?);
        comparisons.push(Comparison::shown(
            format!("RM-IPU, {size} file: beyond the data"),
            format!("{} MiB, ext4 {}", rounded(rm_ipu), rounded(ext4)),
        ));
    }
    for mut run in small.runs {
        run.label = format!("{}, 4 MiB", run.label);
        large.runs.push(run);
    }
    Ok(Reproduction { comparisons, results: large })
}
