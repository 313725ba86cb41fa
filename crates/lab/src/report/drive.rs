//! What reports say of a drive.

use super::format::{bytes, count, significant};
use super::listing::{Row, row};
use crate::results::DriveResult;

/// How it was built.
pub(super) const ROWS: &[Row<DriveResult>] = &[
    row("Drive", |drive| drive.profile.clone()),
    row("Capacity", |drive| bytes(drive.capacity_bytes)),
    row("Flash", |drive| bytes(drive.raw_bytes)),
    row("Over-provisioning", |drive| format!("{} %", significant(drive.over_provisioning_percent))),
    row("Channels, dies", |drive| format!("{}, {}", count(drive.channels.into()), count(drive.dies.into()))),
    row("Page, block", |drive| format!("{}, {}", bytes(drive.page_bytes.into()), bytes(drive.block_bytes))),
    row("Lines", |drive| format!("{} of {}", count(drive.lines.into()), bytes(drive.line_bytes))),
    row("Mapping", |drive| drive.map.clone()),
    row("Cleaning", |drive| drive.gc.clone()),
    row("Write streams", |drive| drive.streams.to_string()),
    row("Write buffer", |drive| bytes(drive.buffer_bytes)),
];
