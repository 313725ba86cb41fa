//! `cdftl`: two levels, single entries (CMT) over whole translation pages (CTP) (Qin, Wang, Liu and
//! Shao, "A two-level caching mechanism for demand-based page-level address mapping in NAND flash
//! memory storage systems", RTAS 2011).
//!
//! A miss in both brings the translation page into the CTP and the entry into the CMT. An entry
//! that leaves the CMT is put into its page in the CTP; a dirty one whose page is not there is held
//! until it is, or until nothing else is left to go. Only the CTP writes to flash, whole pages with
//! all changes that the CMT has of them.

use super::list::List;
use super::pages::{EntrySet, Pages};
use super::table::Table;
use super::{
    Access, Cache, CacheConfig, CacheStep, ENTRY_BYTES, Entry, Occupancy, Policy, Shape,
    TranslationPage,
};

pub(super) const POLICY: Policy = Policy {
    name: "cdftl",
    about: "single entries over whole translation pages (RTAS 2011)",
    build: |config| Box::new(Cdftl::new(config)),
};

/// Share of the memory for the pages in percent (assumed).
pub(super) const PAGES_PERCENT: u64 = 50;

const FREE_TO_GO: u8 = 0;
/// Dirty, and its page is not in the second level.
const HELD: u8 = 1;

#[derive(Clone, Debug)]
pub(super) struct Cdftl {
    config: CacheConfig,
    table: Table,
    /// By tag.
    lists: [List; 2],
    pages: Pages<EntrySet>,
    most_pages: usize,
}

/// Pages of the second level and entries of the first.
pub(super) fn sizes(config: &CacheConfig) -> (usize, usize) {
    let page_bytes = config.page_entries() * ENTRY_BYTES;
    let pages = (config.bytes * PAGES_PERCENT / 100 / page_bytes).max(1);
    let entries =
        CacheConfig { bytes: config.bytes.saturating_sub(pages * page_bytes), ..*config }.entries();
    (pages as usize, entries)
}

impl Cdftl {
    pub(super) fn new(config: CacheConfig) -> Self {
        let (most_pages, entries) = sizes(&config);
        Self {
            config,
            table: Table::new(config, entries),
            lists: [List::default(); 2],
            pages: Pages::new(),
            most_pages,
        }
    }

    fn offset(&self, entry: Entry) -> u64 {
        entry & (self.config.page_entries() - 1)
    }

    fn promote(&mut self, slot: u32) {
        self.lists[usize::from(self.table.tag(slot))].promote(&mut self.table.links, slot);
    }

    fn move_to(&mut self, slot: u32, tag: u8) {
        if self.table.tag(slot) != tag {
            self.lists[usize::from(self.table.tag(slot))].remove(&mut self.table.links, slot);
            self.lists[usize::from(tag)].push_front(&mut self.table.links, slot);
            self.table.set_tag(slot, tag);
        }
    }

    fn change(&mut self, slot: u32) {
        self.table.set_dirty(slot);
        if self.pages.find(self.table.page(slot)).is_none() {
            self.move_to(slot, HELD);
        }
    }

    /// Reads a page into the second level: what was held for it may go now.
    fn load(&mut self, page: TranslationPage, steps: &mut Vec<CacheStep>) {
        if self.pages.len() >= self.most_pages {
            self.evict_page(steps);
        }
        steps.push(CacheStep::Read { page });
        self.pages.insert(page, EntrySet::default());
        let held: Vec<u32> = self.table.dirty_of(page).collect();
        held.into_iter().for_each(|slot| self.move_to(slot, FREE_TO_GO));
    }

    fn evict_page(&mut self, steps: &mut Vec<CacheStep>) {
        let Some(coldest) = self.pages.coldest().next() else { return };
        let page = self.pages.page(coldest);
        let changes = self.pages.remove(coldest);
        if changes.count() > 0 || self.table.dirty_of(page).next().is_some() {
            steps.push(CacheStep::Write { page, whole: true });
            self.table.clean_page(page);
        }
    }

    fn evict_entry(&mut self, steps: &mut Vec<CacheStep>) {
        if self.lists[usize::from(FREE_TO_GO)].is_empty()
            && let Some(oldest) = self.lists[usize::from(HELD)].back()
        {
            self.load(self.table.page(oldest), steps);
        }
        let Some(victim) = self.lists[usize::from(FREE_TO_GO)].back() else { return };
        let entry = self.table.entry(victim);
        if self.table.is_dirty(victim)
            && let Some(page) = self.pages.find(self.table.page(victim))
        {
            let offset = self.offset(entry);
            self.pages.get_mut(page).add(offset);
            self.table.set_clean(victim);
        }
        self.lists[usize::from(FREE_TO_GO)].remove(&mut self.table.links, victim);
        self.table.remove(victim);
    }

    fn admit(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) -> u32 {
        if self.table.is_full() {
            self.evict_entry(steps);
        }
        let slot = self.table.insert(entry, FREE_TO_GO);
        self.lists[usize::from(FREE_TO_GO)].push_front(&mut self.table.links, slot);
        slot
    }

    /// Makes sure of the page; says whether it was there.
    fn want_page(&mut self, page: TranslationPage, steps: &mut Vec<CacheStep>) -> bool {
        let found = self.pages.find(page);
        match found {
            Some(slot) => self.pages.touch(slot),
            None => self.load(page, steps),
        }
        found.is_some()
    }
}

impl Cache for Cdftl {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let (slot, hit) = match self.table.find(entry) {
            Some(slot) => {
                self.promote(slot);
                (slot, true)
            }
            None => {
                // The entry's place first: emptying it may need the room for a page.
                let slot = self.admit(entry, steps);
                (slot, self.want_page(self.config.page_of(entry), steps))
            }
        };
        if access.is_change() {
            self.change(slot);
        }
        hit
    }

    fn moved(&mut self, entry: Entry) -> bool {
        if let Some(slot) = self.table.find(entry) {
            self.change(slot);
            return true;
        }
        let offset = self.offset(entry);
        let found = self.pages.find(self.config.page_of(entry));
        found.into_iter().for_each(|slot| self.pages.get_mut(slot).add(offset));
        found.is_some()
    }

    fn written(&mut self, page: TranslationPage) {
        let held: Vec<u32> = self.table.dirty_of(page).collect();
        held.into_iter().for_each(|slot| self.move_to(slot, FREE_TO_GO));
        self.table.clean_page(page);
        if let Some(slot) = self.pages.find(page) {
            self.pages.get_mut(slot).clear();
        }
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        let offset = self.offset(entry);
        let page = self.pages.find(self.config.page_of(entry));
        self.table.is_dirty_entry(entry)
            || page.is_some_and(|slot| self.pages.get(slot).contains(offset))
    }

    fn occupancy(&self) -> Occupancy {
        let of_pages = self.pages.len() as u64 * self.config.page_entries();
        let changed: u64 =
            self.pages.coldest().map(|slot| u64::from(self.pages.get(slot).count())).sum();
        Occupancy {
            entries: self.table.len() as u64 + of_pages,
            dirty: self.table.dirty() as u64 + changed,
            ..Occupancy::default()
        }
    }
}
