//! What an image argument names: an image file or block device, or a drive in a file.

use std::io;
use std::path::Path;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Completion, DeviceError, DeviceInfo, ImageDevice, performs_at_once,
};
use dovetail_ftl::{EmulatedDrive, EmulatedError};
use dovetail_time::SimTime;

/// Where a file system lies.
#[derive(Debug)]
pub(crate) enum Medium {
    Image(ImageDevice),
    Drive(Box<EmulatedDrive>),
}

/// The medium at a path cannot be opened; the path is not named.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Drive(#[from] EmulatedError),
}

impl Medium {
    pub(crate) fn open_read_only(path: &Path) -> Result<Self, OpenError> {
        Self::open(path, false)
    }

    pub(crate) fn open_read_write(path: &Path) -> Result<Self, OpenError> {
        Self::open(path, true)
    }

    fn open(path: &Path, writable: bool) -> Result<Self, OpenError> {
        if is_drive(path) {
            return Ok(Self::Drive(Box::new(EmulatedDrive::open(path, writable)?.0)));
        }
        let open = if writable { ImageDevice::open_read_write } else { ImageDevice::open_read_only };
        Ok(Self::Image(open(path)?))
    }

    /// See [`ImageDevice::fill_holes`]; a drive has none.
    pub(crate) fn fill_holes(&mut self, range: BlockRange) -> Result<(), DeviceError> {
        match self {
            Self::Image(image) => image.fill_holes(range),
            Self::Drive(_) => Ok(()),
        }
    }
}

/// Whether there is a drive file at `path`; what cannot be read is none.
pub(crate) fn is_drive(path: &Path) -> bool {
    EmulatedDrive::is_one(path).unwrap_or(false)
}

impl BlockDevice for Medium {
    fn info(&self) -> DeviceInfo {
        match self {
            Self::Image(image) => image.info(),
            Self::Drive(drive) => drive.info(),
        }
    }

    fn submit(&mut self, at: SimTime, command: Command<'_>) -> Result<Completion, DeviceError> {
        match self {
            Self::Image(image) => image.submit(at, command),
            Self::Drive(drive) => drive.submit(at, command),
        }
    }
}

performs_at_once!(Medium);
