//! Invalidations: what the host's pages lose, and the journal is told of.
//!
//! Nothing that is dead comes to life before its block is erased. Bitmap pages
//! (`metadata/journal.rs`) rest on that, and hence every loss of a page of the host's is told to
//! the journal.

use std::collections::BTreeMap;

use dovetail_block::{BlockRange, Lba};
use dovetail_nand::{Lpn, Ppn};

use super::{Drive, PageSpan};
use crate::mapping::MapCost;
use crate::translation::Pointed;

impl Drive {
    /// A page of the host's no longer counts. No bitmap page needs to know of the drive's own
    /// pages: of those the newest copy is always the one that recovery reads.
    #[inline]
    pub(super) fn invalidate(&mut self, ppn: Ppn) {
        self.journal.touch(ppn);
        self.medium.invalidate(ppn);
    }

    /// Points a page, the host's or the drive's own, at a place or nowhere; returns where it was.
    #[inline]
    pub(super) fn point_at(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        let Pointed { before, cost, abandoned } = self.translation.point(lpn, to);
        if let Some(abandoned) = abandoned {
            self.medium.invalidate(abandoned);
        }
        (before, cost)
    }

    /// The subpages in `mask` of the page at `ppn` are dead; a page without live subpages is
    /// unmapped.
    pub(super) fn invalidate_subpages(&mut self, lpn: Lpn, ppn: Ppn, mask: u8) {
        if mask == 0 {
            return;
        }
        let remains = self.medium.live_mask(ppn) & !mask;
        if remains != 0 {
            self.medium.keep_live(ppn, remains);
            return self.journal.touch(ppn);
        }
        let (_, cost) = self.point_at(lpn, None);
        self.charge(cost);
        self.invalidate(ppn);
        self.freed.unwritten += 1;
        self.buffer.is_new(lpn);
    }

    /// The first `most` blocks of `range` that the drive holds, on flash or in the buffer, in
    /// order.
    pub(super) fn held_blocks(&self, range: BlockRange, most: usize) -> Vec<Lba> {
        let range = BlockRange::new(
            range.start,
            range.blocks.min(self.config.address_blocks().saturating_sub(range.start.0)),
        );
        if range.blocks == 0 {
            return Vec::new();
        }
        let (mut pages, mut mapped, mut held) =
            (self.pages_of(range), Vec::new(), BTreeMap::<u64, u8>::new());
        let most_pages = most.saturating_add(2); // of the first and the last one the range may have nothing
        self.translation.find_mapped(pages.clone(), most_pages, &mut mapped);
        if let Some((last, _)) = mapped.last().filter(|_| mapped.len() == most_pages) {
            pages.end = last.0 + 1; // what lies further out is for the next call
        }
        for (lpn, ppn) in mapped {
            held.insert(lpn.0, self.medium.live_mask(ppn));
        }
        for entry in self.buffer.dirty_pages().filter(|entry| pages.contains(&entry.lpn.0)) {
            *held.entry(entry.lpn.0).or_default() |= entry.mask;
        }
        let shift = self.page_shift();
        let subpages = held.into_iter().flat_map(|(lpn, mask)| {
            let mask = mask & PageSpan::of(range, lpn, shift).mask();
            (0..8)
                .filter(move |subpage| mask >> subpage & 1 == 1)
                .map(move |subpage| Lba((lpn << shift) + subpage))
        });
        subpages.take(most).collect()
    }

    /// Blocks of the host's that the drive holds, on flash or in the buffer. For checks: it looks
    /// at every page.
    pub fn live_blocks(&self) -> u64 {
        let pages = (0..self.geometry().pages()).map(Ppn);
        let host = pages.filter(|&ppn| {
            self.medium.lines().is_valid(ppn) && !self.translation.is_own(self.owner(ppn).0)
        });
        let on_flash: u64 =
            host.map(|ppn| u64::from(self.medium.live_mask(ppn).count_ones())).sum();
        let unmapped =
            |lpn| self.translation.lookup(lpn).0.map_or(0, |ppn| self.medium.live_mask(ppn));
        let dirty = self.buffer.dirty_pages();
        on_flash
            + dirty
                .map(|entry| u64::from((entry.mask & !unmapped(entry.lpn)).count_ones()))
                .sum::<u64>()
    }
}
