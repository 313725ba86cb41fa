//! References of the policies that know translation pages.

use super::super::cdftl;
use super::super::condensed::{Condense, MEASURED_AFTER, Measured, WINDOW};
use super::super::tpftl::{NODE_BYTES, PACKED_ENTRY_BYTES, SWITCH};
use super::entries::Bag;
use super::*;

/// A translation page in the cache.
#[derive(Clone, Debug)]
struct Whole {
    page: TranslationPage,
    used: u64,
    dirty: BTreeSet<Entry>,
    form: Measured,
    is_stale: bool,
}

pub(super) struct Cdftl {
    cmt: Bag,
    ctp: Vec<Whole>,
    most_pages: usize,
    most_entries: usize,
    now: u64,
}

impl Cdftl {
    pub(super) fn new(config: CacheConfig) -> Self {
        let (most_pages, most_entries) = cdftl::sizes(&config);
        Self { cmt: Bag::new(config), ctp: Vec::new(), most_pages, most_entries, now: 0 }
    }

    fn whole(&mut self, page: TranslationPage) -> Option<&mut Whole> {
        self.ctp.iter_mut().find(|whole| whole.page == page)
    }

    fn has(&self, page: TranslationPage) -> bool {
        self.ctp.iter().any(|whole| whole.page == page)
    }

    fn is_held(&self, cached: &entries::Cached) -> bool {
        cached.dirty && !self.has(self.cmt.config.page_of(cached.entry))
    }

    fn load(&mut self, page: TranslationPage, steps: &mut Vec<CacheStep>) {
        if self.ctp.len() == self.most_pages {
            let coldest = (0..self.ctp.len()).min_by_key(|&i| self.ctp[i].used).unwrap();
            let gone = self.ctp.swap_remove(coldest);
            let config = self.cmt.config;
            let in_cmt =
                self.cmt.entries.iter().any(|c| c.dirty && config.page_of(c.entry) == gone.page);
            if in_cmt || !gone.dirty.is_empty() {
                steps.push(CacheStep::Write { page: gone.page, whole: true });
                self.cmt.clean(gone.page);
            }
        }
        steps.push(CacheStep::Read { page });
        self.now += 1;
        let whole = Whole {
            page,
            used: self.now,
            dirty: BTreeSet::new(),
            form: Measured::default(),
            is_stale: false,
        };
        self.ctp.push(whole);
        self.release(page);
    }

    /// Takes what was held for a page to the front, the first that was changed first.
    fn release(&mut self, page: TranslationPage) {
        let config = self.cmt.config;
        let held: Vec<Entry> = self.changed_in_order(page);
        for entry in held {
            let now = self.cmt.tick();
            debug_assert_eq!(config.page_of(entry), page);
            self.cmt.find(entry).unwrap().used = now;
        }
    }

    fn changed_in_order(&self, page: TranslationPage) -> Vec<Entry> {
        let config = self.cmt.config;
        let of_page =
            self.cmt.entries.iter().filter(|c| c.dirty && config.page_of(c.entry) == page);
        let mut held: Vec<(u64, Entry)> = of_page.map(|c| (c.changed, c.entry)).collect();
        held.sort_unstable();
        held.into_iter().map(|(_, entry)| entry).collect()
    }

    fn evict(&mut self, steps: &mut Vec<CacheStep>) {
        if self.cmt.entries.iter().all(|cached| self.is_held(cached)) {
            let oldest = self.cmt.oldest(|_| true).unwrap();
            self.load(self.cmt.config.page_of(oldest.entry), steps);
        }
        let victim = self.cmt.oldest(|cached| !self.is_held(cached)).unwrap();
        if victim.dirty {
            let page = self.cmt.config.page_of(victim.entry);
            self.whole(page).unwrap().dirty.insert(victim.entry);
        }
        self.cmt.drop_entry(victim.entry);
    }

    fn change(&mut self, entry: Entry) {
        let is_in_ctp = self.has(self.cmt.config.page_of(entry));
        let now = self.cmt.tick();
        let cached = self.cmt.find(entry).unwrap();
        if !std::mem::replace(&mut cached.dirty, true) {
            cached.changed = now;
            if !is_in_ctp {
                cached.used = now;
            }
        }
    }
}

