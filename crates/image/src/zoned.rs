//! An image of a zoned device, with the file that its zone report is in.

use std::path::{Path, PathBuf};

use dovetail_block::{
    BlockDevice, Command, Completion, DeviceError, DeviceInfo, ZoneReport, ZonedDevice,
};
use dovetail_time::SimTime;

use crate::medium::{Medium, OpenError};
use crate::part::write_whole;

/// An image whose zones are kept in a file of their own: written again with each flush, and each
/// write with force unit access, after which they have changed, and at the end.
#[derive(Debug)]
pub struct ZonedImage {
    device: ZonedDevice<Medium>,
    file: PathBuf,
    writable: bool,
    dirty: bool,
}

impl ZonedImage {
    /// The image with the zones of the report in `file`.
    pub(crate) fn open(image: Medium, file: &Path, writable: bool) -> Result<Self, OpenError> {
        let failed = |why: String| OpenError::Zones { file: file.display().to_string(), why };
        let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        let report = ZoneReport::parse(&text).map_err(|error| failed(error.to_string()))?;
        let (found, end) = (image.info().blocks, report.zones.end().0);
        if end > found {
            return Err(failed(format!(
                "its zones have {end} blocks of 4 KiB, and the image has {found}"
            )));
        }
        Ok(Self::new(image, report, file, writable))
    }

    /// The image with zones of which the report says nothing yet.
    pub(crate) fn new(image: Medium, report: ZoneReport, file: &Path, writable: bool) -> Self {
        let device = ZonedDevice::found(image, report.zones, report.states);
        Self { device, file: file.to_path_buf(), writable, dirty: false }
    }

    fn save(&mut self) -> Result<(), DeviceError> {
        if !self.writable || !self.dirty {
            return Ok(());
        }
        let report = dovetail_block::zones(&mut self.device)?;
        let text = ZoneReport::text(self.device.table().zones(), &report);
        let failed = |error: std::io::Error| {
            DeviceError::Host(format!("{} cannot be written: {error}", self.file.display()))
        };
        write_whole(&self.file, text.as_bytes()).map_err(failed)?;
        self.dirty = false;
        Ok(())
    }
}

impl BlockDevice for ZonedImage {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        let is_durable = matches!(
            command,
            Command::Flush | Command::Write { fua: true, .. } | Command::Append { fua: true, .. }
        );
        self.dirty |= matches!(
            command,
            Command::Write { .. } | Command::Append { .. } | Command::Zone { .. }
        );
        let completion = self.device.submit(at, command)?;
        if is_durable {
            self.save()?;
        }
        Ok(completion)
    }
}

impl Drop for ZonedImage {
    fn drop(&mut self) {
        // whoever needs to know has flushed
        let _ = self.save();
    }
}
