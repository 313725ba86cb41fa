//! ext3 and ext4 in a stack.

use dovetail_block::{BLOCK_SIZE, Scheduler};
use dovetail_ext::fsck::{self, Severity};
use dovetail_ext::mkfs::{Kind, MkfsOptions, mkfs};
use dovetail_ext::{Ext, Options};
use dovetail_host::Planner;
use dovetail_time::SimTime;
use dovetail_vfs::kit::Throttle;
use dovetail_vfs::{Guarantees, Limits, XattrLayout};
use serde::Deserialize;

use crate::kept::Kept;
use crate::kind::{Device, Mounted, Setup, SetupError, VolumeKind, table};

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
    discard: Option<bool>,
}

/// There is nothing of these file systems in sysfs that changes anything here.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sysfs {}

pub(crate) const EXT4: VolumeKind = VolumeKind {
    name: "ext4",
    build: |setup, planner| build(setup, planner, Kind::Ext4),
    remount: |setup, planner| mount(setup, planner),
    make: |setup, device| make(setup, device, Kind::Ext4),
    mount: |setup, device| mount(setup, device),
    check,
    guarantees: |_| Guarantees::default(),
    limits: |_| limits(true),
    floors: |_| Vec::new(),
    figures: dovetail_ext::FIGURES,
    referee: Some(("e2fsck", &["-f", "-n"])),
};

pub(crate) const EXT3: VolumeKind = VolumeKind {
    name: "ext3",
    build: |setup, planner| build(setup, planner, Kind::Ext3),
    make: |setup, device| make(setup, device, Kind::Ext3),
    limits: |_| limits(false),
    ..EXT4
};

fn build(setup: &Setup<'_>, mut planner: Planner, kind: Kind) -> Mounted {
    make(setup, &mut planner, kind)?;
    mount(setup, planner)
}

fn make(setup: &Setup<'_>, device: impl Scheduler, kind: Kind) -> Result<(), SetupError> {
    let mut device = device;
    let full_bytes = device.info().blocks as f64 * BLOCK_SIZE as f64 / setup.scale.value();
    let options = mkfs_options(setup, kind, full_bytes)?;
    let made = match setup.discards() {
        true => mkfs(&mut device, &options),
        false => mkfs(&mut Kept(device), &options),
    };
    made.map(drop).map_err(SetupError::volume)
}

fn mount(setup: &Setup<'_>, device: impl Scheduler + 'static) -> Mounted {
    let _: Sysfs = table("sysfs", setup.sysfs)?;
    let options = Options::parse(setup.mount).map_err(SetupError::settings)?;
    let options = Options {
        page_cache_bytes: setup.memory_bytes,
        dirty_background_bytes: Some(Throttle::background_bytes(setup.memory_bytes)),
        physical_pointers: setup.device_addresses,
        ..options
    };
    Ok(Box::new(Ext::mount(device, options, SimTime::ZERO).map_err(SetupError::volume)?))
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
fn mkfs_options(setup: &Setup<'_>, kind: Kind, full_bytes: f64) -> Result<MkfsOptions, SetupError> {
    let table: Mkfs = table("mkfs", setup.mkfs)?;
    if let Some(size) = table.block_size.filter(|size| u64::from(*size) != BLOCK_SIZE) {
        let reason =
            format!("[mkfs] block-size is {size}: simulated volumes have blocks of {BLOCK_SIZE}");
        return Err(SetupError::Settings(reason));
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