impl Model for Cdftl {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let page = self.cmt.config.page_of(entry);
        let mut hit = self.cmt.find(entry).is_some();
        if hit {
            let now = self.cmt.tick();
            self.cmt.find(entry).unwrap().used = now;
        } else {
            if self.cmt.entries.len() == self.most_entries {
                self.evict(steps);
            }
            self.cmt.add(entry);
            hit = self.has(page);
            self.now += 1;
            let now = self.now;
            match self.whole(page) {
                Some(whole) => whole.used = now,
                None => self.load(page, steps),
            }
        }
        if access.is_change() {
            self.change(entry);
        }
        hit
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let page = self.cmt.config.page_of(entry);
        if self.cmt.find(entry).is_some() {
            self.change(entry);
            return true;
        }
        self.whole(page).map(|whole| whole.dirty.insert(entry)).is_some()
    }

    fn written(&mut self, page: TranslationPage) {
        if !self.has(page) {
            self.release(page);
        }
        self.cmt.clean(page);
        self.whole(page).into_iter().for_each(|whole| whole.dirty.clear());
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.cmt.is_dirty(entry) || self.ctp.iter().any(|whole| whole.dirty.contains(&entry))
    }
}

pub(super) struct CondensedPages {
    config: CacheConfig,
    condense: Condense,
    pages: Vec<Whole>,
    changes: u32,
    now: u64,
}

impl CondensedPages {
    pub(super) fn new(config: CacheConfig, condense: Condense) -> Self {
        Self { config, condense, pages: Vec::new(), changes: 0, now: 0 }
    }

    fn measure(&mut self, shape: &dyn Shape) {
        for whole in self.pages.iter_mut().filter(|whole| whole.is_stale) {
            whole.form = (self.condense)(&self.config, shape, whole.page);
            whole.is_stale = false;
        }
        self.changes = 0;
    }

    fn make_room(&mut self, bytes: u64, steps: &mut Vec<CacheStep>) {
        let taken = |pages: &[Whole]| pages.iter().map(|whole| whole.form.bytes).sum::<u64>();
        while taken(&self.pages) + bytes > self.config.bytes && !self.pages.is_empty() {
            self.pages.sort_by_key(|whole| whole.used);
            let window = self.pages.len().min(WINDOW);
            let victim = (0..window).min_by_key(|&i| self.pages[i].dirty.len()).unwrap();
            let gone = self.pages.remove(victim);
            if !gone.dirty.is_empty() {
                steps.push(CacheStep::Write { page: gone.page, whole: true });
            }
        }
    }

    fn load(&mut self, page: TranslationPage, shape: &dyn Shape, steps: &mut Vec<CacheStep>) {
        self.measure(shape);
        let form = (self.condense)(&self.config, shape, page);
        self.make_room(form.bytes, steps);
        steps.push(CacheStep::Read { page });
        self.pages.push(Whole {
            page,
            used: self.now,
            dirty: BTreeSet::new(),
            form,
            is_stale: false,
        });
    }

    fn whole(&mut self, page: TranslationPage) -> Option<&mut Whole> {
        self.pages.iter_mut().find(|whole| whole.page == page)
    }
}

impl Model for CondensedPages {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        _: u32,
        shape: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        if self.changes >= MEASURED_AFTER {
            self.measure(shape);
            self.make_room(0, steps);
        }
        self.now += 1;
        let (page, now) = (self.config.page_of(entry), self.now);
        let hit = self.whole(page).is_some();
        if !hit {
            self.load(page, shape, steps);
        }
        let offset = entry % self.config.page_entries();
        let whole = self.whole(page).unwrap();
        if hit && access == Access::Read && whole.form.misled.contains(offset) {
            steps.push(CacheStep::Read { page });
        }
        whole.used = now;
        if access.is_change() {
            whole.form.misled.remove(offset);
            whole.dirty.insert(entry);
            whole.is_stale = true;
            self.changes += 1;
        }
        hit
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let offset = entry % self.config.page_entries();
        let change = |whole: &mut Whole| {
            whole.form.misled.remove(offset);
            whole.dirty.insert(entry);
            whole.is_stale = true;
        };
        let took = self.whole(self.config.page_of(entry)).map(change).is_some();
        self.changes += u32::from(took);
        took
    }

    fn written(&mut self, page: TranslationPage) {
        self.whole(page).into_iter().for_each(|whole| whole.dirty.clear());
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.pages.iter().any(|whole| whole.dirty.contains(&entry))
    }
}

pub(super) struct Tpftl {
    bag: Bag,
    /// Time when each page that has entries was last used.
    nodes: BTreeMap<TranslationPage, u64>,
    balance: i32,
    is_selective: bool,
}

