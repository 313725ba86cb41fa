//! Figure 12a of the IPLFS paper: random writes on a partition that is all but full.

use dovetail_lab::bench::{BenchError, Source, Stack};
use dovetail_lab::results::RunResult;

use super::curve::{Fall, bandwidth_in, fall};
use super::iplfs::{GIB, on_partition};
use super::{
    Comparison, Figure, Plan, Reproduction, Setting, of, rounded, within, within_a_factor,
};

pub(crate) const FIGURE: Figure = Figure {
    name: "iplfs-figure-12a",
    title: "Random write bandwidth on a file of 28 GiB in a partition of 30 GiB: F2FS cleans, IPLFS does not",
    source: "Kim et al., IPLFS, ATC'22: figure 12a and section 6.1; job and series as published with its code",
    setup: "Four threads, 4 KiB at random into one file that is reserved and not written before, buffered, without fsync, for 600 s; a host with 8 GB; F2FS mounted mode=lfs,discard. \
            The jobs' random numbers are fio's shift register (random_generator=lfsr): all four walk one circle through the file, from places that depend on its size. After 29 GiB 87 % of it are \
            written, so segments are nearly full of what is valid. The drive of 230 GiB has room to spare. The published series of F2FS falls at 29.4 GiB from 70 thousand writes a second to 5 \
            thousand, and rises to 9: the paper's 12.8 times is that trough, the mean is 8.2. The drive's dies are as fast as that series before its fall, and nothing else is fitted. It runs at full \
            size by default: on a smaller drive F2FS keeps a larger part of the partition to itself, so that the file has 26 GiB there, and 23 below 1/10, and the threads begin elsewhere on the circle.",
    reduced: 1,
    run,
    sensitivity: None,
};

pub(super) const JOB: &str = "
[update]
filename=file
rw=randwrite
bs=4k
numjobs=4
size=${SIZE}
norandommap
random_generator=lfsr
time_based
runtime=${SECONDS}
group_reporting
";

const SECONDS: f64 = 600.0;
/// The paper calls its series steady: the mean of a tenth of it, after the first, lies up to so far
/// from the mean of all of them (8.1 % in the published series of IPLFS).
const STEADY: f64 = 0.081;
/// Of a run: ten or twenty seconds at full scale.
const WINDOWS: u32 = 60;
/// Of the time after the fall: the published series is at its lowest for some hundred seconds.
const PARTS: u32 = 5;

/// The paper's host.
pub(super) fn with_8_gb(mut stack: Stack) -> Stack {
    stack.memory = "8GB".into();
    stack
}

/// The job on a file of some size for some seconds, both at full scale.
pub(super) fn job(size: &str, seconds: f64, setting: &Setting<'_>) -> Result<Source, BenchError> {
    let seconds = format!("{:.0}ms", seconds * 1000.0 * setting.scale.value());
    let set = [("SIZE".into(), size.into()), ("SECONDS".into(), seconds)];
    Source::fio(JOB, "random-writes.fio", &set)
}

/// The fall of a run.
pub(super) fn fall_of(run: &RunResult, seconds: f64) -> Fall {
    fall(run, seconds, WINDOWS, PARTS)
}

fn run(setting: &Setting<'_>) -> Result<Reproduction, BenchError> {
    let scale = setting.scale.value();
    let size = match scale {
        s if s > 0.5 => "28g",
        s if s > 0.1 => "26g",
        _ => "23g",
    };
    let source = job(size, SECONDS, setting)?;
    let stacks = on_partition(&["f2fs-lfs", "iplfs"], "30GiB")?;
    let stacks = stacks.into_iter().map(with_8_gb).collect();
    let results = setting.perform(&Plan {
        source: &source,
        fill: None,
        stacks,
        final_sync: false,
        restart: false,
    })?;
    let (iplfs, f2fs) = (of(&results, "iplfs")?, of(&results, "f2fs-lfs")?);
    let seconds = SECONDS * scale;
    let fall = fall_of(f2fs, seconds);
    let steady = bandwidth_in(iplfs, seconds / 10.0, seconds);
    let end = bandwidth_in(iplfs, seconds * 0.9, seconds);
    let comparisons = vec![
        Comparison {
            what: "IPLFS at the end".into(),
            paper: "steady at its full speed".into(),
            ours: format!("{} MB/s, {} on the whole", rounded(end), rounded(steady)),
            rule: "within 8.1 % of the whole".into(),
            agrees: (end / steady - 1.0).abs() <= STEADY,
        },
        Comparison::shown(
            "F2FS before it cleans, then at its lowest and on average",
            format!(
                "{}, {}, {} MB/s",
                rounded(fall.before),
                rounded(fall.trough),
                rounded(fall.after)
            ),
        ),
        within("written when F2FS falls", "GiB", 29.4, fall.onset_bytes / GIB / scale, 1.15),
        within_a_factor(
            "F2FS at its lowest, of its start",
            "%",
            10.0,
            fall.trough / fall.before * 100.0,
            1.5,
        ),
        within_a_factor("IPLFS over F2FS at its lowest", "times", 12.8, steady / fall.trough, 1.5),
        within_a_factor("IPLFS over F2FS from its fall on", "times", 8.2, steady / fall.after, 1.5),
    ];
    Ok(Reproduction { comparisons, results })
}
