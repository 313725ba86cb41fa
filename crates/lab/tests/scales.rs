//! One job at three scales on every stack: calls a second and write amplification stay, and where
//! they do not, by as much as the reason says.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use dovetail_lab::bench::{Experiment, Source, Stack};
use dovetail_lab::results::RunResult;

/// `examples/random-updates.fio`: four files of an eighth of the drive each are rewritten at
/// random, as much as half of the drive holds, an fsync after every tenth write.
const JOB: &str = include_str!("../../../examples/random-updates.fio");
/// Blocks of 4 KiB that a node of F2FS leads to.
const NODE: f64 = 1018.0;
/// Blocks of one of the job's files at full scale.
const FILE: f64 = (1 << 20) as f64;
/// Writes of a thread between two fsyncs.
const BETWEEN: i32 = 10;
/// Scales, and the seeds that make as many writes at each.
const SCALES: [(&str, u64); 3] = [("1/128", 4), ("1/64", 2), ("1/32", 1)];

/// The run of each stack at a scale, in their order.
fn runs(stacks: &[&str], scale: &str, seed: u64) -> Vec<RunResult> {
    let source = Source::fio(JOB, "random-updates.fio", &[]).unwrap();
    let stacks: Vec<Stack> = stacks.iter().map(|name| Stack::load(name).unwrap()).collect();
    let ratio = scale.parse().unwrap();
    let experiment = Experiment { scale: ratio, seed, ..Experiment::new(&source, &stacks) };
    let (results, failures) = experiment.run(2, &|_| {});
    assert!(failures.is_empty(), "{scale}: {failures:?}");
    assert!(results.runs.iter().all(|run| run.error.is_none()), "{scale}");
    results.runs
}

/// The spread of a figure: by how much its greatest value is above its least.
fn spread(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    values.fold(0.0, f64::max) / least - 1.0
}

/// Calls a second and the write amplification of file system and drive together, the mean of as
/// many seeds as a scale is smaller than the greatest: how threads fall in step differs from seed
/// to seed by up to 3 % of rm-ipu's calls at 1/128.
fn figures(stacks: &[&str], scale: &str, seeds: u64) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0); stacks.len()];
    for seed in 1..=seeds {
        for (sum, run) in sums.iter_mut().zip(runs(stacks, scale, seed)) {
            sum.0 += run.totals.calls_per_s / seeds as f64;
            sum.1 += run.totals.total_waf.unwrap() / seeds as f64;
        }
    }
    sums
}

/// Each stack stays within its tolerance of calls a second and of the write amplification, at
/// scales with their seeds.
fn stay(scales: [(&str, u64); 3], stacks: &[(&str, f64, f64)]) {
    let names: Vec<&str> = stacks.iter().map(|(name, ..)| *name).collect();
    let at = scales.map(|(scale, seeds)| figures(&names, scale, seeds));
    for (index, (name, of_calls, of_waf)) in stacks.iter().enumerate() {
        let found = at.each_ref().map(|figures| figures[index]);
        let told = format!("{name} at {scales:?}: {found:?}");
        assert!(spread(found.iter().map(|(calls, _)| *calls)) <= *of_calls, "{told}");
        assert!(spread(found.iter().map(|(_, waf)| *waf)) <= *of_waf, "{told}");
    }
}

/// Blocks that F2FS writes for a block of the job: an fsync writes the nodes that the blocks since
/// the last one hang on. A node leads to as much at any scale, so small files share them.
fn with_nodes(scale: f64) -> f64 {
    let nodes = FILE * scale / NODE;
    1.0 + nodes * (1.0 - (1.0 - 1.0 / nodes).powi(BETWEEN)) / f64::from(BETWEEN)
}

#[test]
fn what_writes_no_nodes_is_the_same_at_three_scales() {
    let stacks = ["ext3", "ext4", "rm-ipu", "rm-ipu-fsync", "rm-ipu-adaptive"];
    stay(SCALES, &stacks.map(|name| (name, 0.05, 0.03)));
}

/// The fewer nodes of small files (see [`with_nodes`]) leave the drive more writes to move.
#[test]
fn logs_with_nodes_move_by_less_than_the_nodes_make() {
    // iplfs: 4.7 % of the calls and 9.0 % of the amplification; f2fs-lfs 7.9 % fewer calls at 1/32
    // than at 1/64, and 9.7 % more amplification: a log of a busy volume sends no discards, and an
    // fsync writes the inode once a tick
    stay(SCALES, &[("iplfs", 0.08, 0.12), ("f2fs-lfs", 0.10, 0.12)]);
}

#[test]
fn f2fs_is_the_same_above_its_smallest_volumes() {
    // 7.4 % of the calls and 7.7 % of the amplification, for the same reasons
    stay([("1/64", 1), ("1/48", 1), ("1/32", 1)], &[("f2fs", 0.08, 0.10)]);
}

#[test]
fn nodes_of_f2fs_are_what_the_size_of_its_files_makes() {
    for (scale, below) in [("1/128", 128.0), ("1/64", 64.0)] {
        let [run] = <[RunResult; 1]>::try_from(runs(&["f2fs"], scale, 1)).unwrap();
        let (found, nodes) = (run.totals.fs_waf.unwrap(), with_nodes(1.0 / below));
        // and the inode, if the clock has ticked since the last fsync
        let expected = 0.99 * nodes..=1.01 * (nodes + 1.0 / f64::from(BETWEEN));
        assert!(expected.contains(&found), "{scale}: {found} beside {expected:?}");
    }
}

/// F2FS fills holes from twice its reserve on, 35 % of the segments of a volume of 256 MiB, 23 % of
/// one of 512 MiB: segments that nothing was ever written to are spare flash to the drive. So its
/// result of such a volume holds for no other.
#[test]
fn the_smallest_volume_of_f2fs_leaves_the_drive_more_room() {
    let drive = |scale: &str| runs(&["f2fs"], scale, 1)[0].totals.device_waf.unwrap();
    let (small, large) = (drive("1/128"), drive("1/64"));
    assert!(small < 0.6 * large, "{small} beside {large}");
}
