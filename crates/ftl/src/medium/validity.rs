//! Validity: the pages on flash that count, and the subpages of them that hold data.
//!
//! All of it is kept by flash page, so that it does not grow with the address space. A page comes
//! to count when it is programmed, and when it is adopted after the power is switched on. From then
//! on it only loses: the map points elsewhere, a discard takes a subpage. Nothing that is dead
//! comes to life before its block is erased.

use dovetail_nand::Ppn;

use super::Medium;
use super::lines::LineId;
use crate::bits::Bits;

/// One bit a subpage of every flash page: whether it holds data. For pages of several subpages.
#[derive(Clone, Debug)]
pub(super) struct LiveSubpages {
    bits: Bits,
    subpages: u32,
}

impl LiveSubpages {
    /// All dead; `None` where a page is one subpage and being valid says it all.
    pub(super) fn new(pages: u32, subpages: u32) -> Option<Self> {
        (subpages > 1)
            .then(|| Self { bits: Bits::new(u64::from(pages) * u64::from(subpages)), subpages })
    }

    fn get(&self, ppn: Ppn) -> u8 {
        self.bits.field(u64::from(ppn.0) * u64::from(self.subpages), self.subpages)
    }

    fn set(&mut self, ppn: Ppn, mask: u8) {
        self.bits.set_field(u64::from(ppn.0) * u64::from(self.subpages), self.subpages, mask);
    }
}

impl Medium {
    /// The subpages of a valid page that hold data, one bit each.
    #[inline]
    pub(crate) fn live_mask(&self, ppn: Ppn) -> u8 {
        self.live.as_ref().map_or(1, |live| live.get(ppn))
    }

    /// The subpages of any page that count, one bit each: none of a page that is not valid.
    pub(crate) fn counting_mask(&self, ppn: Ppn) -> u8 {
        if self.lines.is_valid(ppn) { self.live_mask(ppn) } else { 0 }
    }

    /// One bit for each subpage of a page.
    #[inline]
    pub(crate) fn full_mask(&self) -> u8 {
        ((1u16 << self.nand.geometry().subpages_per_page()) - 1) as u8
    }

    /// Counts a page that was just programmed.
    #[inline]
    pub(super) fn validate(&mut self, ppn: Ppn, line: LineId, mask: u8) {
        debug_assert!(!self.lines.is_valid(ppn), "{ppn:?} counts already");
        self.lines.validate(ppn, line);
        self.set_live(ppn, mask);
    }

    /// Counts a page that is found when the drive starts, as far as `mask` says.
    pub(crate) fn adopt(&mut self, ppn: Ppn, mask: u8) {
        debug_assert!(!self.lines.is_valid(ppn), "{ppn:?} was adopted twice");
        self.lines.adopt(ppn);
        self.set_live(ppn, mask);
    }

    /// A valid page counts no more.
    #[inline]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        debug_assert!(self.lines.is_valid(ppn), "{ppn:?} does not count any more");
        self.lines.invalidate(ppn);
        self.set_live(ppn, 0);
    }

    /// Of a valid page only the subpages in `mask` still count, at least one of those that did.
    pub(crate) fn keep_live(&mut self, ppn: Ppn, mask: u8) {
        debug_assert!(
            mask != 0 && mask & !self.counting_mask(ppn) == 0,
            "{ppn:?} gains subpages, or loses all"
        );
        self.set_live(ppn, mask);
    }

    #[inline]
    fn set_live(&mut self, ppn: Ppn, mask: u8) {
        if let Some(live) = &mut self.live {
            live.set(ppn, mask);
        }
    }

    /// Bytes of the drive's memory for the validity of pages and subpages, and a valid count for
    /// each line.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.lines.memory_bytes() + self.live.as_ref().map_or(0, |live| live.bits.memory_bytes())
    }
}
