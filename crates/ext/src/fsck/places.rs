//! Blocks at places of the device, on a volume whose pointers may lead there: no bitmap knows of
//! them.

use dovetail_block::BlockDevice;

use super::{Checker, Finding};
use crate::error::Error;
use crate::format::{BlockAddr, PHYSICAL_BIT};

impl<D: BlockDevice> Checker<D> {
    /// Asks the device by which places it holds a block; of an ordinary volume by none.
    pub(super) fn read_places(&mut self) -> Result<(), Error> {
        self.held = self.volume.blocks.held_places()?.into_iter().collect();
        Ok(())
    }

    /// Places that are claimed must be held.
    pub(super) fn check_places_held(&mut self, start: u64, count: u64) {
        if !self.volume.blocks.has_place(start) {
            return;
        }
        let missing = (start..start + count).find(|place| !self.held.contains(place));
        if let Some(address) = missing.map(BlockAddr) {
            self.found(Finding::PlaceMissing { address });
        }
    }

    /// Places that were reached, as the superblock counts them; those that were not are lost until
    /// the next mount.
    pub(super) fn check_places(&mut self) -> u64 {
        let reached = self.space.count(PHYSICAL_BIT..PHYSICAL_BIT << 1);
        let lost: Vec<_> =
            self.held.iter().filter(|&&place| self.space.is_free(place..place + 1)).collect();
        let count = lost.len() as u64;
        if let Some(first) = lost.first().map(|&&place| BlockAddr(place)) {
            self.found(Finding::PlacesLeaked { first, count });
        }
        self.check_total("physical_blocks", self.volume.superblock.physical_blocks, reached);
        reached
    }
}
