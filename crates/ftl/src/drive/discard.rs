//! Discards: the host no longer needs these blocks.

use dovetail_block::{BlockRange, DeviceError, Lba, SectorRange};
use dovetail_nand::{Lpn, Ppn};
use dovetail_time::SimTime;

use super::{Drive, PageSpan};
use crate::cache::Access;

/// Mapped pages that are looked for at once.
const AT_ONCE: usize = 256;
/// Entries of a demand-paged map that are wanted before they change: with more the first may be
/// gone from the cache again.
const WANTED_AT_ONCE: usize = 32;

impl Drive {
    /// Unmaps the whole blocks of each range. A discard survives a power cut once it is flushed.
    pub(super) fn discard(
        &mut self,
        at: SimTime,
        ranges: &[SectorRange],
    ) -> Result<SimTime, DeviceError> {
        for range in ranges {
            self.check_range(range.blocks_touched())?;
        }
        let mut done = at;
        for range in ranges {
            done = self.discard_range(done, range.blocks_inside())?;
            self.write_full_records(at)?;
        }
        self.counters.discards += 1;
        if self.config.pages_freed_at_once().is_some_and(|most| self.freed.unwritten > most) {
            self.make_room_for_records(at)?;
            self.write_journal(at)?;
        }
        Ok(done)
    }

    /// Wants the entries of a demand-paged map a few at a time. While it does, lines may be erased:
    /// what was unmapped before is on record by then. [`Drive::discard_now`] counts the look-ups.
    fn discard_range(
        &mut self,
        at: SimTime,
        mut range: BlockRange,
    ) -> Result<SimTime, DeviceError> {
        let mut done = at;
        while self.translation.is_paged() {
            let mut found = Vec::new();
            self.translation.find_mapped(self.pages_of(range), AT_ONCE, &mut found);
            for wanted in found.chunks(WANTED_AT_ONCE) {
                for &(lpn, _) in wanted {
                    done = self.want(done, lpn, Access::Trim)?;
                }
                let Some((last, _)) = wanted.last() else { continue };
                let end = ((last.0 + 1) << self.page_shift()).min(range.end().0);
                done = self.discard_now(done, BlockRange::new(range.start, end - range.start.0))?;
                self.write_full_records(done)?;
                range = BlockRange::new(Lba(end), range.end().0 - end);
            }
            // fewer, or more than were asked for
            if found.len() != AT_ONCE {
                break;
            }
        }
        self.discard_now(done, range)
    }

    fn discard_now(&mut self, at: SimTime, range: BlockRange) -> Result<SimTime, DeviceError> {
        let accesses = self.counters.map_accesses;
        let unmapped = self.discard_mapped(range);
        for lpn in self.buffer.within(self.pages_of(range)) {
            let dropped = self.discard_in_buffer(PageSpan::of(range, lpn.0, self.page_shift()));
            self.counters.discarded_blocks += u64::from(dropped.count_ones());
        }
        let mut done = at + self.config.map_access * (self.counters.map_accesses - accesses);
        if unmapped {
            done += self.note_discard(at, range)?;
        }
        Ok(done)
    }

    /// Unmaps what is mapped in a range, however long it is, and drops it from the buffer; returns
    /// whether anything was.
    fn discard_mapped(&mut self, range: BlockRange) -> bool {
        let mut found = std::mem::take(&mut self.found);
        let unmapped = self.discard_found(range, &mut found);
        self.found = found;
        unmapped
    }

    /// The same; `found` is empty, before and after.
    fn discard_found(&mut self, range: BlockRange, found: &mut Vec<(Lpn, Ppn)>) -> bool {
        let (mut pages, mut unmapped) = (self.pages_of(range), false);
        loop {
            let cost = self.translation.find_mapped(pages.clone(), AT_ONCE, found);
            self.charge(cost);
            let Some(&(last, _)) = found.last() else { return unmapped };
            // Fewer, or more than were asked for.
            let is_all = found.len() != AT_ONCE;
            for (lpn, ppn) in found.drain(..) {
                let span = PageSpan::of(range, lpn.0, self.page_shift());
                let mapped = self.medium.live_mask(ppn) & span.mask();
                self.invalidate_subpages(lpn, ppn, mapped);
                let buffered = self.discard_in_buffer(span);
                self.counters.discarded_blocks += u64::from((buffered | mapped).count_ones());
                unmapped |= mapped != 0;
            }
            if is_all {
                return unmapped;
            }
            pages.start = last.0 + 1;
        }
    }

    /// Drops the span from the buffer; returns which subpages were dirty there.
    pub(super) fn discard_in_buffer(&mut self, span: PageSpan) -> u8 {
        let gone = span.mask();
        let Some(entry) = self.buffer.dirty_mut(span.lpn) else {
            // In flight: flash has it, and the buffer must not answer for it any more.
            self.buffer.forget(span.lpn);
            return 0;
        };
        let dropped = entry.mask & gone;
        for subpage in (0..8).filter(|subpage| dropped >> subpage & 1 == 1) {
            self.medium.release(std::mem::replace(
                &mut entry.tokens[subpage],
                dovetail_nand::Token::EMPTY,
            ));
        }
        entry.mask &= !gone;
        let empty = entry.mask == 0;
        if empty {
            self.buffer.forget(span.lpn);
        }
        dropped
    }
}
