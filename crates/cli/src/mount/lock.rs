//! The lock on an image that is mounted, made or repaired. That the kernel itself has not mounted it is checked where
//! the device is opened.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::Failure;

/// Kept as long as the image is mounted: one who writes, or several who read.
#[derive(Debug)]
pub(crate) struct ImageLock {
    _file: File,
}

impl ImageLock {
    /// Locks `image`, for writing or for reading.
    pub(crate) fn take(image: &Path, write: bool) -> Result<Self, Failure> {
        let shown = image.display();
        let refuse = |error| Failure::Failed(format!("{shown} cannot be opened: {error}"));
        let mut open = OpenOptions::new();
        open.read(true).write(write);
        let file = open.open(image).map_err(refuse)?;
        match if write { file.try_lock() } else { file.try_lock_shared() } {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::Error(error)) => {
                Err(Failure::Failed(format!("{shown} cannot be locked: {error}")))
            }
            Err(TryLockError::WouldBlock) => Err(Failure::Failed(in_use(image, write))),
        }
    }
}

fn in_use(image: &Path, write: bool) -> String {
    let image = image.display();
    if write {
        format!(
            "{image} is mounted already; unmount it first, or mount it read-only with -o ro where it is read-only too"
        )
    } else {
        format!("{image} is mounted for writing; unmount it first")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writes_or_several_read() {
        let image = tempfile::NamedTempFile::new().unwrap();
        let message = |result: Result<ImageLock, Failure>| match result {
            Err(Failure::Failed(message)) => message,
            other => panic!("{other:?}"),
        };
        let reading =
            (ImageLock::take(image.path(), false).unwrap(), ImageLock::take(image.path(), false).unwrap());
        let refused = message(ImageLock::take(image.path(), true));
        assert!(
            refused.contains(image.path().to_str().unwrap()) && refused.contains("mounted already"),
            "{refused}"
        );
        drop(reading);
        let writing = ImageLock::take(image.path(), true).unwrap();
        assert!(message(ImageLock::take(image.path(), false)).contains("mounted for writing"));
        assert!(message(ImageLock::take(image.path(), true)).contains("mounted already"));
        drop(writing);
        ImageLock::take(image.path(), true).unwrap();
    }
}
