//! Caches of single entries in one table: policies that differ in the order in which entries go.

use super::table::Table;
use super::{Access, Cache, CacheStep, Entry, Occupancy, Shape, TranslationPage};

/// A policy over single entries.
pub(super) trait SingleEntries: Clone + std::fmt::Debug + Send + 'static {
    /// The entries.
    fn table(&self) -> &Table;

    /// The entries.
    fn table_mut(&mut self) -> &mut Table;

    /// An entry is used again.
    fn hit(&mut self, slot: u32);

    /// Takes an entry in, after making room for it.
    fn admit(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) -> u32;
}

impl<C: SingleEntries> Cache for C {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let found = self.table().find(entry);
        let slot = match found {
            Some(slot) => {
                self.hit(slot);
                slot
            }
            None => self.admit(entry, steps),
        };
        if access.is_change() {
            self.table_mut().set_dirty(slot);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let found = self.table().find(entry);
        found.into_iter().for_each(|slot| self.table_mut().set_dirty(slot));
        found.is_some()
    }

    fn written(&mut self, page: TranslationPage) {
        self.table_mut().clean_page(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.table().is_dirty_entry(entry)
    }

    fn occupancy(&self) -> Occupancy {
        let (entries, dirty) = (self.table().len() as u64, self.table().dirty() as u64);
        Occupancy { entries, dirty, ..Occupancy::default() }
    }
}
