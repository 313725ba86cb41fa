//! The discard log: what it names was written by a log and belongs to nothing.

use dovetail_block::{AREA_BLOCKS, BlockDevice};

use crate::error::Error;
use crate::format::{BlockAddr, Extent};
use crate::fsck::{Checker, Finding};

impl<D: BlockDevice> Checker<'_, D> {
    /// Extents that wait for their discard, in order and apart from each other; `None` if that
    /// cannot be told.
    pub(super) fn check_discards(&mut self) -> Result<Option<Vec<Extent>>, Error> {
        let extents = match self.volume.stored_discard_log() {
            Ok(extents) => extents,
            Err(Error::Corrupt(reason)) => {
                self.found(Finding::DiscardLog { reason });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        for extent in &extents {
            self.check_discard(*extent);
        }
        Ok(Some(merged(extents)))
    }

    fn check_discard(&mut self, extent: Extent) {
        let Extent { start: first, blocks } = extent;
        let is_main = self.volume.superblock.in_main(first);
        let written = is_main.then(|| self.written_by((first.0 / AREA_BLOCKS - 1) as usize));
        if written.is_none_or(|written| extent.range().end > written.end) {
            self.found(Finding::DiscardOutside { first, blocks });
        }
        let mut live = self.live_within(extent.range());
        if let Some(first) = live.next().map(BlockAddr) {
            let blocks = 1 + live.count() as u64;
            self.found(Finding::DiscardLive { first, blocks });
        }
    }
}

/// The same blocks in order, neighbours and what overlaps in one.
fn merged(mut extents: Vec<Extent>) -> Vec<Extent> {
    extents.sort_unstable();
    let mut merged: Vec<Extent> = Vec::new();
    for extent in extents {
        match merged.last_mut() {
            Some(last) if last.range().end >= extent.start.0 => {
                last.blocks = last.range().end.max(extent.range().end) - last.start.0;
            }
            _ => merged.push(extent),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_becomes_one() {
        let extents = |list: &[(u64, u64)]| -> Vec<Extent> {
            list.iter().map(|&(start, blocks)| Extent { start: BlockAddr(start), blocks }).collect()
        };
        let found = merged(extents(&[(50, 1), (10, 5), (12, 1), (15, 5), (30, u64::MAX), (2, 0)]));
        assert_eq!(found, extents(&[(2, 0), (10, 10), (30, u64::MAX - 30)]));
    }
}
