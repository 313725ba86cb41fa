//! The discard log of an IPLFS volume.

use dovetail_block::{AREA_BLOCKS, BlockDevice};

use super::Volume;
use super::open::pack_start;
use crate::error::{Corrupt, Error, Place};
use crate::format::{
    BLOCK, BlockAddr, Extent, area_start, discard_log_checksum, parse_discard_log,
};

/// Blocks read in one command: 1 MiB.
const CHUNK: usize = 256;

impl<D: BlockDevice> Volume<D> {
    /// Discard log of an IPLFS volume: blocks that the checkpoint no longer refers to, and the
    /// device may still hold. Empty for F2FS.
    ///
    /// # Errors
    /// A log whose checksum does not fit, or that names blocks which no log has written;
    /// [`Error::Io`].
    pub fn discard_log(&mut self) -> Result<Vec<Extent>, Error> {
        let extents = self.stored_discard_log()?;
        extents.iter().try_for_each(|extent| self.check_discard(*extent))?;
        check_apart(Place::Checkpoint(self.checkpoint.pack), &extents)?;
        Ok(extents)
    }

    /// As [`Self::discard_log`], whatever blocks it names.
    pub(crate) fn stored_discard_log(&mut self) -> Result<Vec<Extent>, Error> {
        let checkpoint = &self.checkpoint;
        if checkpoint.discard_log_bytes == 0 {
            return Ok(Vec::new());
        }
        let (place, sum) = (Place::Checkpoint(checkpoint.pack), checkpoint.discard_log_checksum);
        let start =
            pack_start(&self.superblock, checkpoint.pack).plus(checkpoint.summary_start.into());
        let log = self.read_log(start, checkpoint.discard_log_bytes)?;
        Corrupt::check_checksum(place, sum, discard_log_checksum(&log))?;
        Ok(parse_discard_log(&log))
    }

    /// The bytes of a log. What it says of its length is believed as long as there is something: no
    /// log has a mebibyte of zeros.
    fn read_log(&mut self, start: BlockAddr, len: u64) -> Result<Vec<u8>, Error> {
        let mut log = Vec::new();
        for first in (0..len.div_ceil(BLOCK as u64)).step_by(CHUNK) {
            let bytes = (len - first * BLOCK as u64).min((CHUNK * BLOCK) as u64) as usize;
            let mut chunk = vec![0; bytes.next_multiple_of(BLOCK)];
            self.blocks.data(start.plus(first), &mut chunk)?;
            if chunk.len() == CHUNK * BLOCK && chunk.iter().all(|&byte| byte == 0) {
                let place = Place::Checkpoint(self.checkpoint.pack);
                let end = first * BLOCK as u64;
                return Err(Corrupt::Range {
                    place,
                    field: "discard_log_bytes",
                    found: len,
                    min: 0,
                    max: end,
                }
                .into());
            }
            log.extend_from_slice(&chunk[..bytes]);
        }
        Ok(log)
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

/// No block is named twice.
fn check_apart(place: Place, extents: &[Extent]) -> Result<(), Corrupt> {
    let mut sorted: Vec<Extent> =
        extents.iter().copied().filter(|extent| extent.blocks > 0).collect();
    sorted.sort_unstable_by_key(|extent| extent.start.0);
    sorted.windows(2).try_for_each(|pair| {
        let end = pair[0].range().end;
        Corrupt::check_range(
            place,
            "the start of a discard after another",
            pair[1].start.0,
            (end, u64::MAX),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_names_no_block_twice() {
        let extent = |start, blocks| Extent { start: BlockAddr(start), blocks };
        let place = Place::Checkpoint(1);
        assert!(
            check_apart(place, &[extent(10, 5), extent(0, 0), extent(1, 9), extent(15, 1)]).is_ok()
        );
        assert!(check_apart(place, &[extent(10, 5), extent(1, 10)]).is_err());
        assert!(check_apart(place, &[extent(10, 5), extent(10, 5)]).is_err());
    }
}
