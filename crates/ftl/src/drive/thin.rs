//! Thin drives: more addresses than room.
//!
//! Room is counted in flash pages. A logical page that is mapped takes one, also when a single block of it is live, and so
//! does a dirty page of the buffer that flash has nothing of. So a write needs room only for pages of which there is nothing
//! yet, and each block that is still free can be written wherever it lies.

use dovetail_block::{BlockRange, DeviceError};
use dovetail_nand::Lpn;

use super::Drive;

impl Drive {
    /// Logical pages that can be mapped beside those there are.
    pub(super) fn free_pages(&self) -> u64 {
        self.config.capacity_pages().saturating_sub(self.mapped + self.buffer.fresh() as u64)
    }

    /// Whether a write finds room. Always on a drive with as many addresses as it has room for.
    pub(super) fn check_room(&mut self, range: BlockRange) -> Result<(), DeviceError> {
        if !self.config.counts_room() {
            return Ok(());
        }
        let (pages, room) = (self.pages_of(range), self.free_pages());
        if pages.end - pages.start <= room {
            return Ok(());
        }
        // Most pages of what does not fit may be there already, of a write that is longer than all there is they are not.
        if pages.end - pages.start > self.config.capacity_pages() {
            return Err(DeviceError::NoRoom);
        }
        let new = pages.map(Lpn).filter(|&lpn| self.takes_a_page(lpn)).count() as u64;
        if new <= room { Ok(()) } else { Err(DeviceError::NoRoom) }
    }

    /// Whether a write of `lpn` will take a page more.
    fn takes_a_page(&mut self, lpn: Lpn) -> bool {
        self.map.lookup(lpn).0.is_none() && self.buffer.dirty_mut(lpn).is_none()
    }
}
