//! Room for a new volume: its device or devices, and their zones if they have some.

use dovetail_block::{DeviceInfo, Lba, Zones};

use super::{MkfsError, MkfsOptions};
use crate::format::{BLOCKS_IN_SEGMENT, Features, MAX_DEVICE_PATH, MAX_DEVICES, Member};

const SEGMENT: u64 = BLOCKS_IN_SEGMENT as u64;
/// Blocks for the superblocks, before the first area.
const SUPERBLOCKS: u64 = 2;

/// A device of a volume that is made on several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePart {
    /// The path by which a kernel will look for it, at most 63 bytes.
    pub path: String,
    /// Its blocks.
    pub blocks: u64,
}

/// Blocks of each device that a volume on several takes, of as many as each has: the first is
/// taken whole if the last one has zones, others up to a whole segment. To be put end to end
/// ([`dovetail_block::JoinedDevice`]).
pub fn device_blocks(sizes: &[u64], is_zoned: bool) -> Vec<u64> {
    let whole = |blocks: u64| blocks - blocks % SEGMENT;
    let of = |(number, &blocks): (usize, &u64)| {
        if number == 0 && is_zoned { blocks } else { whole(blocks) }
    };
    sizes.iter().enumerate().map(of).collect()
}

/// Room for the areas of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Blocks of the device, or of all devices.
    pub(super) blocks: u64,
    /// The first block of the first area.
    pub(super) start: u64,
    /// Whole segments from there on.
    pub(super) segments: u64,
    /// Segments in a section.
    pub(super) section: u64,
    /// Segments in a zone.
    pub(super) zone: u64,
    /// Segments that can be written, the metadata's included, as mkfs.f2fs counts them: on one zoned
    /// device it takes in the zone of the superblocks, which is no segment.
    pub(super) usable: Option<u64>,
    /// The first block that is written in order.
    pub(super) sequential: Option<Lba>,
    /// The devices, if there are several.
    pub(super) devices: Vec<Member>,
}

impl Room {
    /// The room on a device, which may be several put end to end (`options.devices`).
    pub(super) fn new(info: &DeviceInfo, options: &MkfsOptions) -> Result<Self, MkfsError> {
        let zones = zones_of(info, options)?;
        let section =
            zones.map_or(options.segments_per_section.into(), |zones| zones.blocks / SEGMENT);
        let per_zone = zones.map_or(options.sections_per_zone, |_| 1);
        let zone = section * u64::from(per_zone);
        let mut start = SUPERBLOCKS.next_multiple_of(zone * SEGMENT);
        let devices = devices(options, zones, &mut start)?;
        let segments = match &devices[..] {
            [] => info.blocks.saturating_sub(start) / SEGMENT,
            devices => devices.iter().map(|device| u64::from(device.segments)).sum(),
        };
        let usable = zones.map(|zones| {
            let capacity = u64::from(zones.count) * zones.capacity.div_ceil(SEGMENT);
            let before = if devices.is_empty() { 0 } else { start };
            (zones.first.0 - before.min(zones.first.0)) / SEGMENT + capacity
        });
        let blocks = match &options.devices[..] {
            [] => info.blocks,
            devices => devices.iter().map(|device| device.blocks).sum(),
        };
        let sequential = zones.map(|zones| zones.first);
        Ok(Self { blocks, start, segments, section, zone, usable, sequential, devices })
    }

    /// The refusal of a device that has too little room.
    pub(super) fn too_small(&self, short: &'static str) -> MkfsError {
        match self.sequential {
            None => MkfsError::TooSmall { blocks: self.blocks, short },
            Some(_) => MkfsError::TooFewZones {
                zones: self.blocks / (self.zone * SEGMENT),
                mib: self.zone * SEGMENT / 256,
                short,
            },
        }
    }

    /// Checks that the main area begins in conventional space, or where it ends.
    pub(super) fn check_metadata(&self, main_start: u64) -> Result<(), MkfsError> {
        let Some(first) = self.sequential.filter(|first| first.0 < main_start) else {
            return Ok(());
        };
        let (needed, found) = (main_start / (self.zone * SEGMENT), first.0 / (self.zone * SEGMENT));
        let mib = main_start.div_ceil(256);
        Err(if self.devices.is_empty() {
            MkfsError::TooFewConventional { needed, found, mib }
        } else {
            MkfsError::FirstDeviceTooSmall { mib, found_mib: first.0 / 256 }
        })
    }
}

/// The zones that the volume is made for; `None` for an ordinary one.
fn zones_of(info: &DeviceInfo, options: &MkfsOptions) -> Result<Option<Zones>, MkfsError> {
    let wanted = options.features.has(Features::BLKZONED);
    let zones = match (info.capabilities.zones, wanted) {
        (None, false) => return Ok(None),
        (None, true) => return Err(MkfsError::NoZones),
        (Some(_), false) => return Err(MkfsError::ZonesWithoutFeature),
        (Some(zones), true) => zones,
    };
    let blocks = zones.blocks;
    let allowed = SEGMENT..=super::options::MAX_ZONE * SEGMENT;
    if !blocks.is_power_of_two() || !allowed.contains(&blocks) {
        return Err(MkfsError::ZoneSize { blocks });
    }
    if zones.capacity == 0 || zones.count == 0 {
        return Err(MkfsError::NoZones);
    }
    if options.devices.is_empty() && !zones.first.0.is_multiple_of(blocks) {
        return Err(MkfsError::ZonesUnaligned { first: zones.first.0, blocks });
    }
    Ok(Some(zones))
}

/// The devices as the superblock lists them; those that follow begin at a zone's start, for which
/// the first area of the first one is moved.
fn devices(
    options: &MkfsOptions,
    zones: Option<Zones>,
    start: &mut u64,
) -> Result<Vec<Member>, MkfsError> {
    let parts = &options.devices;
    if parts.len() < 2 {
        return Ok(Vec::new());
    }
    if parts.len() > MAX_DEVICES {
        return Err(MkfsError::Devices(parts.len()));
    }
    if let Some(part) = parts.iter().find(|part| !(1..=MAX_DEVICE_PATH).contains(&part.path.len()))
    {
        return Err(MkfsError::DevicePath(part.path.clone()));
    }
    if let Some(zones) = zones {
        *start += parts[0].blocks % zones.blocks;
        let mut others = parts.iter().skip(1);
        if let Some(part) = others.find(|part| !part.blocks.is_multiple_of(zones.blocks)) {
            let (path, blocks) = (part.path.clone(), zones.blocks);
            return Err(MkfsError::DeviceOfPartialZones { path, blocks });
        }
    }
    let segments = |(number, part): (usize, &DevicePart)| {
        let before = if number == 0 { *start } else { 0 };
        let segments = part.blocks.saturating_sub(before) / SEGMENT;
        Member { path: part.path.clone(), segments: u32::try_from(segments).unwrap_or(u32::MAX) }
    };
    Ok(parts.iter().enumerate().map(segments).collect())
}

#[cfg(test)]
impl Room {
    /// The room on an ordinary device.
    pub(super) fn of(blocks: u64, options: &MkfsOptions) -> Result<Self, MkfsError> {
        Self::new(&DeviceInfo { blocks, capabilities: Default::default() }, options)
    }
}
