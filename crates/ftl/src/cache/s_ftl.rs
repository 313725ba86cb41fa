//! `s-ftl`: whole translation pages, condensed where addresses follow each other (Jiang, Zhang,
//! Yuan, Hu and Chen, "S-FTL: an efficient address translation for flash memory by exploiting
//! spatial locality", MSST 2011).
//!
//! A page takes a bit for each entry and an address for each run of entries whose addresses follow
//! each other. What goes is the page with the fewest dirty entries, of the coldest few: over all
//! pages, one that was written throughout would never go. The published one keeps single changes of
//! pages that went in a buffer of their own; this one does not.

use super::pages::{Changes, Pages};
use super::{
    Access, Cache, CacheConfig, CacheStep, Entry, Occupancy, Policy, Shape, TranslationPage,
};

pub(super) const POLICY: Policy = Policy {
    name: "s-ftl",
    about: "whole translation pages, condensed by runs of addresses (MSST 2011)",
    build: |config| Box::new(Sftl::new(config)),
};

/// Of how many of the coldest pages the one with the fewest changes goes (assumed).
pub(super) const WINDOW: usize = 8;
/// After how many changes pages are measured anew at the latest, and give way if they have grown
/// too large (assumed).
pub(super) const MEASURED_AFTER: u32 = 64;
/// Bytes of an address and of a page's number.
const ADDRESS_BYTES: u64 = 4;

#[derive(Debug, Default)]
struct Condensed {
    changes: Changes,
    bytes: u64,
    /// Written to since its runs were counted.
    is_stale: bool,
}

#[derive(Debug)]
pub(super) struct Sftl {
    config: CacheConfig,
    pages: Pages<Condensed>,
    bytes: u64,
    stale: Vec<TranslationPage>,
    /// Changes since pages were measured.
    unmeasured: u32,
}

/// Bytes of a condensed page, at most those of a plain one.
pub(super) fn condensed_bytes(config: &CacheConfig, runs: u32) -> u64 {
    let plain = config.page_entries() * ADDRESS_BYTES;
    let condensed = config.page_entries().div_ceil(8) + u64::from(runs) * ADDRESS_BYTES;
    ADDRESS_BYTES + condensed.min(plain)
}

impl Sftl {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self { config, pages: Pages::new(), bytes: 0, stale: Vec::new(), unmeasured: 0 }
    }

    fn offset(&self, entry: Entry) -> u64 {
        entry & (self.config.page_entries() - 1)
    }

    fn change(&mut self, slot: u32, entry: Entry) {
        let (page, offset) = (self.pages.page(slot), self.offset(entry));
        self.unmeasured += 1;
        let condensed = self.pages.get_mut(slot);
        condensed.changes.add(offset);
        if !std::mem::replace(&mut condensed.is_stale, true) {
            self.stale.push(page);
        }
    }

    /// Counts the runs of pages that were written to since.
    fn measure_stale(&mut self, shape: &dyn Shape) {
        self.unmeasured = 0;
        while let Some(page) = self.stale.pop() {
            let Some(slot) = self.pages.find(page) else { continue };
            let bytes = condensed_bytes(&self.config, shape.runs(page));
            let condensed = self.pages.get_mut(slot);
            condensed.is_stale = false;
            self.bytes = self.bytes + bytes - std::mem::replace(&mut condensed.bytes, bytes);
        }
    }

    fn make_room(&mut self, bytes: u64, steps: &mut Vec<CacheStep>) {
        while self.bytes + bytes > self.config.bytes {
            let coldest = self.pages.coldest().take(WINDOW);
            let Some(victim) = coldest.min_by_key(|&slot| self.pages.get(slot).changes.count())
            else {
                return;
            };
            let page = self.pages.page(victim);
            let gone = self.pages.remove(victim);
            self.bytes -= gone.bytes;
            if gone.changes.count() > 0 {
                steps.push(CacheStep::Write { page, whole: true });
            }
        }
    }

    fn load(
        &mut self,
        page: TranslationPage,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> u32 {
        self.measure_stale(shape);
        let bytes = condensed_bytes(&self.config, shape.runs(page));
        self.make_room(bytes, steps);
        steps.push(CacheStep::Read { page });
        self.bytes += bytes;
        self.pages.insert(page, Condensed { bytes, ..Condensed::default() })
    }
}

impl Cache for Sftl {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        if self.unmeasured >= MEASURED_AFTER {
            self.measure_stale(shape);
            self.make_room(0, steps);
        }
        let page = self.config.page_of(entry);
        let found = self.pages.find(page);
        let slot = match found {
            Some(slot) => {
                self.pages.touch(slot);
                slot
            }
            None => self.load(page, shape, steps),
        };
        if access.is_change() {
            self.change(slot, entry);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let found = self.pages.find(self.config.page_of(entry));
        found.into_iter().for_each(|slot| self.change(slot, entry));
        found.is_some()
    }

    fn written(&mut self, page: TranslationPage) {
        if let Some(slot) = self.pages.find(page) {
            self.pages.get_mut(slot).changes.clear();
        }
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        let found = self.pages.find(self.config.page_of(entry));
        found.is_some_and(|slot| self.pages.get(slot).changes.contains(self.offset(entry)))
    }

    fn occupancy(&self) -> Occupancy {
        let changes = |slot| u64::from(self.pages.get(slot).changes.count());
        Occupancy {
            entries: self.pages.len() as u64 * self.config.page_entries(),
            dirty: self.pages.coldest().map(changes).sum(),
            ..Occupancy::default()
        }
    }
}
