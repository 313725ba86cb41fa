//! Figure 3 of the RM-IPU paper: random writes on the emulated drive, throughput and write
//! amplification over time.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::{Results, RunResult};

use super::curve::{bandwidth, fs_waf, parts, span};
use super::sensitivity::{Cost, Sensitivity};
use super::{
    Comparison, Figure, Plan, Reproduction, Setting, direction, of, rounded, stacks_before_6_4,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "rmipu-figure-3",
    title: "Random writes on the emulated drive: throughput and write amplification over the volume written",
    source: "Lee et al., When F2FS Meets Address Remapping, HotStorage'22: figure 3, sections 4.2 and 4.3",
    setup: "FEMU, 32 GiB and 4 GiB of spare flash, 50 us to read, 500 us to program, 5 ms to erase, 0.1 us for each entry of a remap; four threads \
            write 4 KiB at random into a file of 4 GiB each, fsync after every tenth write. Assumed, since the paper does not say: 100 GiB in \
            all, blocks drawn anew each time, the parallelism of FEMU's default drive (64 dies), the size of its write cache, and what a \
            request costs the host; --sensitivity shows what the ratio to ext4 makes of those. Without a write cache the ratio is 1.4 while the \
            drive cleans (FEMU charges each write its program); with one, ext4's flushes serve several threads and it is 1.15. A remap \
            makes durable what it moves, so RM-IPU needs no flush here; the paper's does.",
    reduced: 16,
    run,
    sensitivity: Some(&SENSITIVITY),
};

const GIB: f64 = (1_u64 << 30) as f64;
const TOTAL_GIB: f64 = 100.0;
/// The drive's half that the files leave free takes 8 GiB of data, since each block brings one of a
/// node.
const FREE_GIB: f64 = 8.0;
/// Parts of the run in which throughput is compared.
const PARTS: u32 = 20;
/// Ratio of two rates of which the greater one counts as a rise (assumed).
const CHANGE: f64 = 1.1;
const DRIVE: &str = "femu-32g";

const JOB: &str = "
[update]
rw=randwrite
bs=4k
numjobs=4
size=4g
io_size=25g
norandommap
fsync=10
overwrite=1
group_reporting
";

fn source() -> Result<Source, BenchError> {
    Source::fio(JOB, "rmipu-figure-3.fio", &[])
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let names = ["f2fs", "f2fs-lfs", "ext4", "rm-ipu"];
    let plan = Plan {
        source: &source()?,
        fill: None,
        stacks: stacks_before_6_4(&names, DRIVE)?,
        final_sync: false,
        restart: false,
    };
    let results = setting.perform(&plan)?;
    let gib = GIB * setting.scale.value();
    let mut comparisons = throughput(&results, gib)?;
    comparisons.extend(amplification(&results, gib)?);
    Ok(Reproduction { comparisons, results })
}

fn throughput(results: &Results, gib: f64) -> Result<Vec<Comparison>, BenchError> {
    let [f2fs, lfs, ext4, rm_ipu] = runs(results)?;
    let by_part = |run: &RunResult| parts(run, TOTAL_GIB * gib, PARTS, bandwidth);
    let ratios: Vec<f64> =
        by_part(rm_ipu).iter().zip(by_part(ext4)).map(|(ours, ext4)| ours / ext4).collect();
    let most = span(&ratios).1;
    let in_parts = by_part(rm_ipu);
    let (least, greatest) = span(&in_parts[PARTS as usize / 4..]);
    let early = |run: &RunResult| bandwidth(run, 0.0, FREE_GIB * 0.75 * gib);
    let late = |run: &RunResult| bandwidth(run, 0.25 * TOTAL_GIB * gib, TOTAL_GIB * gib);
    let falls = |name: &str, run: &RunResult| {
        let (early, late) = (early(run), late(run));
        let ours = format!("{} to {} MB/s", rounded(early), rounded(late));
        direction(
            format!("{name} falls when free segments run out"),
            "it falls",
            ours,
            late < early,
        )
    };
    Ok(vec![
        Comparison {
            what: "RM-IPU over ext4, at most".into(),
            paper: "up to 1.4 times".into(),
            ours: format!(
                "{} times ({} MB/s over {} as a whole)",
                rounded(most),
                whole(rm_ipu),
                whole(ext4)
            ),
            rule: "1.2 to 1.6 times".into(),
            agrees: (1.2..=1.6).contains(&most),
        },
        Comparison {
            what: "RM-IPU is steady from 25 GiB on, when the drive itself cleans".into(),
            paper: "it sustains it".into(),
            ours: format!(
                "{} to {} MB/s ({} before)",
                rounded(least),
                rounded(greatest),
                rounded(in_parts[0])
            ),
            rule: "least within 10 % of greatest".into(),
            agrees: least >= 0.9 * greatest,
        },
        falls("F2FS", f2fs),
        recovers(&by_part(f2fs)),
        falls("F2FS-L", lfs),
        best(late, [f2fs, lfs, ext4, rm_ipu]),
    ])
}

