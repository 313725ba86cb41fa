//! An image opened for reading: as the next mount would show it, or as of the last checkpoint.

use std::path::Path;

use dovetail_block::OverlayDevice;
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
        Ok(volume) => Ok(Some(volume)),
        Err(dovetail_ext::Error::NotExt { .. }) => Ok(None),
        Err(error) => Err(Failure::Failed(format!("{}: {error}", image.display()))),
    }
}

/// The F2FS volume as of its last checkpoint.
pub(super) fn volume(image: &Path) -> Result<Volume<Medium>, Failure> {
    Volume::open(device(image)?).map_err(|error| Failure::Failed(format!("{}: {error}", image.display())))
}

/// The files of an image, and what keeps others from writing to it.
pub(super) struct Opened {
    pub(super) tree: Box<dyn Tree>,
    _lock: Option<ImageLock>,
}

/// What the next mount would show, by the image's magic number. Of F2FS fsynced files are recovered and orphans removed in
/// memory; where that cannot be, the last checkpoint, and a sentence on standard error. Of ext the journal's content shows.
pub(super) fn open(image: &Path) -> Result<Opened, Failure> {
    let lock = ImageLock::take(image, false);
    if let Some(volume) = ext_volume(image)? {
        let lock = lock.map_err(|why| tell(why, "this is what has reached it so far")).ok();
        return Ok(Opened { tree: Box::new(volume), _lock: lock });
    }
    let volume = volume(image)?;
    match lock.and_then(|lock| mounted(image, lock)) {
        Ok((lock, fs)) => Ok(Opened { tree: Box::new(fs), _lock: Some(lock) }),
        Err(why) => {
            tell(why, "this is the last checkpoint");
            Ok(Opened { tree: Box::new(volume), _lock: None })
        }
    }
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
