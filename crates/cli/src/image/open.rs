//! An image opened for reading: as the next mount would show it, or as of the last checkpoint.

use std::path::Path;

use dovetail_block::{BLOCK_SIZE, OverlayDevice};
use dovetail_f2fs::format::{Features, Superblock, Variant};
use dovetail_f2fs::{F2fs, Options, Volume};
use dovetail_time::SimTime;
use dovetail_vfs::FileSystem;

use super::tree::Tree;
use crate::medium::Medium;
use crate::mount::ImageLock;
use crate::{Failure, complain};

fn device(image: &Path) -> Result<Medium, Failure> {
    let fail = |error| Failure::Failed(format!("{} cannot be opened: {error}", image.display()));
    Medium::open_read_only(image).map_err(fail)
}

/// The ext volume in the image; `None` if it is of another kind.
pub(super) fn ext_volume(image: &Path) -> Result<Option<dovetail_ext::Volume<Medium>>, Failure> {
    match dovetail_ext::Volume::open(device(image)?) {
        Ok(volume) => {
            if let Some(damage) = volume.superblock_damage() {
                complain(&format!("{}: {damage}; the backup in group 1 is used", image.display()));
            }
            Ok(Some(volume))
        }
        Err(dovetail_ext::Error::NotExt { .. }) => Ok(None),
        Err(error) => Err(Failure::Failed(format!("{}: {error}", image.display()))),
    }
}

/// The F2FS volume as of its last checkpoint.
pub(super) fn volume(image: &Path) -> Result<Volume<Medium>, Failure> {
    Volume::open(device(image)?).map_err(|error| Failure::Failed(format!("{}: {error}", image.display())))
}

/// Blocks that a compressed cluster of F2FS has at most, of which one is stored at least.
const MAX_CLUSTER: u64 = 256;

/// The files of an image, and what keeps others from writing to it.
pub(super) struct Opened {
    pub(super) tree: Box<dyn Tree>,
    /// Bytes that its files have at most: each block of the volume once.
    pub(super) most_bytes: u64,
    _lock: Option<ImageLock>,
}

/// What the next mount would show, by the image's magic number. Of F2FS fsynced files are recovered and orphans removed in
/// memory; where that cannot be, the last checkpoint, and a sentence on standard error. Of ext the journal's content shows.
pub(super) fn open(image: &Path) -> Result<Opened, Failure> {
    let lock = ImageLock::take_now(image);
    if let Some(volume) = ext_volume(image)? {
        let lock = lock.map_err(|why| tell(why, "this is what has reached it so far")).ok();
        let superblock = volume.superblock();
        let most_bytes = superblock.blocks_count.saturating_mul(superblock.block_size().into());
        return Ok(Opened { tree: Box::new(volume), most_bytes, _lock: lock });
    }
    let volume = volume(image)?;
    let most_bytes = most_bytes(volume.superblock());
    match lock.and_then(|lock| mounted(image, lock)) {
        Ok((lock, fs)) => Ok(Opened { tree: Box::new(fs), most_bytes, _lock: Some(lock) }),
        Err(why) => {
            tell(why, "this is the last checkpoint");
            Ok(Opened { tree: Box::new(volume), most_bytes, _lock: None })
        }
    }
}

fn most_bytes(superblock: &Superblock) -> u64 {
    let blocks = match superblock.variant {
        Variant::F2fs => superblock.block_count,
        Variant::Iplfs => superblock.capacity,
    };
    let cluster = if superblock.features.has(Features::COMPRESSION) { MAX_CLUSTER } else { 1 };
    blocks.saturating_mul(BLOCK_SIZE).saturating_mul(cluster)
}

/// Tells why it is not the next mount's state, and what it is instead.
fn tell(why: Failure, instead: &str) {
    let (Failure::Usage(why) | Failure::Failed(why)) = why;
    complain(&format!("{why}; {instead}"));
}

fn mounted(image: &Path, lock: ImageLock) -> Result<(ImageLock, Box<dyn FileSystem>), Failure> {
    let fs = F2fs::mount(OverlayDevice::new(device(image)?), Options::default(), SimTime::ZERO)
        .map_err(|error| Failure::Failed(format!("{}: {error}", image.display())))?;
    Ok((lock, Box::new(fs)))
}
