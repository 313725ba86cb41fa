//! Volumes of IPLFS, and what must hold of their devices.

use std::collections::BTreeSet;

use dovetail_block::{AREA_BLOCKS, AREAS, BlockDevice, MemoryDevice, Scheduler};
use dovetail_f2fs::format::{AddressWidth, Features, Variant};
use dovetail_f2fs::fsck::{Options as CheckOptions, check};
use dovetail_f2fs::mkfs::{MkfsOptions, mkfs};
use dovetail_f2fs::{F2fs, Options, Volume};
use dovetail_time::SimTime;
use dovetail_vfs::Limits;

/// A thin device with room for so many bytes.
pub fn thin(bytes: u64) -> MemoryDevice {
    MemoryDevice::thin(AREAS * AREA_BLOCKS, bytes / 4096)
}

pub fn iplfs_options() -> MkfsOptions {
    MkfsOptions { variant: Variant::IPLFS, ..MkfsOptions::default() }
}

/// With addresses of 4 bytes.
pub fn narrow_options() -> MkfsOptions {
    MkfsOptions { variant: Variant::Iplfs(AddressWidth::Narrow), ..MkfsOptions::default() }
}

/// Everything that an inode can have beyond the basic format.
pub fn all_features() -> Features {
    let all = [
        Features::EXTRA_ATTR,
        Features::INODE_CHECKSUM,
        Features::SB_CHECKSUM,
        Features::INODE_CRTIME,
        Features::FLEXIBLE_INLINE_XATTR,
    ];
    all.into_iter().fold(Features(0), Features::with)
}

/// A fresh volume.
pub fn iplfs_device(bytes: u64, options: &MkfsOptions) -> MemoryDevice {
    let mut device = thin(bytes);
    mkfs(&mut device, options).unwrap();
    device
}

/// The largest file is smaller where pointers are larger.
pub fn iplfs_limits<D: BlockDevice>(volume: D, options: &Options) -> Limits {
    let inline = if options.inline_xattr { 200 } else { 0 };
    let xattr_total = inline + 4072 - 24;
    let limits = Limits { xattr_value: xattr_total - 4, xattr_total, ..Limits::default() };
    if Volume::open(volume).unwrap().superblock().variant == Variant::IPLFS {
        return Limits { file_size: 4096 * 509 * (2 + 2 * 1018 + 1018 * 1018), ..limits };
    }
    limits
}

/// Blocks that the device holds in the areas of the logs.
pub fn mapped(device: &MemoryDevice) -> BTreeSet<u64> {
    device.used().map(|(lba, _)| lba.0).filter(|&block| block >= AREA_BLOCKS).collect()
}

/// All is written and discarded; the device then holds what the volume has and nothing else, and of
/// the metadata no more than was set aside for them.
pub fn leaks<D: Scheduler>(
    fs: &mut F2fs<D>,
    device: impl FnOnce(&F2fs<D>) -> MemoryDevice,
) -> Vec<String> {
    fs.sync_all().unwrap();
    fs.trim().unwrap();
    let live: BTreeSet<u64> =
        fs.live_blocks().unwrap().into_iter().map(|address| address.0).collect();
    let device = device(fs);
    let held = mapped(&device);
    let mut found: Vec<String> = Vec::new();
    found.extend(
        held.difference(&live).map(|block| format!("block {block:#x} is held and not live")),
    );
    found.extend(
        live.difference(&held).map(|block| format!("block {block:#x} is live and not held")),
    );
    let counted = fs.checkpoint_state().valid_block_count;
    if counted < live.len() as u64 {
        found.push(format!("{} blocks are live, {counted} counted", live.len()));
    }
    let metadata = device.used().filter(|(lba, _)| lba.0 < AREA_BLOCKS).count() as u64;
    let superblock = fs.superblock();
    if metadata > superblock.capacity - superblock.room_for_files() {
        found.push(format!("{metadata} blocks of metadata"));
    }
    if !fs.awaiting_discard().is_empty() {
        found.push("something waits to be discarded".into());
    }
    found
}

/// Mounts a copy of a device, as it is, and looks for leaks.
pub fn leaks_after_mount(device: &MemoryDevice) -> Vec<String> {
    if let Err(error) = Volume::open(device.clone()).and_then(|mut volume| volume.discard_log()) {
        return vec![format!("before a mount: {error}")];
    }
    match check(device.clone(), CheckOptions::default(), |_| {}) {
        Ok(report) if report.is_clean() => {}
        Ok(report) => return vec![format!("before a mount: {:?}", report.findings)],
        Err(error) => return vec![format!("a copy cannot be checked: {error}")],
    }
    match F2fs::mount(device.clone(), Options::default(), SimTime::ZERO) {
        Ok(mut fs) => leaks(&mut fs, |fs| fs.device().clone()),
        Err(error) => vec![format!("a copy cannot be mounted: {error}")],
    }
}
