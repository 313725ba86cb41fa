//! The drives that can be served: in memory, or in a file.

use dovetail_block::{BlockDevice, Command, Completion, DeviceError, DeviceInfo};
use dovetail_ftl::{EmulatedDrive, Storage};

/// A drive to be served.
#[derive(Debug)]
pub enum Drive {
    /// New, and gone at the end.
    InMemory(Box<Storage>),
    /// In a drive file.
    InFile(Box<EmulatedDrive>),
}

impl Drive {
    /// The drive itself, with its counters.
    pub fn storage(&self) -> &Storage {
        match self {
            Self::InMemory(storage) => storage,
            Self::InFile(drive) => drive.drive(),
        }
    }
}

impl BlockDevice for Drive {
    fn info(&self) -> DeviceInfo {
        match self {
            Self::InMemory(storage) => storage.info(),
            Self::InFile(drive) => drive.info(),
        }
    }

    fn submit(
        &mut self,
        at: dovetail_time::SimTime,
        command: Command<'_>,
    ) -> Result<Completion, DeviceError> {
        match self {
            Self::InMemory(storage) => storage.submit(at, command),
            Self::InFile(drive) => drive.submit(at, command),
        }
    }
}
