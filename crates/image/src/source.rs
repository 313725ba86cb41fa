//! The devices that hold a volume, as arguments name them.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The device with the superblock; the others of its volume, if there are more; and the zone report
/// of the last of them, if that is an image of a zoned device.
#[derive(Clone, Debug, Default)]
pub struct Source {
    path: PathBuf,
    others: Vec<PathBuf>,
    zones: Option<PathBuf>,
    offset: u64,
}

impl Source {
    /// The same with further devices, in the order in which the volume has them.
    #[must_use]
    pub fn with_devices(self, others: Vec<PathBuf>) -> Self {
        Self { others, ..self }
    }

    /// The same with the file of a zone report, as `blkzone report` prints it. Where the image is
    /// written, the report is written again.
    #[must_use]
    pub fn with_zones(self, zones: Option<PathBuf>) -> Self {
        Self { zones, ..self }
    }

    /// The same that begins at byte `offset` of its first device, as in a partition.
    #[must_use]
    pub fn with_offset(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// Byte of the first device at which the volume begins.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The device with the superblock.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The other devices.
    pub fn others(&self) -> &[PathBuf] {
        &self.others
    }

    /// The file of the zone report.
    pub fn zones(&self) -> Option<&Path> {
        self.zones.as_deref()
    }

    /// The path, as sentences have it.
    pub fn display(&self) -> impl Display {
        self.path.display()
    }
}

impl<P: Into<PathBuf>> From<P> for Source {
    fn from(path: P) -> Self {
        Self { path: path.into(), ..Self::default() }
    }
}
