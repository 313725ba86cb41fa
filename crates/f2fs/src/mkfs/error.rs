//! Errors of making a volume.

use crate::format::Features;

/// Options that contradict each other, or that do not fit the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MkfsError {
    /// A device without room for the tables, six logs and the reserve.
    #[error(
        "{blocks} blocks of 4 KiB are too few: {short}; use a larger device (52 MiB is enough for the defaults), or \
         smaller sections and zones"
    )]
    TooSmall {
        /// Blocks of the device.
        blocks: u64,
        /// Description of what does not fit.
        short: &'static str,
    },
    /// A device beyond what block addresses reach.
    #[error("{blocks} blocks of 4 KiB are too many: a volume must be smaller than 16 TiB")]
    TooLarge {
        /// Blocks of the device.
        blocks: u64,
    },
    /// An IPLFS volume on a device whose every address has its room.
    #[error(
        "IPLFS never writes an address again, so it needs a drive with more addresses than room: one with \
         addresses = \"iplfs\""
    )]
    NotThin,
    /// A thin device whose addresses do not reach over the seven areas.
    #[error("{blocks} addresses are too few: IPLFS needs {needed}, seven areas of 2^58 blocks")]
    TooFewAddresses {
        /// Addresses of the device.
        blocks: u64,
        /// Addresses that would do.
        needed: u64,
    },
    /// A thin device without room for the metadata and some files.
    #[error("room for {capacity} blocks of 4 KiB is too little for IPLFS: {short}")]
    NoRoom {
        /// Blocks that the device can hold.
        capacity: u64,
        /// Description of what does not fit.
        short: &'static str,
    },
    /// Logs that begin beyond their areas.
    #[error("the logs of IPLFS cannot begin {0} blocks into their areas, which have 2^58")]
    LogStart(u64),
    /// No segments in a section, or no sections in a zone.
    #[error(
        "a zone of {sections} sections of {segments} segments makes no sense: 1 to 65536 segments are allowed"
    )]
    Zone {
        /// Segments in a section.
        segments: u32,
        /// Sections in a zone.
        sections: u32,
    },
    /// Features that new volumes cannot have.
    #[error("new volumes cannot have the features {0}")]
    Features(Features),
    /// A feature that needs another one.
    #[error("the feature {feature} needs the feature {needs}")]
    FeatureNeeds {
        /// Feature that was asked for.
        feature: Features,
        /// Feature that it needs.
        needs: Features,
    },
    /// A label that does not fit the superblock.
    #[error("the label is too long: {units} UTF-16 units, 512 are allowed")]
    Label {
        /// Length of the label.
        units: usize,
    },
    /// An extension that does not fit its list.
    #[error("the name extension {0:?} is empty or longer than 7 bytes")]
    Extension(String),
    /// More extensions than the list has room for.
    #[error("{0} name extensions are too many: 64 are allowed, hot and cold together")]
    Extensions(usize),
    /// An overprovision that leaves nothing.
    #[error(
        "an overprovision of {percent} % leaves no room: use one above 0 and below 100, or leave it out"
    )]
    Overprovision {
        /// Percentage that was asked for.
        percent: String,
    },
}
