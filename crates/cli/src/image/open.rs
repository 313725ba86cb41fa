//! The files of an image, with the lock that keeps others from writing to it.

use dovetail_image::{Files, Found, Source, format_of};
use dovetail_vfs::Moment;

use crate::mount::ImageLock;
use crate::{Failure, complain};

/// The files of an image, and what keeps others from writing to it.
pub(super) struct Opened {
    pub(super) files: Files,
    _lock: Option<ImageLock>,
}

/// Opens the files as the next mount would show them, or as near to it as can be, with a sentence
/// on standard error.
pub(super) fn open(image: &Source) -> Result<Opened, Failure> {
    let (lock, held) = match ImageLock::take_now(image.path()) {
        Ok(lock) => (Some(lock), Ok(())),
        Err(Failure::Usage(why) | Failure::Failed(why)) => (None, Err(why)),
    };
    let files = format_of(image)?.files(image, held, &mut |sentence| complain(&sentence))?;
    Ok(Opened { files, _lock: lock })
}

/// Opens the files as they would be after a salvage, and its account. Who changes the image
/// meanwhile would spoil that.
pub(super) fn salvaged(image: &Source, now: Moment) -> Result<(Opened, Vec<Found>), Failure> {
    let lock = ImageLock::take(image.path(), false)?;
    let salvaged = format_of(image)?.salvaged_files(image, now, &mut |said| complain(&said))?;
    Ok((Opened { files: salvaged.0, _lock: Some(lock) }, salvaged.1))
}
