//! Figure 1 of the RM-IPU paper: bandwidth of random writes before and after segments run out.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::RunResult;

use super::curve::bandwidth;
use super::sensitivity::Cost;
use super::{
    Comparison, Figure, Plan, Reproduction, Sensitivity, Setting, direction, of, rounded,
    stacks_before_6_4, within,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "rmipu-figure-1",
    title: "Random write bandwidth over the volume written: ext4, F2FS, F2FS-L and RM-IPU, before and after cleaning begins",
    source: "Lee et al., When F2FS Meets Address Remapping, HotStorage'22: figure 1 and section 2.2",
    setup: "A drive of 250 GB, half of it filled with files; four threads write 4 KiB at random into them, fsync after every tenth write, \
            240 GiB in all. Assumed, since the paper does not say: that these are the files which are written (its section 4.2 calls \
            its own, similar workload one that fills half of the storage, and it fits the drop at 100 GiB of the block layer), and \
            that blocks are drawn anew each time. With each block once a pass, fio's default, both modes fall to 55 %, the drive's \
            own cleaning alone, since segments die as a whole before they are needed. RM-IPU is not in this figure of the paper; a \
            drive that remaps has to map units of 4 KiB, so all four lines are on such a model of it, with remaps in non-volatile \
            memory. The host has memory for the files' nodes (120 MB). What decides the shares of ext4's bandwidth is how many commands a second the controller takes: ext4 writes home block by \
            block, F2FS in long runs. The data sheet allows 500,000, which are in the profile; --sensitivity shows others.",
    reduced: 64,
    run,
    sensitivity: Some(&SENSITIVITY),
};

const SENSITIVITY: Sensitivity = Sensitivity {
    what: "F2FS over ext4: bandwidth of the second half of the run",
    reduced: 64,
    source,
    drive: DRIVE,
    stacks: ["f2fs", "ext4"],
    figure: |run| {
        let written = run.series.written_bytes.last().copied().unwrap_or(0) as f64;
        bandwidth(run, written / 2.0, written)
    },
    costs: &[Cost {
        name: "host.command_serial_us",
        unit: "us in which the controller takes no other command",
        values: &[0.0, 2.0, 5.0, 7.0, 10.0],
        set: |stack, value| {
            stack.drive_figures.insert("host.command_serial_us".into(), value.into());
        },
    }],
};

const DRIVE: &str = "nvme-250g-4k";

/// Bytes that are free when the updates begin: half of the drive. Every block of data brings one of
/// a node, so free segments end when half of it has been written.
const FREE_BYTES: f64 = 125e9;

/// As the emulated drive's: as many as fill a flash page (assumed).
const DISCARD_RECORDS: i64 = 169;

const JOB: &str = "
[update]
rw=randwrite
bs=4k
numjobs=4
size=29g
io_size=60g
norandommap
fsync=10
overwrite=1
group_reporting
";

