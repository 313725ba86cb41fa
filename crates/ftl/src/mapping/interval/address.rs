//! Addresses in a logical space of 2^61 blocks, and how the tree cuts them up.

use std::fmt;

use dovetail_block::Lba;
use dovetail_nand::Lpn;
use thiserror::Error;

/// Areas, each chosen by the top three bits of a block address: the metadata and six logs (IPLFS
/// paper §4.1).
pub const AREAS: usize = 7;

/// Blocks of an area (IPLFS paper §4.1).
pub const AREA_BLOCKS: u64 = 1 << 58;

/// Map nodes of a zone node (IPLFS paper §5.1: a zone of 16 GiB, mapping segments of 16 MiB).
pub(super) const SEGMENTS_PER_ZONE: usize = 1024;

/// Zones of an area.
pub(super) const AREA_ZONES: u64 = 1 << 36;

/// 256 KiB (IPLFS paper §5.3).
pub(super) const MIN_REGION_BLOCKS: u32 = 64;

/// An address that the map has no place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AddressError {
    /// The block is in none of the seven areas.
    #[error(
        "block {0} lies beyond the seven areas of 2^58 blocks; such a drive ends at block 7 * 2^58"
    )]
    OutsideAreas(Lba),
    /// A page size that does not divide a region.
    #[error(
        "pages of {0} blocks cannot be mapped; a page must be a power of two of 1 to 64 blocks"
    )]
    PageSize(u32),
}

/// The address of a logical page: the index of its first block divided by the blocks of a page.
/// Always within the seven areas, because [`Layout::page_of`] checks, and the drive where it takes
/// an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalPage(pub(super) u64);

impl LogicalPage {
    /// The index of the page.
    pub const fn index(self) -> u64 {
        self.0
    }
}

impl From<Lpn> for LogicalPage {
    /// A page of a drive, whose addresses end where the seven areas do. Those of a drive of
    /// ordinary size all lie in the first one.
    fn from(lpn: Lpn) -> Self {
        Self(lpn.0)
    }
}

impl fmt::Display for LogicalPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The split of an address into area, zone, segment and page, for one size of page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    page_shift: u32,
    // What follows from it, so that a walk need not compute it.
    segment_shift: u32,
    offset_mask: u32,
}

impl Layout {
    /// For pages of one block.
    pub const SINGLE_BLOCKS: Self = Self::of_shift(0);

    const fn of_shift(page_shift: u32) -> Self {
        let segment_shift = 12 - page_shift;
        Self { page_shift, segment_shift, offset_mask: (1 << segment_shift) - 1 }
    }

    /// For pages of that many blocks.
    ///
    /// # Errors
    /// A number that is not a power of two or above 64, the smallest region.
    pub const fn new(blocks_per_page: u32) -> Result<Self, AddressError> {
        if !blocks_per_page.is_power_of_two() || blocks_per_page > MIN_REGION_BLOCKS {
            return Err(AddressError::PageSize(blocks_per_page));
        }
        Ok(Self::of_shift(blocks_per_page.trailing_zeros()))
    }

    /// Blocks of a page.
    pub const fn page_blocks(self) -> u64 {
        1 << self.page_shift
    }

    /// The page that holds `block`.
    ///
    /// # Errors
    /// A block beyond the seven areas.
    pub const fn page_of(self, block: Lba) -> Result<LogicalPage, AddressError> {
        if block.0 >= AREA_BLOCKS * AREAS as u64 {
            return Err(AddressError::OutsideAreas(block));
        }
        Ok(LogicalPage(block.0 >> self.page_shift))
    }

    /// The first block of `page`.
    pub const fn block_of(self, page: LogicalPage) -> Lba {
        Lba(page.0 << self.page_shift)
    }

    /// Pages of a mapping segment.
    pub(super) const fn segment_pages(self) -> u32 {
        self.offset_mask + 1
    }

    /// Pages of the smallest region.
    pub(super) const fn min_region_pages(self) -> u32 {
        MIN_REGION_BLOCKS >> self.page_shift
    }

    /// The segment that holds `page`.
    #[inline]
    pub(super) const fn segment_of(self, page: LogicalPage) -> Segment {
        Segment(page.0 >> self.segment_shift)
    }

    /// The page within its segment.
    pub(super) const fn offset(self, page: LogicalPage) -> u32 {
        page.0 as u32 & self.offset_mask
    }
}

/// A mapping segment of 16 MiB: its index in the whole space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment(pub(super) u64);

impl Segment {
    #[inline]
    pub(super) const fn area(self) -> usize {
        (self.0 >> 46) as usize
    }

    /// The zone within its area.
    #[inline]
    pub(super) const fn zone(self) -> u64 {
        (self.0 >> 10) & (AREA_ZONES - 1)
    }

    /// The segment within its zone.
    #[inline]
    pub(super) const fn in_zone(self) -> usize {
        self.0 as usize % SEGMENTS_PER_ZONE
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop at a broken set-up")]
mod tests {
    use super::*;

    #[test]
    fn the_top_three_bits_choose_the_area_and_the_rest_is_the_way_down() {
        for blocks_per_page in [1, 4, 64] {
            let layout = Layout::new(blocks_per_page).unwrap();
            let last = layout.page_of(Lba(7 * AREA_BLOCKS - 1)).unwrap();
            let segment = layout.segment_of(last);
            assert_eq!(
                (segment.area(), segment.zone(), segment.in_zone()),
                (6, AREA_ZONES - 1, 1023)
            );
            assert_eq!(layout.offset(last), layout.segment_pages() - 1);
            let first = layout.page_of(Lba(3 * AREA_BLOCKS + 4096)).unwrap();
            let segment = layout.segment_of(first);
            assert_eq!((segment.area(), segment.zone(), segment.in_zone()), (3, 0, 1));
            assert_eq!(layout.offset(first), 0);
        }
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let layout = Layout::new(4).unwrap();
        let beyond = Lba(7 * AREA_BLOCKS);
        assert_eq!(layout.page_of(beyond), Err(AddressError::OutsideAreas(beyond)));
        assert_eq!(Layout::new(3), Err(AddressError::PageSize(3)));
        assert_eq!(Layout::new(128), Err(AddressError::PageSize(128)));
    }
}
