//! `lru`: single entries, least recently used first; a dirty one is written alone.

use super::list::List;
use super::table::Table;
use super::{Access, Cache, CacheConfig, Entry, Occupancy, Policy, Shape, Step, TranslationPage};

pub(super) const POLICY: Policy = Policy {
    name: "lru",
    about: "single entries, the least recently used goes, dirty ones are written one by one",
    build: |config| Box::new(Lru::new(config)),
};

#[derive(Debug)]
pub(super) struct Lru {
    table: Table,
    order: List,
}

impl Lru {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self { table: Table::new(config, config.entries()), order: List::default() }
    }

    fn evict(&mut self, steps: &mut Vec<Step>) {
        let Some(victim) = self.order.back() else { return };
        if self.table.is_dirty(victim) {
            steps.push(Step::Write { page: self.table.page(victim), whole: false });
            self.table.set_clean(victim);
        }
        self.order.remove(&mut self.table.links, victim);
        self.table.remove(victim);
    }

    fn admit(&mut self, entry: Entry, steps: &mut Vec<Step>) -> u32 {
        if self.table.is_full() {
            self.evict(steps);
        }
        let slot = self.table.insert(entry, 0);
        self.order.push_front(&mut self.table.links, slot);
        steps.push(Step::Read { page: self.table.page(slot) });
        slot
    }
}

impl Cache for Lru {
    fn access(&mut self, entry: Entry, access: Access, _: u32, _: &dyn Shape, steps: &mut Vec<Step>) -> bool {
        let found = self.table.find(entry);
        let slot = match found {
            Some(slot) => {
                self.order.promote(&mut self.table.links, slot);
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
