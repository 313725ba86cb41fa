//! The files of an image, with the lock that keeps others from writing to it.

use dovetail_image::{Files, Source, format_of};

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
