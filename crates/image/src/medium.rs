//! The medium that an image argument names: an image file or block device, or a drive in a file.

use std::io;
use std::path::Path;

use dovetail_block::{
    BlockDevice, BlockRange, Command, Completion, DeviceError, DeviceInfo, ImageDevice,
    performs_at_once,
};
use dovetail_ftl::{EmulatedDrive, EmulatedError};
use dovetail_time::SimTime;

/// Medium of a file system.
#[derive(Debug)]
pub enum Medium {
    /// An image file or a block device.
    Image(ImageDevice),
    /// A drive in a file.
    Drive(Box<EmulatedDrive>),
}

/// The medium at a path cannot be opened; the path is not named.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The drive in it.
    #[error(transparent)]
    Drive(#[from] EmulatedError),
}

impl Medium {
    /// Opens what is at `path` for reading.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_read_only(path: &Path) -> Result<Self, OpenError> {
        Self::open(path, false)
    }

    /// Opens what is at `path` for reading and writing.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_read_write(path: &Path) -> Result<Self, OpenError> {
        Self::open(path, true)
    }

    fn open(path: &Path, writable: bool) -> Result<Self, OpenError> {
        if is_drive(path) {
            return Ok(Self::Drive(Box::new(EmulatedDrive::open(path, writable)?.0)));
        }
        let open =
            if writable { ImageDevice::open_read_write } else { ImageDevice::open_read_only };
        Ok(Self::Image(open(path)?))
    }

    /// Gives blocks of the range their place, see [`ImageDevice::fill_holes`]; a drive has no
    /// holes.
    ///
    /// # Errors
    /// The device.
    pub fn fill_holes(&mut self, range: BlockRange) -> Result<(), DeviceError> {
        match self {
            Self::Image(image) => image.fill_holes(range),
            Self::Drive(_) => Ok(()),
        }
    }
}

/// There is a drive file at `path`; what cannot be read is none.
pub fn is_drive(path: &Path) -> bool {
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
