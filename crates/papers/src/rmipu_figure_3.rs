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
/// node. Free flash blocks run out somewhat earlier.
const FREE_GIB: f64 = 8.0;
/// Parts of the run in which throughput is compared.
const PARTS: u32 = 20;
/// Parts in which falls and rises are looked for: the paper's three events are all within 15 GiB.
const FINE_PARTS: u32 = 100;
/// Ratio of two rates of which the greater one counts as a rise (assumed).
const CHANGE: f64 = 1.1;
/// The greatest write amplification that counts as ideal (assumed).
const IDEAL: f64 = 1.1;
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
    let of_ext4 = times(&by_part(rm_ipu), &by_part(ext4));
    let most = span(&of_ext4).1;
    let early = |run: &RunResult| bandwidth(run, 0.0, FREE_GIB * 0.75 * gib);
    let late = |run: &RunResult| bandwidth(run, 0.25 * TOTAL_GIB * gib, TOTAL_GIB * gib);
    let falls = |name: &str, run: &RunResult| {
        let (early, late) = (early(run), late(run));
        let ours = format!("{} to {} MB/s", rounded(early), rounded(late));
        direction(format!("{name} falls when free blocks run out"), "it falls", ours, late < early)
    };
    let (least, greatest) = span(&by_part(rm_ipu)[PARTS as usize / 4..]);
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
        sustained(&of_ext4, [f2fs, lfs].map(|run| times(&by_part(rm_ipu), &by_part(run)))),
        Comparison::shown(
            "RM-IPU from 25 GiB on, when the drive itself cleans",
            format!(
                "{} to {} MB/s ({} before)",
                rounded(least),
                rounded(greatest),
                rounded(by_part(rm_ipu)[0])
            ),
        ),
        falls("F2FS", f2fs),
        falls("F2FS-L", lfs),
        recovers([f2fs, lfs].map(|run| parts(run, TOTAL_GIB * gib, FINE_PARTS, bandwidth))),
    ])
}

/// Ratios of the rates of two runs, part by part.
fn times(ours: &[f64], others: &[f64]) -> Vec<f64> {
    ours.iter().zip(others).map(|(ours, other)| ours / other).collect()
}

fn sustained(of_ext4: &[f64], of_f2fs: [Vec<f64>; 2]) -> Comparison {
    let (least, greatest) = span(of_ext4);
    let above_f2fs = of_f2fs.iter().map(|ratios| span(ratios).0).fold(f64::INFINITY, f64::min);
    let ours = format!(
        "{} to {} times ext4, at least {} times F2FS",
        rounded(least),
        rounded(greatest),
        rounded(above_f2fs)
    );
    let what = "RM-IPU is faster than ext4, F2FS and F2FS-L throughout";
    direction(what, "it can sustain it", ours, least > 1.0 && above_f2fs > 1.0)
        .by(&format!("in each of {PARTS} parts"))
}

/// Statement that F2FS and F2FS-L rise again after their first fall, and then fall again.
fn recovers(runs: [Vec<f64>; 2]) -> Comparison {
    let events = runs.each_ref().map(|rates| fall_and_rise(rates));
    let text = |event: &Option<[f64; 4]>| match event {
        Some(rates) => rates.map(rounded).join(", "),
        None => "no rise".into(),
    };
    let ours = format!("{}; {} MB/s", text(&events[0]), text(&events[1]));
    let paper = "they recover after free blocks are secured, then deteriorate again";
    let agrees = events.iter().all(Option::is_some);
    direction("F2FS and F2FS-L fall, recover and fall again", paper, ours, agrees)
        .by("each by a tenth, in parts of 1 GiB")
}

/// The greatest rate before the first fall, the least one before the first rise, the greatest one
/// before the next fall, and that after it; `None` if there are no such changes.
fn fall_and_rise(rates: &[f64]) -> Option<[f64; 4]> {
    let fall = |from: usize| {
        (from + 1..rates.len()).find(|&at| rates[at] * CHANGE < span(&rates[from..at]).1)
    };
    let rise = |from: usize| {
        (from + 1..rates.len()).find(|&at| rates[at] > span(&rates[from..at]).0 * CHANGE)
    };
    let fallen = fall(0)?;
    let risen = rise(fallen)?;
    let again = fall(risen)?;
    let (before, low) = (span(&rates[..fallen]).1, span(&rates[fallen..risen]).0);
    Some([before, low, span(&rates[risen..again]).1, rates[again]])
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
    let (f2fs_waf, lfs_waf, ext4_waf) = (waf(f2fs), waf(lfs), waf(ext4));
    let ideal = (ext4_waf, device(ext4));
    Ok(vec![
        direction(
            "file system's WAF of F2FS and F2FS-L above ext4's",
            "considerable write amplification",
            format!("{}, {} against {}", rounded(f2fs_waf), rounded(lfs_waf), rounded(ext4_waf)),
            f2fs_waf > ext4_waf && lfs_waf > ext4_waf,
        ),
        above("F2FS", f2fs),
        above("F2FS-L", lfs),
        Comparison {
            what: "ext4's WAF, file system and drive".into(),
            paper: "ideal".into(),
            ours: format!("{}, {}", rounded(ideal.0), rounded(ideal.1)),
            rule: "1.1 at most".into(),
            agrees: ideal.0 <= IDEAL && ideal.1 <= IDEAL,
        },
        Comparison::shown(
            "RM-IPU's WAF, file system and drive",
            format!(
                "{} ({} to {} in {PARTS} parts), {}",
                rounded(waf(rm_ipu)),
                rounded(least),
                rounded(greatest),
                rounded(device(rm_ipu))
            ),
        ),
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