fn source() -> Result<Source, BenchError> {
    Source::fio(JOB, "rmipu-figure-1.fio", &[])
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let scale = setting.scale.value();
    let source = source()?;
    let names = ["f2fs", "f2fs-lfs", "ext4", "rm-ipu"];
    let mut stacks = stacks_before_6_4(&names, DRIVE)?;
    stacks.iter_mut().for_each(in_non_volatile_memory);
    let plan = Plan { source: &source, fill: None, stacks, final_sync: false, restart: false };
    let results = setting.perform(&plan)?;
    let total = 240.0 * f64::from(1_u32 << 30) * scale;
    let halves = |name: &str| {
        let run = of(&results, name)?;
        let free = FREE_BYTES * scale / 2.0;
        Ok::<_, BenchError>((bandwidth(run, 0.0, free * 0.8), bandwidth(run, free * 1.5, total)))
    };
    let (early, late) = halves("f2fs")?;
    let (lfs_early, lfs_late) = halves("f2fs-lfs")?;
    let (ext4_early, ext4_late) = halves("ext4")?;
    let (rm_ipu_early, rm_ipu_late) = halves("rm-ipu")?;
    let sizes = |name: &str| {
        Ok::<_, BenchError>(mean_write(of(&results, name)?, FREE_BYTES * scale / 2.0 * 0.8))
    };
    let comparisons = vec![
        within("F2FS, mean write before free segments end", "KiB", 41.2, sizes("f2fs")?, 1.25),
        within("ext4, mean write", "KiB", 4.2, sizes("ext4")?, 1.25),
        of_ext4("F2FS before free segments end", 1.42, early, ext4_early),
        of_ext4("F2FS after", 0.60, late, ext4_late),
        of_ext4("F2FS-L after", 0.47, lfs_late, ext4_late),
        direction(
            "F2FS-L is faster than ext4 before free segments end",
            "it is",
            format!("{} against {} MB/s", rounded(lfs_early), rounded(ext4_early)),
            lfs_early > ext4_early,
        ),
        Comparison {
            what: "F2FS-L drops deeper than F2FS".into(),
            paper: "47 % of ext4 against 60 %".into(),
            ours: format!("{} MB/s against {}", rounded(lfs_late), rounded(late)),
            rule: "direction".into(),
            agrees: lfs_late < late,
        },
        Comparison {
            what: "F2FS is slower once cleaning begins".into(),
            paper: "it drops at about 100 GiB".into(),
            ours: format!(
                "{} to {} MB/s, F2FS-L {} to {}",
                rounded(early),
                rounded(late),
                rounded(lfs_early),
                rounded(lfs_late)
            ),
            rule: "direction, for both modes".into(),
            agrees: late < early && lfs_late < lfs_early,
        },
        direction(
            "RM-IPU does not fall",
            "none: RM-IPU is not in this figure; on the emulated drive it does not",
            format!("{} to {} MB/s", rounded(rm_ipu_early), rounded(rm_ipu_late)),
            rm_ipu_late > 0.75 * rm_ipu_early && rm_ipu_late > late && rm_ipu_late > lfs_late,
        )
        .by("at least 75 %, above F2FS"),
    ];
    Ok(Reproduction { comparisons, results })
}

/// The drive keeps remaps in memory that a power cut spares, as the paper's emulated one does: 0.1
/// us an entry.
fn in_non_volatile_memory(stack: &mut Stack) {
    let figures = [
        ("remap.store", toml::Value::String("nvm".into())),
        ("remap.entry_us", toml::Value::Float(0.1)),
        ("remap.discard_records", toml::Value::Integer(DISCARD_RECORDS)),
    ];
    stack.drive_figures.extend(figures.map(|(key, value)| (key.to_owned(), value)));
}

/// Mean size of a write to the drive until the workload had written so much, in KiB.
fn mean_write(run: &RunResult, bytes: f64) -> f64 {
    let series = &run.series;
    let early = series.written_bytes.partition_point(|written| *written as f64 <= bytes);
    let begins = std::iter::once(0.0).chain(series.time_s.iter().copied());
    let intervals = series.time_s.iter().zip(begins).map(|(end, begin)| end - begin);
    let rates = series.drive_write_mb_per_s.iter().zip(intervals);
    let (mut kib, mut writes) = (0.0, 0.0);
    for ((rate, seconds), mean) in rates.zip(&series.write_kib).take(early) {
        let written = rate * 1e6 / 1024.0 * seconds;
        kib += written;
        writes += mean.map_or(0.0, |mean| written / mean);
    }
    kib / writes
}

/// The paper gives gains and losses over ext4's bandwidth.
fn of_ext4(what: &str, paper: f64, ours: f64, ext4: f64) -> Comparison {
    let change = paper - 1.0;
    let found = ours / ext4 - 1.0;
    Comparison {
        what: format!("{what}, of ext4's bandwidth"),
        paper: format!("{:.0} %", paper * 100.0),
        ours: format!("{:.0} % ({} of {} MB/s)", ours / ext4 * 100.0, rounded(ours), rounded(ext4)),
        rule: "gain or loss within a factor of 1.25".into(),
        agrees: (change.abs() / 1.25..=change.abs() * 1.25).contains(&(found * change.signum())),
    }
}
