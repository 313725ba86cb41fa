//! The table of what was run: the stack and the drive of each run. What all runs share stands once.

use super::super::drive;
use super::super::format::bytes;
use super::super::listing::{Listing, Row, row};
use crate::bench::results::BenchRun;

const ROWS: &[Row<BenchRun>] = &[
    row("Stack", |run| run.stack.name.clone()),
    row("File system", |run| run.stack.filesystem.clone()),
    row(
        "Mount options",
        |run| if run.stack.mount.is_empty() { "none".into() } else { run.stack.mount.clone() },
    ),
    row("Partition", |run| bytes(run.stack.partition_bytes)),
    row("Page cache", |run| bytes(run.stack.memory_bytes)),
    row("Seed", |run| run.seed.to_string()),
];

/// The setup of all runs.
pub(super) fn table(runs: &[BenchRun]) -> String {
    Listing::of(runs).rows(ROWS, |run| run).rows(drive::ROWS, |run| &run.drive).html("Setup")
}
