//! ext3 and ext4 in a stack.

use dovetail_block::{BLOCK_SIZE, Scheduler};
use dovetail_ext::fsck::{self, Severity};
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Options};
use dovetail_host::Planner;
use dovetail_time::{Ratio, SimTime};
use dovetail_vfs::{Guarantees, Limits, Simulated, XattrLayout};
use serde::Deserialize;

use super::{Device, table};
use crate::bench::{BenchError, Stack};

/// Below this mke2fs makes small blocks and many inodes (mke2fs.conf, `small`).
const SMALL_VOLUME: f64 = (512_u64 << 20) as f64;
/// mke2fs.conf: bytes of the volume for each inode, of volumes that are not small.
const INODE_RATIO: u32 = 16_384;

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

pub(super) const EXT4: super::Kind = super::Kind {
    name: "ext4",
    build: |stack, planner, scale| build(stack, planner, scale, Kind::Ext4),
    make: |stack, device, scale| make(stack, device, scale, Kind::Ext4),
    mount: |stack, device, scale| mount(stack, device, scale),
    check,
    guarantees: |_| Guarantees::default(),
    limits: || limits(true),
    figures: dovetail_ext::FIGURES,
    referee: Some(("e2fsck", &["-f", "-n"])),
};

pub(super) const EXT3: super::Kind = super::Kind {
    name: "ext3",
    build: |stack, planner, scale| build(stack, planner, scale, Kind::Ext3),
    make: |stack, device, scale| make(stack, device, scale, Kind::Ext3),
    limits: || limits(false),
    ..EXT4
};

fn build(
    stack: &Stack,
    mut planner: Planner,
    scale: Ratio,
    kind: Kind,
) -> Result<Box<dyn Simulated>, BenchError> {
    make(stack, &mut planner, scale, kind)?;
    mount(stack, planner, scale)
}

fn failed(stack: &Stack) -> impl Fn(dovetail_ext::Error) -> BenchError + '_ {
    |error| BenchError::Setup { stack: stack.name.clone(), reason: error.to_string() }
}

fn make(stack: &Stack, device: impl Scheduler, scale: Ratio, kind: Kind) -> Result<(), BenchError> {
    let mut device = device;
    let full_bytes = device.info().blocks as f64 * BLOCK_SIZE as f64 / scale.value();
    mkfs(&mut device, &mkfs_options(stack, kind, full_bytes)?).map(drop).map_err(failed(stack))
}

fn mount(
    stack: &Stack,
    device: impl Scheduler + 'static,
    scale: Ratio,
) -> Result<Box<dyn Simulated>, BenchError> {
    let _: Sysfs = table(stack, "sysfs", &stack.sysfs)?;
    let options = Options::parse(&stack.mount)
        .map_err(|error| BenchError::StackFile { file: stack.name.clone(), reason: error.to_string() })?;
    let page_cache_bytes = stack.memory_bytes(scale);
    let options = Options { page_cache_bytes, physical_pointers: stack.devirtualize.is_some(), ..options };
    Ok(Box::new(Ext::mount(device, options, SimTime::ZERO).map_err(failed(stack))?))
}

fn check(device: Device) -> Vec<String> {
    match fsck::check(device, fsck::Options::default()) {
        Ok(report) => {
            let errors = report.findings.iter().filter(|found| found.severity() == Severity::Error);
            errors.map(ToString::to_string).collect()
        }
        Err(error) => vec![error.to_string()],
    }
}

/// Of volumes with blocks of 4096 bytes and inodes of 256.
fn limits(reserves: bool) -> Limits {
    Limits {
        file_size: 1 << 41,
        links: 65_000,
        xattr_value: usize::MAX,
        xattr_total: BLOCK_SIZE as usize - 36,
        xattr_layout: XattrLayout::Apart,
        symlink: BLOCK_SIZE as usize - 1,
        reserves,
        ..Limits::default()
    }
}

/// A volume shrunk with its drive keeps the inode ratio of its full size. Blocks are those of the
/// device: content is named by them.
fn mkfs_options(stack: &Stack, kind: Kind, full_bytes: f64) -> Result<MkfsOptions, BenchError> {
    let table: Mkfs = table(stack, "mkfs", &stack.mkfs)?;
    if let Some(size) = table.block_size.filter(|size| u64::from(*size) != BLOCK_SIZE) {
        let reason = format!("[mkfs] block-size is {size}: simulated volumes have blocks of {BLOCK_SIZE}");
        return Err(BenchError::StackFile { file: stack.name.clone(), reason });
    }
    let usual_ratio = (full_bytes >= SMALL_VOLUME).then_some(INODE_RATIO);
    let defaults = MkfsOptions::new(kind);
    Ok(MkfsOptions {
        block_size: Some(BLOCK_SIZE as u32),
        inode_ratio: table.inode_ratio.or(usual_ratio).or(defaults.inode_ratio),
        journal_blocks: table.journal_blocks.or(defaults.journal_blocks),
        reserved_percent: table.reserved_percent.unwrap_or(defaults.reserved_percent),
        ..defaults
    })
}
