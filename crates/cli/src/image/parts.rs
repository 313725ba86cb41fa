//! Devices and zones of an image, beside the file that is named first.

use std::path::{Path, PathBuf};

use clap::Args;
use dovetail_image::Source;
use dovetail_time::parse_bytes;

use crate::Failure;

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
    /// The volume begins at this byte of the image (1M, 1048576), as one in a partition does.
    #[arg(long, value_name = "BYTES", default_value = "0", hide_default_value = true, value_parser = offset)]
    offset: u64,
    /// The volume is this partition of the image, which is a disk with a GPT or an MBR; an image
    /// without a volume of its own is listed with its partitions.
    #[arg(long, value_name = "N", conflicts_with = "offset")]
    partition: Option<u32>,
}

/// Partitions begin at whole sectors of 512 bytes.
fn offset(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text).map_err(|error| error.to_string())?;
    if bytes.is_multiple_of(512) { Ok(bytes) } else { Err("give a multiple of 512 bytes".into()) }
}

impl Parts {
    /// The source that these and the first device are.
    ///
    /// # Errors
    /// A partition that is not there.
    pub(crate) fn of(&self, image: &Path) -> Result<Source, Failure> {
        let source = Source::from(image).with_devices(self.devices.clone());
        let source = source.with_zones(self.zones.clone()).with_offset(self.offset);
        match self.partition {
            Some(number) => Ok(source.with_partition(number)?),
            None => Ok(source),
        }
    }
}
