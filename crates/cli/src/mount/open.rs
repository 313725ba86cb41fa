//! Which file system an image holds, opened.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dovetail_block::ImageDevice;
use dovetail_f2fs::{F2fs, Options};
use dovetail_time::SimTime;
use dovetail_vfs::FileSystem;

use crate::Failure;

/// Opens the file system of `image` with its own mount options.
pub(crate) fn open(
    image: &Path,
    read_only: bool,
    options: &[&str],
) -> Result<Box<dyn FileSystem + Send>, Failure> {
    let shown = image.display();
    let mut options =
        Options::parse(&options.join(",")).map_err(|error| Failure::Usage(error.to_string()))?;
    options.read_only |= read_only;
    options.seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let open = if options.read_only { ImageDevice::open_read_only } else { ImageDevice::open_read_write };
    let device =
        open(image).map_err(|error| Failure::Failed(format!("{shown} cannot be opened: {error}")))?;
    let fs = F2fs::mount(device, options, SimTime::ZERO)
        .map_err(|error| Failure::Failed(format!("{shown} cannot be mounted: {error}")))?;
    Ok(Box::new(fs))
}
