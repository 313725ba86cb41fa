//! Mounting an F2FS or IPLFS image.

use dovetail_block::BlockDevice;
use dovetail_f2fs::{BackgroundGc, F2fs, Options, Volume};
use dovetail_vfs::{FileSystem, Moment};

use super::in_memory::over;
use crate::format::{PAGE_CACHE, device, not_mounted};
use crate::medium::Device;
use crate::{Error, Mount, Source};

/// Bytes of nodes that a mount keeps beside those that wait to be written, of which there are as
/// many at most (assumed): 4 KiB an inode, and the system above keeps its own.
const NODE_CACHE: u64 = 16 << 20;

pub(super) fn mount(
    image: &Source,
    request: &Mount<'_>,
) -> Result<Box<dyn FileSystem + Send + Sync>, Error> {
    let mut options =
        Options::parse(request.options).map_err(|error| Error::Usage(error.to_string()))?;
    options.read_only |= request.read_only;
    options.seed = request.seed;
    options.page_cache_bytes = PAGE_CACHE;
    options.writes_past_cache = true;
    options.node_cache_bytes = NODE_CACHE;
    if options.read_only {
        return mount_read_only(image, options, request.now);
    }
    let device = device(image, true)?;
    options.physical_pointers = device.info().capabilities.devirtualize.is_some();
    let fs = F2fs::mount(Box::new(device) as Device, options, request.now)
        .map_err(|error| not_mounted(image, error))?;
    Ok(Box::new(fs))
}

/// Mounts with what fsyncs left recovered in memory; the image stays as it is. A volume that cannot
/// be recovered is mounted as of its last checkpoint if nothing is lost by that, or if it was asked
/// for.
fn mount_read_only(
    image: &Source,
    options: Options,
    now: Moment,
) -> Result<Box<dyn FileSystem + Send + Sync>, Error> {
    let mount_as_is = || -> Result<F2fs<Device>, Error> {
        let mounted = F2fs::mount(Box::new(device(image, false)?) as Device, options.clone(), now);
        mounted.map_err(|error| not_mounted(image, error))
    };
    if options.no_recovery {
        return Ok(Box::new(mount_as_is()?));
    }
    let volume = Volume::open(device(image, false)?).map_err(|error| not_mounted(image, error))?;
    let superblock = volume.superblock().clone();
    // nothing is asked to change, so that what decides about changes does not matter
    let background_gc = if superblock.is_zoned() { BackgroundGc::Sync } else { BackgroundGc::Off };
    let in_memory = Options {
        seed: options.seed,
        page_cache_bytes: PAGE_CACHE,
        node_cache_bytes: NODE_CACHE,
        background_gc,
        ..Options::default()
    };
    let overlay = over(volume.into_device(), &superblock);
    match F2fs::mount(overlay, in_memory, now) {
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