/// Statement that F2FS rises again after its first fall, and then falls again.
fn recovers(in_parts: &[f64]) -> Comparison {
    let parts = in_parts.len();
    let fall = |from: usize| {
        (from + 1..parts).find(|&at| in_parts[at] * CHANGE < span(&in_parts[from..at]).1)
    };
    let rise = |from: usize| {
        (from + 1..parts).find(|&at| in_parts[at] > span(&in_parts[from..at]).0 * CHANGE)
    };
    let agrees = fall(0).and_then(rise).and_then(fall).is_some();
    let rates = in_parts.iter().map(|rate| rounded(*rate)).collect::<Vec<_>>().join(" ");
    let paper = "it recovers after free blocks are secured, then deteriorates again";
    let ours = format!("{rates} MB/s");
    direction("F2FS recovers after its first fall", paper, ours, agrees).by("each by a tenth")
}

fn best(
    late: impl Fn(&RunResult) -> f64,
    [f2fs, lfs, ext4, rm_ipu]: [&RunResult; 4],
) -> Comparison {
    let others = [f2fs, lfs, ext4].map(&late);
    let ours = format!("{} MB/s against {}", rounded(late(rm_ipu)), others.map(rounded).join(", "));
    let agrees = others.iter().all(|other| late(rm_ipu) > *other);
    direction("RM-IPU is the fastest then (F2FS, F2FS-L, ext4)", "it is", ours, agrees)
}

fn amplification(results: &Results, gib: f64) -> Result<Vec<Comparison>, BenchError> {
    let [f2fs, lfs, ext4, rm_ipu] = runs(results)?;
    let waf = |run| fs_waf(run, 0.0, TOTAL_GIB * gib);
    let (least, greatest) = span(&parts(rm_ipu, TOTAL_GIB * gib, PARTS, fs_waf));
    let device = |run: &RunResult| run.totals.device_waf.unwrap_or(f64::NAN);
    let above = |name: &str, run: &RunResult| {
        let ours = format!("{} against {}", rounded(device(run)), rounded(device(ext4)));
        direction(
            format!("drive's WAF of {name} above ext4's"),
            "above",
            ours,
            device(run) > device(ext4),
        )
    };
    Ok(vec![
        Comparison {
            what: "file system's WAF, RM-IPU beside ext4".into(),
            paper: "as ext4's".into(),
            ours: format!("{} beside {}", rounded(waf(rm_ipu)), rounded(waf(ext4))),
            rule: "within 10 %".into(),
            agrees: (waf(rm_ipu) / waf(ext4) - 1.0).abs() <= 0.1,
        },
        Comparison {
            what: "RM-IPU's is flat".into(),
            paper: "flat".into(),
            ours: format!("{} to {} in {PARTS} parts", rounded(least), rounded(greatest)),
            rule: "greatest within 10 % of least".into(),
            agrees: greatest <= 1.1 * least,
        },
        above("F2FS", f2fs),
        above("F2FS-L", lfs),
        Comparison {
            what: "drive's WAF, RM-IPU beside ext4".into(),
            paper: "close to ext4's".into(),
            ours: format!("{} beside {}", rounded(device(rm_ipu)), rounded(device(ext4))),
            rule: "within 15 %".into(),
            agrees: (device(rm_ipu) / device(ext4) - 1.0).abs() <= 0.15,
        },
    ])
}

fn runs(results: &Results) -> Result<[&RunResult; 4], BenchError> {
    Ok([
        of(results, "f2fs")?,
        of(results, "f2fs-lfs")?,
        of(results, "ext4")?,
        of(results, "rm-ipu")?,
    ])
}

fn whole(run: &RunResult) -> String {
    rounded(run.totals.write_mb_per_s)
}

static SENSITIVITY: Sensitivity = Sensitivity {
    what: "RM-IPU's throughput over ext4's",
    reduced: 64,
    source,
    drive: DRIVE,
    stacks: ["rm-ipu", "ext4"],
    figure: |run| run.totals.write_mb_per_s,
    costs: &[
        Cost {
            name: "request_ns",
            unit: "ns of the host for a request",
            values: &[0.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0],
            set: |stack, value| stack.host.request_ns = value as u64,
        },
        Cost {
            name: "wake_ns",
            unit: "ns until a thread goes on",
            values: &[0.0, 3_000.0, 10_000.0, 50_000.0],
            set: |stack, value| stack.host.wake_ns = value as u64,
        },
        Cost {
            name: "host.command_us",
            unit: "us of the drive for a command",
            values: &[0.0, 5.0, 10.0, 20.0, 50.0],
            set: |stack, value| figure(stack, "host.command_us", value),
        },
        Cost {
            name: "host.write_buffer",
            unit: "MiB of the drive's write cache, at full scale",
            values: &[0.0, 8.0, 64.0, 512.0],
            set: |stack, mib| {
                let size = toml::Value::String(format!("{mib}MiB"));
                stack.drive_figures.insert("host.write_buffer".into(), size);
            },
        },
        Cost {
            name: "remap.entry_us",
            unit: "us of the drive for an entry of its map",
            values: &[0.0, 0.1, 1.0, 10.0],
            set: |stack, value| figure(stack, "remap.entry_us", value),
        },
    ],
};

fn figure(stack: &mut Stack, key: &str, value: f64) {
    stack.drive_figures.insert(key.into(), toml::Value::Float(value));
}
