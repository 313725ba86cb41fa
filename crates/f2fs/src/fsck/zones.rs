//! Zoned volumes: the write pointers of the device against the logs and what is in use.

use dovetail_block::{BlockDevice, Zone, ZoneState};

use super::{Checker, Finding};
use crate::error::{Error, Incompatible};
use crate::format::{BLOCKS_IN_SEGMENT, SegNo};
use crate::section_zones::SectionZones;

impl<D: BlockDevice> Checker<'_, D> {
    pub(super) fn read_zones(&mut self) -> Result<(), Error> {
        let zones = self.volume.device_info().capabilities.zones;
        match SectionZones::of(&self.volume.superblock, zones) {
            Ok(zones) => self.zones = zones,
            Err(Incompatible::NoZones) => self.found(Finding::NotChecked {
                what: "the free segments and write pointers, for which the zone report is needed",
            }),
            Err(Incompatible::NotMadeForZones) => {}
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }

    /// The segment has blocks that can be written: its zone's capacity reaches there.
    pub(super) fn is_usable(&self, segno: SegNo) -> bool {
        self.zones.is_none_or(|zones| zones.usable_blocks(segno) > 0)
    }

    /// Compares each zone that is written in order.
    pub(super) fn check_write_pointers(&mut self) -> Result<(), Error> {
        let Some(zones) = self.zones else { return Ok(()) };
        let report = dovetail_block::zones(self.volume.device_mut())?;
        for zone in report {
            let section = zones.section_at(zone.start);
            let sections = self.volume.superblock.section_count;
            if let Some(section) = section.filter(|&s| zone.state.is_some() && s < sections) {
                if matches!(zone.state, Some(ZoneState::ReadOnly | ZoneState::Offline)) {
                    self.worn.insert(section);
                }
                self.check_zone(section, &zone)?;
            }
        }
        Ok(())
    }

    fn check_zone(&mut self, section: u32, zone: &Zone) -> Result<(), Error> {
        let per_section = self.volume.superblock.segments_per_section;
        let (first, written) = (SegNo(section * per_section), zone.written());
        let mut owner = None;
        for (log, position) in self.volume.checkpoint.logs.iter().enumerate() {
            if position.segment.0 / per_section == section {
                let before = u64::from(position.segment.0 - first.0) * u64::from(BLOCKS_IN_SEGMENT);
                owner = Some((log as u8, *position, before + u64::from(position.offset)));
            }
        }
        let last_used = self.last_used(first, per_section)?;
        let (zone, offset) = (section, last_used.unwrap_or(0));
        if last_used.is_some_and(|last| last >= written) {
            self.found(Finding::BeyondPointer { zone, offset, written });
        }
        match owner {
            Some((log, position, at)) if at != written => {
                let (segno, offset) = (position.segment, position.offset.into());
                self.found(Finding::LogPointer { log, segno, offset, zone, written });
            }
            None if self.worn.contains(&section) => {} // it cannot be reset
            None if written > 0 && last_used.is_none() && !self.is_claimed(first, per_section) => {
                self.found(Finding::ZoneLeft { zone, written });
            }
            _ => {}
        }
        Ok(())
    }

    /// Something leads to a block of these segments, whatever the SIT says.
    fn is_claimed(&self, first: SegNo, segments: u32) -> bool {
        (first.0..first.0 + segments).any(|segno| self.claims.segment(SegNo(segno)).is_some())
    }

    /// The last block of a section that the SIT has in use, counted from its start.
    fn last_used(&mut self, first: SegNo, segments: u32) -> Result<Option<u64>, Error> {
        for segno in (first.0..first.0 + segments).rev() {
            let entry = self.volume.stored_segment(SegNo(segno))?;
            if let Some(last) = (0..BLOCKS_IN_SEGMENT).rev().find(|&at| entry.is_valid(at)) {
                let before = u64::from(segno - first.0) * u64::from(BLOCKS_IN_SEGMENT);
                return Ok(Some(before + u64::from(last)));
            }
        }
        Ok(None)
    }
}
