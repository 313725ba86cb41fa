//! Sections for remap staging: borrowed from the free ones, and returned.

use super::super::super::policy::Log;
use super::SegmentSpace;
use super::remap_staging::StagedBlock;
use crate::format::{BLOCKS_IN_SEGMENT, BlockAddr};

impl SegmentSpace {
    /// A section is to be borrowed before the next staged block is taken.
    pub(crate) fn staging_wants_section(&self, reserve: u32) -> bool {
        self.staging.wants_section(reserve)
    }

    /// Staged blocks that are free.
    pub(crate) fn staging_free(&self) -> u32 {
        self.staging.free()
    }

    /// Borrows a free section for staging; `false` if there is none.
    pub(crate) fn borrow_section(&mut self) -> bool {
        let Some(segno) = self.free_segment(Log::HotData) else { return false };
        let section = self.segments.section_of(segno);
        for segno in self.segments.segments_of(section) {
            self.segments.take(segno);
            self.discards.keep(self.segments.address(segno, 0).low(), BLOCKS_IN_SEGMENT);
        }
        self.staging.borrow_section(section);
        true
    }

    /// A block to write an update to, if more than `reserve` are left.
    pub(crate) fn take_staged(&mut self, reserve: u32) -> Option<BlockAddr> {
        if self.staging.free() <= reserve {
            return None;
        }
        let staged = self.staging.take()?;
        Some(self.segments.address_in_section(staged.section, staged.block))
    }

    /// The update has moved from there, or is not needed any more.
    pub(crate) fn release_staged(&mut self, address: BlockAddr) {
        let (section, block) = self.segments.position_in_section(address);
        self.staging.release(StagedBlock { section, block });
    }

    /// Returns borrowed sections that are not needed; all in which nothing waits with `last`.
    pub(crate) fn return_sections(&mut self, last: bool, discards: bool) {
        for section in self.staging.return_sections(last) {
            for segno in self.segments.segments_of(section) {
                self.segments.release(segno);
                if discards {
                    self.queue_segment(segno);
                }
            }
        }
    }
}
