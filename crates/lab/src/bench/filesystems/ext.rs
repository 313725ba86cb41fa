//! ext3 and ext4 in a stack.

use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Options};
use dovetail_host::Planner;
use dovetail_time::{Ratio, SimTime};
use dovetail_vfs::Simulated;
use serde::Deserialize;

use super::table;
use crate::bench::{BenchError, Stack};

/// The stack's table `[mkfs]`, by the names of mke2fs(8)'s settings.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Mkfs {
    block_size: Option<u32>,
    inode_ratio: Option<u32>,
    journal_blocks: Option<u32>,
    reserved_percent: Option<u32>,
}

/// There is nothing of these file systems in sysfs that changes anything here.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sysfs {}

pub(super) fn build_ext4(
    stack: &Stack,
    planner: Planner,
    scale: Ratio,
) -> Result<Box<dyn Simulated>, BenchError> {
    build(stack, planner, scale, Kind::Ext4)
}

pub(super) fn build_ext3(
    stack: &Stack,
    planner: Planner,
    scale: Ratio,
) -> Result<Box<dyn Simulated>, BenchError> {
    build(stack, planner, scale, Kind::Ext3)
}

fn build(
    stack: &Stack,
    mut planner: Planner,
    scale: Ratio,
    kind: Kind,
) -> Result<Box<dyn Simulated>, BenchError> {
    let _: Sysfs = table(stack, "sysfs", &stack.sysfs)?;
    let options = Options::parse(&stack.mount)
        .map_err(|error| BenchError::StackFile { file: stack.name.clone(), reason: error.to_string() })?;
    let options = Options { page_cache_bytes: stack.memory_bytes(scale), ..options };
    let failed = |error: dovetail_ext::Error| BenchError::Setup {
        stack: stack.name.clone(),
        reason: error.to_string(),
    };
    mkfs(&mut planner, &mkfs_options(stack, kind)?).map_err(failed)?;
    Ok(Box::new(Ext::mount(planner, options, SimTime::ZERO).map_err(failed)?))
}

fn mkfs_options(stack: &Stack, kind: Kind) -> Result<MkfsOptions, BenchError> {
    let table: Mkfs = table(stack, "mkfs", &stack.mkfs)?;
    let defaults = MkfsOptions::new(kind);
    Ok(MkfsOptions {
        block_size: table.block_size.or(defaults.block_size),
        inode_ratio: table.inode_ratio.or(defaults.inode_ratio),
        journal_blocks: table.journal_blocks.or(defaults.journal_blocks),
        reserved_percent: table.reserved_percent.unwrap_or(defaults.reserved_percent),
        ..defaults
    })
}
