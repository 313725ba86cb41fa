//! Thin drives: more addresses than room.
//!
//! Room is counted in flash pages. A logical page that is mapped takes one, also when a single block of it is live, and so
//! does a dirty page of the buffer that flash has nothing of. So a write needs room only for pages of which there is nothing
//! yet, and each block that is still free can be written wherever it lies.
//!
//! A power cut takes discards back that are not durable, beside what was written instead. So much is set apart for that
//! ([`DriveConfig::pages_freed_at_once`](crate::DriveConfig)), and what was discarded beyond it is room only once the record of
//! the discard is on flash: a write that needs it waits.

use dovetail_block::{BlockRange, DeviceError};
use dovetail_nand::Lpn;
use dovetail_time::SimTime;

use super::Drive;

/// Pages that discards have unmapped.
#[derive(Debug, Default)]
pub(super) struct Freed {
    /// Those whose records are not written.
    pub(super) unwritten: u64,
    /// Those whose records are on their way to flash, and when they are there.
    under_way: u64,
    durable_from: SimTime,
}

impl Freed {
    /// All records so far are written, and durable at `end`.
    pub(super) fn written(&mut self, end: SimTime) {
        self.under_way += std::mem::take(&mut self.unwritten);
        self.durable_from = end;
    }

    /// Pages that a power cut at `at` or later might bring back.
    fn volatile_at(&mut self, at: SimTime) -> u64 {
        if at >= self.durable_from {
            self.under_way = 0;
        }
        self.under_way + self.unwritten
    }
}

impl Drive {
    /// Logical pages that can be mapped beside those there are.
    pub(super) fn free_pages(&self) -> u64 {
        self.config.capacity_pages().saturating_sub(self.mapped + self.buffer.fresh() as u64)
    }

    /// When a write that comes at `at` finds room. At once on a drive with as many addresses as it has room for.
    pub(super) fn check_room(&mut self, at: SimTime, range: BlockRange) -> Result<SimTime, DeviceError> {
        let Some(apart) = self.config.pages_freed_at_once() else { return Ok(at) };
        let (pages, room) = (self.pages_of(range), self.free_pages());
        let durable = room.saturating_sub(self.freed.volatile_at(at).saturating_sub(apart));
        if pages.end - pages.start <= durable {
            return Ok(at);
        }
        // Most pages of what does not fit may be there already, of a write that is longer than all there is they are not.
        if pages.end - pages.start > self.config.capacity_pages() {
            return Err(DeviceError::NoRoom);
        }
        let new = pages.map(Lpn).filter(|&lpn| self.takes_a_page(lpn)).count() as u64;
        match new {
            new if new <= durable => Ok(at),
            new if new <= room => Ok(at.max(self.freed.durable_from)),
            _ => Err(DeviceError::NoRoom),
        }
    }

    /// Whether a write of `lpn` will take a page more.
    fn takes_a_page(&mut self, lpn: Lpn) -> bool {
        self.map.lookup(lpn).0.is_none() && self.buffer.dirty_mut(lpn).is_none()
    }
}
