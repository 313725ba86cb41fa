//! Devices and zones of an image, beside the file that is named first.

use std::path::{Path, PathBuf};

use clap::Args;
use dovetail_image::Source;

/// The rest of a volume beside its first device.
#[derive(Debug, Default, Args)]
pub(crate) struct Parts {
    /// Another device of the volume (F2FS), once for each, in the order in which it was made.
    #[arg(long = "device", value_name = "PATH")]
    devices: Vec<PathBuf>,
    /// The zones of the device, of several of the last one: a file as `blkzone report` prints it. It
    /// is written again when the zones change.
    #[arg(long, value_name = "FILE")]
    zones: Option<PathBuf>,
}

impl Parts {
    /// The source that these and the first device are.
    pub(crate) fn of(&self, image: &Path) -> Source {
        Source::from(image).with_devices(self.devices.clone()).with_zones(self.zones.clone())
    }
}
