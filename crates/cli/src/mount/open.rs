//! Which file system an image holds, opened.

use std::path::Path;

use dovetail_vfs::FileSystem;

use crate::Failure;

/// Opens the file system of `image` with its own mount options.
pub(crate) fn open(
    image: &Path,
    read_only: bool,
    options: &[&str],
) -> Result<Box<dyn FileSystem + Send>, Failure> {
    let _ = (read_only, options); // of F2fs::mount, which comes with the mounted volume
    Err(Failure::Failed(format!(
        "{} cannot be mounted: this version reads F2FS without mounting only",
        image.display()
    )))
}
