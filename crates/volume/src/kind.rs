//! A file system in stacks: its name, its settings, and what is done with its volumes.

use dovetail_block::Scheduler;
use dovetail_host::Planner;
use dovetail_time::{AtFloor, Ratio};
use dovetail_vfs::{Figures, Guarantees, Limits, Simulated};
use serde::Deserialize;

use crate::{ext, f2fs};

/// Any device.
pub type Device = Box<dyn Scheduler + Send>;

/// A mounted file system under simulation.
pub type Mounted = Result<Box<dyn Simulated>, SetupError>;

/// The settings of a file system in a stack.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Mount options, separated by commas.
    pub mount: &'a str,
    /// The table `[mkfs]`.
    pub mkfs: &'a toml::Table,
    /// The table `[sysfs]`.
    pub sysfs: &'a toml::Table,
    /// Bytes of the page cache.
    pub memory_bytes: u64,
    /// The scale of the device.
    pub scale: Ratio,
    /// Pointers may lead to the device's own addresses.
    pub device_addresses: bool,
}

impl Setup<'_> {
    /// mkfs discards what the device holds: `discard` of `[mkfs]`, true if it is left out.
    pub fn discards(&self) -> bool {
        discards(self.mkfs)
    }
}

/// mkfs with the settings of a table `[mkfs]` discards what the device holds.
pub fn discards(mkfs: &toml::Table) -> bool {
    mkfs.get("discard").and_then(toml::Value::as_bool).unwrap_or(true)
}

/// A reason why a volume of a stack cannot be made or mounted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The settings say something that cannot be.
    #[error("{0}")]
    Settings(String),
    /// The volume.
    #[error("{0}")]
    Volume(String),
}

impl SetupError {
    pub(crate) fn volume(error: impl std::fmt::Display) -> Self {
        Self::Volume(error.to_string())
    }

    pub(crate) fn settings(error: impl std::fmt::Display) -> Self {
        Self::Settings(error.to_string())
    }
}

/// A file system in stacks.
#[derive(Clone, Copy, Debug)]
pub struct VolumeKind {
    /// Its name in stacks.
    pub name: &'static str,
    /// Makes a new volume on a simulated host's device and mounts it.
    pub build: fn(&Setup<'_>, Planner) -> Mounted,
    /// Mounts the volume on a simulated host's device again, after a power cut.
    pub remount: fn(&Setup<'_>, Planner) -> Mounted,
    /// Makes a new volume.
    pub make: fn(&Setup<'_>, Device) -> Result<(), SetupError>,
    /// Mounts a volume, and recovers it after a power cut.
    pub mount: fn(&Setup<'_>, Device) -> Mounted,
    /// Errors of a volume that is not mounted.
    pub check: fn(Device) -> Vec<String>,
    /// Promises beyond POSIX.
    pub guarantees: fn(&Setup<'_>) -> Guarantees,
    /// Limits of what can be stored.
    pub limits: fn(&Setup<'_>) -> Limits,
    /// Its figures that a scale puts at their floors.
    pub floors: fn(Ratio) -> Vec<AtFloor>,
    /// Its figures.
    pub figures: Figures,
    /// The program that checks it, if this project did not write it: name and arguments before the
    /// image.
    pub referee: Option<(&'static str, &'static [&'static str])>,
}

/// The file systems that stacks can name.
pub const KINDS: [VolumeKind; 4] = [ext::EXT4, ext::EXT3, f2fs::F2FS, f2fs::IPLFS];

/// The file system of this name; `None` if there is none.
pub fn kind_of(name: &str) -> Option<&'static VolumeKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// A table of the stack's file as what a file system takes from it.
pub(crate) fn table<T: for<'a> Deserialize<'a>>(
    name: &str,
    table: &toml::Table,
) -> Result<T, SetupError> {
    // the message, and the key that it is about
    let failed = |error: toml::de::Error| {
        format!("[{name}]: {}", error.to_string().trim().replace('\n', " "))
    };
    table.clone().try_into().map_err(|error| SetupError::Settings(failed(error)))
}
