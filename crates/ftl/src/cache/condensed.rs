//! Whole translation pages in a condensed form: what `s-ftl` and `leaftl` are made of.
//!
//! The page with the fewest dirty entries of the coldest few gives way: over all pages, one that
//! was written throughout would never go. A page is measured when it is loaded, and again some time
//! after it has changed.

use super::pages::{EntrySet, Pages};
use super::{Access, Cache, CacheConfig, CacheStep, Entry, Occupancy, Shape, TranslationPage};

/// Coldest pages of which the one with the fewest changes gives way (assumed).
pub(super) const WINDOW: usize = 8;
/// Changes after which pages are measured anew at the latest, and give way if they have grown too
/// large (assumed).
pub(super) const MEASURED_AFTER: u32 = 64;

/// A condensed page as it was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// Bytes that it takes.
    pub(super) bytes: u64,
    /// Entries for which it names a wrong place: flash is read once more for the right one.
    pub(super) misled: EntrySet,
}

/// The condensed form of a translation page as it is now.
pub(super) type Condense = fn(&CacheConfig, &dyn Shape, TranslationPage) -> Measured;

#[derive(Clone, Debug, Default)]
struct Condensed {
    changes: EntrySet,
    form: Measured,
    /// Written to since its runs were counted.
    is_stale: bool,
}

#[derive(Clone, Debug)]
pub(super) struct CondensedPages {
    config: CacheConfig,
    condense: Condense,
    pages: Pages<Condensed>,
    bytes: u64,
    stale: Vec<TranslationPage>,
    /// Changes since pages were measured.
    unmeasured: u32,
}

impl CondensedPages {
    pub(super) fn new(config: CacheConfig, condense: Condense) -> Self {
        Self { config, condense, pages: Pages::new(), bytes: 0, stale: Vec::new(), unmeasured: 0 }
    }

    fn offset(&self, entry: Entry) -> u64 {
        entry & (self.config.page_entries() - 1)
    }

    fn change(&mut self, slot: u32, entry: Entry) {
        let (page, offset) = (self.pages.page(slot), self.offset(entry));
        self.unmeasured += 1;
        let condensed = self.pages.get_mut(slot);
        condensed.changes.add(offset);
        condensed.form.misled.remove(offset);
        if !std::mem::replace(&mut condensed.is_stale, true) {
            self.stale.push(page);
        }
    }

    /// Measures pages that were written to since.
    fn measure_stale(&mut self, shape: &dyn Shape) {
        self.unmeasured = 0;
        while let Some(page) = self.stale.pop() {
            let Some(slot) = self.pages.find(page) else { continue };
            let form = (self.condense)(&self.config, shape, page);
            let condensed = self.pages.get_mut(slot);
            condensed.is_stale = false;
            self.bytes = self.bytes + form.bytes - condensed.form.bytes;
            condensed.form = form;
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
            self.bytes -= gone.form.bytes;
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
        let form = (self.condense)(&self.config, shape, page);
        self.make_room(form.bytes, steps);
        steps.push(CacheStep::Read { page });
        self.bytes += form.bytes;
        self.pages.insert(page, Condensed { form, ..Condensed::default() })
    }
}

impl Cache for CondensedPages {
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
                if access == Access::Read
                    && self.pages.get(slot).form.misled.contains(self.offset(entry))
                {
                    steps.push(CacheStep::Read { page });
                }
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
