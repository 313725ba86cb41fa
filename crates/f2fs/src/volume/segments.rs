//! What the SIT says of a segment.

use dovetail_block::BlockDevice;

use super::Volume;
use crate::error::{Corrupt, Error, Place};
use crate::format::{SegNo, SitEntry, sit_block_address, sit_entry};

impl<D: BlockDevice> Volume<D> {
    /// The SIT's entry of a segment of the main area, the journal first.
    ///
    /// # Errors
    /// [`Corrupt::Range`] for a segment beyond the main area; an entry that contradicts itself; [`Error::Io`].
    pub fn segment(&mut self, segno: SegNo) -> Result<SitEntry, Error> {
        let last = u64::from(self.superblock.segment_count_main - 1);
        Corrupt::check_range(Place::Sit(segno.0), "segno", segno.0, (0, last))?;
        let entry = self.stored_segment(segno)?;
        entry.check(segno)?;
        Ok(entry)
    }

    /// As [`Self::segment`], but as it is stored; `segno` must lie in the main area.
    pub(crate) fn stored_segment(&mut self, segno: SegNo) -> Result<SitEntry, Error> {
        if let Some(entry) = self.sit_journal.get(&segno) {
            return Ok(entry.clone());
        }
        let address = sit_block_address(&self.superblock, &self.bitmaps.sit, segno);
        Ok(sit_entry(&*self.blocks.metadata(address)?, segno))
    }
}
