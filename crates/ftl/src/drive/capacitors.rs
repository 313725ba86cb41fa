//! Power-loss protection: capacitors last until what the drive acknowledged is safe.
//!
//! At a power cut all that was issued to the flash ends, and the write buffer and the record of
//! discards are kept. They are in memory again when the power is back: where the drive put them
//! meanwhile is its own affair, and its time is not the host's.

use dovetail_block::{Content, Hints};
use dovetail_nand::{Lpn, Token};
use dovetail_time::SimTime;

use super::Drive;
use crate::buffer::MAX_SUBPAGES;
use crate::metadata::journal::Record;

/// A page of the write buffer.
#[derive(Clone, Debug)]
struct KeptPage {
    lpn: Lpn,
    hints: Hints,
    /// By subpage; `None` where the buffer holds nothing.
    contents: [Option<Content>; MAX_SUBPAGES],
}

/// The memory that capacitors have kept.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pages: Vec<KeptPage>,
    records: Vec<Record>,
}

impl Kept {
    /// The records of discards that were not on flash.
    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }
}

impl Drive {
    /// Returns what survives a power cut beside the flash; nothing without capacitors.
    pub(super) fn kept_by_capacitors(&self) -> Option<Kept> {
        if !self.config.power_loss_protection {
            return None;
        }
        let mut dirty: Vec<_> = self.buffer.dirty_pages().collect();
        dirty.sort_unstable_by_key(|page| page.lpn.0);
        let kept = |page: &crate::buffer::BufferEntry| KeptPage {
            lpn: page.lpn,
            hints: page.hints,
            contents: std::array::from_fn(|subpage| {
                let is_held = page.mask >> subpage & 1 == 1;
                is_held.then(|| self.medium.nand().content(page.tokens[subpage])).flatten()
            }),
        };
        let records = self.journal.pending().to_vec();
        Some(Kept { pages: dirty.into_iter().map(kept).collect(), records })
    }

    /// The moment at which a power cut at `at` stops the flash.
    pub(super) fn last_moment(&self, at: SimTime) -> SimTime {
        if self.config.power_loss_protection { SimTime::from_ns(u64::MAX) } else { at }
    }

    /// Puts what was kept where it was.
    pub(super) fn restore_kept(&mut self, kept: Kept) {
        for page in kept.pages {
            let mut tokens = [Token::EMPTY; MAX_SUBPAGES];
            let mut mask = 0;
            for (subpage, content) in page.contents.iter().enumerate() {
                if let Some(content) = content {
                    tokens[subpage] = self.medium.intern(content);
                    mask |= 1 << subpage;
                }
            }
            let entry = self.buffer.add(page.lpn, page.hints);
            (entry.tokens, entry.mask) = (tokens, mask);
            if self.config.counts_room() && self.translation.lookup(page.lpn).0.is_none() {
                self.buffer.is_new(page.lpn);
            }
        }
        // non-volatile memory has its own, and what a remap that it completed has added
        if self.nvm().is_none() {
            self.journal.adopt(kept.records);
        }
    }
}
