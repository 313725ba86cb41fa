//! Thin drives: more addresses than room.
//!
//! Room is counted in flash pages. A logical page that is mapped takes one, also when a single
//! block of it is live, and so does a dirty page of the buffer that flash has nothing of. So a
//! write needs room only for pages of which there is nothing yet, and each block that is still free
//! can be written wherever it lies.
//!
//! A power cut takes discards back that are not durable, beside what was written instead. So much
//! is set apart for that ([`DriveConfig::pages_freed_at_once`](crate::DriveConfig)), and what was
//! discarded beyond it is room only once the record of the discard is on flash: a write that needs
//! it waits.
//!
//! A demand-paged map has room of its own for the translation pages of what lies in few pieces
//! ([`DriveConfig::translation_pages`](crate::DriveConfig)). Those beyond it take the place of the
//! host's pages.

use dovetail_block::{BlockRange, DeviceError};
use dovetail_nand::Lpn;
use dovetail_time::SimTime;

use super::Drive;

/// Pieces in which a host fills what room it is told of (assumed: more than a file system has
/// logs).
const PIECES: u64 = 16;

/// Pages that discards have unmapped.
#[derive(Clone, Debug, Default)]
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
        let taken =
            self.translation.mapped() + self.buffer.fresh() as u64 + self.translations_beyond(0);
        self.capacity_pages.saturating_sub(taken)
    }

    /// Logical pages that a host can write in a few pieces, each wherever it likes.
    pub(super) fn room_in_few_pieces(&self) -> u64 {
        let free = self.free_pages();
        free.saturating_sub(self.more_translations(free, PIECES))
    }

    /// Translation pages beyond those that have room of their own, with so many more than there are
    /// now. A page of the buffer that flash has nothing of may need one.
    fn translations_beyond(&self, more: u64) -> u64 {
        let Some(needed) = self.translation.needed_translations() else { return 0 };
        (needed + self.buffer.fresh() as u64 + more).saturating_sub(self.config.translation_pages())
    }

    /// By how much that grows at most with so many new pages in so many pieces.
    fn more_translations(&self, pages: u64, pieces: u64) -> u64 {
        let Some(entries) = self.translation.page_entries() else { return 0 };
        let most = pages.min(pages / entries + 2 * pieces);
        self.translations_beyond(most) - self.translations_beyond(0)
    }

    /// Returns when a write that comes at `at` finds room. At once on a drive with as many
    /// addresses as it has room for.
    pub(super) fn check_room(
        &mut self,
        at: SimTime,
        range: BlockRange,
    ) -> Result<SimTime, DeviceError> {
        let Some(apart) = self.config.pages_freed_at_once() else { return Ok(at) };
        let (pages, room) = (self.pages_of(range), self.free_pages());
        let durable = room.saturating_sub(self.freed.volatile_at(at).saturating_sub(apart));
        let most = pages.end - pages.start;
        let translations = self.more_translations(most, 1);
        if most + translations <= durable {
            return Ok(at);
        }
        // Most pages of what does not fit may be there already, of a write that is longer than all
        // there is they are not.
        if most > self.capacity_pages {
            return Err(DeviceError::NoRoom);
        }
        let new = pages.map(Lpn).filter(|&lpn| self.takes_a_page(lpn)).count() as u64;
        match new + translations.min(new) {
            new if new <= durable => Ok(at),
            new if new <= room => Ok(at.max(self.freed.durable_from)),
            _ => Err(DeviceError::NoRoom),
        }
    }

    /// Tells whether a write of `lpn` will take a page more.
    fn takes_a_page(&mut self, lpn: Lpn) -> bool {
        self.translation.lookup(lpn).0.is_none() && self.buffer.dirty_mut(lpn).is_none()
    }
}
