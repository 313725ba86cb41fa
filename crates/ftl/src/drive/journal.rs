//! Writing the drive's own pages: the journal of discards (`metadata/journal.rs`), and replacing
//! pages that are lost.

use dovetail_block::{BlockRange, DeviceError, Inode, StreamId};
use dovetail_nand::{Lpn, Token};
use dovetail_time::{SimSpan, SimTime};

use super::{Drive, unless_worn_out};
use crate::buffer::MAX_SUBPAGES;
use crate::medium::PageToProgram;
use crate::metadata::journal::{Journal, Record, journal_pages};
use crate::ownership::Nvm;
use crate::stats::Cause;

impl Drive {
    /// Notes that the blocks of `range` are dead as of now; returns how long that takes.
    pub(super) fn note_discard(
        &mut self,
        at: SimTime,
        range: BlockRange,
    ) -> Result<SimSpan, DeviceError> {
        let record = Record { range, seq: self.medium.take_seq() };
        if self.nvm().is_some() {
            return self.note_in_nvm(at, record);
        }
        self.journal.note(record);
        Ok(SimSpan::ZERO)
    }

    /// Makes all discards so far survive a power cut, and what the log of remaps says.
    pub(super) fn write_journal(&mut self, at: SimTime) -> Result<(), DeviceError> {
        self.mend_log(at)?;
        self.mend_batch(at)?;
        if !self.has_records_for_flash() {
            return Ok(());
        }
        self.without_erasing(|drive| drive.write_pending(at))
    }

    /// Returns what must be durable before a line is erased: the discards so far, and the bitmap
    /// pages if they are owed.
    pub(super) fn write_before_erase(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if self.journal.must_rewrite() {
            self.without_erasing(|drive| drive.write_bitmaps(at))?;
            self.journal.rewritten();
        }
        self.write_journal(at)
    }

    /// Writes pages of the drive's own; no line is erased meanwhile.
    pub(super) fn without_erasing<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let was_writing = self.journal.set_writing(true);
        let written = write(self);
        self.journal.set_writing(was_writing);
        written
    }

    /// Tells whether records must go to flash: all that there are, unless they are in non-volatile
    /// memory with room for more.
    fn has_records_for_flash(&self) -> bool {
        let pending = self.journal.pending_records();
        self.nvm().map_or(pending > 0, |nvm| nvm.is_full_with(pending))
    }

    /// Sees to it that records can be written: free lines, as far as the drive has any left to
    /// clean.
    pub(super) fn make_room_for_records(&mut self, at: SimTime) -> Result<(), DeviceError> {
        if !self.has_records_for_flash() {
            return Ok(());
        }
        unless_worn_out(self.make_room(at))
    }

    /// Writes records that non-volatile memory has no more room for, or that fill a page: so no
    /// more gather than the lines in reserve can take, however long nobody flushes. If there is no
    /// room for them, they wait for a flush, which says so.
    pub(super) fn write_full_records(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let pending = self.journal.pending_records();
        if !self.nvm().map_or(
            pending >= Journal::records_per_page(self.geometry().page_bytes as usize),
            |nvm| nvm.is_full_with(pending),
        ) {
            return Ok(());
        }
        self.make_room_for_records(at)?;
        unless_worn_out(self.write_journal(at))
    }

    /// A page of the drive's own can no longer be read. What it said is in memory, too: all bitmap
    /// pages are written anew before the line of the lost page is erased.
    pub(super) fn replace_system_page(&mut self, lpn: Lpn) {
        if self.translation.is_translation_page(lpn) {
            self.translation.owe_at(lpn);
            return self.drop_system_page(lpn);
        }
        self.drop_system_page(lpn);
        if self.is_batch_page(lpn) {
            return self.distrust_batch();
        }
        if lpn.0 >= self.config.host_pages() + u64::from(journal_pages(&self.config)) {
            return self.ownership.distrust_log();
        }
        self.journal.distrust();
    }

    /// A page of the drive's own says nothing any more.
    pub(super) fn drop_system_page(&mut self, lpn: Lpn) {
        if let (Some(before), _) = self.point_at(lpn, None) {
            self.medium.invalidate(before);
        }
    }

    fn write_pending(&mut self, mut at: SimTime) -> Result<(), DeviceError> {
        let page_bytes = self.geometry().page_bytes as usize;
        // A record must not be on flash before it is in memory: with it, a remap would be there in
        // part.
        at = at.max(self.nvm().map_or(at, Nvm::end));
        while self.has_records_for_flash() {
            if self.journal.is_full() {
                self.write_bitmaps(at)?;
                self.journal.reuse_slots();
            }
            at = at.max(self.journal.slots_free_from());
            let (lpn, page, count) = self.journal.next_page(page_bytes);
            let done = self.program_system(at, lpn, &page, Cause::Journal)?;
            let written = self.journal.slot_written(count);
            if let Some(nvm) = self.nvm_mut() {
                nvm.note_drain(done, written);
            }
        }
        self.freed.written(self.journal.programs_end());
        Ok(())
    }

    /// A bit that is set kills a version whose successor may still be under way: until that is on
    /// flash, the old one is all there is. So bitmap pages come after all programs so far.
    pub(super) fn write_bitmaps(&mut self, at: SimTime) -> Result<(), DeviceError> {
        let at = at.max(self.all_durable_at());
        while let Some(index) = self.journal.first_touched() {
            let full = self.medium.full_mask();
            let dead = |ppn| !self.medium.counting_mask(ppn) & full;
            let page =
                self.journal.encode_bitmap(index, self.medium.next_seq(), self.geometry(), dead);
            self.program_system(at, self.journal.bitmap_lpn(index), &page, Cause::Journal)?;
            self.journal.bitmap_written(index);
        }
        Ok(())
    }

    /// Programs a page of the drive's own; returns when it is durable.
    pub(super) fn program_system(
        &mut self,
        at: SimTime,
        lpn: Lpn,
        bytes: &[u8],
        cause: Cause,
    ) -> Result<SimTime, DeviceError> {
        let subpages = self.config.subpages() as usize;
        let before = self.translation.lookup_any(lpn);
        let mut tokens = [Token::EMPTY; MAX_SUBPAGES];
        for (subpage, (token, block)) in tokens.iter_mut().zip(bytes.as_chunks().0).enumerate() {
            let before = before.map_or(Token::EMPTY, |ppn| self.medium.nand().token(ppn, subpage));
            *token = self.medium.intern_version(block, before);
        }
        // it tells of what was programmed and written before
        self.medium.barrier();
        let stream = StreamId(0);
        let live = self.medium.full_mask();
        let page =
            PageToProgram { lpn, live, tokens: &tokens[..subpages], stream, inode: Inode(0) };
        let done = self.program(at, self.system_frontier(), page, cause)?;
        self.host_programs_end = self.host_programs_end.max(done);
        self.journal.programmed(done);
        Ok(done)
    }
}
