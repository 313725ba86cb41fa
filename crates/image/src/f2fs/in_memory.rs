//! A volume mounted over changes that stay in memory: recovered, and the image as it was.

use dovetail_block::{BlockDevice, OverlayDevice, ZoneState, ZonedDevice, Zones};
use dovetail_f2fs::format::{BLOCKS_IN_SEGMENT, Superblock};

use crate::Medium;
use crate::medium::Device;

/// Changes in memory over a medium. Zones are kept above them; those that nobody told are taken to
/// be the volume's sections, all full: logs then go on in others, which are emptied first.
pub(super) fn over(medium: Medium, superblock: &Superblock) -> Device {
    let mut medium = medium;
    let zones = medium.info().capabilities.zones.or_else(|| guessed(superblock));
    let Some(zones) = zones else { return Box::new(OverlayDevice::new(medium)) };
    let report = dovetail_block::zones(&mut medium).unwrap_or_default();
    let told = report.iter().filter_map(|zone| Some((zone.state?, zone.written())));
    let mut states: Vec<_> = told.take(zones.count as usize).collect();
    states.resize(zones.count as usize, (ZoneState::Full, zones.capacity));
    Box::new(ZonedDevice::found(OverlayDevice::new(medium), zones, states))
}

fn guessed(superblock: &Superblock) -> Option<Zones> {
    let section = u64::from(superblock.segments_per_section) * u64::from(BLOCKS_IN_SEGMENT);
    let blocks = u64::from(superblock.section_count) * section;
    let first = dovetail_block::Lba(superblock.main_start.0);
    superblock.is_zoned().then(|| Zones::covering(first, blocks, section, section))
}
