//! Mounting an ext image.

use std::sync::Arc;

use dovetail_block::{
    BLOCK_SIZE, BlockDevice, BlockRange, Command, Content, Data, DeviceError, Hints, Lba,
    OverlayDevice,
};
use dovetail_ext::Ext;
use dovetail_ext::format::{SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE};
use dovetail_time::SimTime;
use dovetail_vfs::{FileSystem, Moment};

use crate::format::{PAGE_CACHE, device, not_mounted};
use crate::medium::Device;
use crate::{Error, Medium, Mount, Source, Tell, is_drive};

/// Blocks of a journal that get a place in the image when it is mounted, at most: 128 MiB (assumed;
/// large journals would take seconds).
const MAX_FILLED: u64 = 32_768;

pub(super) fn mount(
    image: &Source,
    request: &Mount<'_>,
    tell: Tell<'_>,
) -> Result<Box<dyn FileSystem + Send + Sync>, Error> {
    let mut options = dovetail_ext::Options::parse(request.options)
        .map_err(|error| Error::Usage(error.to_string()))?;
    options.read_only |= request.read_only;
    options.seed = request.seed;
    options.page_cache_bytes = PAGE_CACHE;
    options.writes_past_cache = true;
    let device = device(image, !options.read_only)?;
    // the tool may come at any time, and needs to know from the start whose blocks are written
    options.physical_pointers =
        !options.read_only && device.info().capabilities.devirtualize.is_some();
    if options.read_only {
        // what the journal holds is replayed in memory, the image stays as it is
        let mut overlay = OverlayDevice::new(device);
        if let Some((damage, superblock)) = backup_of(image)? {
            tell(format!("{}: {damage}; the backup in group 1 is used", image.display()));
            put_superblock(&mut overlay, &superblock).map_err(|error| not_mounted(image, error))?;
        }
        return Ok(Box::new(mount_ext(image, Box::new(overlay), options, request.now)?));
    }
    // a backup does not know the orphans, and nothing that is written may rest on that
    if let Some((damage, _)) = backup_of(image)? {
        let damage = format!(
            "{damage}; the backup in group 1 is whole: e2fsck repairs the volume, -o ro shows its files"
        );
        return Err(not_mounted(image, damage));
    }
    let fs = mount_ext(image, Box::new(device), options, request.now)?;
    fill_journal(image, fs.journal_ranges())?;
    Ok(Box::new(fs))
}

/// Damage of the first superblock, and the superblock made from its backup; `None` if it is whole.
fn backup_of(image: &Source) -> Result<Option<(String, [u8; SUPERBLOCK_SIZE])>, Error> {
    let mut device = device(image, false)?;
    use dovetail_ext::Error::{Corrupt, NotExt};
    if !matches!(Ext::superblock_of(&mut device), Err(Corrupt(_) | NotExt { .. })) {
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

fn mount_ext(
    image: &Source,
    device: Device,
    options: dovetail_ext::Options,
    now: Moment,
) -> Result<Ext<Device>, Error> {
    Ext::mount(device, options, now).map_err(|error| not_mounted(image, error))
}

/// The journal is a hole of a new image, and an fsync that fills a part of one takes three times as
/// long.
fn fill_journal(image: &Source, journal: Vec<BlockRange>) -> Result<(), Error> {
    if is_drive(image.path()) {
        return Ok(()); // it has no holes, and takes its time to be switched on
    }
    let mut device = device(image, true)?;
    let mut left = MAX_FILLED;
    for range in journal {
        let filled = BlockRange::new(range.start, range.blocks.min(left));
        device.fill_holes(filled).map_err(|error| not_mounted(image, error))?;
        left -= filled.blocks;
    }
    Ok(())
}
