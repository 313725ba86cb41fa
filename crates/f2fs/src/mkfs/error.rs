//! Errors of making a volume.

use crate::format::Features;

/// Options that contradict each other, or that do not fit the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MkfsError {
    /// A device without room for the tables, six logs and the reserve.
    #[error(
        "{blocks} blocks of 4 KiB ({}) are too few: no room is left for {short}; use a larger device (52 MiB is enough \
         for the defaults), or smaller sections and zones",
        dovetail_time::format_bytes(blocks * 4096)
    )]
    TooSmall {
        /// Blocks of the device.
        blocks: u64,
        /// Description of what does not fit.
        short: &'static str,
    },
    /// A zoned device without room for the tables, six logs and the reserve.
    #[error(
        "{zones} zones of {mib} MiB are too few: {short}; use a device with more or smaller zones, or a larger \
         overprovision (-o 50), which lets less be kept for cleaning"
    )]
    TooFewZones {
        /// Zones of the device, or of all devices.
        zones: u64,
        /// MiB of a zone.
        mib: u64,
        /// Description of what does not fit.
        short: &'static str,
    },
    /// A device with zones, and a volume that is not made for them.
    #[error("the device is written in zones: make the volume with the feature blkzoned (-m)")]
    ZonesWithoutFeature,
    /// The feature for zones on a device without them.
    #[error(
        "the feature blkzoned (-m) needs a device that is written in zones, and this one is not; for an image file \
         --zone-size says how large its zones are"
    )]
    NoZones,
    /// Zones of a size that no volume can be made for.
    #[error(
        "zones of {blocks} blocks cannot be sections: their size must be a power of two from 2 MiB (512 blocks) to \
         128 GiB; use a drive with such zones (zones.size of its profile), or one without zones"
    )]
    ZoneSize {
        /// Blocks of a zone.
        blocks: u64,
    },
    /// Zones that do not lie at multiples of their size.
    #[error("the first zone begins at block {first}, which is no multiple of its {blocks} blocks")]
    ZonesUnaligned {
        /// The first block of a sequential zone.
        first: u64,
        /// Blocks of a zone.
        blocks: u64,
    },
    /// Too few conventional zones for the metadata.
    #[error(
        "the metadata are written in place and need {needed} conventional zones, and the device has {found}: use one \
         with more, or put an ordinary device of at least {mib} MiB in front of it (mkfs f2fs -m ORDINARY -c ZONED)"
    )]
    TooFewConventional {
        /// Zones that the metadata take.
        needed: u64,
        /// Conventional zones.
        found: u64,
        /// MiB that would do on a device of their own.
        mib: u64,
    },
    /// A first device that is too small for the metadata.
    #[error(
        "the metadata are written in place and need {mib} MiB before the first zone, and there are {found_mib} MiB: \
         use a larger first device"
    )]
    FirstDeviceTooSmall {
        /// MiB that would do.
        mib: u64,
        /// MiB before the first zone.
        found_mib: u64,
    },
    /// A device beside the first whose end is no zone's end.
    #[error(
        "{path} is no whole number of zones of {blocks} blocks, so that no kernel would mount the volume"
    )]
    DeviceOfPartialZones {
        /// The device.
        path: String,
        /// Blocks of a zone.
        blocks: u64,
    },
    /// More devices than the superblock has room for.
    #[error("{0} devices are too many: a volume lies on 8 at most")]
    Devices(usize),
    /// A path that does not fit the superblock.
    #[error(
        "the path {0:?} is empty or longer than 63 bytes, and the superblock has room for so many"
    )]
    DevicePath(String),
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
    #[error("the logs of IPLFS cannot begin {start} blocks into their areas of {area} blocks")]
    LogStart {
        /// Blocks into an area.
        start: u64,
        /// Blocks of an area.
        area: u64,
    },
    /// IPLFS on a device that has room for more than an area.
    #[error(
        "the drive has room for {capacity} blocks of 4 KiB, more than the {most} that a block address reaches in a log; take addresses of 8 bytes"
    )]
    CapacityBeyondArea {
        /// Blocks that the device can hold.
        capacity: u64,
        /// Blocks of an area.
        most: u64,
    },
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
