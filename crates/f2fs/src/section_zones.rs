//! Sections of a zoned volume: each is one zone of the device, and may be written from its start up
//! to its capacity.
//!
//! Nothing of this is stored on the volume: it follows from the device's zones at every mount.

use dovetail_block::{Lba, Zones};

use crate::error::Incompatible;
use crate::format::{BLOCKS_IN_SEGMENT, SegNo, Superblock};

/// The zones of a volume's device, as sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionZones {
    zones: Zones,
    /// The first block of the main area.
    main_start: u64,
    /// Sections before this one lie in conventional zones.
    first_sequential: u32,
}

impl SectionZones {
    /// The sections of a volume on a device with these zones; `None` of a volume without the
    /// feature, on a device without zones.
    ///
    /// # Errors
    /// [`Incompatible`]: the feature is there and the zones are not, or the other way round, or
    /// the zones are not the volume's sections.
    pub(crate) fn of(
        superblock: &Superblock,
        zones: Option<Zones>,
    ) -> Result<Option<Self>, Incompatible> {
        let zones = match (superblock.is_zoned(), zones) {
            (false, None) => return Ok(None),
            (true, None) => return Err(Incompatible::NoZones),
            (false, Some(_)) => return Err(Incompatible::NotMadeForZones),
            (true, Some(zones)) => zones,
        };
        let section = u64::from(superblock.segments_per_section) * u64::from(BLOCKS_IN_SEGMENT);
        let (main, first) = (superblock.main_start.0, zones.first.0);
        if zones.blocks != section {
            return Err(Incompatible::OtherZones { found: zones.blocks, expected: section });
        }
        let end = main + u64::from(superblock.section_count) * section;
        let is_aligned = first.abs_diff(main).is_multiple_of(section);
        if first < main || !is_aligned || zones.end().0 < end {
            return Err(Incompatible::ZonesElsewhere { first, main });
        }
        let first_sequential = (first.saturating_sub(main) / section) as u32;
        Ok(Some(Self { zones, main_start: main, first_sequential }))
    }

    /// Blocks from the start of a section that can be written. As in Linux the capacity of
    /// sequential zones holds for sections in conventional ones, too.
    pub(crate) fn capacity(&self) -> u32 {
        self.zones.capacity as u32
    }

    /// Segments of a section that can be written, the last one perhaps in part.
    pub(crate) fn usable_segments(&self) -> u32 {
        self.capacity().div_ceil(BLOCKS_IN_SEGMENT)
    }

    /// Blocks of a segment that can be written, at its place in its section.
    pub(crate) fn usable_blocks(&self, segno: SegNo) -> u32 {
        let before = segno.0 % self.segments_per_section() * BLOCKS_IN_SEGMENT;
        self.capacity().saturating_sub(before).min(BLOCKS_IN_SEGMENT)
    }

    /// Free segments that mkfs.f2fs counts too many on such a device: on a single one the zone of the
    /// superblocks, and of conventional zones what is beyond the capacity of the others.
    pub(crate) fn mkfs_excess(&self, superblock: &Superblock) -> u32 {
        let own = if superblock.devices.is_empty() { self.segments_per_section() } else { 0 };
        let conventional = self.first_sequential.min(superblock.section_count);
        own + conventional * (self.segments_per_section() - self.usable_segments())
    }

    fn segments_per_section(&self) -> u32 {
        (self.zones.blocks / u64::from(BLOCKS_IN_SEGMENT)) as u32
    }

    /// The first section that lies in a sequential zone.
    pub(crate) fn first_sequential(&self) -> u32 {
        self.first_sequential
    }

    /// The section lies in a sequential zone.
    pub(crate) fn is_sequential(&self, section: u32) -> bool {
        section >= self.first_sequential
    }

    /// The first block of a section on the device.
    pub(crate) fn start(&self, section: u32) -> Lba {
        Lba(self.main_start + u64::from(section) * self.zones.blocks)
    }

    /// The section that begins at a block of the device; `None` if none does.
    pub(crate) fn section_at(&self, start: Lba) -> Option<u32> {
        let block = start.0.checked_sub(self.main_start)?;
        block.is_multiple_of(self.zones.blocks).then_some((block / self.zones.blocks) as u32)
    }

    /// Zones that may be open or active at once, the smaller number that there is, and which it is;
    /// `None` for any number.
    pub(crate) fn limit(&self) -> Option<(u32, &'static str)> {
        let limits = [(self.zones.max_open, "open"), (self.zones.max_active, "active")];
        limits.into_iter().filter(|(most, _)| *most > 0).min_by_key(|(most, _)| *most)
    }
}
