//! Which file system an image holds, opened.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dovetail_block::{
    BLOCK_SIZE, BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba, OverlayDevice,
    Scheduler,
};
use dovetail_ext::Ext;
use dovetail_ext::format::{Compat, Incompat, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE, Superblock};
use dovetail_f2fs::format::Variant;
use dovetail_f2fs::{BackgroundGc, F2fs};
use dovetail_time::SimTime;
use dovetail_vfs::FileSystem;

use crate::medium::Medium;
use crate::{Failure, clock, complain};

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
            // a backup says what it is; whether it can be mounted is another question
            Err(error @ dovetail_ext::Error::Corrupt(_)) => {
                let volume = dovetail_ext::Volume::open(device);
                let name = volume.map(|volume| ext_name(volume.superblock()));
                return name
                    .map(Self::Ext)
                    .map_err(|_| Failure::Failed(format!("{}: {error}", image.display())));
            }
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
        let mut overlay = OverlayDevice::new(device);
        if let Some((damage, superblock)) = backup_of(image)? {
            complain(&format!("{}: {damage}; the backup in group 1 is used", image.display()));
            put_superblock(&mut overlay, &superblock).map_err(|error| not_mounted(image, error))?;
        }
        return Ok(Box::new(mount_ext(image, overlay, options)?));
    }
    // a backup does not know the orphans, and nothing that is written may rest on that
    if let Some((damage, _)) = backup_of(image)? {
        let damage = format!(
            "{damage}; the backup in group 1 is whole: e2fsck repairs the volume, -o ro shows its files"
        );
        return Err(not_mounted(image, damage));
    }
    let mut fs = mount_ext(image, device, options)?;
    fill_journal(&mut fs).map_err(|error| not_mounted(image, error))?;
    Ok(Box::new(fs))
}

/// What is wrong with the first superblock, and what it is by its backup; `None` if it is whole.
fn backup_of(image: &Path) -> Result<Option<(String, [u8; SUPERBLOCK_SIZE])>, Failure> {
    let mut device = device(image, true)?;
    if !matches!(Ext::superblock_of(&mut device), Err(dovetail_ext::Error::Corrupt(_))) {
        return Ok(None);
    }
    let volume = dovetail_ext::Volume::open(device).map_err(|error| not_mounted(image, error))?;
    let damage = volume.superblock_damage().map(ToString::to_string).unwrap_or_default();
    Ok(volume.restored_superblock().map(|superblock| (damage, superblock)))
}

/// Puts a superblock in its place, which is in block 0 whatever the volume's block size.
fn put_superblock(
    device: &mut OverlayDevice<Medium>,
    superblock: &[u8; SUPERBLOCK_SIZE],
) -> Result<(), DeviceError> {
    let range = BlockRange::new(Lba(0), 1);
    let mut content = [Content::Empty];
    device.submit(SimTime::ZERO, Command::Read { range, into: Some(&mut content) })?;
    let mut block = match &content[0] {
        Content::Bytes(bytes) => Arc::clone(bytes),
        _ => Arc::new([0; BLOCK_SIZE as usize]),
    };
    let start = SUPERBLOCK_OFFSET as usize;
    Arc::make_mut(&mut block)[start..start + SUPERBLOCK_SIZE].copy_from_slice(superblock);
    let content = [Content::Bytes(block)];
    let data = Data::Blocks(&content);
    let write = Command::Write { range, data, hints: Hints::default(), fua: false };
    device.submit(SimTime::ZERO, write).map(drop)
}

fn mount_ext<D: Scheduler>(
    image: &Path,
    device: D,
    options: dovetail_ext::Options,
) -> Result<Ext<D>, Failure> {
    Ext::mount(device, options, clock::mounting_at(SimTime::ZERO)).map_err(|error| not_mounted(image, error))
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
    if options.read_only {
        return open_f2fs_read_only(image, options);
    }
    let device = device(image, false)?;
    options.physical_pointers = device.info().capabilities.devirtualize.is_some();
    let fs = F2fs::mount(device, options, clock::mounting_at(SimTime::ZERO))
        .map_err(|error| not_mounted(image, error))?;
    Ok(Box::new(fs))
}

/// What fsyncs left is recovered in memory, the image stays as it is. A volume that cannot be
/// recovered is mounted as of its last checkpoint if nothing is lost by that, or if it was asked
/// for.
fn open_f2fs_read_only(image: &Path, options: dovetail_f2fs::Options) -> Result<Opened, Failure> {
    let mount_as_is = || -> Result<F2fs<Medium>, Failure> {
        let mounted = F2fs::mount(device(image, true)?, options.clone(), clock::mounting_at(SimTime::ZERO));
        mounted.map_err(|error| not_mounted(image, error))
    };
    if options.no_recovery {
        return Ok(Box::new(mount_as_is()?));
    }
    // nothing is asked to change, so that what decides about changes does not matter
    let in_memory = dovetail_f2fs::Options {
        seed: options.seed,
        background_gc: BackgroundGc::Off,
        ..dovetail_f2fs::Options::default()
    };
    match F2fs::mount(OverlayDevice::new(device(image, true)?), in_memory, clock::mounting_at(SimTime::ZERO))
    {
        Ok(fs) => Ok(Box::new(fs)),
        Err(why) => {
            let mut fs = mount_as_is()?;
            if fs.has_unrecovered().map_err(|error| not_mounted(image, error))? {
                let why = format!(
                    "fsyncs wrote files after the last checkpoint, which cannot be recovered ({why}); \
                     -o ro,norecovery shows the checkpoint without them"
                );
                return Err(not_mounted(image, why));
            }
            Ok(Box::new(fs))
        }
    }
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
