//! Cached translation pages, or what a cache knows of them: a slab found by page, in the order of
//! their last use.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::TranslationPage;
use super::list::{Links, List};

#[derive(Clone, Debug)]
pub(super) struct Pages<T> {
    slots: Vec<(TranslationPage, T)>,
    free: Vec<u32>,
    index: HashMap<TranslationPage, u32, FxBuildHasher>,
    links: Vec<Links>,
    order: List,
}

impl<T: Default> Pages<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: HashMap::default(),
            links: Vec::new(),
            order: List::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn find(&self, page: TranslationPage) -> Option<u32> {
        self.index.get(&page).copied()
    }

    pub(super) fn page(&self, slot: u32) -> TranslationPage {
        self.slots[slot as usize].0
    }

    pub(super) fn get(&self, slot: u32) -> &T {
        &self.slots[slot as usize].1
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize].1
    }

    /// Adds a page that is not there as the most recently used.
    pub(super) fn insert(&mut self, page: TranslationPage, value: T) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = (page, value);
                slot
            }
            None => {
                self.slots.push((page, value));
                self.links.push(Links::default());
                self.slots.len() as u32 - 1
            }
        };
        self.index.insert(page, slot);
        self.order.push_front(&mut self.links, slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) -> T {
        self.index.remove(&self.page(slot));
        self.order.remove(&mut self.links, slot);
        self.free.push(slot);
        std::mem::take(self.get_mut(slot))
    }

    /// The page is used now.
    pub(super) fn touch(&mut self, slot: u32) {
        self.order.promote(&mut self.links, slot);
    }

    /// The pages, the least recently used first.
    pub(super) fn coldest(&self) -> impl Iterator<Item = u32> {
        let mut next = self.order.back();
        std::iter::from_fn(move || {
            let slot = next?;
            next = List::before(&self.links, slot);
            Some(slot)
        })
    }
}

/// A set of entries of a wholly cached page, by their places in it.
#[derive(Clone, Debug, Default)]
pub(super) struct EntrySet {
    words: Vec<u64>,
    count: u32,
}

impl EntrySet {
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn contains(&self, offset: u64) -> bool {
        self.words.get((offset / 64) as usize).is_some_and(|word| word >> (offset % 64) & 1 == 1)
    }

    pub(super) fn add(&mut self, offset: u64) {
        if self.contains(offset) {
            return;
        }
        let word = (offset / 64) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (offset % 64);
        self.count += 1;
    }

    pub(super) fn remove(&mut self, offset: u64) {
        if self.contains(offset) {
            self.words[(offset / 64) as usize] &= !(1 << (offset % 64));
            self.count -= 1;
        }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
    }
}
