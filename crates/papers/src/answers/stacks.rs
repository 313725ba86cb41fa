//! The stacks of the comparison, all on the flash of femu-32g.

use dovetail_lab::bench::{BenchError, Schedule, Stack};
use dovetail_time::Ratio;

use super::jobs::CAPACITY;
use super::named;

/// Their names, in the order in which they are shown.
pub(super) const NAMES: [&str; 12] = [
    "ext4",
    "f2fs",
    "f2fs-lfs",
    "f2fs-streams",
    "f2fs-lfs-streams",
    "f2fs-fdp",
    "f2fs-zoned",
    "f2fs-gc-remap",
    "rm-ipu",
    "rm-ipu-adaptive",
    "iplfs",
    "fsdv-ext4",
];

/// The stacks with so many percent of spare flash, for drives shrunk to `scale`.
pub(super) fn with_spare(percent: f64, scale: Ratio) -> Result<Vec<Stack>, BenchError> {
    NAMES.iter().map(|name| Ok(spare(lazily(load(name, scale)?), percent))).collect()
}

/// On a drive with so many percent of spare flash. One with zones has use for none: the file system
/// gets all but what the drive needs for itself.
fn spare(stack: Stack, percent: f64) -> Stack {
    const LEAST: f64 = 0.1;
    if stack.drive != "femu-32g-zoned" {
        return stack.with_spare(None, Some(percent));
    }
    let bytes = CAPACITY * (1.0 + percent / 100.0) / (1.0 + LEAST / 100.0);
    let mut stack = stack.with_spare(None, Some(LEAST));
    stack.drive_figures.insert("capacity.user".into(), format!("{}", bytes as u64).into());
    stack
}

/// With a drive that cleans when it must, as pm9a3-960g does: FEMU's begins when three quarters of
/// all lines are in use, whatever is spare.
pub(crate) fn lazily(mut stack: Stack) -> Stack {
    let figures: [(&str, toml::Value); 5] = [
        ("ftl.gc_apart", true.into()),
        ("ftl.gc_percent_of", "spare".into()),
        ("ftl.gc_foreground_percent", 1.0.into()),
        ("ftl.gc_background_percent", 4.0.into()),
        ("ftl.gc_least_garbage_percent", 0.0.into()),
    ];
    stack.drive_figures.extend(figures.map(|(key, value)| (key.to_owned(), value)));
    stack
}

fn load(name: &str, scale: Ratio) -> Result<Stack, BenchError> {
    match name {
        "f2fs-lfs-streams" => Ok(named(name, Stack::load("f2fs-streams")?.with_mount("mode=lfs")?)),
        "fsdv-ext4" => Ok(rewriting(Stack::load(name)?, scale)),
        name => Stack::load(name),
    }
}

/// FSDV on the flash of the others; map and batches as on its own drive. Its tool runs once a minute
/// of the whole drive's time: a shrunk one is written in less.
fn rewriting(stack: Stack, scale: Ratio) -> Stack {
    let minute_us = (60e6 * scale.value()) as u64;
    let schedule = Schedule { every: Some(format!("{minute_us}us")), ..Schedule::default() };
    let mut stack = Stack { drive: "femu-32g-log".into(), devirtualize: Some(schedule), ..stack };
    let figures: [(&str, toml::Value); 4] = [
        ("ftl.map", "hash".into()),
        ("remap.pairs_per_command", 1012.into()),
        ("remap.held_pairs", 0.into()),
        ("remap.renames", 1012.into()),
    ];
    stack.drive_figures.extend(figures.map(|(key, value)| (key.to_owned(), value)));
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_on_the_same_flash() {
        let scale = "1/16".parse().unwrap();
        let raw = |stack: &Stack| {
            let drive = stack.drive_config(scale, 1).unwrap();
            drive.nand.geometry.raw_bytes()
        };
        for percent in [7.0, 28.0] {
            let stacks = with_spare(percent, scale).unwrap();
            let flash: Vec<u64> = stacks.iter().map(raw).collect();
            // to a line
            let line = 256 * 4096 * 64 / 16;
            assert!(flash.iter().all(|bytes| bytes.abs_diff(flash[0]) <= line), "{flash:?}");
            let zoned = stacks.iter().find(|stack| stack.name == "f2fs-zoned").unwrap();
            let offered = zoned.drive_config(scale, 1).unwrap().user_blocks * 4096;
            assert!(offered as f64 > 0.95 * flash[0] as f64, "{offered} of {}", flash[0]);
        }
    }
}