impl Tpftl {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self { bag: Bag::new(config), nodes: BTreeMap::new(), balance: 0, is_selective: false }
    }

    fn bytes(&self) -> u64 {
        self.bag.entries.len() as u64 * PACKED_ENTRY_BYTES + self.nodes.len() as u64 * NODE_BYTES
    }

    fn coldest(&self) -> Option<TranslationPage> {
        self.nodes.iter().min_by_key(|(_, used)| **used).map(|(page, _)| *page)
    }

    fn switch(&mut self, by: i32) {
        self.balance += by;
        if self.balance == SWITCH || self.balance == -SWITCH {
            self.is_selective = self.balance == -SWITCH;
            self.balance = 0;
        }
    }

    fn evict(&mut self, steps: &mut Vec<CacheStep>) {
        let (page, config) = (self.coldest().unwrap(), self.bag.config);
        let clean = |bag: &Bag| bag.oldest(|c| config.page_of(c.entry) == page && !c.dirty);
        if clean(&self.bag).is_none() {
            steps.push(CacheStep::Write { page, whole: false });
            self.written(page);
        }
        let victim = clean(&self.bag).unwrap();
        self.bag.drop_entry(victim.entry);
        if !self.bag.entries.iter().any(|c| config.page_of(c.entry) == page) {
            self.nodes.remove(&page);
            self.switch(-1);
        }
    }

    fn use_node(&mut self, page: TranslationPage) {
        let now = self.bag.tick();
        if self.nodes.insert(page, now).is_none() {
            self.switch(1);
        }
    }

    fn admit(&mut self, entry: Entry, steps: &mut Vec<CacheStep>) {
        let config = self.bag.config;
        let most = config.bytes.max(config.entries() as u64 * PACKED_ENTRY_BYTES);
        while self.bytes() + PACKED_ENTRY_BYTES + NODE_BYTES > most && !self.bag.entries.is_empty()
        {
            self.evict(steps);
        }
        self.use_node(config.page_of(entry));
        self.bag.add(entry);
    }

    fn prefetched(&mut self, entry: Entry, following: u32) -> u64 {
        let config = self.bag.config;
        let offset = entry % config.page_entries();
        let mut wanted = u64::from(following);
        if self.is_selective {
            let in_a_row =
                (1..=offset).take_while(|back| self.bag.find(entry - back).is_some()).count();
            wanted = wanted.max(in_a_row as u64);
        }
        let coldest = self.coldest();
        let of_coldest =
            self.bag.entries.iter().filter(|c| Some(config.page_of(c.entry)) == coldest).count();
        let free = config.bytes.saturating_sub(self.bytes()) / PACKED_ENTRY_BYTES;
        let room = (free + of_coldest as u64).saturating_sub(1);
        wanted.min(config.page_entries() - 1 - offset).min(room)
    }
}

impl Model for Tpftl {
    fn access(
        &mut self,
        entry: Entry,
        access: Access,
        following: u32,
        _: &dyn Shape,
        steps: &mut Vec<CacheStep>,
    ) -> bool {
        let hit = self.bag.find(entry).is_some();
        let page = self.bag.config.page_of(entry);
        if !hit {
            for ahead in (1..=self.prefetched(entry, following)).rev() {
                if self.bag.find(entry + ahead).is_none() {
                    self.admit(entry + ahead, steps);
                }
            }
            self.admit(entry, steps);
            steps.push(CacheStep::Read { page });
        }
        self.use_node(page);
        let now = self.bag.tick();
        let cached = self.bag.find(entry).unwrap();
        cached.used = now;
        cached.dirty |= access.is_change();
        hit
    }

    fn moved(&mut self, entry: Entry) -> bool {
        let now = self.bag.tick();
        let change = |cached: &mut entries::Cached| (cached.dirty, cached.used) = (true, now);
        self.bag.find(entry).map(change).is_some()
    }

    /// Counts what was dirty as used now, in its order.
    fn written(&mut self, page: TranslationPage) {
        let config = self.bag.config;
        while let Some(cached) = self.bag.oldest(|c| config.page_of(c.entry) == page && c.dirty) {
            let now = self.bag.tick();
            let cached = self.bag.find(cached.entry).unwrap();
            (cached.dirty, cached.used) = (false, now);
        }
    }

    fn is_dirty(&self, entry: Entry) -> bool {
        self.bag.is_dirty(entry)
    }
}
