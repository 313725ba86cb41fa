//! A cache of single entries in a segmented LRU list: what `dftl` and `lru` are made of.
//!
//! An entry comes into the probationary segment; one that is used again goes to the protected
//! segment, whose least recently used falls back to the probationary one. What goes is the least
//! recently used of the probationary segment. With no room in the protected segment all falls back
//! at once, and the list is a plain LRU list.

use super::list::List;
use super::single::SingleEntries;
use super::table::Table;
use super::{CacheConfig, CacheStep, Entry};

const PROBATIONARY: u8 = 0;
const PROTECTED: u8 = 1;

/// Entries that are written together with a dirty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteBack {
    /// Nothing.
    Alone,
    /// All dirty entries of its translation page; they stay, clean.
    ByPage,
}

#[derive(Clone, Debug)]
pub(super) struct SegmentedLru {
    table: Table,
    probationary: List,
    protected: List,
    protected_most: usize,
    write_back: WriteBack,
}

impl SegmentedLru {
    /// With so many percent of its entries in the protected segment at most.
    pub(super) fn new(
        config: CacheConfig,
        protected_percent: usize,
        write_back: WriteBack,
    ) -> Self {
        let entries = config.entries();
        Self {
            table: Table::new(config, entries),
            probationary: List::default(),
            protected: List::default(),
            protected_most: entries * protected_percent / 100,
            write_back,
        }
    }

    fn demote(&mut self) {
        let Some(coldest) = self.protected.back() else { return };
        self.protected.remove(&mut self.table.links, coldest);
        self.probationary.push_front(&mut self.table.links, coldest);
        self.table.set_tag(coldest, PROBATIONARY);
    }

    fn evict(&mut self, steps: &mut Vec<CacheStep>) {
        let Some(victim) = self.probationary.back() else { return };
        if self.table.is_dirty(victim) {
            let page = self.table.page(victim);
            steps.push(CacheStep::Write { page, whole: false });
            self.table.set_clean(victim);
            if self.write_back == WriteBack::ByPage {
                self.table.clean_page(page);
            }
        }
        self.probationary.remove(&mut self.table.links, victim);
        self.table.remove(victim);
    }
}

impl SingleEntries for SegmentedLru {
    fn table(&self) -> &Table {
        &self.table
    }

    fn table_mut(&mut self) -> &mut Table {
        &mut self.table
    }

    fn hit(&mut self, slot: u32) {
        if self.table.tag(slot) == PROTECTED {
            self.protected.promote(&mut self.table.links, slot);
            return;
        }
        self.probationary.remove(&mut self.table.links, slot);
        self.protected.push_front(&mut self.table.links, slot);
        self.table.set_tag(slot, PROTECTED);
        if self.protected.len() > self.protected_most {
            self.demote();
        }
    }

    fn admit(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) -> u32 {
        if self.table.is_full() {
            self.evict(steps);
        }
        let slot = self.table.insert(entry, PROBATIONARY);
        self.probationary.push_front(&mut self.table.links, slot);
        steps.push(CacheStep::Read { page: self.table.page(slot) });
        slot
    }
}
