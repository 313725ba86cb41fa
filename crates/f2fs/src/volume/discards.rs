//! The discard log of an endless volume.

use dovetail_block::{AREA_BLOCKS, BlockDevice};

use super::Volume;
use super::open::pack_start;
use crate::error::{Corrupt, Error, Place};
use crate::format::{BLOCK, Extent, Variant, area_start, discard_log_checksum, parse_discard_log};

impl<D: BlockDevice> Volume<D> {
    /// What the checkpoint of an endless volume no longer refers to, and the device may still hold; nothing of F2FS.
    ///
    /// # Errors
    /// A log whose checksum does not fit, or that names blocks which no log has written; [`Error::Io`].
    pub fn discard_log(&mut self) -> Result<Vec<Extent>, Error> {
        let extents = self.stored_discard_log()?;
        extents.iter().try_for_each(|extent| self.check_discard(*extent))?;
        Ok(extents)
    }

    /// As [`Self::discard_log`], whatever blocks it names.
    pub(crate) fn stored_discard_log(&mut self) -> Result<Vec<Extent>, Error> {
        let checkpoint = &self.checkpoint;
        if self.superblock.variant == Variant::F2fs || checkpoint.discard_log_bytes == 0 {
            return Ok(Vec::new());
        }
        let (place, sum) = (Place::Checkpoint(checkpoint.pack), checkpoint.discard_log_checksum);
        let start = pack_start(&self.superblock, checkpoint.pack).plus(checkpoint.summary_start.into());
        let len = checkpoint.discard_log_bytes as usize; // no longer than the pack
        let mut log = vec![0; len.next_multiple_of(BLOCK)];
        self.blocks.data(start, &mut log)?;
        log.truncate(len);
        Corrupt::check_checksum(place, sum, discard_log_checksum(&log))?;
        Ok(parse_discard_log(&log))
    }

    /// A log wrote these blocks before the checkpoint.
    fn check_discard(&self, extent: Extent) -> Result<(), Corrupt> {
        let place = Place::Checkpoint(self.checkpoint.pack);
        let (first, last) = (AREA_BLOCKS, self.superblock.main_end().0 - 1);
        Corrupt::check_range(place, "the start of a discard", extent.start.0, (first, last))?;
        let log = (extent.start.0 / AREA_BLOCKS - 1) as usize;
        let written = self.checkpoint.positions[log].0;
        debug_assert!(area_start(log) <= extent.start);
        Corrupt::check_range(place, "the end of a discard", extent.range().end, (first, written))
    }
}
