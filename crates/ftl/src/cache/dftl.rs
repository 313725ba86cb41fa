//! `dftl`: single entries in a segmented LRU list, written back by translation page (Gupta, Kim and Urgaonkar, "DFTL: a flash
//! translation layer employing demand-based selective caching of page-level address mappings", ASPLOS 2009, section 3).
//!
//! An entry comes into the probationary segment; one that is used again goes to the protected segment, whose least
//! recently used falls back to the probationary one. What goes is the least recently used of the probationary segment. A
//! dirty one is written along with all dirty entries of its translation page; those stay, clean.

use super::list::List;
use super::table::Table;
use super::{Access, Cache, CacheConfig, Entry, Occupancy, Policy, Shape, Step, TranslationPage};

pub(super) const POLICY: Policy = Policy {
    name: "dftl",
    about: "segmented LRU of single entries, written back by translation page (ASPLOS 2009)",
    build: |config| Box::new(Dftl::new(config, true)),
};

/// The same with each dirty entry written alone: FlashSim's own DFTL does so, on which the split cache's paper builds.
pub(super) const SINGLE: Policy = Policy {
    name: "dftl-single",
    about: "dftl with dirty entries written one by one, as FlashSim has it",
    build: |config| Box::new(Dftl::new(config, false)),
};

/// Share of the protected segment in percent. The paper gives none; FlashSim's DFTL has 6,552 entries in one and 1,640 in
/// the other.
pub(super) const PROTECTED_PERCENT: usize = 80;

const PROBATIONARY: u8 = 0;
const PROTECTED: u8 = 1;

#[derive(Debug)]
pub(super) struct Dftl {
    table: Table,
    probationary: List,
    protected: List,
    protected_most: usize,
    /// Whether an entry is written along with all dirty ones of its translation page.
    is_batched: bool,
}

impl Dftl {
    pub(super) fn new(config: CacheConfig, is_batched: bool) -> Self {
        let entries = config.entries();
        Self {
            table: Table::new(config, entries),
            probationary: List::default(),
            protected: List::default(),
            protected_most: entries * PROTECTED_PERCENT / 100,
            is_batched,
        }
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

    fn demote(&mut self) {
        let Some(coldest) = self.protected.back() else { return };
        self.protected.remove(&mut self.table.links, coldest);
        self.probationary.push_front(&mut self.table.links, coldest);
        self.table.set_tag(coldest, PROBATIONARY);
    }

    fn evict(&mut self, steps: &mut Vec<Step>) {
        let Some(victim) = self.probationary.back() else { return };
        if self.table.is_dirty(victim) {
            let page = self.table.page(victim);
            steps.push(Step::Write { page, whole: false });
            self.table.set_clean(victim);
            if self.is_batched {
                self.table.clean_page(page);
            }
        }
        self.probationary.remove(&mut self.table.links, victim);
        self.table.remove(victim);
    }

    fn admit(&mut self, entry: Entry, steps: &mut Vec<Step>) -> u32 {
        if self.table.is_full() {
            self.evict(steps);
        }
        let slot = self.table.insert(entry, PROBATIONARY);
        self.probationary.push_front(&mut self.table.links, slot);
        steps.push(Step::Read { page: self.table.page(slot) });
        slot
    }
}

impl Cache for Dftl {
    fn access(&mut self, entry: Entry, access: Access, _: u32, _: &dyn Shape, steps: &mut Vec<Step>) -> bool {
        let found = self.table.find(entry);
        let slot = match found {
            Some(slot) => {
                self.hit(slot);
                slot
            }
            None => self.admit(entry, steps),
        };
        if access == Access::Write {
            self.table.set_dirty(slot);
        }
        found.is_some()
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let found = self.table.find(entry);
        found.into_iter().for_each(|slot| self.table.set_dirty(slot));
        found.is_some()
    }

    fn written(&mut self, page: TranslationPage) {
        self.table.clean_page(page);
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.table.is_dirty_entry(entry)
    }

    fn occupancy(&self) -> Occupancy {
        let (entries, dirty) = (self.table.len() as u64, self.table.dirty() as u64);
        Occupancy { entries, dirty, ..Occupancy::default() }
    }
}
