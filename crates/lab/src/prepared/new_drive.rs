//! A drive before its first command.

use dovetail_ftl::{ConfigError, DriveConfig, Storage};
use dovetail_host::{CheckedDevice, NoZoneLog};

use crate::below::Below;

/// A drive before its first command: all that a preconditioned one depends on. Two that are equal
/// become equal drives.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDrive {
    config: DriveConfig,
    zone_log: Option<f64>,
}

/// Reason why a drive cannot be made.
#[derive(Debug)]
pub(crate) enum NoDrive {
    /// The drive cannot be built.
    Config(ConfigError),
    /// No log in the host fits it.
    Log(NoZoneLog),
}

impl NewDrive {
    /// A drive, through a log in the host if a share of spare blocks in percent is given for one.
    pub fn new(config: DriveConfig, zone_log: Option<f64>) -> Self {
        Self { config, zone_log }
    }

    /// The drive's configuration.
    pub(crate) fn config(&self) -> &DriveConfig {
        &self.config
    }

    /// Bytes of memory that the drive takes once all of it was written.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.config.memory_bytes()
    }

    /// Makes the drive.
    pub(crate) fn make(&self) -> Result<CheckedDevice<Below>, NoDrive> {
        let drive = Storage::new(self.config.clone()).map_err(NoDrive::Config)?;
        let drive = Below::new(drive, self.zone_log).map_err(NoDrive::Log)?;
        Ok(CheckedDevice::new(drive))
    }
}
