//! Cached entries: a slab of slots found by entry, and for each translation page the chain of its
//! dirty entries.
//!
//! A policy keeps the order of the slots in lists of its own through [`Table::links`].

use std::hash::BuildHasher;

use hashbrown::{HashMap, HashTable};
use rustc_hash::FxBuildHasher;

use super::list::{Links, List};
use super::{CacheConfig, Entry, TranslationPage};

/// A cached entry.
#[derive(Clone, Copy, Debug)]
struct CacheSlot {
    entry: Entry,
    dirty: bool,
    /// For the policy: which list it is in, what it has seen.
    tag: u8,
}

fn hash(entry: Entry) -> u64 {
    FxBuildHasher.hash_one(entry)
}

#[derive(Clone, Debug)]
pub(super) struct Table {
    config: CacheConfig,
    capacity: usize,
    slots: Vec<CacheSlot>,
    free: Vec<u32>,
    /// The slots by their entries. Four bytes each: a lookup waits for the host's memory longer
    /// than for all else.
    index: HashTable<u32>,
    /// The dirty entries of each translation page that has any.
    changed: HashMap<TranslationPage, List, FxBuildHasher>,
    dirty_links: Vec<Links>,
    dirty: usize,
    /// The order that the policy keeps.
    pub(super) links: Vec<Links>,
}

impl Table {
    pub(super) fn new(config: CacheConfig, capacity: usize) -> Self {
        Self {
            config,
            capacity,
            slots: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            changed: HashMap::default(),
            dirty_links: Vec::new(),
            dirty: 0,
            links: Vec::new(),
        }
    }

    pub(super) fn find(&self, entry: Entry) -> Option<u32> {
        self.index.find(hash(entry), |&slot| self.entry(slot) == entry).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.capacity
    }

    pub(super) fn dirty(&self) -> usize {
        self.dirty
    }

    pub(super) fn entry(&self, slot: u32) -> Entry {
        self.slots[slot as usize].entry
    }

    pub(super) fn page(&self, slot: u32) -> TranslationPage {
        self.config.page_of(self.entry(slot))
    }

    pub(super) fn tag(&self, slot: u32) -> u8 {
        self.slots[slot as usize].tag
    }

    pub(super) fn set_tag(&mut self, slot: u32, tag: u8) {
        self.slots[slot as usize].tag = tag;
    }

    /// Adds a clean entry that is not there.
    pub(super) fn insert(&mut self, entry: Entry, tag: u8) -> u32 {
        let new = CacheSlot { entry, dirty: false, tag };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                self.links.push(Links::default());
                self.dirty_links.push(Links::default());
                self.slots.len() as u32 - 1
            }
        };
        self.index.insert_unique(hash(entry), slot, |&slot| hash(self.slots[slot as usize].entry));
        slot
    }

    /// Drops a clean entry that is in no list any more.
    pub(super) fn remove(&mut self, slot: u32) {
        debug_assert!(!self.is_dirty(slot), "a change of {} would be lost", self.entry(slot));
        if let Ok(place) = self.index.find_entry(hash(self.entry(slot)), |&found| found == slot) {
            place.remove();
        }
        self.free.push(slot);
    }

    pub(super) fn is_dirty(&self, slot: u32) -> bool {
        self.slots[slot as usize].dirty
    }

    pub(super) fn set_dirty(&mut self, slot: u32) {
        if !self.is_dirty(slot) {
            self.slots[slot as usize].dirty = true;
            self.dirty += 1;
            self.changed
                .entry(self.page(slot))
                .or_default()
                .push_front(&mut self.dirty_links, slot);
        }
    }

    /// One entry is written.
    pub(super) fn set_clean(&mut self, slot: u32) {
        let page = self.page(slot);
        let Some(chain) = self.changed.get_mut(&page).filter(|_| self.slots[slot as usize].dirty)
        else {
            return;
        };
        chain.remove(&mut self.dirty_links, slot);
        if chain.is_empty() {
            self.changed.remove(&page);
        }
        self.slots[slot as usize].dirty = false;
        self.dirty -= 1;
    }

    /// All entries of a translation page are written.
    pub(super) fn clean_page(&mut self, page: TranslationPage) {
        let Some(chain) = self.changed.remove(&page) else { return };
        self.dirty -= chain.len();
        let mut next = chain.back();
        while let Some(slot) = next {
            self.slots[slot as usize].dirty = false;
            next = List::before(&self.dirty_links, slot);
        }
    }

    pub(super) fn is_dirty_entry(&self, entry: Entry) -> bool {
        self.find(entry).is_some_and(|slot| self.is_dirty(slot))
    }

    /// The dirty entries of a page, the one that became dirty first at the front.
    pub(super) fn dirty_of(&self, page: TranslationPage) -> impl Iterator<Item = u32> {
        let mut next = self.changed.get(&page).and_then(List::back);
        std::iter::from_fn(move || {
            let slot = next?;
            next = List::before(&self.dirty_links, slot);
            Some(slot)
        })
    }
}
