//! Which file system an image holds, opened.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dovetail_block::{BlockDevice, BlockRange, DeviceError, OverlayDevice};
use dovetail_ext::Ext;
use dovetail_ext::format::{Compat, Incompat, Superblock};
use dovetail_f2fs::F2fs;
use dovetail_f2fs::format::Variant;
use dovetail_time::SimTime;
use dovetail_vfs::FileSystem;

use crate::Failure;
use crate::medium::Medium;

/// Blocks of a journal that get a place in the image when it is mounted, at most: 128 MiB (assumed; large journals would
/// take seconds).
const MAX_FILLED: u64 = 32_768;

type Opened = Box<dyn FileSystem + Send>;

/// The file systems there are, by their magic numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By the features that only one of them has: "ext2", "ext3" or "ext4".
    Ext(&'static str),
    /// F2FS's variant without end.
    Iplfs,
    /// All else: what is wrong with it is said when it is mounted.
    F2fs,
}

impl Kind {
    pub(crate) fn of(image: &Path) -> Result<Self, Failure> {
        let mut device = device(image, true)?; // once for all: a drive takes its time to be switched on
        match Ext::superblock_of(&mut device) {
            Ok(superblock) => return Ok(Self::Ext(ext_name(&superblock))),
            Err(dovetail_ext::Error::NotExt { .. }) => {}
            Err(error) => return Err(Failure::Failed(format!("{}: {error}", image.display()))),
        }
        let variant = dovetail_f2fs::Volume::open(device).map(|volume| volume.superblock().variant);
        Ok(if matches!(variant, Ok(Variant::Iplfs)) { Self::Iplfs } else { Self::F2fs })
    }

    /// As /proc/mounts shows it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ext(name) => name,
            Self::Iplfs => "iplfs",
            Self::F2fs => "f2fs",
        }
    }

    /// Opens the file system of `image` with its own mount options.
    pub(crate) fn open(self, image: &Path, read_only: bool, options: &[&str]) -> Result<Opened, Failure> {
        let options = options.join(",");
        match self {
            Self::Ext(_) => open_ext(image, read_only, &options),
            Self::Iplfs | Self::F2fs => open_f2fs(image, read_only, &options),
        }
    }
}

fn ext_name(superblock: &Superblock) -> &'static str {
    match (superblock.incompat.has(Incompat::EXTENTS), superblock.compat.has(Compat::HAS_JOURNAL)) {
        (true, _) => "ext4",
        (false, true) => "ext3",
        (false, false) => "ext2",
    }
}

fn open_ext(image: &Path, read_only: bool, options: &str) -> Result<Opened, Failure> {
    let mut options =
        dovetail_ext::Options::parse(options).map_err(|error| Failure::Usage(error.to_string()))?;
    options.read_only |= read_only;
    options.seed = seed();
    let device = device(image, options.read_only)?;
    // the tool may come at any time, and needs to know from the start whose blocks are written
    options.physical_pointers = !options.read_only && device.info().capabilities.devirtualize.is_some();
    if options.read_only {
        // what the journal holds is replayed in memory, the image stays as it is
        return Ok(Box::new(mount_ext(image, OverlayDevice::new(device), options)?));
    }
    let mut fs = mount_ext(image, device, options)?;
    fill_journal(&mut fs).map_err(|error| not_mounted(image, error))?;
    Ok(Box::new(fs))
}

fn mount_ext<D: BlockDevice>(
    image: &Path,
    device: D,
    options: dovetail_ext::Options,
) -> Result<Ext<D>, Failure> {
    Ext::mount(device, options, SimTime::ZERO).map_err(|error| not_mounted(image, error))
}

/// The journal is a hole of a new image, and an fsync that fills a part of one takes three times as long.
fn fill_journal(fs: &mut Ext<Medium>) -> Result<(), DeviceError> {
    let mut left = MAX_FILLED;
    for range in fs.journal_ranges() {
        let filled = BlockRange::new(range.start, range.blocks.min(left));
        fs.device_mut().fill_holes(filled)?;
        left -= filled.blocks;
    }
    Ok(())
}

fn open_f2fs(image: &Path, read_only: bool, options: &str) -> Result<Opened, Failure> {
    let mut options =
        dovetail_f2fs::Options::parse(options).map_err(|error| Failure::Usage(error.to_string()))?;
    options.read_only |= read_only;
    options.seed = seed();
    let device = device(image, options.read_only)?;
    options.physical_pointers = !options.read_only && device.info().capabilities.devirtualize.is_some();
    let fs = F2fs::mount(device, options, SimTime::ZERO).map_err(|error| not_mounted(image, error))?;
    Ok(Box::new(fs))
}

fn seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn device(image: &Path, read_only: bool) -> Result<Medium, Failure> {
    let open = if read_only { Medium::open_read_only } else { Medium::open_read_write };
    open(image).map_err(|error| Failure::Failed(format!("{} cannot be opened: {error}", image.display())))
}

fn not_mounted(image: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Failed(format!("{} cannot be mounted: {error}", image.display()))
}
